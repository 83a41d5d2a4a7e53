// What of the stack's libraries lies on the search path of one Python environment, read from files alone: ELF
// headers, wheel records, headers, the loader's cache. Nothing is imported, loaded or run. Says what is there
// and what a loader would take; judging is check/libs_lint.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/elf.h"
#include "facts/facts.h"

namespace ep {

/// One file of NCCL (libnccl.so), NVSHMEM (libnvshmem_host.so), the CUDA runtime (libcudart.so) or DeepEP's
/// extension.
struct LibraryCopy {
  std::string family;    ///< nccl, nvshmem, cudart, deepep
  std::string path;      ///< links resolved: each file counts once
  std::string found_by;  ///< environment, LD_LIBRARY_PATH, LD_PRELOAD, VLLM_NCCL_SO_PATH, ld.so.cache, folder
  std::string wheel;     ///< owner by its RECORD, normalised name; empty: no wheel of this environment
  std::string wheel_version;
  Fact<std::string> version;             ///< what the file itself says ("2.30.7+cuda13.3"); cudart: its major
  Fact<std::string> header_version;      ///< of ../include beside it
  uint64_t size = 0, recorded_size = 0;  ///< recorded_size: of the wheel's RECORD, 0 when not told
  int cuda_major = 0;                    ///< 0: the file does not tell
  Fact<ElfFile> elf;
  GpuCode code;
};

/// What a loader takes for `soname` on behalf of `object`.
struct Resolution {
  std::string object, soname;
  std::string path;   ///< empty: not found
  std::string how;    ///< LD_PRELOAD, RPATH, LD_LIBRARY_PATH, RUNPATH, ld.so.cache, folder
  std::string first;  ///< the file on whose behalf it came into the process: another one than `object` when
                      ///< it was there already
};

/// A file that more than one wheel's RECORD claims.
struct FileClash {
  std::string path;
  std::vector<std::string> wheels;  ///< "name version"
  bool same_bytes = false;          ///< their hashes agree: harmless
};

struct LibraryFacts {
  std::string root;  ///< of the environment
  std::vector<LibraryCopy> copies;
  std::vector<Resolution> torch;   ///< libraries of the families that torch brings into the process
  std::vector<Resolution> deepep;  ///< everything DeepEP's extension needs
  std::vector<FileClash> clashes;
  std::vector<std::string> dead_records;     ///< wheels whose RECORD cannot be read
  std::string deepep_wheel, deepep_version;  ///< distribution that owns the module deep_ep; empty: none does
  Fact<bool> elastic_buffer, buffer;         ///< deep_ep/__init__.py offers the class
  Fact<int> torch_cuda_major;                ///< of libtorch_cuda's libcudart
  std::string vllm_nccl;                     ///< what vLLM's probe would load, empty: nothing found

  const LibraryCopy* at(const std::string& path) const;
};

/// The loader's cache (ldconfig, glibc 2.2 format and later): name and path, in order. Malformed input gives
/// what was understood.
struct CachedLibrary {
  std::string name, path;
};
std::vector<CachedLibrary> parse_ld_cache(std::string_view bytes);

/// Rows of a wheel's RECORD: path, "sha256=..." and size (0 when empty). Quoted paths as in CSV.
struct RecordRow {
  std::string path, hash;
  uint64_t size = 0;
};
std::vector<RecordRow> parse_record(std::string_view text);

/// The environment at `root` with what it holds of interest (also used by read_python).
PythonEnvironment read_environment_at(const Host& host, const std::string& root);
LibraryFacts read_libraries(const Host& host, const PythonEnvironment& environment, const Facts& facts);

}  // namespace ep
