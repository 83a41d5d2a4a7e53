// THE ONLY DOOR to the machine that is looked at. Live, snapshot and paste hosts stand behind this one
// interface; nothing outside src/host opens a file under /sys, /proc or /etc, or runs a vendor's tool.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ep {

enum class HostKind { live, snapshot, paste };

struct FileInfo {
  enum class Type { file, directory, link, other } type = Type::other;
  uint32_t mode = 0;                        ///< permission bits
  uint64_t size = 0;                        ///< bytes; /proc and /sys lie about it
  bool readable = false, writable = false;  ///< by the user who looks (access(2))
  bool captured = true;  ///< false: a snapshot that holds the node and was not asked for its mode and rights
};

struct SpaceInfo {
  uint64_t total_bytes = 0, free_bytes = 0;  ///< statvfs: blocks, available to us
  std::string type;                          ///< file system type name, when known
};

/// A read-only command named in the probe table (host/probes.h). `found` false: the program is not on this
/// host.
struct ProbeResult {
  bool found = false;
  int exit_code = -1;  ///< 128+N when ended by signal N; -1 when not run
  bool timed_out = false;
  std::string out, err;
  std::string why;  ///< why there is no output, in words; empty when there is
};

class Host {
 public:
  virtual ~Host() = default;
  virtual HostKind kind() const = 0;
  /// What the user called it: "this machine", the snapshot's path, "paste of 3 files".
  virtual std::string name() const = 0;

  /// The content, or its first `limit` bytes when it is longer. Errors: absent, unreadable (why). /sys
  /// attributes that answer EINVAL, ENODATA or EIO when unset are `unreadable` with that word. Links are
  /// followed.
  virtual Result<std::string> read(const std::string& path, size_t limit = 4u << 20) const = 0;
  /// At most `size` bytes from `offset` on; fewer only at the end. For binaries of which a few pieces are
  /// wanted. Recorders do not keep them: a snapshot answers "not captured" unless it holds the file.
  virtual Result<std::string> read_at(const std::string& path, uint64_t offset, size_t size) const;
  /// Names in a directory, sorted, without . and ..
  virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
  /// Target of a symbolic link, as written.
  virtual Result<std::string> link(const std::string& path) const = 0;
  /// Follows links; a link whose target is absent answers as type `link`.
  virtual Result<FileInfo> info(const std::string& path) const = 0;
  virtual Result<SpaceInfo> space(const std::string& path) const = 0;
  /// Runs (live) or looks up (snapshot, paste) a probe by its name in the probe table.
  virtual ProbeResult probe(std::string_view probe_name) const = 0;
  /// Environment variables in force for the user.
  virtual std::map<std::string, std::string> environment() const = 0;

  bool exists(const std::string& path) const { return info(path).has_value(); }
};

/// The running machine. `root` is "/" except in tests and for a mounted image.
std::unique_ptr<Host> live_host(std::string root = "/");
/// A folder written by `epready snapshot` (or a .tar/.tar.gz of one), or a sample embedded in the program
/// ("sample/NAME"; data/samples/NAME.snap).
Result<std::unique_ptr<Host>> snapshot_host(const std::string& path);
/// Free text with tool outputs in it: a file, a folder of files, several of them, or "-" (standard input,
/// given as text).
Result<std::unique_ptr<Host>> paste_host(const std::vector<std::string>& paths);
/// Picks by looking: "" = live, snapshot folder or archive, "sample/NAME", else paste. Errors say what was
/// tried.
Result<std::unique_ptr<Host>> open_host(const std::string& from);

// What a host was asked and answered is remembered by host/recorder.h and stored by host/snapshot.h.

}  // namespace ep
