// Makes small ELF files byte by byte, for tests of the readers. Not part of the program.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ep::test {

struct ElfParts {
  std::string soname;
  std::vector<std::string> needed;
  std::string runpath, rpath;
  std::string rodata;
  std::string fatbin;
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// One fatbin container with entries {kind (1 PTX, 2 cubin), architecture}.
inline std::string fatbin(const std::vector<std::pair<int, int>>& entries) {
  std::string body;
  for (auto [kind, arch] : entries) {
    put<uint16_t>(body, uint16_t(kind));
    put<uint16_t>(body, 0x0101);
    put<uint32_t>(body, 64);  // own header
    put<uint64_t>(body, 24);  // payload
    put<uint32_t>(body, 0);
    put<uint32_t>(body, 0);
    put<uint16_t>(body, 7);
    put<uint16_t>(body, 1);
    put<uint32_t>(body, uint32_t(arch));
    body.append(32 + 24, '\x5a');
  }
  std::string out;
  put<uint32_t>(out, 0xBA55ED50);
  put<uint16_t>(out, 1);
  put<uint16_t>(out, 16);
  put<uint64_t>(out, body.size());
  return out + body;
}

/// 64-bit little-endian shared object. Layout: header, 2 program headers, strings, dynamic, rodata, fatbin,
/// section names, section headers. Addresses are offsets plus 0x10000.
inline std::string elf_file(const ElfParts& p) {
  constexpr uint64_t kBase = 0x10000;
  std::string strings(1, '\0');
  const auto name = [&](const std::string& s) {
    uint64_t at = strings.size();
    strings += s + '\0';
    return at;
  };
  std::vector<std::pair<uint64_t, uint64_t>> entries;
  for (const auto& n : p.needed) entries.push_back({1, name(n)});
  if (!p.soname.empty()) entries.push_back({14, name(p.soname)});
  if (!p.rpath.empty()) entries.push_back({15, name(p.rpath)});
  if (!p.runpath.empty()) entries.push_back({29, name(p.runpath)});
  const uint64_t strings_at = 64 + 2 * 56;
  entries.push_back({5, kBase + strings_at});
  entries.push_back({10, strings.size()});
  entries.push_back({0, 0});
  std::string dynamic;
  for (auto [tag, value] : entries) put(dynamic, tag), put(dynamic, value);
  const uint64_t dynamic_at = strings_at + strings.size(), rodata_at = dynamic_at + dynamic.size(),
                 fatbin_at = rodata_at + p.rodata.size(), names_at = fatbin_at + p.fatbin.size();
  std::string names(1, '\0');
  const uint64_t n_rodata = names.size();
  names += std::string(".rodata") + '\0';
  const uint64_t n_fatbin = names.size();
  names += std::string(".nv_fatbin") + '\0';
  const uint64_t n_names = names.size();
  names += std::string(".shstrtab") + '\0';
  const uint64_t sections_at = names_at + names.size();

  std::string out(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  out.resize(16, '\0');
  put<uint16_t>(out, 3);   // shared object
  put<uint16_t>(out, 62);  // x86-64
  put<uint32_t>(out, 1);
  put<uint64_t>(out, 0);
  put<uint64_t>(out, 64);
  put<uint64_t>(out, sections_at);
  put<uint32_t>(out, 0);
  put<uint16_t>(out, 64);
  put<uint16_t>(out, 56);
  put<uint16_t>(out, 2);
  put<uint16_t>(out, 64);
  put<uint16_t>(out, 4);
  put<uint16_t>(out, 3);
  const auto program = [&](uint32_t type, uint64_t at, uint64_t size) {
    put<uint32_t>(out, type);
    put<uint32_t>(out, 4);
    put<uint64_t>(out, at);
    put<uint64_t>(out, kBase + at);
    put<uint64_t>(out, kBase + at);
    put<uint64_t>(out, size);
    put<uint64_t>(out, size);
    put<uint64_t>(out, 8);
  };
  program(1, 0, names_at);
  program(2, dynamic_at, dynamic.size());
  out += strings + dynamic + p.rodata + p.fatbin + names;
  const auto section = [&](uint64_t n, uint32_t type, uint64_t at, uint64_t size) {
    put<uint32_t>(out, uint32_t(n));
    put<uint32_t>(out, type);
    put<uint64_t>(out, 0);
    put<uint64_t>(out, 0);
    put<uint64_t>(out, at);
    put<uint64_t>(out, size);
    out.append(24, '\0');
  };
  section(0, 0, 0, 0);
  section(n_rodata, 1, rodata_at, p.rodata.size());
  section(n_fatbin, 1, fatbin_at, p.fatbin.size());
  section(n_names, 3, names_at, names.size());
  return out;
}

}  // namespace ep::test
