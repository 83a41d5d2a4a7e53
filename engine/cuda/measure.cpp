// Events, flushes, graphs.
#include "measure.h"

#include "failure.h"

namespace ep::engine::gpu {

namespace {

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr int kMaxBatch = 64;  // iterations enqueued before the host waits

class Event {
 public:
  Event() { EP_CUDA(cudaEventCreate(&event_)); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(other.event_) { other.event_ = nullptr; }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

double elapsed_us(const Event& start, const Event& stop) {
  float ms = 0;
  EP_CUDA(cudaEventElapsedTime(&ms, start.get(), stop.get()));
  return static_cast<double>(ms) * 1e3;
}

}  // namespace

Meter::Meter(Rank& rank) : rank_(rank), flush_(kFlushBytes), sink_(256) {
  side_.resize(static_cast<size_t>(std::max(0, rank.group().size() - 2)));
  for (auto& s : side_) EP_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  EP_CUDA(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming));
  EP_CUDA(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming));
}
Meter::~Meter() {
  for (auto& s : side_) cudaStreamDestroy(s);
  cudaEventDestroy(forked_);
  cudaEventDestroy(joined_);
}

std::vector<double> Meter::run(const Plan& plan, const Step& before, const Step& op, const Step& after) {
  std::vector<double> out;
  rank_.group().barrier();
  if (plan.graph) {
    run_graph(plan, before, op, after, out);
    return out;
  }
  const cudaStream_t stream = rank_.stream();
  std::vector<Event> starts(kMaxBatch), stops(kMaxBatch);
  const int total = plan.warmup + plan.iters;
  for (int done = 0; done < total; done += kMaxBatch) {
    const int n = std::min(kMaxBatch, total - done);
    for (int i = 0; i < n; ++i) {
      before();
      if (plan.cold) EP_CUDA(cudaMemsetAsync(flush_.as(), done + i, kFlushBytes, stream));
      rank_.align();
      EP_CUDA(cudaEventRecord(starts[i].get(), stream));
      op();
      EP_CUDA(cudaEventRecord(stops[i].get(), stream));
      after();
    }
    rank_.finish();
    for (int i = 0; i < n; ++i) {
      if (done + i >= plan.warmup) out.push_back(elapsed_us(starts[i], stops[i]));
    }
  }
  return out;
}

void Meter::run_graph(const Plan& plan, const Step& before, const Step& op, const Step& after,
                      std::vector<double>& out) {
  const cudaStream_t stream = rank_.stream();
  const Event start, stop;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  before();
  if (plan.cold) EP_CUDA(cudaMemsetAsync(flush_.as(), 1, kFlushBytes, stream));
  rank_.align();
  EP_CUDA(cudaEventRecordWithFlags(start.get(), stream, cudaEventRecordExternal));
  op();
  EP_CUDA(cudaEventRecordWithFlags(stop.get(), stream, cudaEventRecordExternal));
  after();
  EP_CUDA(cudaStreamEndCapture(stream, &graph));
  EP_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < plan.warmup + plan.iters; ++i) {
    EP_CUDA(cudaGraphLaunch(exec, stream));
    rank_.finish();
    if (i >= plan.warmup) out.push_back(elapsed_us(start, stop));
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

Summary Meter::time(const Plan& plan, const Step& before, const Step& op, const Step& after) {
  return summarize(max_over_ranks(rank_.group().gather_samples(run(plan, before, op, after))));
}

Summary Meter::chain(const Plan& plan, int length, const Step& op) {
  const cudaStream_t stream = rank_.stream();
  const Event start, stop;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  rank_.align();
  EP_CUDA(cudaEventRecordWithFlags(start.get(), stream, cudaEventRecordExternal));
  for (int i = 0; i < length; ++i) op();
  EP_CUDA(cudaEventRecordWithFlags(stop.get(), stream, cudaEventRecordExternal));
  EP_CUDA(cudaStreamEndCapture(stream, &graph));
  EP_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<double> out;
  for (int i = 0; i < plan.warmup + plan.iters; ++i) {
    EP_CUDA(cudaGraphLaunch(exec, stream));
    rank_.finish();
    if (i >= plan.warmup) out.push_back(elapsed_us(start, stop) / length);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return summarize(max_over_ranks(rank_.group().gather_samples(out)));
}

void Meter::fork() {
  if (side_.empty()) return;
  EP_CUDA(cudaEventRecord(forked_, rank_.stream()));
  for (auto& s : side_) EP_CUDA(cudaStreamWaitEvent(s, forked_));
}
void Meter::join() {
  for (auto& s : side_) {
    EP_CUDA(cudaEventRecord(joined_, s));
    EP_CUDA(cudaStreamWaitEvent(rank_.stream(), joined_));
  }
}

void Meter::move_plain(Probe kind, int ctas, size_t bytes) {
  const int peers = rank_.group().size() - 1;
  const size_t share = bytes / static_cast<size_t>(std::max(1, peers)) / 128 * 128;
  fork();
  for (int i = 1; i <= peers; ++i) {
    const int peer = (rank_.rank() + i) % rank_.group().size();
    // Each source has a part of its own in the peer's receive memory.
    char* at = rank_.region(peer, rank_.plan().y) + static_cast<size_t>(rank_.rank()) * share;
    EP_CUDA(probe(kind, std::max(1, ctas / peers), at, share, sink_.as(),
                  i == 1 ? rank_.stream() : side_[i - 2]));
  }
  join();
}

void Meter::move_copy_engine(size_t bytes) {
  const int peers = rank_.group().size() - 1;
  const size_t share = bytes / static_cast<size_t>(std::max(1, peers)) / 128 * 128;
  fork();
  for (int i = 1; i <= peers; ++i) {
    const int peer = (rank_.rank() + i) % rank_.group().size();
    char* at = rank_.region(peer, rank_.plan().y) + static_cast<size_t>(rank_.rank()) * share;
    EP_CUDA(cudaMemcpyAsync(at, rank_.region(rank_.rank(), rank_.plan().recv_x), share,
                            cudaMemcpyDeviceToDevice, i == 1 ? rank_.stream() : side_[i - 2]));
  }
  join();
}

}  // namespace ep::engine::gpu
