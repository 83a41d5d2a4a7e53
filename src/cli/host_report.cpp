#include "cli/host_report.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "apply/apply.h"
#include "base/text.h"
#include "base/words.h"
#include "plan/plan_json.h"
#include "report/bench_report.h"
#include "report/facts_json.h"
#include "report/host_page.h"
#include "report/lanes_report.h"
#include "report/topology_svg.h"

#ifndef EP_VERSION
#define EP_VERSION "0.0.0"
#endif

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(const std::string& text) {
  auto j = Json::parse(text, nullptr, false);
  return j.is_discarded() ? Json() : j;
}

Failure errno_fail(const std::string& what, const std::string& path) {
  return fail(ErrorKind::failed, what, path, std::strerror(errno),
              "df -h " + path.substr(0, path.rfind('/')));
}

}  // namespace

std::string now_utc() {
  std::time_t t = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&t, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

void fill_proven(std::vector<LaneStatus>& lanes, Lang lang) {
  const auto history = read_history(default_prefix() + "/history.jsonl");
  if (!history) return;  // lanes are judged without it; `epready history` names the trouble
  const Words w{lang};
  for (auto& lane : lanes)
    for (const auto& e : history->entries)
      if (e.result.lane == lane.lane)
        lane.proven = {
            e.result.outcome.verdict == Verdict::warn ? Verdict::pass : e.result.outcome.verdict,
            w("run {} of {}: {}", "第 {} 次运行（{}）：{}", e.number, e.when, e.result.outcome.reason)};
}

VerifyLane lane_to_verify(const Facts& facts, const Recipe& recipe, const PlanOptions& base,
                          const std::string& asked, int level, const std::string& from_option) {
  const Words w{base.lang};
  const auto lanes = judge_lanes(facts, recipe, base.lang, base);
  const auto status = [&](const std::string& lane) {
    return *std::find_if(lanes.begin(), lanes.end(), [&](const auto& s) { return s.lane == lane; });
  };
  VerifyLane out{asked, {}};
  if (asked.empty()) {
    out.lane = lane_of(facts, recipe, base);
    if (level == 2 && status(out.lane).installed.verdict != Verdict::pass) out.lane = "local";
  }
  if (out.lane == "local") {
    // The engine needs nothing; on a host with GPUs it proves nothing about DeepEP.
    if (asked.empty() && level == 1 && !facts.gpus.empty()) {
      const auto better =
          std::find_if(lanes.begin(), lanes.end(), [](const auto& s) { return s.lane == "v2"; });
      out.installed = {{Verdict::unknown, w("no DeepEP lane is possible on these GPUs, so nothing about EP "
                                            "between them is proven: {}",
                                            "这些 GPU 上没有可用的 DeepEP 通道，未验证任何 EP 能力：{}",
                                            better->possible.reason)},
                       "epready lanes" + from_option};
    }
    return out;
  }
  const LaneStatus s = status(out.lane);
  if (facts.host_kind == "paste")
    out.installed = {
        {Verdict::unknown, w("a text does not show what is installed", "文本无法显示已安装的内容")},
        "epready plan --lane " + out.lane};
  else if (s.possible.verdict == Verdict::fail)
    out.installed = {{Verdict::fail, w("not possible here: {}", "此机无法使用：{}", s.possible.reason)},
                     "epready lanes" + from_option};
  else if (s.installed.verdict == Verdict::pass)
    out.installed = {{Verdict::pass, "stack " + s.stack}, ""};
  else
    out.installed = {
        {s.installed.verdict,
         s.missing.empty() ? s.installed.reason : s.installed.reason + ": " + join(s.missing, ", ")},
        "epready plan --lane " + out.lane + from_option};
  return out;
}

void remember(const Context& context, const BenchResult& result) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  if (auto ok = append_history(default_prefix() + "/history.jsonl", {0, now_utc(), host, EP_VERSION, result});
      !ok)
    context.note("epready: " + ok.error().text());
}

std::string report_json(const HostReport& r) {
  Json j = {{"schema", "epready-report-1"},
            {"tool", "epready"},
            {"version", EP_VERSION},
            {"when", now_utc()},
            {"host", r.facts->host_name}};
  j["lanes"] = parsed(lanes_json(r.lanes, r.facts->host_name))["lanes"];
  j["verify"] = r.verified ? parsed(verify_json(*r.verified)) : Json();
  j["plan"] = r.plan ? parsed(plan_to_json(*r.plan)) : Json();
  if (r.applied) {
    Json steps = Json::array();
    for (const auto& s : r.applied->steps)
      steps.push_back(
          {{"id", s.id}, {"state", to_string(s.state)}, {"reason", s.reason}, {"seconds", s.seconds}});
    j["applied"] = {{"prefix", r.applied->prefix}, {"steps", steps}};
  } else {
    j["applied"] = Json();
  }
  j["facts"] = parsed(facts_json(*r.facts));
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_html(const HostReport& r) {
  HostPageInput in;
  in.lang = r.lang;
  in.when = now_utc();
  in.version = EP_VERSION;
  in.facts = r.facts;
  in.lanes = r.lanes;
  if (!r.facts->gpus.empty() || !r.facts->rdma.empty())
    in.topology_svg = topology_svg(read_topology(*r.facts), r.lang);
  in.plan = r.plan;
  in.applied = r.applied;
  in.verified = r.verified;
  in.json = report_json(r);
  return render_html(host_page(in));
}

Result<> write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    if (write(STDOUT_FILENO, content.data(), content.size()) != ssize_t(content.size()))
      return errno_fail("the result cannot be written", "standard output");
    return {};
  }
  std::string beside = path + ".new." + std::to_string(getpid());
  int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return errno_fail("the file cannot be made", beside);
  size_t done = 0;
  while (done < content.size()) {
    ssize_t n = write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += size_t(n);
  }
  bool good = done == content.size() && fsync(fd) == 0;
  int saved = errno;
  close(fd);
  if (good && rename(beside.c_str(), path.c_str()) == 0) return {};
  if (!good) errno = saved;
  auto error = errno_fail("the file cannot be written", path);
  unlink(beside.c_str());
  return error;
}

Result<WrittenReport> write_report(const HostReport& report, const std::string& folder) {
  for (size_t at = folder.find('/', 1); at != std::string::npos; at = folder.find('/', at + 1))
    mkdir(folder.substr(0, at).c_str(), 0755);
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return errno_fail("the folder cannot be made", folder);
  WrittenReport w{folder + "/report.html", folder + "/report.json"};
  if (auto ok = write_file(w.json, report_json(report)); !ok) return Failure(ok.error());
  if (auto ok = write_file(w.html, report_html(report)); !ok) return Failure(ok.error());
  return w;
}

}  // namespace ep
