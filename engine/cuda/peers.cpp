// NCCL gets what it needs for nothing: counts are known on the host, rows of a destination stand packed
// (timed apart where the name says so), metadata is not sent. So its times are lower bounds of a dispatch
// over it.
#include "peers.h"

#include "../nccl/nccl.h"
#include "failure.h"

namespace ep::engine::gpu {

namespace {

/// Packed rows by destination, and where received rows of each source go.
struct Packed {
  Buffer rows, lists;
  std::vector<size_t> first;  // row of `rows` at which a destination's part begins
  size_t row_bytes, scale_bytes;

  Packed(Rank& rank, const Verifier& data)
      : row_bytes(rank.shape().row_bytes()), scale_bytes(rank.shape().scale_row_bytes()) {
    std::vector<int32_t> all;
    for (const auto& list : data.send_list()) {
      first.push_back(all.size());
      all.insert(all.end(), list.begin(), list.end());
    }
    rows = Buffer(all.size() * std::max(row_bytes + scale_bytes, rank.shape().combine_row_bytes()));
    lists = Buffer(all.size() * 4);
    if (!all.empty()) EP_CUDA(cudaMemcpy(lists.as(), all.data(), all.size() * 4, cudaMemcpyHostToDevice));
  }
  char* part(int d, size_t bytes) const { return rows.as<char>() + first[static_cast<size_t>(d)] * bytes; }
};

void pack(Rank& rank, const Verifier& data, const Packed& packed) {
  for (int d = 0; d < rank.group().size(); ++d) {
    const auto& list = data.send_list()[static_cast<size_t>(d)];
    pack_rows(rank.x(), packed.lists.as<int32_t>() + packed.first[static_cast<size_t>(d)],
              static_cast<int>(list.size()), packed.row_bytes, packed.part(d, packed.row_bytes),
              rank.stream());
  }
}

std::vector<Nccl::Part> dispatch_parts(Rank& rank, const Verifier& data, const Packed& packed) {
  std::vector<Nccl::Part> parts;
  char* to = rank.region(rank.rank(), rank.plan().recv_x);
  for (int r = 0; r < rank.group().size(); ++r) {
    const size_t rows = static_cast<size_t>(data.expected().rows_from[static_cast<size_t>(r)]);
    parts.push_back({packed.part(r, packed.row_bytes), to,
                     data.send_list()[static_cast<size_t>(r)].size() * packed.row_bytes,
                     rows * packed.row_bytes});
    to += rows * packed.row_bytes;
  }
  return parts;
}

std::vector<Nccl::Part> combine_parts(Rank& rank, const Verifier& data, const Packed& packed) {
  std::vector<Nccl::Part> parts;
  const size_t bytes = rank.shape().combine_row_bytes();
  char* from = rank.region(rank.rank(), rank.plan().y);
  for (int r = 0; r < rank.group().size(); ++r) {
    const size_t rows = static_cast<size_t>(data.expected().rows_from[static_cast<size_t>(r)]);
    parts.push_back(
        {from, packed.part(r, bytes), rows * bytes, data.send_list()[static_cast<size_t>(r)].size() * bytes});
    from += rows * bytes;
  }
  return parts;
}

}  // namespace

std::vector<PeerResult> run_peers(Rank& rank, Meter& meter, Verifier& data, const Options& o,
                                  double ours_dispatch, double ours_combine) {
  std::vector<PeerResult> out;
  Plan plan;
  plan.iters = o.iters;
  plan.warmup = o.warmup;
  plan.cold = !o.warm;
  const auto add = [&](const char* name, const char* phase, const Meter::Step& op) {
    PeerResult result;
    result.name = name;
    result.phase = phase;
    result.time_us = meter.time(plan, op);
    const double ours = result.phase == "combine" ? ours_combine : ours_dispatch;
    result.ratio = ours > 0 ? result.time_us.median / ours : 0;
    out.push_back(result);
  };
  const Packed packed(rank, data);
  pack(rank, data, packed);
  const size_t wire = data.rows_out() * packed.row_bytes;
  if (rank.group().size() > 1)
    add("copy engine, remote rows only", "dispatch", [&] { meter.move_copy_engine(wire); });
  std::string why;
  const auto nccl = Nccl::open(rank.group(), o.nccl, why);
  if (nccl == nullptr) {
    out.push_back({"nccl", "dispatch", why, {}, 0});
    return out;
  }
  const std::string version = "nccl " + std::to_string(nccl->version());
  const auto parts = dispatch_parts(rank, data, packed), back = combine_parts(rank, data, packed);
  void* stream = rank.stream();
  add((version + " send/recv, packed rows only").c_str(), "dispatch",
      [&] { nccl->send_receive(parts, stream); });
  add((version + " pack and send/recv").c_str(), "dispatch", [&] {
    pack(rank, data, packed);
    nccl->send_receive(parts, stream);
  });
  const size_t most = static_cast<size_t>(rank.shape().max_tokens);
  char* recv = rank.region(rank.rank(), rank.plan().recv_x);
  Buffer padded(most * packed.row_bytes * static_cast<size_t>(rank.group().size()));
  if (nccl->has_all_to_all()) {
    add((version + " alltoall, padded to the worst case").c_str(), "dispatch",
        [&] { nccl->all_to_all(padded.as(), recv, most * packed.row_bytes, stream); });
  }
  add((version + " allgather of all rows").c_str(), "dispatch",
      [&] { nccl->all_gather(padded.as(), recv, most * packed.row_bytes, stream); });
  add((version + " send/recv, rows back, not added").c_str(), "combine",
      [&] { nccl->send_receive(back, stream); });
  rank.finish();
  return out;
}

}  // namespace ep::engine::gpu
