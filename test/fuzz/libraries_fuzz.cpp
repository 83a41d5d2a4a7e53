// Fuzz: bytes as a shared library, as the loader's cache and as a wheel's RECORD. An answer or an error,
// never a crash; what a library is said to hold lies inside of it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "facts/libraries.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto bytes = ep::bytes_of(text);
  if (auto elf = ep::read_elf(bytes)) {
    if (elf->soname.size() > size) abort();
    auto code = ep::read_gpu_code(*elf, bytes);
    if (code.cubin.size() * 32 > size) abort();
    ep::version_after(*elf, bytes, "NCCL version ");
  }
  for (const auto& l : ep::parse_ld_cache(text))
    if (l.path.empty() || l.path[0] != '/') abort();
  for (const auto& r : ep::parse_record(text))
    if (r.path.empty() || r.path.size() > size) abort();
  return 0;
}
