#include "verify/verify.h"

#include "check/check.h"
#include "verify/lane_judge.h"

namespace ep {
namespace {

class Run {
 public:
  Run(const Facts& facts, const VerifyOptions& options) : facts_(facts), options_(options), w_{options.lang} {
    report_.level = options.level;
    report_.lane = options.lane;
  }

  VerifyReport all() {
    level_1();
    if (options_.level >= 2 && gates()) {
      if (options_.lane == "local")
        run_engine();
      else
        run_lane();
    }
    report_.overall = summary(report_.items);
    return std::move(report_);
  }

 private:
  void add(VerifyItem item) {
    if (options_.on_item) options_.on_item(item);
    report_.items.push_back(std::move(item));
  }

  unsigned lane_bits() const {
    return options_.lane == "v1" ? kLaneV1 : options_.lane == "v2" ? kLaneV2 : unsigned(kLaneLocal);
  }

  /// What only NICs need does not decide about a test inside one node: failed, it is a warning there;
  /// unknown, it stays unsaid.
  void level_1() {
    for (auto& c : run_checks(facts_, lane_bits(), options_.lang)) {
      Outcome seen = c.result.outcome;
      if (options_.level == 2 && between_nodes(c.row->id)) {
        if (seen.verdict == Verdict::fail) seen.verdict = Verdict::warn;
        if (seen.verdict == Verdict::unknown)
          seen = {Verdict::skip, w_("only NICs need it; unknown: {}", "仅网卡需要；未知：{}", seen.reason)};
      }
      add({c.row->id, std::string(c.row->title.in(options_.lang)), "consistency", std::move(seen),
           c.result.evidence, c.result.next});
    }
    if (!options_.installed) return;
    // From level 2 on the lane's own test decides whether what is there works; level 1 has only the plan.
    Outcome o = options_.installed->outcome;
    if (options_.level > 1 && o.verdict == Verdict::fail) o.verdict = Verdict::warn;
    add({"lane.installed",
         options_.lane == "local"
             ? w_("EP between this host's GPUs", "本机 GPU 之间的 EP")
             : w_("all steps of lane {} are done", "{} 通道的全部步骤已完成", options_.lane),
         "consistency",
         std::move(o),
         {},
         options_.installed->next});
  }
  static bool between_nodes(const std::string& id) {
    return id.rfind("ib.", 0) == 0 || id == "lim.memlock" || id == "krn.dmabuf";
  }

  /// Level 2 must not load a host that level 1 found broken, nor a GPU that someone uses.
  bool gates() {
    bool open = true;
    for (const auto& item : report_.items)
      if (item.outcome.verdict == Verdict::fail) open = false;
    if (!open) {
      add({"gate.level1",
           w_("level 1 is good", "第 1 级通过"),
           "gate",
           {Verdict::fail,
            w_("level 1 has failures; level 2 would measure them", "第 1 级有失败项；第 2 级没有意义")},
           {},
           "epready verify -r 1"});
      return false;
    }
    for (const auto& g : facts_.gpus) {
      if (!options_.bench.gpu && options_.lane == "local") break;
      if (g.in_use.ok() && *g.in_use) {
        add({"gate.idle",
             w_("GPUs are idle", "GPU 空闲"),
             "gate",
             {Verdict::fail, w_("GPU {} is in use; a run would disturb it and measure it",
                                "GPU {} 正在使用；运行会干扰它", g.index)},
             {g.in_use.where, 0, {}},
             "nvidia-smi"});
        return false;
      }
      if (!g.in_use.ok()) {
        add({"gate.idle",
             w_("GPUs are idle", "GPU 空闲"),
             "gate",
             {Verdict::unknown,
              w_("cannot tell whether GPU {} is in use", "无法判断 GPU {} 是否在使用", g.index)},
             {g.in_use.where, 0, {}},
             "nvidia-smi"});
        return false;
      }
    }
    return true;
  }

  /// The test of the lane's library, on this node or with the others; NICs' counters around it.
  void run_lane() {
    LaneTestRequest q = options_.lane_test;
    q.lane = options_.lane;
    q.level = options_.level;
    q.shape = options_.bench;
    if (facts_.gpus.empty())
      return not_run({ErrorKind::unsupported, w_("no GPU", "没有 GPU"), "", "", "", {}});
    if (q.gpus == 0) q.gpus = int(facts_.gpus.size());
    if (auto can = check_lane_ranks(q); !can) return not_run(can.error());
    const bool between = q.level > 2;
    CounterSample before = between && options_.counters ? options_.counters() : CounterSample();
    auto ran = run_lane_test(q, options_.on_line, options_.interrupt);
    if (!ran) return not_run(ran.error());
    const Topology topology = read_topology(facts_);
    LaneContext c;
    c.lane = q.lane;
    c.level = q.level;
    c.nodes = between ? q.nodes.count : 1;
    c.ranks = c.nodes * q.gpus;
    c.gpus_shared = q.gpus > int(facts_.gpus.size());
    c.gpu = facts_.gpus.front().name.value_or("");
    c.sm = topology.gpus.empty() ? 0 : topology.gpus.front().sm;
    c.topology = &topology;
    c.baselines = options_.baselines;
    c.shape = q.shape;
    if (!before.empty()) c.traffic = traffic_between(before, options_.counters());
    report_.log = ran->log;
    report_.bench = lane_result(*ran, c);
    for (auto& item : judge_lane(*ran, c, options_.lang)) add(std::move(item));
  }

  void not_run(const Error& e) {
    report_.interrupted = e.kind == ErrorKind::interrupted;
    const bool mild =
        e.kind == ErrorKind::absent || e.kind == ErrorKind::interrupted || e.kind == ErrorKind::unsupported;
    add({"lane." + options_.lane,
         w_("the lane's own test", "该通道自己的测试"),
         "correctness",
         {mild ? Verdict::not_run : Verdict::fail, e.what + (e.why.empty() ? "" : ": " + e.why)},
         {e.where, 0, {}},
         e.next});
  }

  void run_engine() {
    if (options_.level > 2) {
      add({fmt::format("level.{}", options_.level),
           w_("the local lane has one node", "local 通道只有一个节点"),
           "gate",
           {Verdict::not_run, w_("levels 3 and 4 prove lanes v1 and v2", "第 3、4 级用于 v1 与 v2 通道")},
           {},
           fmt::format("epready verify -r {} --lane v1", options_.level)});
      return;
    }
    auto result = run_bench(options_.bench, options_.on_line, options_.interrupt);
    if (!result) {
      const Error& e = result.error();
      report_.interrupted = e.kind == ErrorKind::interrupted;
      Verdict v =
          e.kind == ErrorKind::absent || e.kind == ErrorKind::interrupted || e.kind == ErrorKind::unsupported
              ? Verdict::not_run
              : Verdict::fail;
      add({"engine.run",
           w_("the engine runs", "引擎运行"),
           "correctness",
           {v, e.what + (e.why.empty() ? "" : ": " + e.why)},
           {e.where, 0, {}},
           e.next});
      return;
    }
    report_.bench = *result;
    judge(*result);
  }

  void judge(const BenchResult& r) {
    Outcome right =
        r.outcome.verdict == Verdict::warn
            ? Outcome{Verdict::pass, w_("{} rows right, bit for bit", "{} 行逐位正确", r.rows_checked)}
            : r.outcome;
    if (right.verdict == Verdict::pass)
      right.reason = w_("{} rows right, bit for bit", "{} 行逐位正确", r.rows_checked);
    add({"tokens.right",
         w_("every token arrives and combines right", "每个 token 的分发与合并都正确"),
         "correctness",
         right,
         {r.device, 0, {}},
         right.verdict == Verdict::pass ? "" : "epready bench --json"});
    if (!r.scaled_down_why.empty())
      add({"tokens.scale",
           w_("the shape is the one asked for", "规模与要求一致"),
           "gate",
           {Verdict::warn, w_("{} tokens a rank instead of {}: {}", "每个 rank {} 个 token，要求 {}：{}",
                              r.num_tokens, r.requested_tokens, r.scaled_down_why)},
           {},
           "epready bench --num-tokens " + std::to_string(r.num_tokens)});
    for (const auto& p : r.phases) {
      if (!p.ceiling_time) continue;
      bool slow = p.min_share > 0 && p.ceiling_share < p.min_share;
      std::string seen = w_("{:.2f} GB/s, {:.0f} % of the ceiling {:.2f} GB/s measured in the same run",
                            "{:.2f} GB/s，为同次测得上限 {2:.2f} GB/s 的 {1:.0f} %", p.gbps,
                            p.ceiling_share * 100, p.ceiling_gbps);
      add({"speed." + p.name,
           w_("{} is fast", "{} 的速度", p.name),
           "speed",
           {slow ? Verdict::warn : Verdict::pass, seen},
           {p.ceiling_what, 0, {}},
           slow ? "epready bench (when the host is quiet)" : ""});
    }
  }

  const Facts& facts_;
  const VerifyOptions& options_;
  Words w_;
  VerifyReport report_;
};

}  // namespace

VerifyReport verify(const Facts& facts, const VerifyOptions& options) {
  return Run(facts, options).all();
}

Outcome summary(const std::vector<VerifyItem>& items) {
  if (items.empty()) return {Verdict::unknown, "nothing was looked at"};
  Outcome out{Verdict::skip, items[0].outcome.reason};
  bool any_pass = false;
  for (const auto& i : items) {
    any_pass |= i.outcome.verdict == Verdict::pass;
    if (i.outcome.verdict == Verdict::skip || i.outcome.verdict == Verdict::pass) continue;
    Verdict w = worst(out.verdict, i.outcome.verdict);
    if (w != out.verdict) out = {w, i.id + ": " + i.outcome.reason};
  }
  if (out.verdict == Verdict::skip && any_pass) out = {Verdict::pass, {}};
  return out;
}

int VerifyReport::exit_code() const {
  if (interrupted) return 5;
  switch (overall.verdict) {
    case Verdict::pass:
    case Verdict::warn:
      return 0;
    case Verdict::fail:
      return 1;
    default:
      return 3;
  }
}

}  // namespace ep
