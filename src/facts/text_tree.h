// What the readers of NCCL XML, hwloc XML and lstopo share. Private to facts/text_*.cpp.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/words.h"
#include "facts/text_xml.h"

namespace ep {

Finding xml_note(std::string code, Severity severity, BothWords title, const std::string& source,
                 std::string text = {});
/// "0x15b3", "15b3" -> number.
std::optional<int> hex_number(std::string_view s);
/// PCI classes of NVIDIA's display and accelerator functions, and of network functions.
inline bool is_gpu_function(int c) {
  return c == 0x030200 || c == 0x030000;
}
inline bool is_nic_function(int c) {
  return c == 0x020000 || c == 0x020700;
}
/// Kernel driver of a network vendor's RDMA devices; nullptr when unknown.
const char* driver_of_vendor(int vendor);
/// Numbers GPUs by `dev` when it has a distinct value for each, else by PCI address; says when the file's
/// order differs.
void number_gpus(PciTreeText& out, const std::map<std::string, int>& dev, const std::string& source);

}  // namespace ep
