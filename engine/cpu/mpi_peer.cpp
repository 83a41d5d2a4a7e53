// The same exchange as people write it with MPI: count, pack, MPI_Alltoall for the counts, MPI_Alltoallv for
// rows and metadata, and the way back with a sum. Not part of the engine: it is what the engine is compared
// with. Started by mpirun with the engine's shape flags; rank 0 prints one line of microseconds for each
// phase.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "cpu/copy.h"
#include "cpu/memory.h"
#include "cpu/options.h"
#include "cpu/world.h"
#include "expect.h"

namespace ep::engine::cpu {

namespace {

/// Counts and displacements of one all-to-all, in records.
struct Split {
  std::vector<int> count, first;
  int total = 0;
  explicit Split(int ranks) : count(ranks), first(ranks) {}
  void sum_up() {
    total = 0;
    for (size_t r = 0; r < count.size(); ++r) {
      first[r] = total;
      total += count[r];
    }
  }
};

/// One record type of the exchange with its packing and receive buffers.
struct Stream {
  size_t bytes = 0;
  Mapping out, in;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  void make(size_t record, size_t sent, size_t received) {
    bytes = record;
    std::string error = Mapping::anonymous(record * sent, out);
    if (error.empty()) error = Mapping::anonymous(record * received, in);
    if (!error.empty()) {
      std::fprintf(stderr, "%s\n", error.c_str());
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Type_contiguous(static_cast<int>(record), MPI_BYTE, &type);
    MPI_Type_commit(&type);
  }
  void exchange(const Split& to, const Split& from) {
    if (bytes == 0) return;
    MPI_Alltoallv(out.data(), to.count.data(), to.first.data(), type, in.data(), from.count.data(),
                  from.first.data(), type, MPI_COMM_WORLD);
  }
};

class Peer {
 public:
  Peer(const Options& options, int rank)
      : options_(options),
        shape_(options.shape),
        rank_(rank),
        expect_(Expectation::of(shape_, rank, options.pattern, options.seed, options.weighted)),
        to_(shape_.ranks),
        from_(shape_.ranks) {
    const size_t tokens = static_cast<size_t>(shape_.tokens[rank]);
    const size_t sent = tokens * std::min(shape_.topk, shape_.ranks), received = expect_.rows.size();
    rows_.make(shape_.row_bytes(), sent, received);
    if (shape_.dtype == Dtype::kFp8) scales_.make(shape_.scale_row_bytes(), sent, received);
    metas_.make(shape_.meta_bytes(), sent, received);
    back_.make(shape_.combine_row_bytes(), received, sent);
    Mapping::anonymous(tokens * shape_.row_bytes(), x_);
    Mapping::anonymous(tokens * shape_.scale_row_bytes(), scale_);
    Mapping::anonymous(tokens * shape_.combine_row_bytes(), result_);
    fill_rows(shape_, rank, options.seed, x_.data(), scale_.data());
    for (size_t slot = 0; slot < received; ++slot) {
      const auto [source, token] = expect_.rows[slot];
      fill_combine_row(shape_, options.seed, rank, source, token, back_.out.data() + slot * back_.bytes);
      std::vector<uint64_t> row(shape_.row_bytes() / 8);
      for (int v = 0; v < static_cast<int>(shape_.row_vectors()); ++v) {
        const Vector16 value = row_vector(shape_.dtype, options.seed, source, token, v);
        std::memcpy(row.data() + 2 * v, &value, sizeof value);
      }
      row_hash_.push_back(hash_row(row.data(), shape_.row_bytes()));
    }
  }

  void run() {
    std::vector<double> dispatch, exchange, combine;
    for (int i = 0; i < options_.iters + options_.warmup; ++i) {
      std::memset(rows_.in.data(), kPoisonByte, rows_.in.size());
      std::memset(result_.data(), kPoisonByte, result_.size());
      int64_t packed = 0;
      const double all = timed([&] {
        pack();
        packed = now_ns();
        swap_counts();
        rows_.exchange(to_, from_);
        scales_.exchange(to_, from_);
        metas_.exchange(to_, from_);
      });
      const double data = span_us(packed, end_);
      check_rows();
      const double returned = timed([&] {
        back_.exchange(from_, to_);
        add_up();
      });
      check_results();
      if (i < options_.warmup) continue;
      dispatch.push_back(all);
      exchange.push_back(data);
      combine.push_back(returned);
    }
    unsigned long long mine[2] = {checked_, wrong_}, all[2] = {0, 0};
    MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank_ != 0) return;
    print("dispatch", dispatch);
    print("alltoallv", exchange);
    print("combine", combine);
    std::printf("checked %llu\nwrong %llu\n", all[0], all[1]);
  }

 private:
  /// From the first rank's begin to the last rank's end.
  static double span_us(int64_t begin, int64_t end) {
    int64_t first = 0, last = 0;
    MPI_Allreduce(&begin, &first, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&end, &last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return static_cast<double>(last - first) * 1e-3;
  }

  template <class Work>
  double timed(const Work& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    const int64_t begin = now_ns();
    work();
    end_ = now_ns();
    return span_us(begin, end_);
  }

  void pack() {
    const Routing& routing = expect_.routing[rank_];
    source_layout(shape_, rank_, routing.topk_idx.data(), layout_);
    for (int r = 0; r < shape_.ranks; ++r) to_.count[r] = layout_.rank_count[r];
    to_.sum_up();
    for (int t = 0; t < shape_.tokens[rank_]; ++t) {
      const size_t token = static_cast<size_t>(t), at = token * shape_.topk;
      for (int r = 0; r < shape_.ranks; ++r) {
        const int position = layout_.position[token * shape_.ranks + r];
        if (position < 0) continue;
        const size_t slot = static_cast<size_t>(to_.first[r] + position);
        std::memcpy(rows_.out.data() + slot * rows_.bytes, x_.data() + token * rows_.bytes, rows_.bytes);
        if (scales_.bytes > 0) {
          std::memcpy(scales_.out.data() + slot * scales_.bytes, scale_.data() + token * scales_.bytes,
                      scales_.bytes);
        }
        write_meta(shape_, rank_, t, r, routing.topk_idx.data() + at, routing.topk_weight.data() + at,
                   reinterpret_cast<uint32_t*>(metas_.out.data() + slot * metas_.bytes));
      }
    }
  }

  void swap_counts() {
    MPI_Alltoall(to_.count.data(), 1, MPI_INT, from_.count.data(), 1, MPI_INT, MPI_COMM_WORLD);
    from_.sum_up();
  }

  void add_up() {
    const CopyOps& ops = best_copy_ops();
    const Routing& routing = expect_.routing[rank_];
    const size_t hidden = static_cast<size_t>(shape_.hidden);
    const uint16_t* rows[kMaxRanks];
    float weights[kMaxRanks];
    for (size_t t = 0; t < static_cast<size_t>(shape_.tokens[rank_]); ++t) {
      const size_t at = t * shape_.topk;
      int count = 0;
      for (int r = 0; r < shape_.ranks; ++r) {
        const int position = layout_.position[t * shape_.ranks + r];
        if (position < 0) continue;
        weights[count] =
            rank_weight(shape_, r, routing.topk_idx.data() + at, routing.topk_weight.data() + at);
        rows[count++] = reinterpret_cast<const uint16_t*>(back_.in.data()) +
                        static_cast<size_t>(to_.first[r] + position) * hidden;
      }
      ops.combine(reinterpret_cast<uint16_t*>(result_.data()) + t * hidden, rows,
                  options_.weighted ? weights : nullptr, count, hidden);
    }
    ops.fence();
  }

  void check_rows() {
    if (from_.total != static_cast<int>(expect_.rows.size())) ++wrong_;
    for (size_t slot = 0; slot < expect_.rows.size(); ++slot) {
      int32_t source[2];
      std::memcpy(source, metas_.in.data() + slot * metas_.bytes, sizeof source);
      const bool placed = source[0] == expect_.rows[slot].first && source[1] == expect_.rows[slot].second;
      if (!placed || hash_row(rows_.in.data() + slot * rows_.bytes, rows_.bytes) != row_hash_[slot]) ++wrong_;
      ++checked_;
    }
  }

  void check_results() {
    for (size_t t = 0; t < expect_.result_hash.size(); ++t) {
      if (hash_row(result_.data() + t * back_.bytes, back_.bytes) != expect_.result_hash[t]) ++wrong_;
      ++checked_;
    }
  }

  static void print(const char* name, const std::vector<double>& times) {
    std::printf("%s", name);
    for (const double us : times) std::printf(" %.1f", us);
    std::printf("\n");
  }

  const Options& options_;
  const Shape& shape_;
  int rank_;
  Expectation expect_;
  SourceLayout layout_;
  Split to_, from_;
  Stream rows_, scales_, metas_, back_;
  Mapping x_, scale_, result_;
  std::vector<uint64_t> row_hash_;
  unsigned long long checked_ = 0, wrong_ = 0;
  int64_t end_ = 0;
};

int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options;
  std::string error = parse_options(std::vector<std::string>(argv + 1, argv + argc), options);
  options.shape.ranks = ranks;
  set_tokens(options.shape, options.pattern);
  if (error.empty()) error = validate(options.shape);
  if (error.empty())
    Peer(options, rank).run();
  else if (rank == 0)
    std::fprintf(stderr, "%s\n", error.c_str());
  MPI_Finalize();
  return error.empty() ? 0 : 2;
}

}  // namespace
}  // namespace ep::engine::cpu

// Open MPI keeps memory until the process ends; a build with AddressSanitizer must not take that for our
// leak.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

int main(int argc, char** argv) {
  return ep::engine::cpu::run(argc, argv);
}
