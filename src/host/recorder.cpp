#include "host/recorder.h"

#include "host/environment.h"

namespace ep {

using Type = FileInfo::Type;

Recorder::Recorder(const Host& inner) : inner_(inner) {
  data_.kind = inner.kind() == HostKind::live       ? "live"
               : inner.kind() == HostKind::snapshot ? "snapshot"
                                                    : "paste";
  data_.add("/", Type::directory);
}

// Where the path really lies; every link on the way is recorded.
std::string Recorder::place(const std::string& path, bool follow_last) const {
  auto where = canonical_path(path, follow_last, [&](const std::string& p) -> std::optional<std::string> {
    auto [it, fresh] = links_.try_emplace(p);
    if (fresh)
      if (auto target = inner_.link(p)) {
        it->second = *target;
        data_.link(p, *target);
      }
    return it->second;
  });
  return where ? *where : path;  // a loop of links is recorded as it stands; reading it back loops as well
}

// Keeps a node's kind once it is known: a directory stays one when something asks to read it.
SnapshotNode* Recorder::node_for(const std::string& canonical, Type type_when_new) const {
  auto it = data_.nodes.find(canonical);
  if (it != data_.nodes.end()) return &it->second;
  return &data_.add(canonical, type_when_new);
}

template <class T, class Ask>
Result<T> Recorder::once(std::map<std::string, Result<T>>& answers, const std::string& key, Ask ask) const {
  auto it = answers.find(key);
  if (it == answers.end()) it = answers.emplace(key, ask()).first;
  return it->second;
}

Result<std::string> Recorder::read(const std::string& path, size_t limit) const {
  std::lock_guard lock(mutex_);
  return once(reads_, path + '\n' + std::to_string(limit), [&]() -> Result<std::string> {
    std::string where = place(path, true);
    auto answer = inner_.read(path, limit);
    if (answer) {
      SnapshotNode* node = node_for(where, Type::file);
      // A longer look replaces a shorter one; otherwise the first answer stands.
      if (!node->content || node->content->size() < answer->size()) node->content = *answer;
    } else if (answer.error().kind == ErrorKind::absent) {
      data_.absent.insert(where);
    } else {
      auto info = inner_.info(path);
      node_for(where, info ? info->type : Type::file)->no_read =
          Trouble{answer.error().kind, answer.error().why};
    }
    return answer;
  });
}

Result<std::vector<std::string>> Recorder::list(const std::string& path) const {
  std::lock_guard lock(mutex_);
  return once(lists_, path, [&]() -> Result<std::vector<std::string>> {
    std::string where = place(path, true);
    auto answer = inner_.list(path);
    if (answer) {
      SnapshotNode* node = node_for(where, Type::directory);
      node->listed = true;
      node->more.insert(answer->begin(), answer->end());
    } else if (answer.error().kind == ErrorKind::absent) {
      data_.absent.insert(where);
    } else {
      auto info = inner_.info(path);
      node_for(where, info ? info->type : Type::directory)->no_list =
          Trouble{answer.error().kind, answer.error().why};
    }
    return answer;
  });
}

Result<std::string> Recorder::link(const std::string& path) const {
  std::lock_guard lock(mutex_);
  return once(link_answers_, path, [&]() -> Result<std::string> {
    std::string where = place(path, false);
    auto answer = inner_.link(path);
    if (answer) {
      data_.link(where, *answer);
      links_[where] = *answer;
    } else if (answer.error().kind == ErrorKind::absent) {
      data_.absent.insert(where);
    } else if (auto info = inner_.info(path)) {
      node_for(where, info->type);
    }
    return answer;
  });
}

Result<FileInfo> Recorder::info(const std::string& path) const {
  std::lock_guard lock(mutex_);
  return once(infos_, path, [&]() -> Result<FileInfo> {
    std::string where = place(path, true);
    auto answer = inner_.info(path);
    if (answer && answer->type == Type::link) {  // dangling: the link is recorded, what it names is absent
      data_.absent.insert(where);
      data_.nodes[place(path, false)].info = *answer;
    } else if (answer) {
      node_for(where, answer->type)->info = *answer;
    } else if (answer.error().kind == ErrorKind::absent) {
      data_.absent.insert(where);
    }
    return answer;
  });
}

Result<SpaceInfo> Recorder::space(const std::string& path) const {
  std::lock_guard lock(mutex_);
  return once(spaces_, path, [&]() -> Result<SpaceInfo> {
    auto answer = inner_.space(path);
    if (answer) {
      data_.space[path] = *answer;
    } else {
      data_.no_space[path] = Trouble{answer.error().kind, answer.error().why};
    }
    return answer;
  });
}

ProbeResult Recorder::probe(std::string_view probe_name) const {
  std::string name(probe_name);
  {
    std::lock_guard lock(mutex_);
    if (auto it = data_.probes.find(name); it != data_.probes.end()) return it->second;
  }
  ProbeResult answer = inner_.probe(name);  // unlocked: probes run side by side
  std::lock_guard lock(mutex_);
  return data_.probes.try_emplace(name, std::move(answer)).first->second;
}

std::map<std::string, std::string> Recorder::environment() const {
  std::lock_guard lock(mutex_);
  if (data_.environment.empty())
    for (auto& [name, value] : inner_.environment())
      if (is_environment_of_interest(name)) data_.environment.emplace(name, value);
  return data_.environment;
}

SnapshotData Recorder::data() const {
  std::lock_guard lock(mutex_);
  SnapshotData out = data_;
  for (auto& [path, node] : out.nodes) {
    // Names that have a node of their own need no mention.
    for (auto it = node.more.begin(); it != node.more.end();)
      it = out.nodes.count((path == "/" ? "" : path) + "/" + *it) ? node.more.erase(it) : std::next(it);
    out.absent.erase(path);
  }
  return out;
}

}  // namespace ep
