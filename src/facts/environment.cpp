// Variables in force and files that NCCL reads as if they were variables.
#include "host/environment.h"

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

void read_environment_facts(const Reading& r, Facts& f) {
  for (const auto& [name, value] : r.environment)
    if (is_environment_setting(name)) f.environment.emplace(name, value);
  std::vector<std::string> files{"/etc/nccl.conf"};
  if (starts_with(r.home(), "/")) files.push_back(r.home() + "/.nccl.conf");
  for (const auto& path : files) {
    auto text = r.host.read(path, 64u << 10);
    int number = 0;
    for (auto line : lines(text_of(text))) {
      ++number;
      line = trim(line.substr(0, line.find('#')));
      if (!line.empty())
        f.nccl_conf.push_back(path + ":" + std::to_string(number) + ": " + std::string(line));
    }
  }
}

}  // namespace ep
