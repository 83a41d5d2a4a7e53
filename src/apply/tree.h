// Files of the host that apply changes, below a root ("/", or an image's folder). Every path is walked folder
// by folder without following links that somebody else could have planted; every write is scratch + fsync +
// rename. Not a view for facts: those come through src/host.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace ep {

/// A file descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  void reset();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// One entry as it stands: enough to put it back. `content` is the bytes of a file or the target of a link.
struct Entry {
  enum class Kind { absent, file, link, directory, other } kind = Kind::absent;
  uint32_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string content;
  bool same_as(const Entry& other) const;
};
std::string_view to_string(Entry::Kind kind);

class Tree {
 public:
  /// The root itself must exist and be a folder.
  static Result<Tree> open(const std::string& root);

  const std::string& root() const { return root_; }
  /// The path as the caller's file system sees it. Below a root other than "/" links are resolved here, as
  /// the machine that boots from it would: an absolute link of an image never leads out of the image.
  std::string real(const std::string& path) const;

  /// The entry at an absolute path; the last component is not followed. A missing folder on the way is
  /// `absent`.
  Result<Entry> read(const std::string& path) const;
  /// Writes a file whole: scratch beside it, owner, mode, fsync, rename, fsync of the folder.
  Result<> write_file(const std::string& path, const Entry& entry) const;
  Result<> write_link(const std::string& path, const std::string& target) const;
  /// Makes one folder (its parent must exist); an existing folder is fine.
  Result<> make_dir(const std::string& path, uint32_t mode) const;
  /// Removes a file, link or empty folder; an absent one is fine.
  Result<> remove(const std::string& path) const;
  /// Removes a folder with everything below, never following links or crossing into another file system.
  Result<> remove_tree(const std::string& path) const;
  /// Moves a finished scratch entry to its place (both below this root); an old folder at `to` is replaced.
  Result<> publish(const std::string& from, const std::string& to) const;

 private:
  struct Place {
    Fd dir;
    std::string name;
  };
  Result<Place> parent_of(const std::string& path) const;
  std::string root_;
};

/// "cannot write /etc/x: Read-only file system" as an Error with the act that helps.
Failure os_failure(std::string what, const std::string& path, int err);

}  // namespace ep
