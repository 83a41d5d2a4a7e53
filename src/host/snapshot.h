// A captured host: what was read, and what was absent or refused, so that facts from it equal facts from the
// machine. In memory one tree; on disk a folder, a .tar.gz of it, or one text file (.snap). Never touches the
// machine.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/host.h"

namespace ep {

constexpr std::string_view kSnapshotSchema = "epready-snapshot-1";
/// Limits of what is read back: a snapshot is small text; anything beyond is refused.
constexpr size_t kMaxSnapshotBytes = 512u << 20, kMaxSnapshotFileBytes = 64u << 20,
                 kMaxSnapshotEntries = 200000;
constexpr std::string_view kNotCaptured = "not captured in this snapshot";

/// Why a read failed, in the words that the live host used.
struct Trouble {
  ErrorKind kind = ErrorKind::unreadable;
  std::string why;
};

struct SnapshotNode {
  FileInfo::Type type = FileInfo::Type::file;
  std::optional<std::string> content;       ///< files; none: seen, not read
  std::string target;                       ///< links
  std::optional<Trouble> no_read, no_list;  ///< refused
  std::optional<FileInfo> info;             ///< none: derived from the node
  bool listed = false;                      ///< directories: the names below are complete
  std::set<std::string> more;               ///< names that were listed, but nothing below them was looked at
};

struct SnapshotData {
  std::string tool, time, kind = "live";  ///< who wrote it, when (UTC), from what
  bool complete = false;  ///< hand-made or whole: what is not in it does not exist. Else it is "not captured"
  std::map<std::string, SnapshotNode> nodes;  ///< by canonical absolute path; parents are there too
  std::set<std::string> absent;               ///< canonical paths that were asked for and are not there
  std::map<std::string, SpaceInfo> space;
  std::map<std::string, Trouble> no_space;
  std::map<std::string, ProbeResult> probes;
  std::map<std::string, std::string> environment;

  /// Building by hand (tests, samples); parents are made. Paths are absolute and canonical.
  SnapshotNode& add(const std::string& path, FileInfo::Type type);
  void file(const std::string& path, std::string content);
  void link(const std::string& path, std::string target);
  void directory(const std::string& path);
  void probe(const std::string& name, std::string out, int exit_code = 0, std::string err = {});
};

/// A host that answers from the tree. `name` is what the user called it.
std::unique_ptr<Host> host_of(SnapshotData data, std::string name);

/// Folder, .tar/.tar.gz/.tgz, or .snap; decided by content. Errors: absent, malformed with file:line,
/// unreadable, and `failed` for a snapshot that is too large or hostile.
Result<SnapshotData> read_snapshot(const std::string& path);
/// By suffix: .snap one file, .tar.gz/.tgz an archive, else a folder. Built beside its place, synced,
/// renamed; readable by us only. An existing path is refused.
Result<> write_snapshot(const SnapshotData& data, const std::string& path);

/// Hosts that travel inside the program; `--from sample/NAME`.
constexpr std::string_view kSamplePrefix = "sample/";
std::vector<std::string> sample_names();

/// The one-file form; `source` names it in errors.
std::string to_snap_text(const SnapshotData& data);
Result<SnapshotData> from_snap_text(std::string_view text, const std::string& source);
/// A tree is sound when every entry lies in a folder: nothing inside a file or behind a link, and
/// nothing given as two things. Else malformed.
Result<> check_sound(const SnapshotData& d, const std::string& source);
/// What is neither file nor link: JSON, used by every form.
std::string to_manifest(const SnapshotData& data);
Result<> from_manifest(std::string_view json, const std::string& source, SnapshotData& data);

/// Follows links component by component. `link_at` answers for one path whose parents are canonical. Fails
/// with unreadable after 40 links.
template <class LinkAt>
Result<std::string> canonical_path(std::string_view path, bool follow_last, LinkAt&& link_at);
/// True for "/", "/a/b": absolute, no empty, "." or ".." component.
bool is_canonical_path(std::string_view path);
std::string parent_path(const std::string& path);
/// The errors that live and snapshot share, word for word.
Failure not_there(const std::string& path);
Failure refused(const std::string& path, const Trouble& trouble);

// ---- implementation of the template ----

template <class LinkAt>
Result<std::string> canonical_path(std::string_view path, bool follow_last, LinkAt&& link_at) {
  std::vector<std::string> todo;  // components still to walk, next one last
  auto push = [&](std::string_view text) {
    std::vector<std::string> parts;
    while (!text.empty()) {
      size_t at = text.find('/');
      if (at != 0) parts.emplace_back(text.substr(0, at));
      text.remove_prefix(at == text.npos ? text.size() : at + 1);
    }
    todo.insert(todo.end(), parts.rbegin(), parts.rend());
  };
  push(path);
  std::string done;
  int hops = 0;
  while (!todo.empty()) {
    std::string part = std::move(todo.back());
    todo.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      done.erase(done.empty() ? 0 : done.rfind('/'));
      continue;
    }
    std::string next = done + "/" + part;
    std::optional<std::string> target;
    if (!todo.empty() || follow_last) target = link_at(next);
    if (!target) {
      done = std::move(next);
      continue;
    }
    if (++hops > 40)
      return refused(std::string(path), {ErrorKind::unreadable, "Too many levels of symbolic links"});
    if (!target->empty() && target->front() == '/') done.clear();
    push(*target);
  }
  return done.empty() ? "/" : done;
}

}  // namespace ep
