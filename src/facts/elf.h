// ELF files read without loading them: what a shared library is called, what it needs, where it looks, which
// GPU architectures are embedded. Reads a few small pieces, never the whole file. Not a disassembler.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ep {

/// Bytes of a file from `offset`, at most `size`; fewer only at the end of the file.
using ByteSource = std::function<Result<std::string>(uint64_t offset, size_t size)>;
ByteSource bytes_of(std::string_view whole);

struct ElfSection {
  std::string name;
  uint64_t offset = 0, size = 0;
  bool in_file = true;  ///< .bss takes no bytes
};

struct ElfFile {
  int machine = 0;  ///< e_machine: 62 x86-64, 183 aarch64
  std::string soname;
  std::vector<std::string> needed;          ///< DT_NEEDED, in order
  std::vector<std::string> runpath, rpath;  ///< split at ':', as written ($ORIGIN kept)
  std::vector<ElfSection> sections;         ///< empty in a stripped file without section headers
  const ElfSection* section(std::string_view name) const;
};

/// Little-endian 64-bit ELF. Errors: malformed (no ELF file, another class, cut off), or the source's own.
Result<ElfFile> read_elf(const ByteSource& bytes);

/// GPU code in a library. 90 is compute capability 9.0.
struct GpuCode {
  std::set<int> cubin;  ///< runs on this capability and later minors of the same major
  std::set<int> ptx;    ///< compiled by the driver for this capability or any later one
  bool cut = false;     ///< not all of it was understood: the sets are what was seen until then
  bool empty() const { return cubin.empty() && ptx.empty(); }
  /// Whether a GPU of `capability` has code here. Architecture-specific variants (9.0a) count as 9.0.
  bool serves(int capability) const;
};
/// From .nv_fatbin and __nv_relfatbin (the container that nvcc embeds: magic 0xBA55ED50, entries with kind,
/// size and architecture; as decoded by cuobjdump-like open tools).
GpuCode read_gpu_code(const ElfFile& elf, const ByteSource& bytes);

/// First text "MARKER<version>" in the section `.rodata` (at most 64 MiB of it are looked at): libraries
/// carry their own version so ("NCCL version 2.30.7+cuda13.0"). Version: digits, dots, then what follows up
/// to a blank or end. Empty when it is not there.
std::string version_after(const ElfFile& elf, const ByteSource& bytes, std::string_view marker);

}  // namespace ep
