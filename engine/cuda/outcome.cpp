#include "outcome.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "json.h"

namespace ep::engine::gpu {

namespace {

/// Plain memory, so that it works across fork.
struct Page {
  std::atomic<int> claimed{0}, complete{0}, written{0};
  int exit_code = 0, rank = -1, to_blame = -1;
  char phase[128] = {}, text[2048] = {};
};
Page* page = nullptr;

template <size_t kSize>
void keep(char (&to)[kSize], const std::string& from) {
  const size_t n = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), n);
  to[n] = 0;
}

}  // namespace

void open_outcome() {
  void* at = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  page = at == MAP_FAILED ? new Page : new (at) Page;
}
void note_failure(int rank, const Failure& failure) {
  if (page == nullptr || page->claimed.exchange(1) != 0) return;
  page->exit_code = failure.exit_code;
  page->rank = rank;
  page->to_blame = failure.failed_rank;
  keep(page->phase, failure.failed_phase);
  keep(page->text, failure.what());
  page->complete.store(1, std::memory_order_release);
}
Outcome first_failure() {
  Outcome out;
  if (page == nullptr || page->complete.load(std::memory_order_acquire) == 0) return out;
  out.exit_code = page->exit_code;
  out.rank = page->rank;
  out.to_blame = page->to_blame;
  out.phase = page->phase;
  out.text = page->text;
  return out;
}
void note_written() {
  if (page != nullptr) page->written.store(1);
}
bool written() {
  return page != nullptr && page->written.load() != 0;
}

bool says_nothing(const Outcome& outcome) {
  return outcome.exit_code == 2 || outcome.exit_code == 3;
}

BenchReport failed_report(const Options& o, const Shape& shape, const Outcome& outcome) {
  BenchReport report;
  report.tool = "epready-engine-gpu";
  report.case_name = o.case_name;
  report.engine = "cuda";
  report.shape = shape;
  report.pattern = ep::engine::name_of(o.pattern);
  report.seed = o.seed;
  report.iters = o.iters;
  report.warmup = o.warmup;
  report.requested_tokens = shape.max_tokens;
  report.failure = outcome.text;
  report.failed_rank = outcome.to_blame;
  report.failed_phase = outcome.phase;
  return report;
}

std::string failure_json(const Options& o, const Outcome& outcome) {
  if (o.case_name == "bench" && !says_nothing(outcome)) {
    Shape shape = o.shape;
    shape.ranks = std::clamp(static_cast<int>(o.devices.size()), 1, kMaxGpuRanks);
    shape.set_even_tokens(o.token_list.empty() ? 0 : o.token_list[0]);
    return to_json(failed_report(o, shape, outcome));
  }
  Json json;
  json.begin_object().value("schema", "epready.engine.failure/1").value("tool", "epready-engine-gpu");
  json.value("case", o.case_name)
      .value("engine", "cuda")
      .value("verdict", says_nothing(outcome) ? "UNKNOWN" : "FAIL");
  json.value("exit_code", outcome.exit_code).begin_object("failure").value("text", outcome.text);
  if (outcome.to_blame >= 0)
    json.value("rank", outcome.to_blame).value("phase", outcome.phase);
  else
    json.null("rank").null("phase");
  json.end_object().end_object();
  return json.text() + "\n";
}

}  // namespace ep::engine::gpu
