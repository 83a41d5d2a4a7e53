#include "facts/loader.h"

#include <cstring>
#include <deque>

#include "base/text.h"
#include "host/snapshot.h"

namespace ep {
namespace {

const char* const kDefaultFolders[] = {"/lib/x86_64-linux-gnu",
                                       "/usr/lib/x86_64-linux-gnu",
                                       "/lib/aarch64-linux-gnu",
                                       "/usr/lib/aarch64-linux-gnu",
                                       "/lib64",
                                       "/usr/lib64",
                                       "/lib",
                                       "/usr/lib"};
constexpr size_t kMaxObjects = 2000;  // a process with more libraries is not one of Python

std::vector<std::string> words_of(const std::map<std::string, std::string>& environment, const char* name,
                                  std::string_view separators) {
  std::vector<std::string> out;
  auto it = environment.find(name);
  if (it == environment.end()) return out;
  std::string word;
  for (char c : it->second + std::string(1, separators[0])) {
    if (separators.find(c) == std::string_view::npos)
      word += c;
    else if (!word.empty())
      out.push_back(std::move(word)), word.clear();
  }
  return out;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

uint32_t u32(std::string_view s, size_t at) {
  uint32_t v = 0;
  if (at + 4 <= s.size()) std::memcpy(&v, s.data() + at, 4);
  return v;
}

}  // namespace

std::vector<CachedLibrary> parse_ld_cache(std::string_view bytes) {
  // Older caches put a table of the old format before this one.
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  std::vector<CachedLibrary> out;
  const size_t begin = bytes.find(kMagic);
  if (begin == bytes.npos) return out;
  bytes.remove_prefix(begin);
  const auto text = [&](uint32_t offset) {
    if (offset >= bytes.size()) return std::string();
    auto rest = bytes.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  };
  const uint32_t count = u32(bytes, 20);
  for (size_t i = 0, at = 48; i < count && at + 24 <= bytes.size(); ++i, at += 24) {
    CachedLibrary one{text(u32(bytes, at + 4)), text(u32(bytes, at + 8))};
    if (!one.name.empty() && starts_with(one.path, "/")) out.push_back(std::move(one));
  }
  return out;
}

Loader::Loader(const Host& host, const std::map<std::string, std::string>& environment)
    : host_(host),
      library_path_(words_of(environment, "LD_LIBRARY_PATH", ":;")),
      preload_(words_of(environment, "LD_PRELOAD", ": ")) {
  if (auto cache = host.read("/etc/ld.so.cache", 32u << 20)) cache_ = parse_ld_cache(*cache);
}

ByteSource Loader::bytes(const std::string& path) const {
  return [this, path](uint64_t offset, size_t size) { return host_.read_at(path, offset, size); };
}

std::string Loader::real(const std::string& path) const {
  auto canonical = canonical_path(path, true, [&](const std::string& p) -> std::optional<std::string> {
    auto target = host_.link(p);
    if (!target) return std::nullopt;
    return *target;
  });
  return canonical ? *canonical : path;
}

const ElfFile* Loader::elf(const std::string& path) {
  auto it = elves_.find(path);
  if (it == elves_.end()) {
    auto read = read_elf(bytes(path));
    it = elves_.emplace(path, read ? known(std::move(*read), path) : from_error<ElfFile>(read.error(), path))
             .first;
  }
  return it->second.ok() ? &*it->second : nullptr;
}

std::string Loader::in_folders(const std::vector<std::string>& folders, const std::string& soname,
                               const std::string& object) const {
  const std::string origin = object.substr(0, object.rfind('/'));
  for (const auto& written : folders) {
    std::string folder = replace_all(replace_all(written, "${ORIGIN}", origin), "$ORIGIN", origin);
    std::string path = folder + "/" + soname;
    auto info = host_.info(path);
    if (info && info->type == FileInfo::Type::file) return path;
  }
  return {};
}

Resolution Loader::resolve(const std::string& object, const std::string& soname,
                           const std::vector<std::string>& inherited) {
  Resolution r{object, soname, {}, {}, object};
  const auto take = [&](std::string path, const char* how) {
    if (path.empty()) return false;
    r.path = real(path);
    r.how = how;
    return true;
  };
  for (const auto& p : preload_)
    if (base_name(p) == soname && host_.exists(p) && take(p, "LD_PRELOAD")) return r;
  const ElfFile* e = elf(object);
  if (e && e->runpath.empty() && take(in_folders(e->rpath, soname, object), "RPATH")) return r;
  if ((!e || e->runpath.empty()) && take(in_folders(inherited, soname, object), "RPATH")) return r;
  if (take(in_folders(library_path_, soname, object), "LD_LIBRARY_PATH")) return r;
  if (e && take(in_folders(e->runpath, soname, object), "RUNPATH")) return r;
  for (const auto& c : cache_)
    if (c.name == soname && host_.exists(c.path) && take(c.path, "ld.so.cache")) return r;
  take(in_folders({std::begin(kDefaultFolders), std::end(kDefaultFolders)}, soname, object), "folder");
  return r;
}

std::vector<Resolution> Loader::load(const std::string& object) {
  struct Item {
    std::string path;
    std::vector<std::string> inherited;
  };
  std::vector<Resolution> own;
  std::deque<Item> queue{{object, {}}};
  while (!queue.empty() && loaded_.size() < kMaxObjects) {
    Item item = std::move(queue.front());
    queue.pop_front();
    const ElfFile* e = elf(item.path);
    if (!e) continue;
    // RPATH reaches down to what is loaded on its behalf; RUNPATH does not.
    std::vector<std::string> inherited = item.inherited;
    const std::string origin = item.path.substr(0, item.path.rfind('/'));
    if (e->runpath.empty())
      for (const auto& folder : e->rpath)
        inherited.push_back(replace_all(replace_all(folder, "${ORIGIN}", origin), "$ORIGIN", origin));
    for (const auto& soname : e->needed) {
      Resolution r;
      if (auto there = loaded_.find(soname); there != loaded_.end()) {
        r = there->second;
        r.object = item.path;
      } else {
        r = resolve(item.path, soname, item.inherited);
        loaded_.emplace(soname, r);
        if (!r.path.empty()) queue.push_back({r.path, inherited});
      }
      if (item.path == object) own.push_back(std::move(r));
    }
  }
  return own;
}

}  // namespace ep
