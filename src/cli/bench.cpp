// `bench`: dispatch and combine on this host against ceilings of the same run.
#include <fmt/core.h>

#include "cli/bench_options.h"
#include "cli/host_report.h"
#include "cli/rows.h"
#include "report/bench_report.h"

namespace ep {

std::vector<Option> bench_options(BenchRequest& q) {
  return {
      {"--ranks", {"Ranks that exchange tokens", "交换 token 的 rank 数"}, &q.ranks, {}, "N", false},
      {"--num-tokens", {"Tokens per rank", "每个 rank 的 token 数"}, &q.num_tokens, {}, "N", false},
      {"--hidden", {"Values per token", "每个 token 的维度"}, &q.hidden, {}, "N", false},
      {"--num-experts", {"Experts in all", "专家总数"}, &q.num_experts, {}, "N", false},
      {"--num-topk", {"Experts per token", "每个 token 选择的专家数"}, &q.num_topk, {}, "N", false},
      {"--dtype",
       {"Element type of dispatch", "dispatch 的数据类型"},
       &q.dtype,
       {"bf16", "fp8"},
       "TYPE",
       false},
      {"--iters", {"Timed iterations", "计时迭代次数"}, &q.iters, {}, "N", false},
      {"--warmup", {"Iterations before timing", "预热次数"}, &q.warmup, {}, "N", false},
      {"--timeout", {"Limit of the whole run, seconds", "整次运行的时限（秒）"}, &q.limit_s, {}, "S", false}};
}

Result<> check_bench_options(const BenchRequest& q, const char* command) {
  auto bad = [&](const char* name, long long value, const char* want) {
    return fail(ErrorKind::usage, fmt::format("{} = {} is out of range", name, value), "", want,
                fmt::format("epready {} --help", command));
  };
  if (q.ranks < 1 || q.ranks > 64) return bad("--ranks", q.ranks, "1 to 64");
  if (q.num_tokens < 0 || q.num_tokens > (1 << 20)) return bad("--num-tokens", q.num_tokens, "0 to 1048576");
  if (q.hidden < 8 || q.hidden > 65536 || q.hidden % 8 != 0)
    return bad("--hidden", q.hidden, "8 to 65536, rows of whole 16 bytes (a multiple of 8; of 128 with fp8)");
  if (q.dtype == "fp8" && q.hidden % 128 != 0)
    return bad("--hidden", q.hidden, "a multiple of 128 with fp8: one scale per 128 values");
  if (q.num_experts < 1 || q.num_experts > 4096) return bad("--num-experts", q.num_experts, "1 to 4096");
  if (q.num_topk < 1 || q.num_topk > 16 || q.num_topk > q.num_experts)
    return bad("--num-topk", q.num_topk, "1 to 16, at most --num-experts");
  if (q.iters < 1 || q.iters > 100000) return bad("--iters", q.iters, "1 to 100000");
  if (q.warmup < 0 || q.warmup > 100000) return bad("--warmup", q.warmup, "0 to 100000");
  if (!(q.limit_s >= 1)) return bad("--timeout", (long long)q.limit_s, "at least 1 second");
  return {};
}

namespace {

class Bench : public Command {
 public:
  std::vector<Option> options() override { return bench_options(request_); }
  int run(Context& c) override {
    if (auto ok = check_bench_options(request_, "bench"); !ok) return c.report(ok.error());
    c.note(fmt::format("{} ({} ranks, {} tokens x {})", c.tr({"running the engine", "运行引擎"}),
                       request_.ranks, request_.num_tokens, request_.hidden));
    auto result = run_bench(
        request_, [&](std::string_view line) { c.note(line); }, &interrupted());
    if (!result) return c.report(result.error());
    c.out(c.json ? bench_json(*result) : bench_text(*result, c.look()));
    remember(c, *result);
    bool good = result->outcome.verdict == Verdict::pass || result->outcome.verdict == Verdict::warn;
    c.next(good ? "epready verify -r 2" : "epready doctor");
    return good ? 0 : result->outcome.verdict == Verdict::fail ? 1 : 3;
  }

 private:
  BenchRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_bench() {
  return std::make_unique<Bench>();
}

}  // namespace ep
