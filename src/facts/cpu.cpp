// Processors, NUMA nodes, memory.
#include <algorithm>

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

// "0-3,8,10-11" has 7 members. Source: cpuset list format, cpuset(7).
Fact<int> count_list(const Fact<std::string>& list) {
  if (!list) return same_trouble<int>(list);
  long long n = 0;
  for (auto part : split(*list, ',')) {
    if (list->empty()) break;
    size_t dash = part.find('-');
    auto low = parse_int(part.substr(0, dash));
    auto high = dash == part.npos ? low : parse_int(part.substr(dash + 1));
    if (!low || !high || *low < 0 || *high < *low || *high > 1 << 20)
      return malformed<int>(list.where, "expected a list like 0-3,8");
    n += *high - *low + 1;
  }
  return known(int(std::min<long long>(n, INT32_MAX)), list.where);
}

Fact<std::string> field_of(const Host& host, const std::string& path, std::string_view key) {
  auto text = host.read(path);
  if (!text) return from_error<std::string>(text.error(), path);
  for (auto line : lines(*text))
    if (size_t colon = line.find(':'); colon != line.npos && trim(line.substr(0, colon)) == key)
      return known(std::string(trim(line.substr(colon + 1))), path);
  return absent<std::string>(path, "no line " + std::string(key) + ":");
}

Fact<uint64_t> kilobytes(const Host& host, std::string_view key) {
  auto text = field_of(host, "/proc/meminfo", key);
  if (!text) return same_trouble<uint64_t>(text);
  auto words = split_ws(*text);
  const long long n = words.size() == 2 && words[1] == "kB" ? parse_int(words[0]).value_or(-1) : -1;
  if (n < 0) return malformed<uint64_t>(text.where, "expected \"N kB\"");
  return known(uint64_t(n) * 1024, text.where);
}

}  // namespace

void read_cpu(const Reading& r, Facts& f) {
  CpuFacts& c = f.cpu;
  c.model = field_of(r.host, "/proc/cpuinfo", "model name");
  if (!c.model && c.model.known == Known::absent) {
    // Arm shows numbers only; device tree or DMI would name the board, not the core.
    auto part = field_of(r.host, "/proc/cpuinfo", "CPU part");
    if (part)
      c.model =
          known("Arm implementer " + field_of(r.host, "/proc/cpuinfo", "CPU implementer").value_or("?") +
                    " part " + *part,
                part.where);
  }
  c.num_online = count_list(read_text(r.host, "/sys/devices/system/cpu/online"));
  c.num_allowed = count_list(field_of(r.host, "/proc/self/status", "Cpus_allowed_list"));
  auto nodes = r.host.list("/sys/devices/system/node");
  if (nodes) {
    auto is_node = [](const std::string& n) {
      return starts_with(n, "node") && parse_int(std::string_view(n).substr(4));
    };
    c.num_numa_nodes =
        known(int(std::count_if(nodes->begin(), nodes->end(), is_node)), "/sys/devices/system/node");
  } else {
    c.num_numa_nodes = from_error<int>(nodes.error(), "/sys/devices/system/node");
  }
  c.memory_bytes = kilobytes(r.host, "MemTotal");
  c.memory_available_bytes = kilobytes(r.host, "MemAvailable");
}

}  // namespace ep
