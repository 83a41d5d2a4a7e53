// manifest.json of a snapshot: everything that is neither file content nor link. One codec for all forms.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "host/snapshot.h"

namespace ep {

namespace {

using Json = nlohmann::ordered_json;
using Type = FileInfo::Type;

// "file 644 4096 rw": type, octal mode, size, what we may do.
std::string info_text(const FileInfo& i) {
  const char* type = i.type == Type::file        ? "file"
                     : i.type == Type::directory ? "directory"
                     : i.type == Type::link      ? "link"
                                                 : "other";
  // "?": a copy of a snapshot that had the node and not its rights
  return fmt::format("{} {:o} {} {}{}{}", type, i.mode, i.size, i.readable ? "r" : "-",
                     i.writable ? "w" : "-", i.captured ? "" : " ?");
}

std::optional<FileInfo> info_from(std::string_view text) {
  auto words = split_ws(text);
  const bool derived = words.size() == 5 && words[4] == "?";
  if ((words.size() != 4 && !derived) || words[3].size() != 2) return std::nullopt;
  FileInfo i;
  i.captured = !derived;
  if (words[0] == "file")
    i.type = Type::file;
  else if (words[0] == "directory")
    i.type = Type::directory;
  else if (words[0] == "link")
    i.type = Type::link;
  else if (words[0] == "other")
    i.type = Type::other;
  else
    return std::nullopt;
  for (char c : words[1]) {
    if (c < '0' || c > '7' || i.mode > 07777) return std::nullopt;
    i.mode = i.mode * 8 + uint32_t(c - '0');
  }
  auto size = parse_int(words[2]);
  if (!size || *size < 0) return std::nullopt;
  i.size = uint64_t(*size);
  i.readable = words[3][0] == 'r';
  i.writable = words[3][1] == 'w';
  return i;
}

Json trouble_json(const Trouble& t) {
  return Json::array({std::string(to_string(t.kind)), t.why});
}

struct Bad {
  std::string why;
};

// Checked steps into untrusted JSON; Bad names the place.
const Json& need(const Json& j, bool ok, const std::string& place, const char* expected) {
  if (!ok) throw Bad{fmt::format("{}: expected {}", place, expected)};
  return j;
}
std::string text_of(const Json& j, const std::string& place) {
  return need(j, j.is_string(), place, "text").get<std::string>();
}
uint64_t number_of(const Json& j, const std::string& place) {
  return need(j, j.is_number_unsigned(), place, "a number that is not negative").get<uint64_t>();
}
Trouble trouble_of(const Json& j, const std::string& place) {
  need(j, j.is_array() && j.size() == 2, place, "[kind, why]");
  std::string kind = text_of(j[0], place);
  if (kind != "unreadable" && kind != "malformed" && kind != "absent")
    throw Bad{place + ": expected the kind absent, unreadable or malformed"};
  return {kind == "unreadable" ? ErrorKind::unreadable
          : kind == "absent"   ? ErrorKind::absent
                               : ErrorKind::malformed,
          text_of(j[1], place)};
}
const std::string& path_of(const std::string& path) {
  if (!is_canonical_path(path)) throw Bad{fmt::format("\"{}\" is not a canonical absolute path", path)};
  return path;
}

template <class F>
void each(const Json& top, const char* key, F f) {
  auto it = top.find(key);
  if (it == top.end()) return;
  need(*it, it->is_object(), key, "a record");
  for (auto& [name, value] : it->items()) f(name, value);
}

SnapshotNode& node_of(SnapshotData& d, const std::string& path, Type when_new) {
  path_of(path);
  auto it = d.nodes.find(path);
  return it != d.nodes.end() ? it->second : d.add(path, when_new);
}

void fill(const Json& top, SnapshotData& d) {
  need(top, top.is_object(), "manifest", "a record");
  if (top.value("schema", "") != kSnapshotSchema)
    throw Bad{fmt::format("schema: expected \"{}\"", kSnapshotSchema)};
  auto optional_text = [&](const char* key) {
    return top.contains(key) ? text_of(top[key], key) : std::string();
  };
  d.tool = optional_text("tool");
  d.time = optional_text("time");
  d.kind = optional_text("kind");
  d.complete = top.contains("complete") &&
               need(top["complete"], top["complete"].is_boolean(), "complete", "true or false").get<bool>();
  each(top, "info", [&](auto& path, auto& v) {
    auto i = info_from(text_of(v, path));
    if (!i) throw Bad{path + ": expected \"TYPE MODE SIZE rw\""};
    node_of(d, path, i->type).info = i;
  });
  if (top.contains("listed")) {
    need(top["listed"], top["listed"].is_array(), "listed", "a list of paths");
    for (auto& v : top["listed"]) node_of(d, text_of(v, "listed"), Type::directory).listed = true;
  }
  each(top, "more", [&](auto& path, auto& v) {
    need(v, v.is_array(), path, "a list of names");
    for (auto& name : v) {
      std::string n = text_of(name, path);
      if (n.empty() || n == "." || n == ".." || contains(n, "/"))
        throw Bad{path + ": \"" + n + "\" is not a file name"};
      node_of(d, path, Type::directory).more.insert(n);
    }
  });
  if (top.contains("absent")) {
    need(top["absent"], top["absent"].is_array(), "absent", "a list of paths");
    for (auto& v : top["absent"]) d.absent.insert(path_of(text_of(v, "absent")));
  }
  each(top, "no_read",
       [&](auto& path, auto& v) { node_of(d, path, Type::file).no_read = trouble_of(v, path); });
  each(top, "no_list",
       [&](auto& path, auto& v) { node_of(d, path, Type::directory).no_list = trouble_of(v, path); });
  each(top, "space", [&](auto& path, auto& v) {
    need(v, v.is_object() && v.contains("total") && v.contains("free"), path, "total, free, type");
    d.space[path] = {number_of(v["total"], path), number_of(v["free"], path),
                     v.contains("type") ? text_of(v["type"], path) : ""};
  });
  each(top, "no_space", [&](auto& path, auto& v) { d.no_space[path] = trouble_of(v, path); });
  each(top, "environment", [&](auto& name, auto& v) { d.environment[name] = text_of(v, name); });
  each(top, "probes", [&](auto& name, auto& v) {
    need(v, v.is_object() && v.contains("found") && v["found"].is_boolean(), name,
         "found, exit_code, timed_out, why");
    ProbeResult& p = d.probes[name];
    p.found = v["found"].template get<bool>();
    if (v.contains("exit_code"))
      p.exit_code = need(v["exit_code"], v["exit_code"].is_number_integer(), name, "a whole number")
                        .template get<int>();
    if (v.contains("timed_out"))
      p.timed_out =
          need(v["timed_out"], v["timed_out"].is_boolean(), name, "true or false").template get<bool>();
    if (v.contains("why")) p.why = text_of(v["why"], name);
  });
}

}  // namespace

std::string to_manifest(const SnapshotData& d) {
  Json j;
  j["schema"] = kSnapshotSchema;
  j["tool"] = d.tool;
  j["time"] = d.time;
  j["kind"] = d.kind;
  j["complete"] = d.complete;
  Json listed = Json::array(), info = Json::object(), more = Json::object(), no_read = Json::object(),
       no_list = Json::object();
  for (const auto& [path, node] : d.nodes) {
    if (node.listed) listed.push_back(path);
    if (node.info) info[path] = info_text(*node.info);
    if (!node.more.empty()) more[path] = node.more;
    if (node.no_read) no_read[path] = trouble_json(*node.no_read);
    if (node.no_list) no_list[path] = trouble_json(*node.no_list);
  }
  j["environment"] = d.environment;
  Json probes = Json::object();
  for (const auto& [name, p] : d.probes) {
    Json& row = probes[name];
    row["found"] = p.found;
    row["exit_code"] = p.exit_code;
    if (p.timed_out) row["timed_out"] = true;
    if (!p.why.empty()) row["why"] = p.why;
  }
  j["probes"] = probes;
  Json space = Json::object(), no_space = Json::object();
  for (const auto& [path, s] : d.space)
    space[path] = Json{{"total", s.total_bytes}, {"free", s.free_bytes}, {"type", s.type}};
  for (const auto& [path, t] : d.no_space) no_space[path] = trouble_json(t);
  j["space"] = space;
  j["no_space"] = no_space;
  j["info"] = info;
  j["no_read"] = no_read;
  j["no_list"] = no_list;
  j["listed"] = listed;
  j["more"] = more;
  j["absent"] = d.absent;
  // Odd bytes in names or words become U+FFFD instead of an exception.
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<> from_manifest(std::string_view json, const std::string& source, SnapshotData& data) {
  try {
    fill(Json::parse(json), data);
    return {};
  } catch (const Json::parse_error& e) {
    size_t at = std::min(e.byte, json.size());
    size_t line = 1 + size_t(std::count(json.begin(), json.begin() + long(at), '\n'));
    return fail(ErrorKind::malformed, "the snapshot's manifest is damaged",
                fmt::format("{}:{}", source, line), "this is not JSON",
                "take a new snapshot: epready snapshot -o DIR");
  } catch (const Json::exception& e) {
    return fail(ErrorKind::malformed, "the snapshot's manifest is damaged", source, e.what());
  } catch (const Bad& bad) {
    return fail(ErrorKind::malformed, "the snapshot's manifest is damaged", source, bad.why);
  }
}

}  // namespace ep
