// How glibc's loader finds a library, walked on paper: preload, RPATH, LD_LIBRARY_PATH, RUNPATH, cache,
// default folders (ld.so(8)). Private to src/facts.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "facts/libraries.h"
#include "host/host.h"

namespace ep {

class Loader {
 public:
  Loader(const Host& host, const std::map<std::string, std::string>& environment);

  /// ELF header of a file; read once. nullptr: cannot be read as one.
  const ElfFile* elf(const std::string& path);
  ByteSource bytes(const std::string& path) const;
  /// Links resolved.
  std::string real(const std::string& path) const;
  /// What `object` gets for `soname`. `inherited`: RPATH folders of those that loaded it.
  Resolution resolve(const std::string& object, const std::string& soname,
                     const std::vector<std::string>& inherited);
  /// Loads `object` and all it needs, breadth first, into the process that this loader plays; what is there
  /// already by its soname is not looked for again. Answers what the object itself asked for.
  std::vector<Resolution> load(const std::string& object);

  const std::vector<CachedLibrary>& cache() const { return cache_; }
  const std::vector<std::string>& library_path() const { return library_path_; }
  const std::vector<std::string>& preload() const { return preload_; }

 private:
  std::string in_folders(const std::vector<std::string>& folders, const std::string& soname,
                         const std::string& object) const;

  const Host& host_;
  std::vector<CachedLibrary> cache_;
  std::vector<std::string> library_path_, preload_;
  std::map<std::string, Fact<ElfFile>> elves_;
  std::map<std::string, Resolution> loaded_;  ///< by soname
};

}  // namespace ep
