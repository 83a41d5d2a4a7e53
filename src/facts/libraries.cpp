#include "facts/libraries.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "facts/loader.h"
#include "facts/parsers.h"
#include "facts/reading.h"

namespace ep {
namespace {

struct Family {
  const char* name;
  const char* prefix;  ///< of the file name
};
constexpr Family kFamilies[] = {{"nccl", "libnccl.so"},
                                {"nvshmem", "libnvshmem_host.so"},
                                {"cudart", "libcudart.so"},
                                {"cudart", "libcudart-"},
                                {"deepep", "deep_ep_cpp"}};

const char* family_of(std::string_view file) {
  if (!contains(file, ".so")) return nullptr;
  for (const auto& f : kFamilies)
    if (starts_with(file, f.prefix)) return f.name;
  return nullptr;
}

std::string parent(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}
std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// "libcudart.so.13" -> 13; also libcudart-a1b2c3.so.12 of a repaired wheel.
int soname_major(const std::string& name) {
  const size_t so = name.rfind(".so.");
  if (so == std::string::npos) return 0;
  const auto n = parse_int(name.substr(so + 4, name.find('.', so + 4) - so - 4)).value_or(0);
  return n > 0 && n < 1000 ? int(n) : 0;
}

class Reader {
 public:
  Reader(const Host& host, const PythonEnvironment& e, const Facts& f)
      : host_(host), env_(e), facts_(f), loader_(host, f.environment) {}

  LibraryFacts read() {
    out_.root = env_.root;
    read_records();
    gather();
    std::sort(out_.copies.begin(), out_.copies.end(), [](const auto& a, const auto& b) {
      return std::tie(a.family, a.path) < std::tie(b.family, b.path);
    });
    walk();
    return std::move(out_);
  }

 private:
  struct Claim {
    size_t wheel;
    RecordRow row;
  };

  // ---- who owns which file ----
  void read_records() {
    struct Seen {
      std::vector<size_t> wheels;
      std::string hash;
      bool same = true;
    };
    for (const auto& site : env_.site_packages) {
      std::unordered_map<std::string, Seen> seen;
      for (const auto& entry : names_in(host_, site)) {
        auto wheel = parse_dist_info_name(entry);
        if (!wheel || !ends_with(entry, ".dist-info")) continue;
        auto text = host_.read(site + "/" + entry + "/RECORD", 64u << 20);
        if (!text) {
          if (text.error().kind != ErrorKind::absent || is_wheel_of_interest(normalize_package(wheel->name)))
            out_.dead_records.push_back(wheel->name + " " + wheel->version);
          continue;
        }
        const size_t number = wheels_.size();
        wheels_.push_back({normalize_package(wheel->name), wheel->version});
        for (auto& row : parse_record(*text)) {
          if (ends_with(row.path, ".pyc") || starts_with(row.path, "..")) continue;
          Seen& s = seen[row.path];
          if (s.wheels.empty()) s.hash = row.hash;
          s.same &= s.hash == row.hash;
          s.wheels.push_back(number);
          const std::string file = base_name(row.path);
          if (family_of(file) || is_extension(row.path))
            claims_[loader_.real(site + "/" + row.path)] = {number, row};
          if (row.path == "deep_ep/__init__.py") deepep_owner_ = number;
        }
      }
      for (const auto& [path, s] : seen)
        if (s.wheels.size() > 1) {
          FileClash c{site + "/" + path, {}, s.same};
          for (size_t w : s.wheels) c.wheels.push_back(wheels_[w].name + " " + wheels_[w].version);
          out_.clashes.push_back(std::move(c));
        }
    }
    std::sort(out_.clashes.begin(), out_.clashes.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    if (deepep_owner_ != SIZE_MAX) {
      out_.deepep_wheel = wheels_[deepep_owner_].name;
      out_.deepep_version = wheels_[deepep_owner_].version;
    }
  }
  static bool is_extension(std::string_view path) {
    return starts_with(path, "deep_ep/_C") && contains(path, ".so");
  }

  // ---- which files there are ----
  void gather() {
    for (const auto& site : env_.site_packages) {
      for (const auto& name : names_in(host_, site + "/nvidia"))
        folder(site + "/nvidia/" + name + "/lib", "environment");
      folder(site + "/torch/lib", "environment");
      for (const auto& name : names_in(host_, site)) {
        if (ends_with(name, ".libs")) folder(site + "/" + name, "environment");
        if (const char* family = family_of(name)) add(family, site + "/" + name, "environment");
      }
      for (const auto& name : names_in(host_, site + "/deep_ep"))
        if (is_extension("deep_ep/" + name)) add("deepep", site + "/deep_ep/" + name, "environment");
    }
    folder(env_.root + "/lib", "environment");  // conda puts them there
    for (const auto& path : loader_.preload())
      if (const char* family = family_of(base_name(path))) add(family, path, "LD_PRELOAD");
    if (auto it = facts_.environment.find("VLLM_NCCL_SO_PATH"); it != facts_.environment.end())
      add("nccl", it->second, "VLLM_NCCL_SO_PATH");
    for (const auto& dir : loader_.library_path()) folder(dir, "LD_LIBRARY_PATH");
    for (const auto& c : loader_.cache())
      if (const char* family = family_of(c.name)) add(family, c.path, "ld.so.cache");
    for (const char* dir : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                            "/usr/lib", "/usr/local/lib", "/usr/local/lib64"})
      folder(dir, "folder");
    for (const auto& t : facts_.cuda) folder(t.root + "/lib64", "folder");
    for (const auto& p : facts_.parts) folder(p.root + "/lib", "folder");
  }
  void folder(const std::string& dir, const char* found_by) {
    for (const auto& name : names_in(host_, dir))
      if (const char* family = family_of(name)) add(family, dir + "/" + name, found_by);
  }
  void add(const char* family, const std::string& path, const char* found_by) {
    if (!starts_with(path, "/")) return;
    const std::string real = loader_.real(path);
    auto info = host_.info(real);
    if (!info || info->type != FileInfo::Type::file || !seen_.insert(real).second) return;
    LibraryCopy c;
    c.family = family;
    c.path = real;
    c.found_by = found_by;
    c.size = info->size;
    if (auto claim = claims_.find(real); claim != claims_.end()) {
      c.wheel = wheels_[claim->second.wheel].name;
      c.wheel_version = wheels_[claim->second.wheel].version;
      c.recorded_size = claim->second.row.size;
    }
    look_into(c);
    out_.copies.push_back(std::move(c));
  }
  void look_into(LibraryCopy& c) {
    const ByteSource bytes = loader_.bytes(c.path);
    auto elf = read_elf(bytes);
    c.version = absent<std::string>(c.path, "the file does not tell");
    const char* part = c.family == "nccl" ? "nccl" : c.family == "nvshmem" ? "nvshmem" : nullptr;
    c.header_version = part ? header_version(host_, part, parent(parent(c.path)))
                            : absent<std::string>(c.path, "no header tells");
    if (!elf) {
      c.elf = from_error<ElfFile>(elf.error(), c.path);
      c.version = from_error<std::string>(elf.error(), c.path);
      return;
    }
    std::string version;
    if (c.family == "nccl") version = version_after(*elf, bytes, "NCCL version ");
    if (c.family == "nvshmem") version = version_after(*elf, bytes, "NVSHMEM v");
    if (c.family == "cudart")
      c.cuda_major = soname_major(elf->soname.empty() ? base_name(c.path) : elf->soname);
    if (c.family == "cudart" && c.cuda_major > 0) version = std::to_string(c.cuda_major);
    if (const size_t plus = version.find("+cuda"); plus != std::string::npos)
      c.cuda_major = int(parse_int(version.substr(plus + 5, version.find('.', plus) - plus - 5)).value_or(0));
    for (const auto& n : elf->needed)
      if (starts_with(n, "libcudart.so.")) c.cuda_major = soname_major(n);
    if (!version.empty()) c.version = known(version, c.path);
    if (c.family == "deepep") c.code = read_gpu_code(*elf, bytes);
    c.elf = known(std::move(*elf), c.path);
  }

  // ---- what a process would load: torch first, as every program does, then DeepEP ----
  void walk() {
    out_.torch_cuda_major = absent<int>(env_.root, "torch is not installed, or for CPUs only");
    out_.elastic_buffer = out_.buffer = absent<bool>(env_.root, "no module deep_ep");
    for (const auto& site : env_.site_packages) {
      for (const auto& name : names_in(host_, site + "/torch"))
        if (starts_with(name, "_C.") && ends_with(name, ".so")) loader_.load(site + "/torch/" + name);
      const std::string cuda = site + "/torch/lib/libtorch_cuda.so";
      if (const ElfFile* e = loader_.elf(cuda)) {
        out_.torch = loader_.load(cuda);
        for (const auto& n : e->needed)
          if (starts_with(n, "libcudart.so.")) out_.torch_cuda_major = known(soname_major(n), cuda);
      }
      const std::string init = site + "/deep_ep/__init__.py";
      if (auto text = host_.read(init, 1u << 20)) {
        out_.elastic_buffer = known(has_word(*text, "ElasticBuffer"), init);
        out_.buffer = known(has_word(*text, "Buffer"), init);
      }
    }
    for (const auto& c : out_.copies)
      if (c.family == "deepep" && c.found_by == "environment") out_.deepep = loader_.load(c.path);
    find_vllm_nccl();
  }
  static bool has_word(std::string_view text, std::string_view word) {
    const auto name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t hit = text.find(word); hit != text.npos; hit = text.find(word, hit + 1)) {
      const size_t end = hit + word.size();
      if ((hit == 0 || !name(text[hit - 1])) && (end == text.size() || !name(text[end]))) return true;
    }
    return false;
  }
  void find_vllm_nccl() {
    if (auto it = facts_.environment.find("VLLM_NCCL_SO_PATH"); it != facts_.environment.end()) {
      out_.vllm_nccl = loader_.real(it->second);
      return;
    }
    // dlopen by name: what the process holds already, else what the loader finds for the interpreter.
    for (const auto* list : {&out_.torch, &out_.deepep})
      for (const auto& r : *list)
        if (r.soname == "libnccl.so.2" && out_.vllm_nccl.empty()) out_.vllm_nccl = r.path;
    if (out_.vllm_nccl.empty()) out_.vllm_nccl = loader_.resolve(env_.interpreter, "libnccl.so.2", {}).path;
  }

  const Host& host_;
  const PythonEnvironment& env_;
  const Facts& facts_;
  Loader loader_;
  LibraryFacts out_;
  std::vector<WheelName> wheels_;
  std::map<std::string, Claim> claims_;
  size_t deepep_owner_ = SIZE_MAX;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<RecordRow> parse_record(std::string_view text) {
  std::vector<RecordRow> out;
  for (auto line : lines(text)) {
    RecordRow row;
    if (starts_with(line, "\"")) {
      size_t at = 1;
      for (; at < line.size(); ++at) {
        if (line[at] == '"' && (at + 1 >= line.size() || line[at + 1] != '"')) break;
        if (line[at] == '"') ++at;
        row.path += line[at];
      }
      line = at + 2 <= line.size() ? line.substr(at + 2) : std::string_view();
    } else {
      const size_t comma = line.find(',');
      row.path = std::string(line.substr(0, comma));
      line = comma == line.npos ? std::string_view() : line.substr(comma + 1);
    }
    if (row.path.empty()) continue;
    const size_t comma = line.find(',');
    row.hash = std::string(line.substr(0, comma));
    if (comma != line.npos)
      if (auto n = parse_int(line.substr(comma + 1)); n && *n > 0) row.size = uint64_t(*n);
    out.push_back(std::move(row));
  }
  return out;
}

const LibraryCopy* LibraryFacts::at(const std::string& path) const {
  for (const auto& c : copies)
    if (c.path == path) return &c;
  return nullptr;
}

LibraryFacts read_libraries(const Host& host, const PythonEnvironment& environment, const Facts& facts) {
  return Reader(host, environment, facts).read();
}

}  // namespace ep
