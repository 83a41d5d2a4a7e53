// Tilings and launches.
#include "launch.h"

#include <algorithm>

namespace ep::engine::gpu {

namespace {

constexpr int kReservedSmem = 1024;  // static shared memory of the kernels, and what the driver keeps

int divide_up(int a, int b) {
  return (a + b - 1) / b;
}
int most_tokens(const Shape& s) {
  return *std::max_element(s.tokens, s.tokens + s.ranks);
}

/// Bytes after the stages: barriers, slot table, group sums, expert histogram (see FrontMemory).
size_t front_bytes(const Shape& s, const Tiling& t) {
  return static_cast<size_t>(t.warps) * t.stages * 8 +
         4 * static_cast<size_t>(s.ranks) * (t.table_tokens + divide_up(t.table_tokens, 32)) +
         4 * static_cast<size_t>(t.table_tokens + s.experts);
}

std::string set_blocks(const Shape& s, int max_ctas, const Tuning& wish, Tiling& t) {
  t.ctas = std::min({wish.ctas > 0 ? wish.ctas : max_ctas, max_ctas, kMaxCtas});
  if (t.ctas < 1) return "no multiprocessor is free for this rank";
  t.table_tokens = std::max(1, divide_up(most_tokens(s), t.ctas) + 1);
  if (t.table_tokens > kMaxTokensPerCta) {
    return std::to_string(most_tokens(s)) + " tokens on " + std::to_string(t.ctas) +
           " multiprocessors are more than " + std::to_string(kMaxTokensPerCta) + " each: use more";
  }
  return {};
}

/// Cuts a row into `segs` pieces of whole vectors.
void set_segments(int row_bytes, int seg_bytes, Tiling& t) {
  const int vectors = std::max(1, row_bytes / 16);
  const int wanted = std::clamp(seg_bytes / 16, 1, vectors);
  t.segs = divide_up(vectors, wanted);
  t.seg_bytes = divide_up(vectors, t.segs) * 16;
  t.segs = divide_up(vectors * 16, t.seg_bytes);
}

/// As many stages as fit, at least `least`.
std::string set_stages(size_t budget, size_t fixed, int wish, int least, Tiling& t) {
  const size_t ring = static_cast<size_t>(t.warps) * (t.stage_bytes + 8);
  const int fit = fixed < budget ? static_cast<int>((budget - fixed) / ring) : 0;
  t.stages = std::min(wish > 0 ? wish : 32, fit);
  if (t.stages >= least) return {};
  return "shared memory of a block (" + std::to_string(budget) + " bytes) does not hold " +
         std::to_string(least) + " stages of " + std::to_string(t.stage_bytes) + " bytes for " +
         std::to_string(t.warps) + " warps: use more multiprocessors, smaller --seg or the plain path";
}

}  // namespace

cudaError_t device_limits(int device, DeviceLimits& out) {
  int sms = 0, smem = 0;
  cudaError_t e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (e != cudaSuccess) return e;
  e = cudaDeviceGetAttribute(&smem, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (e != cudaSuccess) return e;
  cudaFuncAttributes image;
  e = cudaFuncGetAttributes(&image, dispatch_kernel(Path::kBulk, 0));
  if (e != cudaSuccess) return e;
  out.sms = sms;
  out.smem = static_cast<size_t>(smem);
  out.bulk = image.ptxVersion >= 90 || image.binaryVersion >= 90;
  if (image.ptxVersion > 0 && image.ptxVersion < 90) out.bulk = false;  // compiled at load from older code
  return cudaSuccess;
}

std::string plan_dispatch(const Shape& s, Path path, const DeviceLimits& limits, int max_ctas,
                          const Tuning& wish, Tiling& t) {
  t = Tiling{};
  if (std::string wrong = set_blocks(s, max_ctas, wish, t); !wrong.empty()) return wrong;
  const int row = static_cast<int>(s.row_bytes()), tokens = divide_up(most_tokens(s), t.ctas);
  const size_t budget = limits.smem - kReservedSmem;
  if (path == Path::kPlain) {
    t.warps = std::clamp(wish.warps > 0 ? wish.warps : 26, 1, 26);
    set_segments(row, wish.unroll >= 7 ? 7 * 512 : 4 * 512, t);
    t.smem = front_bytes(s, t);
    if (t.smem > budget) return "too many tokens per multiprocessor for its shared memory: use more";
    return {};
  }
  // Measured on two GPUs: a block among many needs four warps, among few eight, and 9 to 20 gain by copying
  // their own rows with ordinary loads (with fewer, those loads would be the slower part).
  const bool few = t.ctas > 8 && t.ctas <= 20;
  t.warps = std::clamp(wish.warps > 0 ? wish.warps : t.ctas <= 48 ? 8 : 4, 1, 16);
  // Short rows go whole, long ones in pieces of about 3.5 KB; few tokens are cut finer so that every warp has
  // some.
  int seg = wish.seg_bytes > 0 ? wish.seg_bytes : row <= 8192 ? row : 3584;
  if (wish.seg_bytes == 0 && tokens * divide_up(row, seg) < t.warps)
    seg = std::max(1024, row * tokens / t.warps);
  set_segments(row, std::min(seg, 16384), t);
  t.stage_bytes = static_cast<int>(round_up(t.seg_bytes + s.scale_row_bytes(), 128));
  if (std::string wrong = set_stages(budget, front_bytes(s, t), wish.stages, 1, t); !wrong.empty())
    return wrong;
  t.stages = std::min(t.stages, std::max(1, divide_up(tokens * t.segs, t.warps)));
  t.lag = std::clamp(wish.lag > 0 ? wish.lag : t.stages / 2, 0, 4);
  if (t.lag >= t.stages) t.lag = t.stages - 1;
  t.own = std::clamp(wish.own >= 0 ? wish.own
                     : few         ? 8
                                   : 0,
                     0, kDispatchThreads / 32 - kAuxWarps - kExpertWarps - t.warps);
  t.ahead = std::clamp(wish.ahead >= 0 ? wish.ahead : 2, 0, t.warps);
  t.smem = static_cast<size_t>(t.warps) * t.stages * t.stage_bytes + front_bytes(s, t);
  return {};
}

std::string plan_pull(const Shape& s, Path path, const DeviceLimits& limits, int max_ctas, const Tuning& wish,
                      Tiling& t) {
  t = Tiling{};
  if (std::string wrong = set_blocks(s, max_ctas, wish, t); !wrong.empty()) return wrong;
  const int row = static_cast<int>(s.combine_row_bytes());
  const size_t budget = limits.smem - kReservedSmem;
  const size_t table = table_bytes(t.table_tokens, s.ranks);
  if (path == Path::kPlain) {
    t.warps = 16;
    set_segments(row, 4 * 512, t);
    t.smem = table;
    if (t.smem > budget) return "too many tokens per multiprocessor for its shared memory: use more";
    return {};
  }
  t.warps = std::clamp(wish.warps > 0 ? wish.warps : 16, 1, 20);
  const int rows = std::min(s.ranks, s.topk);
  set_segments(row, wish.seg_bytes > 0 ? std::min(wish.seg_bytes, 16384) : (rows <= 2 ? 2048 : 1024), t);
  t.stage_bytes = static_cast<int>(round_up(static_cast<size_t>(t.seg_bytes) * rows, 128));
  if (std::string wrong = set_stages(budget, table, wish.stages, 1, t); !wrong.empty()) return wrong;
  const int tokens = divide_up(most_tokens(s), t.ctas);
  t.stages = std::min(t.stages, std::max(1, divide_up(tokens * t.segs, t.warps)));
  t.smem = static_cast<size_t>(t.warps) * t.stages * (t.stage_bytes + 8) + table;
  return {};
}

std::string plan_stream(const Shape& s, const DeviceLimits& limits, int max_ctas, const Tuning& wish,
                        Tiling& t) {
  t = Tiling{};
  if (std::string wrong = set_blocks(s, max_ctas, wish, t); !wrong.empty()) return wrong;
  const int row = static_cast<int>(s.combine_row_bytes()), rows = std::min(s.ranks, s.topk);
  t.warps = std::max(std::clamp(wish.warps > 0 ? wish.warps : 2, 1, kMaxPushWarps), divide_up(row, 16384));
  if (t.warps > kMaxPushWarps) return "rows of " + std::to_string(row) + " bytes are too long to be streamed";
  set_segments(row, divide_up(row / 16, t.warps) * 16, t);
  t.stage_bytes = static_cast<int>(round_up(t.seg_bytes, 128));
  t.stages = std::min(wish.stages > 0 ? wish.stages : 2, std::max(1, (96 << 10) / (t.warps * t.stage_bytes)));
  t.adders = std::clamp(wish.adders > 0 ? wish.adders : 8, 1, 12);
  Tiling cut;
  set_segments(row, wish.seg_bytes > 0 ? wish.seg_bytes : std::max(256, 7168 / rows), cut);
  t.add_seg_bytes = cut.seg_bytes;
  t.add_segs = cut.segs;
  t.add_stage_bytes = static_cast<int>(round_up(static_cast<size_t>(cut.seg_bytes) * rows, 128));
  const size_t fixed =
      static_cast<size_t>(t.warps) * t.stages * (t.stage_bytes + 8) + table_bytes(t.table_tokens, s.ranks);
  const size_t budget = limits.smem - kReservedSmem,
               ring = static_cast<size_t>(t.adders) * (t.add_stage_bytes + 8);
  t.add_stages = fixed < budget ? static_cast<int>((budget - fixed) / ring) : 0;
  t.add_stages = std::min(t.add_stages, 8);
  if (t.add_stages < 1) return "too many tokens per multiprocessor for its shared memory: use more";
  t.smem = fixed + t.add_stages * ring;
  return {};
}

std::string plan_words(const Shape& s, const DeviceLimits& limits, int max_ctas, const Tuning& wish,
                       Tiling& t) {
  t = Tiling{};
  if (std::string wrong = set_blocks(s, max_ctas, wish, t); !wrong.empty()) return wrong;
  t.warps = std::clamp(wish.warps > 0 ? wish.warps : 8, 1, kWordsWarps - 1);
  t.adders = std::clamp(wish.adders > 0 ? wish.adders : 16, 1, kWordsWarps - t.warps);
  // 12 to 24 multiprocessors fill the link with pushes (H200); in blocks that also add they hold up the
  // loads. Of few, the adding ones need most.
  const int enough = std::min(std::max(16, t.ctas / 8), t.ctas * 3 / 8);
  t.push_ctas = std::clamp(wish.push_ctas < 0 ? enough : wish.push_ctas, 0, t.ctas - 1);
  t.table_tokens = std::max(1, divide_up(most_tokens(s), t.ctas - t.push_ctas));
  t.seg_bytes = kWordsPushBytes;
  t.segs = divide_up(static_cast<int>(s.combine_row_bytes()), t.seg_bytes);
  t.add_seg_bytes = kWordsAddBytes;
  t.add_segs = divide_up(static_cast<int>(s.combine_row_bytes()), t.add_seg_bytes);
  t.smem = table_bytes(t.table_tokens, s.ranks);
  if (t.smem > limits.smem - kReservedSmem)
    return "too many tokens per multiprocessor for its shared memory: use more";
  return {};
}

ExpertMap expert_map(const Shape& s) {
  const int share = s.experts / s.ranks, extra = s.experts % s.ranks;
  const auto magic = [](int bits, int divisor) {
    return divisor == 0 ? 0u : static_cast<uint32_t>(((uint64_t{1} << bits) + divisor - 1) / divisor);
  };
  // Of one selection a token there is no 32-bit factor: 2^32 - 1 gives the index less one, so it is not used.
  return {magic(31, share + 1), magic(31, share), s.topk == 1 ? 0u : magic(32, s.topk), extra * (share + 1),
          extra};
}

cudaError_t prepare_kernels(const DeviceLimits& limits) {
  const void* kernels[] = {dispatch_kernel(Path::kBulk, 0),
                           dispatch_kernel(Path::kPlain, 4),
                           dispatch_kernel(Path::kPlain, 7),
                           pull_kernel(Path::kBulk),
                           pull_kernel(Path::kPlain),
                           stream_kernel(),
                           words_kernel(false),
                           words_kernel(true)};
  for (const void* kernel : kernels) {
    const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(limits.smem - kReservedSmem));
    if (e != cudaSuccess) return e;
  }
  return prepare_service();
}

namespace {
template <class Args>
cudaError_t launch(const void* kernel, const Args& args, int ctas, int threads, size_t smem,
                   cudaStream_t stream) {
  void* params[] = {const_cast<Args*>(&args)};
  return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(ctas)), dim3(static_cast<unsigned>(threads)),
                          params, smem, stream);
}
}  // namespace

cudaError_t launch_dispatch(const DispatchArgs& a, Path path, cudaStream_t stream) {
  const void* kernel = dispatch_kernel(path, a.tile.seg_bytes > 4 * 512 ? 7 : 4);
  const int warps = a.tile.warps + kAuxWarps + kExpertWarps + a.tile.own;
  return launch(kernel, a, a.tile.ctas, warps * 32, a.tile.smem, stream);
}
cudaError_t launch_pull(const CombineArgs& a, Path path, cudaStream_t stream) {
  return launch(pull_kernel(path), a, a.tile.ctas, a.tile.warps * 32, a.tile.smem, stream);
}
cudaError_t launch_stream(const CombineArgs& a, cudaStream_t stream) {
  return launch(stream_kernel(), a, a.tile.ctas, (a.tile.warps + 3 + a.tile.adders) * 32, a.tile.smem,
                stream);
}

cudaError_t launch_words(const CombineArgs& a, cudaStream_t stream) {
  return launch(words_kernel(std::min(a.shape.ranks, a.shape.topk) > 2), a, a.tile.ctas,
                (a.tile.warps + a.tile.adders) * 32, a.tile.smem, stream);
}

}  // namespace ep::engine::gpu
