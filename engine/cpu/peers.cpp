#include "cpu/cases.h"
namespace ep::engine::cpu {
void run_peers(const Options&, BenchReport&) {}
}  // namespace ep::engine::cpu
