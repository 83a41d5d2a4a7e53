// The Host made of pasted pieces: probes answer with the text of the piece that has their name; files are
// absent.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "host/paste.h"

namespace ep {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFile = 32u << 20;  // bytes of one file that are read
constexpr size_t kMaxFiles = 5000;

class PasteHost : public Host {
 public:
  PasteHost(PastedHost pasted, std::string name) : pasted_(std::move(pasted)), name_(std::move(name)) {}
  HostKind kind() const override { return HostKind::paste; }
  std::string name() const override { return name_; }
  Result<std::string> read(const std::string& path, size_t) const override { return none(path); }
  Result<std::vector<std::string>> list(const std::string& path) const override { return none(path); }
  Result<std::string> link(const std::string& path) const override { return none(path); }
  Result<FileInfo> info(const std::string& path) const override { return none(path); }
  Result<SpaceInfo> space(const std::string& path) const override { return none(path); }
  std::map<std::string, std::string> environment() const override { return {}; }

  ProbeResult probe(std::string_view probe_name) const override {
    ProbeResult r;
    for (const auto& p : pasted_.pieces) {
      bool ours = p.kind == probe_name;
      for (const auto& k : piece_kinds()) ours |= k.kind == p.kind && k.probe && k.probe == probe_name;
      if (!ours) continue;
      r.found = true;
      r.exit_code = 0;
      r.out += p.text;
    }
    if (!r.found) r.why = "the paste does not show it";
    return r;
  }
  const PastedHost& pasted() const { return pasted_; }

 private:
  /// What a paste does not show is not known; it is not absent from the machine.
  static Failure none(const std::string& path) {
    return fail(ErrorKind::unreadable, "the text does not show it", path,
                "only the pieces that were pasted are known");
  }
  PastedHost pasted_;
  std::string name_;
};

Result<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(ErrorKind::unreadable, "cannot read the paste", path.string(),
                "permission or no regular file");
  std::string out;
  for (char block[65536]; out.size() < kMaxFile && in.read(block, sizeof block).gcount() > 0;)
    out.append(block, std::min(size_t(in.gcount()), kMaxFile - out.size()));
  return out;
}

// Binary files in a folder (pictures, archives) are no pastes.
bool looks_like_text(const std::string& s) {
  size_t n = std::min<size_t>(s.size(), 4096);
  return std::count(s.begin(), s.begin() + std::ptrdiff_t(n), '\0') == 0;
}

Result<void> read_folder(const fs::path& root, std::vector<std::pair<std::string, std::string>>& texts) {
  std::error_code ec;
  std::vector<fs::path> files;
  fs::directory_iterator(root, ec);  // a folder inside may be closed to us, the root may not
  if (ec) return fail(ErrorKind::unreadable, "cannot list the folder", root.string(), ec.message());
  for (fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, ec), end;
       it != end && !ec; it.increment(ec)) {
    if (it.depth() > 2) it.disable_recursion_pending();
    if (it->is_regular_file(ec)) files.push_back(it->path());
    if (files.size() > kMaxFiles)
      return fail(ErrorKind::usage, "too many files for a paste", root.string(),
                  fmt::format("more than {}", kMaxFiles), "name the folder that holds the pasted outputs");
  }
  if (ec) return fail(ErrorKind::unreadable, "cannot list the folder", root.string(), ec.message());
  std::sort(files.begin(), files.end());
  for (const auto& f : files) {
    auto text = read_file(f);
    if (!text) return tl::unexpected(text.error());
    if (looks_like_text(*text)) texts.emplace_back(fs::relative(f, root, ec).string(), std::move(*text));
  }
  return {};
}

std::string shown_name(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return paths[0] == "-" ? "paste from standard input" : paths[0];
  return fmt::format("paste of {} files", paths.size());
}

}  // namespace

Result<std::vector<PastedHost>> read_pasted_hosts(const std::vector<std::string>& paths) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& p : paths) {
    std::error_code ec;
    if (p == "-") {
      std::string all{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
      if (all.size() > kMaxFile) all.resize(kMaxFile);
      texts.emplace_back("standard input", std::move(all));
    } else if (fs::is_directory(p, ec)) {
      std::vector<std::pair<std::string, std::string>> inside;
      if (auto r = read_folder(p, inside); !r) return tl::unexpected(r.error());
      // Several folders are several hosts; one folder is the paste.
      std::string prefix = paths.size() > 1 ? fs::path(p).lexically_normal().filename().string() + "/" : "";
      for (auto& [name, text] : inside) texts.emplace_back(prefix + name, std::move(text));
    } else if (fs::exists(p, ec)) {
      auto text = read_file(p);
      if (!text) return tl::unexpected(text.error());
      texts.emplace_back(fs::path(p).filename().string(), std::move(*text));
    } else {
      return fail(ErrorKind::absent, "no such file or folder", p, "",
                  "give a file, a folder, or - for standard input");
    }
  }
  auto hosts = take_apart(texts);
  bool any = std::any_of(hosts.begin(), hosts.end(), [](const PastedHost& h) { return !h.pieces.empty(); });
  if (!any)
    return fail(ErrorKind::unsupported, "nothing in this text is known to epready", shown_name(paths),
                fmt::format("{} lines were looked at; outputs of nvidia-smi topo -m, ibstat, show_gids, ip "
                            "addr and others are known",
                            hosts[0].unread_lines),
                "epready topology --help");
  return hosts;
}

std::unique_ptr<Host> host_of_pieces(PastedHost pasted, std::string name) {
  return std::make_unique<PasteHost>(std::move(pasted), std::move(name));
}

const PastedHost* pasted_pieces(const Host& host) {
  const auto* p = dynamic_cast<const PasteHost*>(&host);
  return p ? &p->pasted() : nullptr;
}

Result<std::unique_ptr<Host>> paste_host(const std::vector<std::string>& paths) {
  auto hosts = read_pasted_hosts(paths);
  if (!hosts) return tl::unexpected(hosts.error());
  return host_of_pieces(std::move(hosts->front()), shown_name(paths));
}

}  // namespace ep
