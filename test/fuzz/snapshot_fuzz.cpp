// Fuzz: bytes as a .snap file. It loads or is refused; what loads is written and read back the same, and facts of it can
// be read.
#include <cstdint>
#include <cstdlib>

#include "facts/facts.h"
#include "host/snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  auto data = ep::from_snap_text({reinterpret_cast<const char*>(bytes), size}, "fuzz");
  if (!data) return 0;
  std::string text = ep::to_snap_text(*data);
  auto again = ep::from_snap_text(text, "again");
  if (!again || ep::to_snap_text(*again) != text) abort();
  ep::read_facts(*ep::host_of(std::move(*data), "fuzz"));
  return 0;
}
