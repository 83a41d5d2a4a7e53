// `bundle`: a host and logs for a bug report, with names, addresses, serial numbers and secrets replaced.
// Shows first what it replaced; writes only with --yes; the map of stand-ins stays beside the bundle, for the
// user alone.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/log_files.h"
#include "cli/rows.h"
#include "doctor/pseudonyms.h"
#include "facts/facts.h"
#include "host/capture.h"
#include "host/recorder.h"
#include "host/snapshot.h"

namespace ep {

namespace {

constexpr size_t kMostOfALog = 32u << 20;  ///< bytes; of a longer log its begin and its end

struct Piece {
  std::string name, text;
};

Result<Piece> read_log(const std::string& path) {
  auto log = open_log(path);
  if (!log) return Failure(std::move(log.error()));
  std::string head, tail, block(1 << 20, '\0');
  size_t left_out = 0;
  for (;;) {
    auto n = log->read(block.data(), block.size());
    if (!n) return Failure(std::move(n.error()));
    if (*n == 0) break;
    const size_t to_head = std::min(*n, kMostOfALog / 2 - std::min(head.size(), kMostOfALog / 2));
    head.append(block, 0, to_head);
    tail.append(block, to_head, *n - to_head);
    if (tail.size() > kMostOfALog) {
      left_out += tail.size() - kMostOfALog / 2;
      tail.erase(0, tail.size() - kMostOfALog / 2);
    }
  }
  if (left_out > 0) head += fmt::format("\n[epready: {} bytes left out here]\n", left_out);
  std::string name = path == "-" ? "stdin.log" : path.substr(path.rfind('/') + 1);
  return Piece{name, head + tail};
}

Result<> write_new(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return fail(ErrorKind::failed, "cannot write", path, std::strerror(errno));
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::string why = std::strerror(errno);
      ::close(fd);
      return fail(ErrorKind::failed, "cannot write", path, why);
    }
    text.remove_prefix(size_t(n));
  }
  if (::fsync(fd) != 0 || ::close(fd) != 0)
    return fail(ErrorKind::failed, "cannot write", path, std::strerror(errno));
  return {};
}

class Bundle : public Command {
 public:
  std::vector<Option> options() override {
    return {{"files",
             {"Logs to put in; - reads a pipe", "要放入的日志；- 表示从管道读取"},
             &files_,
             {},
             "FILE",
             false},
            {"-o,--output", {"Folder to write", "输出目录"}, &output_, {}, "DIR", false},
            {"--yes",
             {"Write it; without this only a preview is shown", "写出；不加时只预览"},
             &yes_,
             {},
             "",
             false}};
  }

  int run(Context& c) override {
    for (const char* end : {".tar", ".tar.gz", ".tgz", ".zip", ".snap", ".gz", ".xz"})
      if (ends_with(output_, end))
        return c.report(Error{ErrorKind::usage,
                              "a bundle is a folder, not an archive",
                              output_,
                              "what lies in it is meant to be looked through before it is packed",
                              again(output_.substr(0, output_.size() - std::string_view(end).size()), c),
                              {}});
    std::vector<Piece> logs;
    for (const auto& f : files_) {
      auto piece = read_log(f);
      if (!piece) return c.report(piece.error());
      logs.push_back(std::move(*piece));
    }
    auto host = c.open();
    if (!host) return c.report(host.error());
    c.note(c.tr({"reading this host", "正在读取主机"}));
    Recorder recorder(**host);
    const Facts facts = read_facts(recorder);
    capture_declared(recorder);
    if (interrupted())
      return c.report({ErrorKind::interrupted, "stopped, nothing was written", "", "", "", {}});
    SnapshotData data = recorder.data();
    hide(facts, logs, data);
    if (!c.json) preview(c, logs);
    if (!yes_) {
      if (c.json) c.out(json_text(logs));
      c.next(again(output_, c), {"nothing is written yet", "尚未写出任何内容"});
      return 0;
    }
    if (auto ok = write(logs, data); !ok) return c.report(ok.error());
    if (c.json) {
      c.out(json_text(logs));
      return 0;
    }
    c.out(fmt::format("{}: {}\n{}: {}\n", c.tr({"written", "已写出"}), output_,
                      c.tr({"the map, for you alone", "对照表，仅供自己保存"}), map_path()));
    c.next("epready doctor --from " + shell_quote(output_ + "/host.snap"));
    return 0;
  }

 private:
  /// The same with consent, into the same folder, of the same host.
  std::string again(const std::string& output, const Context& c) const {
    return "epready bundle --yes" + (output.empty() ? std::string() : " -o " + shell_quote(output)) +
           c.from_option() + (files_.empty() ? std::string() : " " + shell_join(files_));
  }
  std::string json_text(const std::vector<Piece>& logs) const {
    nlohmann::ordered_json j = {{"schema", "epready-bundle-1"},
                                {"tool", "epready"},
                                {"written", yes_},
                                {"output", yes_ ? output_ : ""},
                                {"map", yes_ ? map_path() : ""}};
    j["replaced"] = nlohmann::ordered_json::array();
    for (const auto& e : names_.entries())
      j["replaced"].push_back({{"what", e.what}, {"original", e.original}, {"stand_in", e.stand_in}});
    j["files"] = nlohmann::ordered_json::array({{{"name", "host.snap"}}});
    for (const auto& p : logs) j["files"].push_back({{"name", "logs/" + p.name}, {"bytes", p.text.size()}});
    return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  /// Of a wheel's description only what facts are read from: the rest names authors, lists and sites that are
  /// nobody's secret and hide what is.
  static std::string needed_fields(std::string_view metadata) {
    std::string out;
    for (const auto line : lines(metadata)) {
      if (line.empty()) break;
      for (const char* field :
           {"Metadata-Version:", "Name:", "Version:", "Requires-Dist:", "Requires-Python:"})
        if (starts_with(line, field)) out += std::string(line) + "\n";
    }
    return out + "\n";
  }

  std::string map_path() const { return output_ + "-map.json"; }

  void hide(const Facts& facts, std::vector<Piece>& logs, SnapshotData& data) {
    if (facts.os.hostname.ok()) names_.know_host(*facts.os.hostname);
    for (const char* variable : {"USER", "LOGNAME", "SUDO_USER", "HOME"})
      if (auto it = data.environment.find(variable); it != data.environment.end())
        names_.know_user(it->second.substr(it->second.rfind('/') + 1));
    for (auto& [path, node] : data.nodes)
      if (node.content && (ends_with(path, ".dist-info/METADATA") || ends_with(path, ".egg-info/PKG-INFO")))
        node.content = needed_fields(*node.content);
    for (const auto& p : logs) names_.learn(p.text);
    for (const auto& [path, node] : data.nodes)
      if (node.content) names_.learn(*node.content);
    for (const auto& [name, probe] : data.probes) names_.learn(probe.out);
    for (auto& p : logs) {
      p.name = names_.replace(p.name);
      p.text = names_.replace(p.text);
    }
    for (auto& [path, node] : data.nodes) {
      if (!node.content) continue;
      // A host may be called by a word that cannot be replaced everywhere ("vm"): where it stands alone, it
      // can.
      if (facts.os.hostname.ok() && trim(*node.content) == *facts.os.hostname &&
          names_.replace(*node.content) == *node.content)
        node.content = names_.host(*facts.os.hostname) + "\n";
      if (ends_with(path, "/vpd"))
        hide_serials(*node.content);
      else
        node.content = names_.replace(*node.content);
    }
    hide_paths(data);
    for (auto& [name, probe] : data.probes) {
      probe.out = names_.replace(probe.out);
      probe.err = names_.replace(probe.err);
    }
    for (auto& [name, value] : data.environment) {
      // The name says that the value is a secret, whatever it looks like.
      if (name == "HOSTNAME" && facts.os.hostname.ok() && value == *facts.os.hostname) {
        value = names_.host(value);
        continue;
      }
      const std::string line = names_.replace(name + "=" + value);
      value = line.substr(std::min(line.size(), name.size() + 1));
    }
  }

  /// Vital product data is binary: two letters, a length, that many bytes. Serial numbers, asset tags and
  /// what vendors put into V* (MAC addresses) are blanked in place.
  static void hide_serials(std::string& vpd) {
    for (size_t i = 0; i + 3 < vpd.size(); ++i) {
      const bool named = vpd.compare(i, 2, "SN") == 0 || vpd.compare(i, 2, "YA") == 0 ||
                         (vpd[i] == 'V' && std::isalnum(static_cast<unsigned char>(vpd[i + 1])));
      const size_t n = static_cast<unsigned char>(vpd[i + 2]);
      if (!named || n == 0 || i + 3 + n > vpd.size()) continue;
      const auto value = vpd.begin() + long(i) + 3;
      if (std::all_of(value, value + long(n), [](char ch) { return ch >= ' ' && ch <= '~'; })) {
        std::fill(value, value + long(n), 'X');
        i += 2 + n;
      }
    }
  }

  /// Home folders carry names: the paths are renamed as the texts are, so that they still fit each other.
  void hide_paths(SnapshotData& data) {
    const auto renamed = [&](const std::string& path) {
      for (const char* below :
           {"/home", "/Users", "/users", "/scratch", "/data", "/mnt", "/opt", "/nfs", "/lustre"})
        if (starts_with(path + "/", std::string(below) + "/")) return names_.replace_names(path);
      return path;
    };
    std::map<std::string, SnapshotNode> nodes;
    for (auto& [path, node] : data.nodes) {
      node.target = renamed(node.target);
      std::set<std::string> more;
      for (const auto& name : node.more)
        more.insert(renamed(path + "/" + name).substr(renamed(path).size() + 1));
      node.more = std::move(more);
      nodes.emplace(renamed(path), std::move(node));
    }
    data.nodes = std::move(nodes);
    std::set<std::string> absent;
    for (const auto& path : data.absent) absent.insert(renamed(path));
    data.absent = std::move(absent);
    const auto rename_keys = [&](auto& by_path) {
      std::decay_t<decltype(by_path)> out;
      for (auto& [path, value] : by_path) out.emplace(renamed(path), std::move(value));
      by_path = std::move(out);
    };
    rename_keys(data.space);
    rename_keys(data.no_space);
  }

  void preview(Context& c, const std::vector<Piece>& logs) {
    std::map<std::string, std::vector<const Pseudonyms::Entry*>> by_what;
    for (const auto& e : names_.entries()) by_what[e.what].push_back(&e);
    c.out(std::string(c.tr({"Replaced (look through it: what is not listed stays as it is):",
                            "已替换（请检查：未列出的内容保持原样）："})) +
          "\n");
    for (const auto& [what, list] : by_what)
      for (const auto* e : list) c.out(fmt::format("  {:<8} {} -> {}\n", what, e->original, e->stand_in));
    if (by_what.empty()) c.out(std::string(c.tr({"  nothing", "  无"})) + "\n");
    c.out(fmt::format("{}: host.snap", c.tr({"Files", "文件"})));
    for (const auto& p : logs)
      c.out(fmt::format(", logs/{} ({})", p.name, human_bytes(double(p.text.size()))));
    c.out("\n");
  }

  Result<> write(const std::vector<Piece>& logs, SnapshotData& data) {
    if (output_.empty()) output_ = "epready-bundle";
    if (::mkdir(output_.c_str(), 0700) != 0)
      return fail(ErrorKind::failed, "cannot make the folder", output_, std::strerror(errno),
                  "epready bundle -o OTHER --yes");
    data.tool = "epready";
    if (auto ok = write_snapshot(data, output_ + "/host.snap"); !ok) return ok;
    if (!logs.empty() && ::mkdir((output_ + "/logs").c_str(), 0700) != 0)
      return fail(ErrorKind::failed, "cannot make the folder", output_ + "/logs", std::strerror(errno));
    int number = 0;
    for (const auto& p : logs)
      if (auto ok = write_new(fmt::format("{}/logs/{:02}-{}", output_, ++number, p.name), p.text); !ok)
        return ok;
    nlohmann::ordered_json map = {{"schema", "epready-bundle-map-1"},
                                  {"entries", nlohmann::ordered_json::array()}};
    for (const auto& e : names_.entries())
      map["entries"].push_back({{"what", e.what}, {"original", e.original}, {"stand_in", e.stand_in}});
    return write_new(map_path(),
                     map.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }

  std::vector<std::string> files_;
  std::string output_;
  bool yes_ = false;
  Pseudonyms names_;
};

}  // namespace

std::unique_ptr<Command> make_bundle() {
  return std::make_unique<Bundle>();
}

}  // namespace ep
