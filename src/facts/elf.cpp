#include "facts/elf.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/text.h"

namespace ep {
namespace {

constexpr size_t kMaxHeaders = 8u << 20;      // bytes of one table: more is no library that anyone built
constexpr size_t kMaxDynamic = 1u << 20;      // 64 Ki entries
constexpr size_t kNameBytes = 4096;           // a path in the string table
constexpr size_t kMaxFatbinEntries = 400000;  // libtorch_cuda has some ten thousand
constexpr uint32_t kFatbinMagic = 0xBA55ED50;

template <class T>
T at(std::string_view s, size_t offset) {
  T out{};
  if (offset + sizeof out <= s.size()) std::memcpy(&out, s.data() + offset, sizeof out);
  return out;
}

Failure broken(std::string why) {
  return fail(ErrorKind::malformed, "not a library that can be read", {}, std::move(why));
}

/// All of it or an error.
Result<std::string> exactly(const ByteSource& bytes, uint64_t offset, uint64_t size, size_t most,
                            const char* what) {
  if (size > most) return broken(std::string(what) + " is larger than any real one");
  if (offset > UINT64_MAX - size) return broken(std::string(what) + " lies outside of the file");
  auto got = bytes(offset, size_t(size));
  if (!got) return got;
  if (got->size() < size) return broken(std::string(what) + " is cut off");
  return got;
}

std::string text_at(std::string_view table, size_t offset) {
  if (offset >= table.size()) return {};
  table.remove_prefix(offset);
  return std::string(table.substr(0, table.find('\0')));
}

struct Load {
  uint64_t offset, address, size;
};

std::vector<std::string> folders(const std::string& path) {
  std::vector<std::string> out;
  for (auto one : split(path, ':'))
    if (!one.empty()) out.emplace_back(one);
  return out;
}

Result<> read_dynamic(const ByteSource& bytes, uint64_t offset, uint64_t size, const std::vector<Load>& loads,
                      ElfFile& elf) {
  auto table = exactly(bytes, offset, size, kMaxDynamic, "dynamic section");
  if (!table) return Failure(table.error());
  struct Entry {
    int64_t tag;
    uint64_t value;
  };
  std::vector<Entry> entries;
  uint64_t strings = 0;
  for (size_t i = 0; i + 16 <= table->size(); i += 16) {
    Entry e{at<int64_t>(*table, i), at<uint64_t>(*table, i + 8)};
    if (e.tag == 0) break;              // DT_NULL
    if (e.tag == 5) strings = e.value;  // DT_STRTAB, an address
    entries.push_back(e);
  }
  uint64_t base = UINT64_MAX;
  for (const auto& l : loads)
    if (strings >= l.address && strings - l.address < l.size) base = l.offset + (strings - l.address);
  if (base == UINT64_MAX) return broken("its string table is nowhere in the file");
  const auto name = [&](uint64_t value) -> std::string {
    if (value > UINT64_MAX - base) return {};
    auto piece = bytes(base + value, kNameBytes);
    return piece ? text_at(*piece, 0) : std::string();
  };
  for (const auto& e : entries) {
    if (e.tag == 1) elf.needed.push_back(name(e.value));
    if (e.tag == 14) elf.soname = name(e.value);
    if (e.tag == 15) elf.rpath = folders(name(e.value));
    if (e.tag == 29) elf.runpath = folders(name(e.value));
  }
  return {};
}

Result<> read_sections(const ByteSource& bytes, std::string_view header, ElfFile& elf) {
  const uint64_t offset = at<uint64_t>(header, 40);
  uint64_t count = at<uint16_t>(header, 60), names_at = at<uint16_t>(header, 62);
  const uint64_t entry = at<uint16_t>(header, 58);
  if (offset == 0) return {};  // stripped of them
  if (entry < 64) return broken("section headers are too small");
  if (count == 0 || names_at == 0xffff) {  // large counts stand in the first header
    auto first = exactly(bytes, offset, 64, 64, "section header");
    if (!first) return Failure(first.error());
    if (count == 0) count = at<uint64_t>(*first, 32);
    if (names_at == 0xffff) names_at = at<uint32_t>(*first, 40);
  }
  if (count > kMaxHeaders / entry) return broken("more sections than any real library has");
  auto table = exactly(bytes, offset, count * entry, kMaxHeaders, "section table");
  if (!table) return Failure(table.error());
  if (names_at >= count) return broken("section names are missing");
  auto names = exactly(bytes, at<uint64_t>(*table, names_at * entry + 24),
                       at<uint64_t>(*table, names_at * entry + 32), kMaxHeaders, "section names");
  if (!names) return Failure(names.error());
  for (uint64_t i = 0; i < count; ++i) {
    const size_t o = size_t(i * entry);
    elf.sections.push_back({text_at(*names, at<uint32_t>(*table, o)), at<uint64_t>(*table, o + 24),
                            at<uint64_t>(*table, o + 32), at<uint32_t>(*table, o + 4) != 8});
  }
  return {};
}

/// One section of fatbins: a header, entries, the next header at the next multiple of 8.
void read_fatbins(const ElfSection& s, const ByteSource& bytes, size_t& budget, GpuCode& out) {
  const auto read = [&](uint64_t offset, size_t size) {
    auto got = offset + size <= s.size ? bytes(s.offset + offset, size) : Result<std::string>(std::string());
    return got && got->size() == size ? *got : std::string();
  };
  for (uint64_t i = 0; i + 16 <= s.size;) {
    const std::string head = read(i, 16);
    if (head.empty()) return void(out.cut = true);
    if (at<uint32_t>(head, 0) == 0) {  // padding
      i += 8;
      continue;
    }
    const uint64_t header = at<uint16_t>(head, 6), size = at<uint64_t>(head, 8);
    if (at<uint32_t>(head, 0) != kFatbinMagic || header < 16 || size > s.size - i ||
        header > s.size - i - size)
      return void(out.cut = true);
    const uint64_t end = i + header + size;
    for (uint64_t e = i + header; e + 32 <= end;) {
      const std::string entry = read(e, 32);
      if (entry.empty() || budget == 0) return void(out.cut = true);
      --budget;
      const uint64_t kind = at<uint16_t>(entry, 0), own = at<uint32_t>(entry, 4),
                     payload = at<uint64_t>(entry, 8), arch = at<uint32_t>(entry, 28);
      if (own < 32 || payload > end - e || own > end - e - payload) return void(out.cut = true);
      if (arch >= 10 && arch < 1000) {
        if (kind == 1) out.ptx.insert(int(arch));
        if (kind == 2) out.cubin.insert(int(arch));
      }
      e += own + payload;
    }
    i = (end + 7) / 8 * 8;
  }
}

}  // namespace

ByteSource bytes_of(std::string_view whole) {
  return [whole](uint64_t offset, size_t size) -> Result<std::string> {
    return std::string(offset < whole.size() ? whole.substr(size_t(offset), size) : std::string_view());
  };
}

const ElfSection* ElfFile::section(std::string_view name) const {
  for (const auto& s : sections)
    if (s.name == name) return &s;
  return nullptr;
}

Result<ElfFile> read_elf(const ByteSource& bytes) {
  auto header = bytes(0, 64);
  if (!header) return Failure(header.error());
  if (header->size() < 64 || header->compare(0, 4,
                                             "\x7f"
                                             "ELF") != 0)
    return broken("no ELF header");
  if ((*header)[4] != 2 || (*header)[5] != 1) return broken("not a little-endian 64-bit file");
  ElfFile elf;
  elf.machine = at<uint16_t>(*header, 18);
  const uint64_t programs = at<uint64_t>(*header, 32), entry = at<uint16_t>(*header, 54),
                 count = at<uint16_t>(*header, 56);
  if (entry < 56 && count > 0) return broken("program headers are too small");
  auto table = exactly(bytes, programs, entry * count, kMaxHeaders, "program header table");
  if (!table) return Failure(table.error());
  std::vector<Load> loads;
  uint64_t dynamic = 0, dynamic_size = 0;
  for (size_t o = 0; o + 56 <= table->size(); o += entry) {
    const uint32_t type = at<uint32_t>(*table, o);
    const uint64_t offset = at<uint64_t>(*table, o + 8), address = at<uint64_t>(*table, o + 16),
                   size = at<uint64_t>(*table, o + 32);
    if (type == 1) loads.push_back({offset, address, size});
    if (type == 2) dynamic = offset, dynamic_size = size;
  }
  if (dynamic_size > 0)
    if (auto r = read_dynamic(bytes, dynamic, dynamic_size, loads, elf); !r) return Failure(r.error());
  if (auto r = read_sections(bytes, *header, elf); !r) return Failure(r.error());
  return elf;
}

bool GpuCode::serves(int capability) const {
  for (int c : cubin)
    if (c / 10 == capability / 10 && c <= capability) return true;
  return std::any_of(ptx.begin(), ptx.end(), [&](int p) { return p <= capability; });
}

GpuCode read_gpu_code(const ElfFile& elf, const ByteSource& bytes) {
  GpuCode out;
  size_t budget = kMaxFatbinEntries;
  for (const auto& s : elf.sections)
    if (s.in_file && (s.name == ".nv_fatbin" || s.name == "__nv_relfatbin"))
      read_fatbins(s, bytes, budget, out);
  return out;
}

std::string version_after(const ElfFile& elf, const ByteSource& bytes, std::string_view marker) {
  const ElfSection* s = elf.section(".rodata");
  if (!s || !s->in_file || marker.empty()) return {};
  constexpr size_t kPiece = 4u << 20, kMost = 64u << 20;
  // Pieces overlap, so that a text across their border is seen in the next one.
  for (uint64_t o = 0; o < std::min<uint64_t>(s->size, kMost); o += kPiece) {
    auto piece = bytes(s->offset + o, size_t(std::min<uint64_t>(kPiece + 256, s->size - o)));
    if (!piece) return {};
    for (size_t hit = piece->find(marker); hit != std::string::npos; hit = piece->find(marker, hit + 1)) {
      size_t end = hit + marker.size();
      while (end < piece->size() && (std::isalnum(static_cast<unsigned char>((*piece)[end])) ||
                                     (*piece)[end] == '.' || (*piece)[end] == '+' || (*piece)[end] == '-'))
        ++end;
      std::string version = piece->substr(hit + marker.size(), end - hit - marker.size());
      if (!version.empty() && std::isdigit(static_cast<unsigned char>(version[0])) && contains(version, "."))
        return version;
    }
  }
  return {};
}

}  // namespace ep
