// Plan <-> JSON. One list of fields a struct, walked by a writer and a reader, so that the two cannot drift
// apart.
#include "plan/plan_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

namespace ep {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kSchema = "epready-plan-1";

/// Raised inside this file only; turned into an Error at its edge.
struct Bad {
  std::string where, why;
};

// ---- names of the small enumerations ----
constexpr std::string_view kMarks[] = {"add", "change", "remove", "restart"};
constexpr std::string_view kRisks[] = {"user_files", "packages", "kernel_options", "reboot"};
constexpr std::string_view kSeverities[] = {"info", "warn", "fail"};

// ---- one field list a struct: f(visitor, value) calls visitor(key, member) in order ----
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, RunArgv>
void fields(V& v, T& a) {
  v("argv", a.argv), v("cwd", a.cwd), v("env", a.env), v("limit_s", a.limit_s);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, WriteFile>
void fields(V& v, T& a) {
  v("path", a.path), v("content", a.content), v("mode", a.mode);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, RemoveFile>
void fields(V& v, T& a) {
  v("path", a.path);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, MakeLink>
void fields(V& v, T& a) {
  v("path", a.path), v("target", a.target);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, MakeDir>
void fields(V& v, T& a) {
  v("path", a.path), v("mode", a.mode);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, InstallPackages>
void fields(V& v, T& a) {
  v("names", a.names);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, AddAptSource>
void fields(V& v, T& a) {
  v("name", a.name), v("uri", a.uri), v("suite", a.suite), v("components", a.components);
  v("key_url", a.key_url), v("key_sha256", a.key_sha256), v("key_fingerprint", a.key_fingerprint);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Fetch>
void fields(V& v, T& a) {
  v("url", a.url), v("sha256", a.sha256), v("to", a.to);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Unpack>
void fields(V& v, T& a) {
  v("archive", a.archive), v("to", a.to);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, GitCheckout>
void fields(V& v, T& a) {
  v("url", a.url), v("commit", a.commit), v("to", a.to), v("submodules", a.submodules);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, ApplyPatch>
void fields(V& v, T& a) {
  v("patch_path", a.patch_path), v("dir", a.dir);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, CMakeBuild>
void fields(V& v, T& a) {
  v("source", a.source), v("build", a.build), v("install_prefix", a.install_prefix);
  v("options", a.options), v("env", a.env), v("limit_s", a.limit_s);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, PythonVenv>
void fields(V& v, T& a) {
  v("root", a.root), v("python", a.python);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, PipInstall>
void fields(V& v, T& a) {
  v("venv", a.venv), v("requirements", a.requirements), v("overrides", a.overrides);
  v("index_url", a.index_url), v("extra_args", a.extra_args), v("no_deps", a.no_deps);
  v("no_build_isolation", a.no_build_isolation), v("env", a.env), v("limit_s", a.limit_s);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, MergeModuleOptions>
void fields(V& v, T& a) {
  v("module", a.module), v("options", a.options), v("owned_path", a.owned_path);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, RefreshInitramfs> ||
    std::is_same_v<std::remove_const_t<T>, Reboot>
void fields(V&, T&) {}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, SetLimits>
void fields(V& v, T& a) {
  v("limits", a.limits);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, RunSelf>
void fields(V& v, T& a) {
  v("args", a.args), v("limit_s", a.limit_s);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Predicate>
void fields(V& v, T& p) {
  v("name", p.name), v("args", p.args);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, SkippedStep>
void fields(V& v, T& s) {
  v("id", s.id), v("title", s.title), v("reason", s.reason), v("runbook_phase", s.runbook_phase);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Evidence>
void fields(V& v, T& e) {
  v("source", e.source), v("line", e.line), v("text", e.text);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Finding>
void fields(V& v, T& f) {
  v("kind", f.code), v("severity", f.severity), v("confidence", f.confidence), v("title", f.title);
  v("cause", f.cause), v("fix", f.fix), v("evidence", f.evidence), v("ruled_out", f.ruled_out);
  v("next", f.next);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Step>
void fields(V& v, T& s) {
  v("id", s.id), v("component", s.component), v("mark", s.mark), v("title", s.title), v("why", s.why);
  v("needs_steps", s.needs_steps), v("risk", s.risk), v("needs_root", s.needs_root);
  v("needs_network", s.needs_network), v("before", s.before), v("actions", s.actions), v("after", s.after);
  v("undo", s.undo), v("estimate_s", s.estimate_s), v("runbook_phase", s.runbook_phase);
}
template <class V, class T>
requires std::is_same_v<std::remove_const_t<T>, Plan>
void fields(V& v, T& p) {
  v("schema", p.schema), v("host_name", p.host_name), v("lane", p.lane), v("stack", p.stack);
  v("platform", p.platform), v("consumer", p.consumer), v("prefix", p.prefix), v("steps", p.steps);
  v("skipped", p.skipped), v("notes", p.notes), v("facts_used", p.facts_used);
}

template <size_t I>
using Alternative = std::variant_alternative_t<I, Action>;
constexpr std::string_view kActionKinds[] = {
    "run",         "write-file", "remove-file",    "make-link", "make-dir",   "install-packages",
    "apt-source",  "fetch",      "unpack",         "git",       "patch",      "cmake",
    "python-venv", "pip",        "module-options", "initramfs", "set-limits", "reboot",
    "run-self"};
static_assert(std::size(kActionKinds) == std::variant_size_v<Action>);

// ---- writing ----
struct Writer;
Json write(const std::string& s);
Json write(bool b) {
  return b;
}
Json write(int i) {
  return i;
}
Json write(uint32_t u) {
  return u;
}
Json write(double d) {
  return d;
}
Json write(Mark m) {
  return std::string(to_string(m));
}
Json write(Risk r) {
  return std::string(to_string(r));
}
Json write(Severity s) {
  return std::string(to_string(s));
}
Json write(const std::map<std::string, std::string>& m) {
  return m;
}
Json write(const Action& a);
template <class T>
Json write(const std::vector<T>& items);
template <class T>
requires std::is_class_v<T> Json write(const T& value);
Json write(const std::string& s) {
  return s;
}

struct Writer {
  Json out = Json::object();
  template <class T>
  void operator()(const char* key, const T& member) {
    out[key] = write(member);
  }
};
template <class T>
Json write(const std::vector<T>& items) {
  Json a = Json::array();
  for (const auto& i : items) a.push_back(write(i));
  return a;
}
template <class T>
requires std::is_class_v<T> Json write(const T& value) {
  Writer w;
  fields(w, value);
  return w.out;
}
Json write(const Action& a) {
  Json j = std::visit([](const auto& x) { return write(x); }, a);
  j["do"] = std::string(action_kind(a));
  return j;
}

// ---- reading ----
void expect(bool ok, const std::string& where, const char* what) {
  if (!ok) throw Bad{where, fmt::format("expected {}", what)};
}
void read(const Json& j, std::string& s, const std::string& at) {
  expect(j.is_string(), at, "a string");
  s = j.get<std::string>();
}
void read(const Json& j, bool& b, const std::string& at) {
  expect(j.is_boolean(), at, "true or false");
  b = j.get<bool>();
}
void read(const Json& j, int& i, const std::string& at) {
  expect(j.is_number_integer() && j >= -2147483648LL && j <= 2147483647LL, at, "a whole number");
  i = j.get<int>();
}
void read(const Json& j, uint32_t& u, const std::string& at) {
  expect(j.is_number_integer() && j >= 0 && j <= 4294967295LL, at, "a number from 0");
  u = j.get<uint32_t>();
}
void read(const Json& j, double& d, const std::string& at) {
  expect(j.is_number(), at, "a number");
  d = j.get<double>();
}
template <class E, size_t N>
void read_enum(const Json& j, E& e, const std::string& at, const std::string_view (&names)[N]) {
  std::string word;
  read(j, word, at);
  for (size_t i = 0; i < N; ++i)
    if (names[i] == word) {
      e = E(int(i));
      return;
    }
  throw Bad{at, fmt::format("unknown word \"{}\"", word)};
}
void read(const Json& j, Mark& m, const std::string& at) {
  read_enum(j, m, at, kMarks);
}
void read(const Json& j, Risk& r, const std::string& at) {
  read_enum(j, r, at, kRisks);
}
void read(const Json& j, Severity& s, const std::string& at) {
  read_enum(j, s, at, kSeverities);
}
void read(const Json& j, std::map<std::string, std::string>& m, const std::string& at) {
  expect(j.is_object(), at, "an object of strings");
  for (const auto& [key, value] : j.items()) read(value, m[key], at + "." + key);
}
void read(const Json& j, Action& a, const std::string& at);
template <class T>
void read(const Json& j, std::vector<T>& items, const std::string& at);
template <class T>
requires std::is_class_v<T>
void read(const Json& j, T& value, const std::string& at, bool is_action = false);

struct Reader {
  const Json& in;
  const std::string& at;
  std::set<std::string> seen;
  template <class T>
  void operator()(const char* key, T& member) {
    const auto found = in.find(key);
    const std::string place = at.empty() ? std::string(key) : at + "." + key;
    if (found == in.end()) throw Bad{place, "missing"};
    seen.insert(key);
    read(*found, member, place);
  }
};
template <class T>
void read(const Json& j, std::vector<T>& items, const std::string& at) {
  expect(j.is_array(), at, "a list");
  items.clear();
  for (size_t i = 0; i < j.size(); ++i) {
    T item{};
    read(j[i], item, fmt::format("{}[{}]", at, i));
    items.push_back(std::move(item));
  }
}
template <class T>
requires std::is_class_v<T>
void read(const Json& j, T& value, const std::string& at, bool is_action) {
  expect(j.is_object(), at, "an object");
  Reader r{j, at, {}};
  if (is_action) r.seen.insert("do");
  fields(r, value);
  for (const auto& [key, unused] : j.items())
    if (!r.seen.count(key)) throw Bad{at.empty() ? key : at + "." + key, "unknown key"};
}
template <size_t I = 0>
void read_alternative(const Json& j, Action& a, const std::string& at, const std::string& kind) {
  if constexpr (I == std::variant_size_v<Action>) {
    throw Bad{at + ".do", fmt::format("unknown action \"{}\"", kind)};
  } else if (kActionKinds[I] == kind) {
    Alternative<I> x{};
    read(j, x, at, true);
    a = std::move(x);
  } else {
    read_alternative<I + 1>(j, a, at, kind);
  }
}
void read(const Json& j, Action& a, const std::string& at) {
  expect(j.is_object() && j.contains("do"), at, "an object with \"do\"");
  std::string kind;
  read(j.at("do"), kind, at + ".do");
  read_alternative(j, a, at, kind);
}

}  // namespace

std::string_view to_string(Mark mark) {
  return kMarks[int(mark)];
}
std::string_view to_string(Risk risk) {
  return kRisks[int(risk)];
}
std::string_view action_kind(const Action& action) {
  return kActionKinds[action.index()];
}

std::string plan_to_json(const Plan& plan) {
  return write(plan).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Plan> plan_from_json(std::string_view text) {
  constexpr const char* kNext = "epready plan -o FILE";
  Json j;
  try {
    j = Json::parse(text);
  } catch (const Json::parse_error& e) {
    return fail(ErrorKind::malformed, "the plan file is not JSON", fmt::format("byte {}", e.byte), e.what(),
                kNext);
  }
  try {
    if (!j.is_object() || !j.contains("schema") || !j["schema"].is_string())
      throw Bad{"schema", fmt::format("missing; expected \"{}\"", kSchema)};
    if (j["schema"].get<std::string>() != kSchema)
      return fail(ErrorKind::usage, "not a plan of this version", "schema",
                  fmt::format("\"{}\" is not \"{}\": another version wrote it",
                              j["schema"].get<std::string>(), kSchema),
                  kNext);
    Plan plan;
    read(j, plan, "");
    return plan;
  } catch (const Bad& b) {
    return fail(ErrorKind::malformed, "not a plan of this version", b.where, b.why, kNext);
  }
}

}  // namespace ep
