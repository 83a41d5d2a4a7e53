// Fuzz: bytes as a paste. It is cut, read, turned into a topology; nothing crashes, hangs or claims a mapping
// with a device twice as often as its constraint allows.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "facts/text_facts.h"
#include "facts/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  auto hosts = ep::take_apart({{"paste-mp.txt", text}});
  for (const auto& h : hosts) {
    auto t = ep::read_topology(ep::facts_of_paste(h, "paste"));
    for (const auto& [gpu, nic] : t.mapping.pairs)
      if (!t.nic(nic)) abort();
    if (t.mapping.confidence == ep::Confidence::derived && t.mapping.pairs.empty()) abort();
  }
  return 0;
}
