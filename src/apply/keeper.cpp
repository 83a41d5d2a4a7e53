// Keeper: save, journal, then write.
#include "apply/keeper.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/text.h"

namespace ep {

std::string entry_stamp(const Entry& e) {
  switch (e.kind) {
    case Entry::Kind::file:
      return fmt::format("file {} {:o} {} {}", sha256_hex(e.content), e.mode, e.uid, e.gid);
    case Entry::Kind::link:
      return "link " + e.content;
    case Entry::Kind::directory:
      return "directory";
    case Entry::Kind::other:
      return "other";
    case Entry::Kind::absent:
      return "absent";
  }
  return "absent";
}

Keeper::Keeper(const Tree& tree, Journal& journal, std::string prefix)
    : tree_(tree), journal_(journal), prefix_(std::move(prefix)) {}

bool Keeper::inside_prefix(const std::string& path) const {
  return path == prefix_ || starts_with(path, prefix_ + "/");
}

Result<std::string> Keeper::save(const Entry& entry) {
  std::string digest = sha256_hex(entry.content);
  std::string path = prefix_ + "/state/originals/" + digest;
  auto there = tree_.read(path);
  if (!there) return Failure(there.error());
  if (there->kind == Entry::Kind::file && there->content == entry.content) return digest;
  Entry copy;
  copy.kind = Entry::Kind::file;
  copy.mode = 0600;
  copy.uid = geteuid();
  copy.gid = getegid();
  copy.content = entry.content;
  if (auto r = tree_.write_file(path, copy); !r) return Failure(r.error());
  return digest;
}

Result<bool> Keeper::change(const std::string& path, Entry wanted, bool keep_owner) {
  auto before = tree_.read(path);
  if (!before) return Failure(before.error());
  if (before->kind == Entry::Kind::directory || before->kind == Entry::Kind::other)
    return fail(ErrorKind::failed, "something else stands where a file belongs", path,
                std::string(to_string(before->kind)),
                "move it away by hand, then run the same command again");
  if (wanted.kind == Entry::Kind::file) {
    bool keep = keep_owner && before->kind == Entry::Kind::file;
    wanted.uid = keep ? before->uid : geteuid();
    wanted.gid = keep ? before->gid : getegid();
    if (keep) wanted.mode = before->mode;
  }
  if (before->same_as(wanted)) return false;
  if (!inside_prefix(path)) {
    Record record = {{"e", "entry"},
                     {"path", path},
                     {"was", std::string(to_string(before->kind))},
                     {"mode", before->mode},
                     {"uid", before->uid},
                     {"gid", before->gid},
                     {"now", entry_stamp(wanted)}};
    if (before->kind == Entry::Kind::link) record["target"] = before->content;
    if (before->kind == Entry::Kind::file) {
      auto blob = save(*before);
      if (!blob) return Failure(blob.error());
      record["blob"] = *blob;
    }
    record["stamp"] = entry_stamp(*before);
    if (auto r = journal_.write(std::move(record)); !r) return Failure(r.error());
  }
  Result<> r;
  if (wanted.kind == Entry::Kind::absent)
    r = tree_.remove(path);
  else if (wanted.kind == Entry::Kind::link)
    r = tree_.write_link(path, wanted.content);
  else
    r = tree_.write_file(path, wanted);
  if (!r) return Failure(r.error());
  return true;
}

Result<> Keeper::make_dirs(const std::string& path, uint32_t mode) {
  for (size_t i = 1; i != std::string::npos;) {
    i = path.find('/', i);
    std::string part = path.substr(0, i);
    if (i != std::string::npos) ++i;
    if (part.empty() || ends_with(part, "/")) continue;
    auto there = tree_.read(part);
    if (!there) return Failure(there.error());
    if (there->kind == Entry::Kind::directory || there->kind == Entry::Kind::link)
      continue;  // links: walked later
    if (there->kind != Entry::Kind::absent)
      return fail(ErrorKind::failed, "something else stands where a folder belongs", part);
    if (!inside_prefix(part)) {
      auto r = journal_.write(
          {{"e", "entry"}, {"path", part}, {"was", "absent"}, {"stamp", "absent"}, {"now", "directory"}});
      if (!r) return Failure(r.error());
    }
    if (auto r = tree_.make_dir(part, part == path ? mode : 0755); !r) return r;
  }
  return {};
}

}  // namespace ep
