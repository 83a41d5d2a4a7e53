#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace ep {

Result<> write_output(const std::string& path, std::string_view text) {
  const std::string scratch = path + "." + std::to_string(getpid()) + ".new";
  std::ofstream file(scratch, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file && std::rename(scratch.c_str(), path.c_str()) == 0) return {};
  const std::string why = std::strerror(errno);
  std::remove(scratch.c_str());
  return fail(ErrorKind::failed, "cannot write the result", path, why, "choose another place with -o FILE");
}

}  // namespace ep
