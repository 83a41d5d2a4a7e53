// Reads the files of data/ into a Recipe: one reader a kind of file, all complaints collected.
#include "recipe/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "recipe/data_files.h"

namespace ep {
namespace {

std::string place_of(const std::string& file, const TomlNode& node) {
  return fmt::format("{}:{}", file, node.line);
}

std::string id_from(const std::string& file) {
  const size_t slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return name.substr(0, name.rfind('.'));
}

/// `id` must say what the file is called, so that a person finds it.
std::string read_id(TomlReader& r) {
  const std::string id = r.text("id", true);
  if (!id.empty() && id != id_from(r.file()))
    r.complain(*r.node().find("id"), fmt::format("id \"{}\" differs from the file's name", id),
               fmt::format("expected \"{}\"", id_from(r.file())));
  return id;
}

/// "FILE.whl SHA256" each.
std::vector<std::string> read_files(TomlReader& r, std::string_view key, std::string_view end = ".whl") {
  auto out = r.strings(key);
  for (const auto& w : out) {
    const auto words = split_ws(w);
    if (words.size() != 2 || !ends_with(words[0], end) || !is_sha256_hex(std::string(words[1])))
      r.complain(*r.node().find(key), fmt::format("\"{}\" names no *{} with its hash", w, end),
                 fmt::format("expected FILE{} and 64 hexadecimal digits", end));
  }
  return out;
}

WheelSet read_wheel_set(const TomlNode& doc, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(doc, file, errors);
  WheelSet out;
  out.file = file;
  out.id = read_id(r);
  out.of = r.text("of", true);
  out.sources = read_sources(r, "source", true);
  for (const auto* n : r.tables("wheel")) {
    TomlReader w(*n, file, errors);
    LockedWheel wheel{w.text("requirement", true), w.text("marker"), read_files(w, "files")};
    if (!contains(wheel.requirement, "==") || wheel.files.empty())
      w.complain(*n, "a wheel of a closed set without its one version or its files",
                 "expected requirement = \"NAME==VERSION\" and files = [\"FILE.whl SHA256\"]");
    w.finish();
    out.wheels.push_back(std::move(wheel));
  }
  if (out.wheels.empty()) r.complain(doc, "a closed set without wheels");
  r.finish();
  return out;
}

Release read_release(const TomlNode& node, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(node, file, errors);
  Release out;
  out.place = place_of(file, node);
  out.version = r.text("version", true);
  out.date = r.text("date");
  out.traits = r.strings("traits");
  out.pins = read_map(r, "pins", errors);
  out.git_commit = r.text("commit");
  out.git_ref = r.text("ref");
  out.requirement = r.text("requirement");
  out.wheels = read_files(r, "wheels");
  out.archives = read_files(r, "archives", ".tar.xz");
  out.index_url = r.text("index_url");
  out.packages = r.strings("packages");
  out.apt_repo = r.text("apt");
  out.image = r.text("image");
  out.note = read_phrase(r, "note", false);
  out.sources = read_sources(r, "source", true);
  const bool hex = std::all_of(out.git_commit.begin(), out.git_commit.end(),
                               [](unsigned char c) { return std::isdigit(c) || (c >= 'a' && c <= 'f'); });
  if (!out.git_commit.empty() && (out.git_commit.size() != 40 || !hex))
    r.complain(*node.find("commit"), "not a full commit", "expected 40 hexadecimal digits");
  r.finish();
  return out;
}

AptRepo read_apt(const TomlNode& node, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(node, file, errors);
  AptRepo out{r.text("id", true),      r.text("uri", true),  r.text("suite", true),     r.text("components"),
              r.text("key_url", true), r.text("key_sha256"), r.text("key_fingerprint"), {}};
  out.sources = read_sources(r, "source", false);
  const std::string& f = out.key_fingerprint;
  if (!f.empty() && (f.size() != 40 || f.find_first_not_of("0123456789ABCDEF") != f.npos))
    r.complain(*node.find("key_fingerprint"), "not a whole fingerprint",
               "expected 40 hexadecimal digits in capitals, without spaces");
  if (!f.empty() && out.sources.empty())
    r.complain(*node.find("key_fingerprint"), "a fingerprint without a source",
               "expected source = [\"DATE ADDRESS what it says\"]");
  r.finish();
  return out;
}

Rule read_rule(const TomlNode& node, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(node, file, errors);
  Rule out;
  out.place = place_of(file, node);
  out.id = r.text("id", true);
  out.forbids = r.one_of("severity", {"forbid", "warn"}, "forbid") == "forbid";
  out.when = read_conditions(r, "when");
  out.need = read_conditions(r, "need");
  out.text = read_phrase(r, "text", true);
  out.change = read_phrase(r, "change", true);
  out.sources = read_sources(r, "source", true);
  if (out.need.empty()) r.complain(node, "a rule without \"need\" can never fail");
  r.finish();
  return out;
}

PodLine read_pod_line(const TomlNode& node, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(node, file, errors);
  PodLine out;
  out.at = r.text("at", true);
  out.yaml = r.text("yaml", true);
  out.unless = read_conditions(r, "unless");
  out.why = read_phrase(r, "why", true);
  r.finish();
  return out;
}

template <class T, class F>
void load_area(std::string_view area, const std::string& dir, std::vector<Error>& errors, std::vector<T>& out,
               F read) {
  auto files = data_files(area, dir);
  if (!files) {
    errors.push_back(files.error());
    return;
  }
  for (const auto& file : *files) {
    auto doc = parse_toml(file.content, file.shown);
    if (doc)
      read(*doc, file.shown, out);
    else
      errors.push_back(doc.error());
  }
}

template <class T>
const T* find_by_id(const std::vector<T>& items, std::string_view id) {
  for (const auto& item : items)
    if (item.id == id) return &item;
  return nullptr;
}

}  // namespace

Phrase read_phrase(TomlReader& reader, std::string_view key, bool required) {
  Phrase out;
  const TomlNode* node = reader.any(key);
  if (!node) {
    if (required)
      reader.complain(reader.node(), fmt::format("key \"{}\" is missing", key), "expected { en, zh }");
    return out;
  }
  const TomlNode* en = node->find("en");
  const TomlNode* zh = node->find("zh");
  if (!node->is_table() || !en || !zh || !en->is_string() || !zh->is_string() || node->members.size() != 2 ||
      en->text.empty() || zh->text.empty())
    reader.complain(*node, fmt::format("\"{}\" is not a sentence in both languages", key),
                    "expected { en = \"...\", zh = \"...\" }");
  if (en) out.en = en->text;
  if (zh) out.zh = zh->text;
  return out;
}

std::vector<Condition> read_conditions(TomlReader& reader, std::string_view key) {
  std::vector<Condition> out;
  for (const auto& text : reader.strings(key)) {
    auto c = Condition::parse(text);
    if (c)
      out.push_back(std::move(*c));
    else
      reader.complain(*reader.node().find(key), c.error().what,
                      fmt::format("\"{}\": {}", text, c.error().why));
  }
  return out;
}

std::vector<Citation> read_sources(TomlReader& reader, std::string_view key, bool required) {
  std::vector<Citation> out;
  for (const auto& line : reader.strings(key)) {
    // "DATE ADDRESS what it says"
    const auto words = split_ws(line);
    if (words.size() < 3 || words[0].size() < 4 || words[0].substr(0, 2) != "20") {
      reader.complain(*reader.node().find(key), "not a source",
                      fmt::format("\"{}\"; expected \"DATE ADDRESS what it says\"", line));
      continue;
    }
    const auto says = trim(std::string_view(line).substr(size_t(words[2].data() - line.data())));
    out.push_back({std::string(words[1]), std::string(words[0]), std::string(says)});
  }
  if (required && out.empty())
    reader.complain(reader.node(), "no source", "expected source = [\"DATE ADDRESS what it says\"]");
  return out;
}

std::map<std::string, std::string> read_map(TomlReader& reader, std::string_view key,
                                            std::vector<Error>& errors) {
  std::map<std::string, std::string> out;
  const TomlNode* node = reader.table(key);
  if (!node) return out;
  TomlReader inner(*node, reader.file(), errors);
  for (const auto& [name, value] : node->members) out[name] = inner.text(name, true);
  return out;
}

Component read_component(const TomlNode& doc, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(doc, file, errors);
  Component out;
  out.file = file;
  out.id = read_id(r);
  out.title = read_phrase(r, "title", true);
  out.kind = r.one_of("kind", {"system", "toolkit", "wheel", "git", "tool", "consumer"}, "tool");
  const std::string order = r.one_of("order", {"dotted", "pep440", "debian"}, "dotted");
  out.order = order == "pep440"   ? VersionOrder::pep440
              : order == "debian" ? VersionOrder::debian
                                  : VersionOrder::dotted;
  out.git_url = r.text("git_url");
  for (const auto* n : r.tables("release")) out.releases.push_back(read_release(*n, file, errors));
  for (const auto* n : r.tables("apt")) out.apt.push_back(read_apt(*n, file, errors));
  if (const TomlNode* lists = r.table("lists")) {
    TomlReader inner(*lists, file, errors);
    for (const auto& [name, value] : lists->members) out.lists[name] = inner.strings(name);
  }
  for (const auto* n : r.tables("rule")) {
    out.rules.push_back(read_rule(*n, file, errors));
    out.rules.back().component = out.id;
  }
  r.finish();
  return out;
}

Stack read_stack(const TomlNode& doc, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(doc, file, errors);
  Stack out;
  out.file = file;
  out.id = read_id(r);
  out.title = read_phrase(r, "title", true);
  out.lane = r.one_of("lane", {"local", "v1", "v2"}, "local");
  out.consumers = r.strings("consumers");
  out.platforms = r.strings("platforms");
  out.rank = int(r.integer("rank", 100));
  out.when = read_conditions(r, "when");
  out.parts = r.strings("parts");
  out.pins = read_map(r, "pins", errors);
  out.options = read_map(r, "options", errors);
  out.phases = read_map(r, "phases", errors);
  out.proven = read_phrase(r, "proven", true);
  out.sources = read_sources(r, "source", true);
  r.finish();
  return out;
}

Platform read_platform(const TomlNode& doc, const std::string& file, std::vector<Error>& errors) {
  TomlReader r(doc, file, errors);
  Platform out;
  out.file = file;
  out.id = read_id(r);
  out.title = read_phrase(r, "title", true);
  out.rank = int(r.integer("rank", 100));
  out.when = read_conditions(r, "when");
  if (const TomlNode* skip = r.table("skip")) {
    TomlReader inner(*skip, file, errors);
    for (const auto& [name, value] : skip->members) out.skip[name] = read_phrase(inner, name, true);
  }
  out.image = r.text("image");
  out.image_cuda = r.text("image_cuda");
  out.gib_dir = r.text("gib");
  out.library_path = r.text("library_path");
  out.disk_image = r.strings("disk_image");
  for (const auto* n : r.tables("pod")) out.pod.push_back(read_pod_line(*n, file, errors));
  for (const auto* n : r.tables("note")) {
    TomlReader inner(*n, file, errors);
    out.notes.push_back(read_phrase(inner, "text", true));
    inner.finish();
  }
  out.sources = read_sources(r, "source", true);
  r.finish();
  return out;
}

std::vector<Baseline> read_baselines(const TomlNode& doc, const std::string& file,
                                     std::vector<Error>& errors) {
  std::vector<Baseline> out;
  TomlReader r(doc, file, errors);
  for (const auto* n : r.tables("baseline")) {
    TomlReader b(*n, file, errors);
    Baseline row;
    row.place = place_of(file, *n);
    row.id = b.text("id", true);
    row.lane = b.one_of("lane", {"local", "v1", "v2"}, "v1");
    row.op = b.one_of("op", {"dispatch", "combine"}, "dispatch");
    row.scope = b.one_of("scope", {"nvlink", "rdma", "total"}, "total");
    row.gpu = b.text("gpu", true);
    row.nic = b.text("nic");
    row.version = b.text("version");
    row.nodes = int(b.integer("nodes", 1));
    row.ranks = int(b.integer("ranks", 8));
    row.tokens = int(b.integer("tokens"));
    row.hidden = int(b.integer("hidden"));
    row.topk = int(b.integer("topk"));
    row.experts = int(b.integer("experts"));
    row.sms = int(b.integer("sms"));
    row.dtype = b.text("dtype");
    row.gbps = b.real("gbps");
    row.latency_us = b.real("latency_us");
    row.bandwidth = b.one_of("bandwidth", {"logical", "wire"}, "logical");
    const auto sources = read_sources(b, "source", true);
    if (!sources.empty()) row.source = sources.front();
    if (row.gbps <= 0 && row.latency_us <= 0)
      b.complain(*n, "a baseline without a figure", "expected gbps or latency_us");
    b.finish();
    out.push_back(std::move(row));
  }
  r.finish();
  return out;
}

const Release* Component::release(std::string_view version) const {
  for (const auto& r : releases)
    if (r.version == version) return &r;
  return nullptr;
}
const Component* Recipe::component(std::string_view id) const {
  return find_by_id(components, id);
}
const Stack* Recipe::stack(std::string_view id) const {
  return find_by_id(stacks, id);
}
const Platform* Recipe::platform(std::string_view id) const {
  return find_by_id(platforms, id);
}
const WheelSet* Recipe::wheel_set(std::string_view of) const {
  for (const auto& s : wheel_sets)
    if (s.of == of) return &s;
  return nullptr;
}

std::vector<Error> load_recipe_all(const std::string& dir, const std::vector<std::string>& known_names,
                                   Recipe& out) {
  std::vector<Error> errors;
  out = {};
  load_area("components", dir, errors, out.components,
            [&](const TomlNode& doc, const std::string& file, auto& into) {
              into.push_back(read_component(doc, file, errors));
            });
  load_area("stacks", dir, errors, out.stacks, [&](const TomlNode& doc, const std::string& file, auto& into) {
    into.push_back(read_stack(doc, file, errors));
  });
  load_area("platforms", dir, errors, out.platforms,
            [&](const TomlNode& doc, const std::string& file, auto& into) {
              into.push_back(read_platform(doc, file, errors));
            });
  load_area("wheels", dir, errors, out.wheel_sets,
            [&](const TomlNode& doc, const std::string& file, auto& into) {
              into.push_back(read_wheel_set(doc, file, errors));
            });
  load_area("baselines", dir, errors, out.baselines,
            [&](const TomlNode& doc, const std::string& file, auto& into) {
              for (auto& b : read_baselines(doc, file, errors)) into.push_back(std::move(b));
            });
  const auto by_rank = [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
  };
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(out.components.begin(), out.components.end(), by_id);
  std::sort(out.stacks.begin(), out.stacks.end(), by_rank);
  std::sort(out.platforms.begin(), out.platforms.end(), by_rank);
  std::sort(out.baselines.begin(), out.baselines.end(), by_id);
  std::sort(out.wheel_sets.begin(), out.wheel_sets.end(), by_id);
  if (errors.empty()) check_references(out, known_names, errors);
  return errors;
}

Result<Recipe> load_recipe(const std::string& dir, const std::vector<std::string>& known_names) {
  Recipe out;
  auto errors = load_recipe_all(dir, known_names, out);
  if (errors.empty()) return out;
  Error first = errors.front();
  if (errors.size() > 1) first.trace.push_back(fmt::format("and {} more", errors.size() - 1));
  if (first.next.empty()) first.next = "epready data lint";
  return Failure(std::move(first));
}

}  // namespace ep
