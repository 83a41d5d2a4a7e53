// Inside src/check only: the bench of the variable linter, and its judges that live in files of their own.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/words.h"
#include "check/env_lint.h"

namespace ep {

struct EnvLintBench {
  const EnvLintInput& in;
  const Variables& vars;
  std::vector<Finding> out;

  std::string get(const std::string& name) const {
    auto it = in.environment.find(name);
    return it == in.environment.end() ? std::string() : std::string(trim(it->second));
  }
  bool has(const std::string& name) const { return in.environment.count(name) > 0; }
  bool on(const std::string& name) const {
    const std::string v = lower(get(name));
    return !v.empty() && v != "0" && v != "false" && v != "no" && v != "off" && v != "n";
  }
  bool off(const std::string& name) const { return !get(name).empty() && !on(name); }
  Finding& say(const char* code, Severity s, const std::string& name, BothWords title, std::string fix = {}) {
    Finding f;
    f.code = code;
    f.severity = s;
    f.title = std::move(title.en);
    f.title_zh = std::move(title.zh);
    f.evidence.push_back({"environment", 0, name + "=" + get(name)});
    if (!fix.empty()) f.fix.push_back(std::move(fix));
    out.push_back(std::move(f));
    return out.back();
  }
  std::string version_of(const std::string& owner) const;
  /// The variables are those of one process of a job: what stands in them is meant for one GPU.
  bool of_one_rank() const;
};

/// The parts of a list, blanks taken off, empty ones kept. Own strings: no view of a value that is gone.
std::vector<std::string> list_parts(const std::string& value, char sep = ',');

// env_lint_nics.cpp: lists of NICs and the mapping, against the host.
void check_nic_lists(EnvLintBench& l);
// env_lint_host.cpp: handler, interfaces, GID indices, device names.
void check_against_host(EnvLintBench& l);

}  // namespace ep
