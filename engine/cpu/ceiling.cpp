#include "cpu/ceiling.h"

namespace ep::engine::cpu {

namespace {

/// The part of 0..total that thread i of n does.
struct Part {
  size_t first, last;
  Part(size_t total, int i, int n) : first(total * i / n), last(total * (i + 1) / n) {}
};

}  // namespace

void Ceiling::fan_out(const SourceView& source) {
  const Shape& shape = place_.shape;
  const int me = member_.rank(), ranks = shape.ranks;
  const size_t row = shape.row_bytes(), scale = shape.scale_row_bytes();
  const size_t begin = static_cast<size_t>(me) * shape.max_tokens;
  team_.run([&](int thread) {
    const Part part(static_cast<size_t>(shape.tokens[me]), thread, team_.size());
    void* rows[kMaxRanks];
    void* scales[kMaxRanks];
    for (size_t t = part.first; t < part.last; ++t) {
      if (t % 64 == 0) member_.tick();
      const int32_t* position = exchange_.layout().position.data() + t * ranks;
      int count = 0;
      for (int i = 0; i < ranks; ++i) {
        const int d = (me + 1 + i) % ranks;
        if (position[d] < 0) continue;
        const size_t slot = begin + static_cast<size_t>(position[d]);
        rows[count] = place_.at(d, place_.plan.recv_x) + slot * row;
        scales[count++] = place_.at(d, place_.plan.recv_scale) + slot * scale;
      }
      ops_.fan_out(rows, count, static_cast<const char*>(source.x) + t * row, row);
      if (scale > 0) ops_.fan_out(scales, count, static_cast<const char*>(source.scale) + t * scale, scale);
    }
    ops_.fence();
  });
}

void Ceiling::bulk_copy(const SourceView& source) {
  const Shape& shape = place_.shape;
  const int me = member_.rank();
  const size_t begin = static_cast<size_t>(me) * shape.max_tokens;
  team_.run([&](int thread) {
    for (int i = 0; i < shape.ranks; ++i) {
      const int d = (me + 1 + i) % shape.ranks;
      const Part part(static_cast<size_t>(exchange_.layout().rank_count[d]), thread, team_.size());
      const auto copy = [&](const Region& region, const void* from, size_t row) {
        ops_.copy(place_.at(d, region) + (begin + part.first) * row,
                  static_cast<const char*>(from) + part.first * row, (part.last - part.first) * row);
      };
      member_.tick();
      copy(place_.plan.recv_x, source.x, shape.row_bytes());
      copy(place_.plan.recv_scale, source.scale, shape.scale_row_bytes());
    }
    ops_.fence();
  });
}

void Ceiling::merge(uint16_t* out) {
  const Shape& shape = place_.shape;
  const int me = member_.rank(), ranks = shape.ranks;
  const size_t row = shape.combine_row_bytes();
  team_.run([&](int thread) {
    const Part part(static_cast<size_t>(shape.tokens[me]), thread, team_.size());
    const void* rows[kMaxRanks];
    for (size_t t = part.first; t < part.last; ++t) {
      if (t % 64 == 0) member_.tick();
      const int32_t* position = exchange_.layout().position.data() + t * ranks;
      int count = 0;
      for (int r = 0; r < ranks; ++r) {
        if (position[r] < 0) continue;
        rows[count++] =
            place_.at(r, place_.plan.y) + static_cast<size_t>(exchange_.base()[r] + position[r]) * row;
      }
      ops_.merge(reinterpret_cast<char*>(out) + t * row, rows, count, row);
    }
    ops_.fence();
  });
}

}  // namespace ep::engine::cpu
