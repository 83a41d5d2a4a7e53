#include "cpu/cases.h"
namespace ep::engine::cpu {
int run_check(Options&) {
  return kCannot;
}
}  // namespace ep::engine::cpu
