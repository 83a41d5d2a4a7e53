// What the readers of src/facts share: typed reads over Host, and probes that run side by side. Private to
// the folder.
#pragma once
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "host/host.h"

namespace ep {

/// Starts probes at once and hands out their results; each runs once.
class Probes {
 public:
  explicit Probes(const Host& host) : host_(host) {}
  void start(const std::vector<std::string>& names);
  /// Waits for it (runs it here when it was not started).
  const ProbeResult& get(const std::string& name) const;

 private:
  const Host& host_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_future<ProbeResult>> running_;
};

/// Everything a reader is given.
struct Reading {
  const Host& host;
  const Probes& probes;
  std::map<std::string, std::string> environment;

  std::string variable(const std::string& name) const;
  std::string home() const { return variable("HOME"); }
};

/// Trimmed content. An empty file is known and empty.
Fact<std::string> read_text(const Host& host, const std::string& path);
/// Whole-file integer, decimal or 0x; anything else is malformed.
Fact<int> read_int(const Host& host, const std::string& path);
Fact<uint64_t> read_u64(const Host& host, const std::string& path);
/// Last component of a link's target: driver names, groups.
Fact<std::string> read_link_name(const Host& host, const std::string& path);
/// Whether something is there; unreadable when that cannot be said.
Fact<bool> read_exists(const Host& host, const std::string& path);
/// What was read, or nothing: for loops over lines. The result must outlive the view.
inline std::string_view text_of(const Result<std::string>& read) {
  return read ? std::string_view(*read) : "";
}
/// Names in a folder; empty when it cannot be listed.
std::vector<std::string> names_in(const Host& host, const std::string& path);
/// A probe's output as a fact; absent when the program is not there, unreadable when it failed.
Fact<std::string> probe_text(const ProbeResult& probe, const std::string& name);

/// Version of a part from its headers below ROOT/include: nvshmem, nccl, gdrcopy.
Fact<std::string> header_version(const Host& host, const std::string& part, const std::string& root);

/// The same state, place and reason for another type.
template <class To, class From>
Fact<To> same_trouble(const Fact<From>& from) {
  return {{}, from.known, from.where, from.why};
}

// ---- one reader a file; each fills its part of Facts and nothing else ----
void read_os(const Reading& r, Facts& f);
void read_cpu(const Reading& r, Facts& f);
void read_pci(const Reading& r, Facts& f);
void read_gpus(const Reading& r, Facts& f);  ///< after read_pci and read_driver
void read_driver(const Reading& r, Facts& f);
void read_kernel(const Reading& r, Facts& f);
void read_dkms(const Reading& r, Facts& f);
void read_limits(const Reading& r, Facts& f);
void read_rdma(const Reading& r, Facts& f);
void read_netdevs(const Reading& r, Facts& f);
void read_cuda(const Reading& r, Facts& f);
void read_python(const Reading& r, Facts& f);
void read_tools(const Reading& r, Facts& f);
void read_packages(const Reading& r, Facts& f);
void read_environment_facts(const Reading& r, Facts& f);
void read_container(const Reading& r, Facts& f);  ///< after read_netdevs
void read_platform(const Reading& r, Facts& f);   ///< after read_gpus
void read_parts(const Reading& r, Facts& f);
void read_sources(const Reading& r, Facts& f);
void read_disks(const Reading& r, Facts& f);
void read_user(const Reading& r, Facts& f);

}  // namespace ep
