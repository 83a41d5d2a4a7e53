// Programs that the stack and its checks use: where they are on PATH, and versions where a probe tells.
#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

struct ToolRow {
  const char* name;
  const char* version_probe;  ///< nullptr: presence is enough
};
constexpr ToolRow kTools[] = {
    {"git", "git-version"},     {"cmake", "cmake-version"},
    {"ninja", "ninja-version"}, {"g++", "gcc-version"},
    {"uv", "uv-version"},       {"make", nullptr},
    {"python3", nullptr},       {"pip3", nullptr},
    {"curl", nullptr},          {"tar", nullptr},
    {"patch", nullptr},         {"nvidia-smi", nullptr},
    {"ibv_devinfo", nullptr},   {"ibstat", nullptr},
    {"rdma", nullptr},          {"ib_write_bw", nullptr},
    {"mlxconfig", nullptr},     {"mokutil", nullptr},
    {"dkms", nullptr},          {"lspci", nullptr},
    {"modprobe", nullptr},      {"systemctl", nullptr},
    {"sudo", nullptr},          {"docker", nullptr},
    {"kubectl", nullptr},       {"srun", nullptr},
    {"mpirun", nullptr},        {"gdrcopy_sanity", nullptr},
    {"apt-get", nullptr},       {"dnf", nullptr},
};

// The first word that starts with a digit: "git version 2.39.5", "uv 0.5.1 (...)", "1.11.1".
Fact<std::string> version_in(const Fact<std::string>& text) {
  if (!text) return text;
  for (auto word : split_ws(*text))
    if (word[0] >= '0' && word[0] <= '9') return known(std::string(word), text.where);
  return malformed<std::string>(text.where, "no version in the answer");
}

Fact<std::string> find(const Host& host, const std::vector<std::string_view>& folders,
                       const std::string& name) {
  for (auto folder : folders) {
    if (!starts_with(folder, "/")) continue;
    std::string path = std::string(folder) + "/" + name;
    auto info = host.info(path);
    if (info && info->type == FileInfo::Type::file && info->mode & 0111) return known(path, "PATH");
    // Not being able to look is no proof of absence.
    if (!info && info.error().kind != ErrorKind::absent) return from_error<std::string>(info.error(), path);
  }
  return absent<std::string>("PATH", "in no folder of PATH");
}

}  // namespace

void read_tools(const Reading& r, Facts& f) {
  std::string path = r.variable("PATH") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";
  auto folders = split(path, ':');
  for (const auto& row : kTools) {
    Tool t;
    t.name = row.name;
    t.path = find(r.host, folders, row.name);
    t.version = row.version_probe ? version_in(probe_text(r.probes.get(row.version_probe), row.version_probe))
                                  : absent<std::string>(t.path.where, "not asked");
    f.tools.push_back(std::move(t));
  }
}

}  // namespace ep
