// The tree of a captured host and the Host that answers from it.
#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "host/snapshot.h"

namespace ep {

using Type = FileInfo::Type;

bool is_canonical_path(std::string_view path) {
  if (path.empty() || path[0] != '/') return false;
  if (path == "/") return true;
  for (auto part : split(path.substr(1), '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

std::string parent_path(const std::string& path) {
  size_t at = path.rfind('/');
  return at == std::string::npos || at == 0 ? "/" : path.substr(0, at);
}

Failure not_there(const std::string& path) {
  return fail(ErrorKind::absent, "not there", path, "No such file or directory");
}
Failure refused(const std::string& path, const Trouble& trouble) {
  return fail(trouble.kind, "cannot be read", path, trouble.why);
}

SnapshotNode& SnapshotData::add(const std::string& path, Type type) {
  if (path != "/") {
    auto& parent = nodes.try_emplace(parent_path(path)).first->second;
    bool fresh = parent.type != Type::directory;
    parent.type = Type::directory;
    if (fresh && parent_path(path) != "/") add(parent_path(path), Type::directory);
  }
  SnapshotNode& node = nodes[path];
  node.type = type;
  return node;
}
void SnapshotData::file(const std::string& path, std::string content) {
  add(path, Type::file).content = std::move(content);
}
void SnapshotData::link(const std::string& path, std::string target) {
  add(path, Type::link).target = std::move(target);
}
void SnapshotData::directory(const std::string& path) {
  add(path, Type::directory).listed = true;
}
void SnapshotData::probe(const std::string& name, std::string out, int exit_code, std::string err) {
  ProbeResult& p = probes[name];
  p.found = true;
  p.exit_code = exit_code;
  p.out = std::move(out);
  p.err = std::move(err);
}

Result<> check_sound(const SnapshotData& d, const std::string& source) {
  for (const auto& [path, node] : d.nodes) {
    if (node.type == Type::directory && (node.content || !node.target.empty()))
      return fail(ErrorKind::malformed, "the snapshot is damaged", source,
                  path + " is given as a folder and as something else");
    if (path == "/") continue;
    auto parent = d.nodes.find(parent_path(path));
    if (parent == d.nodes.end() || parent->second.type != Type::directory)
      return fail(ErrorKind::malformed, "the snapshot is damaged", source,
                  path + " lies inside something that is not a folder");
  }
  return {};
}

namespace {

class SnapshotHost final : public Host {
 public:
  SnapshotHost(SnapshotData data, std::string name) : data_(std::move(data)), name_(std::move(name)) {
    index_.reserve(data_.nodes.size());
    for (const auto& [path, node] : data_.nodes) index_.emplace(path, &node);
    for (const auto& [path, node] : data_.nodes)
      if (path != "/") children_[parent_path(path)].insert(path.substr(path.rfind('/') + 1));
  }
  HostKind kind() const override { return HostKind::snapshot; }
  std::string name() const override { return name_; }

  Result<std::string> read(const std::string& path, size_t limit) const override {
    auto where = resolve(path, true);
    if (!where) return Failure(where.error());
    const SnapshotNode* node = find(*where);
    if (!node) return missing(path, *where);
    if (node->no_read) return refused(path, *node->no_read);
    if (node->content) return node->content->substr(0, limit);
    if (node->type == Type::directory) return refused(path, {ErrorKind::unreadable, "Is a directory"});
    return refused(path, {ErrorKind::unreadable, std::string(kNotCaptured)});
  }

  Result<std::vector<std::string>> list(const std::string& path) const override {
    auto where = resolve(path, true);
    if (!where) return Failure(where.error());
    const SnapshotNode* node = find(*where);
    if (!node) return missing(path, *where);
    if (node->no_list) return refused(path, *node->no_list);
    if (node->type != Type::directory) return refused(path, {ErrorKind::unreadable, "Not a directory"});
    if (!node->listed && !data_.complete)
      return refused(path, {ErrorKind::unreadable, std::string(kNotCaptured)});
    std::set<std::string> names = node->more;
    if (auto it = children_.find(*where); it != children_.end())
      names.insert(it->second.begin(), it->second.end());
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<std::string> link(const std::string& path) const override {
    auto where = resolve(path, false);
    if (!where) return Failure(where.error());
    const SnapshotNode* node = find(*where);
    if (!node) return missing(path, *where);
    if (node->type != Type::link) return refused(path, {ErrorKind::unreadable, "not a symbolic link"});
    return node->target;
  }

  Result<FileInfo> info(const std::string& path) const override {
    auto where = resolve(path, true);
    if (!where) return Failure(where.error());
    if (const SnapshotNode* node = find(*where)) return info_of(*node);
    auto itself = resolve(path, false);
    const SnapshotNode* node = itself ? find(*itself) : nullptr;
    if (node && node->type == Type::link && is_absent(*where)) return info_of(*node);  // dangling
    return missing(path, *where);
  }

  Result<SpaceInfo> space(const std::string& path) const override {
    if (auto it = data_.space.find(path); it != data_.space.end()) return it->second;
    if (auto it = data_.no_space.find(path); it != data_.no_space.end()) return refused(path, it->second);
    return refused(path, {ErrorKind::unreadable, std::string(kNotCaptured)});
  }

  ProbeResult probe(std::string_view probe_name) const override {
    auto it = data_.probes.find(std::string(probe_name));
    if (it != data_.probes.end()) return it->second;
    ProbeResult none;
    none.why = data_.complete ? "program not found" : kNotCaptured;
    return none;
  }
  std::map<std::string, std::string> environment() const override { return data_.environment; }

 private:
  const SnapshotNode* find(const std::string& path) const {
    auto it = index_.find(path);
    return it == index_.end() ? nullptr : it->second;
  }
  Result<std::string> resolve(const std::string& path, bool follow_last) const {
    return canonical_path(path, follow_last, [&](const std::string& p) -> std::optional<std::string> {
      const SnapshotNode* node = find(p);
      if (node && node->type == Type::link) return node->target;
      return std::nullopt;
    });
  }
  static FileInfo info_of(const SnapshotNode& node) {
    if (node.info) return *node.info;
    FileInfo i;
    i.type = node.type;
    i.captured = false;
    i.mode = node.type == Type::directory ? 0755 : node.type == Type::link ? 0777 : 0644;
    i.size = node.content ? node.content->size() : 0;
    i.readable = !node.no_read && !node.no_list;
    return i;
  }
  // Is it certain that nothing is there?
  bool is_absent(const std::string& path) const {
    if (data_.complete || data_.absent.count(path)) return true;
    if (path == "/") return false;
    std::string up = parent_path(path);
    const SnapshotNode* parent = find(up);
    if (!parent) return is_absent(up);
    if (parent->type != Type::directory) return true;
    return parent->listed && !parent->more.count(path.substr(path.rfind('/') + 1));
  }
  Failure missing(const std::string& asked, const std::string& canonical) const {
    if (is_absent(canonical)) return not_there(asked);
    return refused(asked, {ErrorKind::unreadable, std::string(kNotCaptured)});
  }

  SnapshotData data_;
  std::string name_;
  std::unordered_map<std::string_view, const SnapshotNode*>
      index_;  // of data_.nodes, which never changes here
  std::map<std::string, std::set<std::string>> children_;
};

}  // namespace

std::unique_ptr<Host> host_of(SnapshotData data, std::string name) {
  return std::make_unique<SnapshotHost>(std::move(data), std::move(name));
}

}  // namespace ep
