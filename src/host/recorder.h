// Wraps a host, passes everything through, and remembers it as a snapshot. A question asked twice gets the
// first answer, so that what was concluded and what was recorded agree. Thread-safe.
#pragma once
#include <mutex>

#include "host/snapshot.h"

namespace ep {

class Recorder final : public Host {
 public:
  explicit Recorder(const Host& inner);
  HostKind kind() const override { return inner_.kind(); }
  std::string name() const override { return inner_.name(); }
  Result<std::string> read(const std::string& path, size_t limit = 4u << 20) const override;
  Result<std::string> read_at(const std::string& path, uint64_t offset, size_t size) const override {
    return inner_.read_at(path, offset, size);
  }
  Result<std::vector<std::string>> list(const std::string& path) const override;
  Result<std::string> link(const std::string& path) const override;
  Result<FileInfo> info(const std::string& path) const override;
  Result<SpaceInfo> space(const std::string& path) const override;
  ProbeResult probe(std::string_view probe_name) const override;
  std::map<std::string, std::string> environment() const override;

  /// Everything seen so far.
  SnapshotData data() const;

 private:
  template <class T, class Ask>
  Result<T> once(std::map<std::string, Result<T>>& answers, const std::string& key, Ask ask) const;
  std::string place(const std::string& path, bool follow_last) const;
  SnapshotNode* node_for(const std::string& canonical, FileInfo::Type type_when_new) const;

  const Host& inner_;
  mutable std::mutex mutex_;
  mutable SnapshotData data_;
  mutable std::map<std::string, std::optional<std::string>> links_;
  mutable std::map<std::string, Result<std::string>> reads_, link_answers_;
  mutable std::map<std::string, Result<std::vector<std::string>>> lists_;
  mutable std::map<std::string, Result<FileInfo>> infos_;
  mutable std::map<std::string, Result<SpaceInfo>> spaces_;
};

}  // namespace ep
