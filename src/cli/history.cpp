// `history` and `compare A B`: what was measured here before.
#include "bench/history.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apply/apply.h"
#include "cli/rows.h"

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

std::string history_path() {
  return default_prefix() + "/history.jsonl";
}

std::string phase_words(const BenchResult& r) {
  std::string out;
  for (const auto& p : r.phases)
    out += fmt::format("{}{} {:.1f} us", out.empty() ? "" : ", ", p.name, p.time.median_us);
  return out;
}

class HistoryCommand : public Command {
 public:
  int run(Context& c) override {
    auto h = read_history(history_path());
    if (!h) return c.report(h.error());
    if (c.json) {
      Json runs = Json::array();
      for (const auto& e : h->entries)
        runs.push_back({{"number", e.number},
                        {"when", e.when},
                        {"host", e.host},
                        {"version", e.version},
                        {"result", Json::parse(e.result.raw_json, nullptr, false)}});
      c.out(Json{{"schema", "epready-history-1"},
                 {"tool", "epready"},
                 {"path", history_path()},
                 {"unreadable", h->num_unreadable},
                 {"runs", runs}}
                .dump(2) +
            "\n");
      return 0;
    }
    for (const auto& e : h->entries)
      c.out(fmt::format("{:>4}  {}  {} {}  {} x {} {}  {}\n", e.number, e.when,
                        to_string(e.result.outcome.verdict), e.result.engine, e.result.ranks,
                        e.result.num_tokens, e.result.dtype, phase_words(e.result)));
    if (h->entries.empty()) c.out(std::string(c.tr({"no run is recorded yet", "还没有记录"})) + "\n");
    if (h->num_unreadable)
      c.note(fmt::format("{} line(s) of {} are not whole records and were skipped", h->num_unreadable,
                         history_path()));
    c.next(h->entries.size() > 1 ? "epready compare prev last" : "epready bench");
    return 0;
  }
};

class Compare : public Command {
 public:
  std::vector<Option> options() override {
    return {{"runs",
             {"Two runs: numbers of the history, last, prev, or files of bench --json",
              "两次运行：历史编号、last、prev，或 bench --json 的文件"},
             &runs_,
             {},
             "RUN",
             true}};
  }
  int run(Context& c) override {
    if (runs_.size() != 2)
      return c.report(fail(ErrorKind::usage, fmt::format("{} runs given, two are needed", runs_.size()), {},
                           {}, "epready compare prev last")
                          .value());
    auto a = find_entry(history_path(), runs_[0]), b = find_entry(history_path(), runs_[1]);
    if (!a) return c.report(a.error());
    if (!b) return c.report(b.error());
    Comparison x = compare(a->result, b->result);
    static const std::map<PhaseChange::Kind, Text> words = {
        {PhaseChange::Kind::same, {"same within the spread", "在波动范围内相同"}},
        {PhaseChange::Kind::faster, {"faster", "更快"}},
        {PhaseChange::Kind::slower, {"slower", "更慢"}},
        {PhaseChange::Kind::only_a, {"only in the first", "仅第一次有"}},
        {PhaseChange::Kind::only_b, {"only in the second", "仅第二次有"}}};
    bool slower = false;
    Json phases = Json::array();
    for (const auto& p : x.phases) {
      slower |= p.kind == PhaseChange::Kind::slower;
      phases.push_back({{"name", p.name},
                        {"mode", p.mode},
                        {"a_us", p.a_us},
                        {"b_us", p.b_us},
                        {"ratio", p.ratio},
                        {"change", words.at(p.kind).en}});
      if (!c.json)
        c.out(fmt::format("  {:<12} {:<10} {:>10.1f} us {:>10.1f} us  x{:.3f}  {}\n", p.name, p.mode, p.a_us,
                          p.b_us, p.ratio, c.tr(words.at(p.kind))));
    }
    if (c.json)
      c.out(Json{{"schema", "epready-compare-1"},
                 {"tool", "epready"},
                 {"a", runs_[0]},
                 {"b", runs_[1]},
                 {"differences", x.differences},
                 {"phases", phases}}
                .dump(2) +
            "\n");
    for (const auto& d : x.differences) c.note(fmt::format("{}: {}", c.tr({"not alike", "条件不同"}), d));
    c.next(slower ? "epready doctor" : "epready history");
    return slower && x.differences.empty() ? 1 : 0;
  }

 private:
  std::vector<std::string> runs_;
};

}  // namespace

std::unique_ptr<Command> make_history() {
  return std::make_unique<HistoryCommand>();
}
std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace ep
