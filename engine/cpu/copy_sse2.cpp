// Copy functions for any 64-bit x86 CPU.
#include "cpu/copy.h"
#include "cpu/copy_vec16.h"

namespace {
using Vec = Vec16;
}

#include "cpu/copy_kernels.h"

namespace ep::engine::cpu {
extern const CopyOps kSse2Ops;
const CopyOps kSse2Ops = {"sse2", copy, fan_out, fill, combine, merge, fence};
}  // namespace ep::engine::cpu
