// `snapshot`: captures a host so that every reading command can look at it elsewhere with --from.
#include "host/snapshot.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/rows.h"
#include "facts/facts.h"
#include "host/capture.h"
#include "host/recorder.h"

namespace ep {

namespace {

std::string utc_now(const char* format) {
  time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  return std::string(text, strftime(text, sizeof text, format, &parts));
}

struct Summary {
  size_t files = 0, links = 0, probes = 0;
  size_t bytes = 0;
  std::map<std::string, std::vector<std::string>> refused;  ///< why -> paths
  std::vector<std::string> failed_probes;
};

Summary summarise(const SnapshotData& d) {
  Summary s;
  for (const auto& [path, node] : d.nodes) {
    s.files += node.content.has_value();
    s.links += node.type == FileInfo::Type::link;
    s.bytes += node.content ? node.content->size() : 0;
    // A folder that something tried to read, a plain file that something tried to list: no loss.
    if (node.no_read && node.type != FileInfo::Type::directory) s.refused[node.no_read->why].push_back(path);
    if (node.no_list && node.type == FileInfo::Type::directory) s.refused[node.no_list->why].push_back(path);
  }
  for (const auto& [name, p] : d.probes) {
    s.probes += p.found;
    s.bytes += p.out.size() + p.err.size();
    if (p.found && (p.timed_out || p.exit_code != 0)) s.failed_probes.push_back(name);
  }
  return s;
}

class SnapshotCommand : public Command {
 public:
  std::vector<Option> options() override {
    return {{"-o,--output",
             {"Where: a folder, or a file ending in .tar.gz or .snap",
              "输出位置：目录，或以 .tar.gz、.snap 结尾的文件"},
             &output_,
             {},
             "PATH",
             false}};
  }

  int run(Context& c) override {
    auto host = c.open();
    if (!host) return c.report(host.error());
    if ((*host)->kind() == HostKind::paste)
      return c.report({ErrorKind::usage,
                       "a paste is text already, there is nothing to capture",
                       c.from,
                       "",
                       "epready facts --from " + c.from,
                       {}});
    c.note(c.tr({"reading this host", "正在读取主机"}));
    Recorder recorder(**host);
    Facts facts = read_facts(recorder);
    capture_declared(recorder);
    if (interrupted())
      return c.report({ErrorKind::interrupted, "stopped, nothing was written", "", "", "", {}});
    SnapshotData data = recorder.data();
    data.tool = "epready";
    data.time = utc_now("%Y-%m-%dT%H:%M:%SZ");
    std::string path = output_;
    if (path.empty()) {
      std::string name = facts.os.hostname.value_or("host");
      std::replace_if(
          name.begin(), name.end(), [](char ch) { return ch == '/' || ch == '.'; }, '-');
      path = fmt::format("epready-{}-{}", name, utc_now("%Y%m%d-%H%M%S"));
    }
    if (auto ok = write_snapshot(data, path); !ok) return c.report(ok.error());
    tell(c, path, summarise(data));
    return 0;
  }

 private:
  void tell(Context& c, const std::string& path, const Summary& s) {
    if (c.json) {
      nlohmann::ordered_json j{{"schema", "epready-snapshot-report-1"},
                               {"tool", "epready"},
                               {"path", path},
                               {"files", s.files},
                               {"links", s.links},
                               {"probes", s.probes},
                               {"bytes", s.bytes}};
      j["left_out"] = nlohmann::ordered_json::array();
      for (const auto& [why, paths] : s.refused)
        for (const auto& p : paths) j["left_out"].push_back({{"path", p}, {"why", why}});
      j["failed_probes"] = s.failed_probes;
      c.out(j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
      return;
    }
    c.out(fmt::format("{}  ({} {}, {} {}, {} {}, {})\n", path, s.files, c.tr({"files", "个文件"}), s.links,
                      c.tr({"links", "个链接"}), s.probes, c.tr({"tool outputs", "份工具输出"}),
                      human_bytes(double(s.bytes))));
    for (const auto& [why, paths] : s.refused)
      c.out(fmt::format("{}: {} {}, {} {}\n", c.tr({"left out", "未采集"}), paths.size(),
                        c.tr({"of them", "项"}), why, paths.size() == 1 ? paths[0] : paths[0] + " ..."));
    if (!s.failed_probes.empty())
      c.out(fmt::format("{}: {}\n", c.tr({"tools that failed", "运行失败的工具"}),
                        join(s.failed_probes, ", ")));
    c.out(
        fmt::format("{}\n", c.tr({"It holds host names, addresses and GUIDs; give it to people you trust, or "
                                  "use `epready bundle`.",
                                  "其中含主机名、地址与 GUID；只交给信任的人，或使用 `epready bundle`。"})));
    c.next("epready facts --from " + shell_quote(path));
  }

  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_snapshot() {
  return std::make_unique<SnapshotCommand>();
}

}  // namespace ep
