// What the files host_*.cpp share: typed facts of a host written down as observations. Private to the folder.
#pragma once
#include <string>
#include <vector>

#include "doctor/observed.h"
#include "facts/facts.h"
#include "facts/topology.h"

namespace ep {

class HostNotes {
 public:
  HostNotes(const Facts& f, Observed& o) : f_(f), o_(o) {}

 protected:
  void text(const char* name, const Fact<std::string>& f) {
    if (f.ok() && !f->empty())
      o_.add(name, *f, {f.where, 0, *f}, Trust::running);
    else if (f.known == Known::absent && !f.where.empty())
      o_.add_absent(name);
  }
  void flag(const char* name, const Fact<bool>& f) {
    if (f.ok()) flag(name, *f, f.where);
  }
  void flag(const char* name, bool value, const std::string& where, const std::string& seen = {}) {
    o_.add(name, value ? "true" : "false", {where, 0, seen}, Trust::running);
  }
  template <class T>
  void number(const char* name, const Fact<T>& f) {
    if (f.ok()) number(name, *f, f.where);
  }
  template <class T>
  void number(const char* name, T value, const std::string& where, const std::string& seen = {}) {
    o_.add(name, std::to_string(value), {where, 0, seen}, Trust::running);
  }
  /// How many of them, and which: "3", seen as "mlx5_0, mlx5_2, mlx5_5".
  void count(const char* name, const std::vector<std::string>& which, const std::string& where);

  const Facts& f_;
  Observed& o_;
};

/// One function an area; each writes its facts and nothing else.
void observe_driver(const Facts& f, Observed& o);
void observe_kernel(const Facts& f, Observed& o);
void observe_gpus(const Facts& f, Observed& o);
/// `t` tells the NICs that carry EP traffic from those of storage and management.
void observe_nics(const Facts& f, const Topology& t, Observed& o);
void observe_software(const Facts& f, Observed& o);
/// Variables, in force or written in files, against what is on this host.
void observe_settings(const Facts& f, Observed& o);

}  // namespace ep
