// Readers of pasted outputs about the system around the GPUs: operating system, driver, toolkit, modules,
// limits, packages, container. Each adds what the text shows and nothing else. Pure.
#pragma once
#include <string>
#include <string_view>

#include "facts/facts.h"

namespace ep {

/// /etc/os-release, whole or cut. Without an ID line the NAME of a known distribution says it.
void read_os_release_text(std::string_view text, const std::string& source, Facts& facts);
/// `lsb_release -a`, /etc/lsb-release.
void read_lsb_release(std::string_view text, const std::string& source, Facts& facts);
/// /proc/driver/nvidia/version: version, flavour, processor.
void read_nvidia_version(std::string_view text, const std::string& source, Facts& facts);
/// `nvcc --version`. The folder is not shown: the toolkit's root is then the text's name, no path.
void read_nvcc(std::string_view text, const std::string& source, Facts& facts);
/// `lsmod`, whole or filtered. Only a whole list says what is not loaded.
void read_lsmod(std::string_view text, const std::string& source, Facts& facts);
void read_ulimit(std::string_view text, const std::string& source, Facts& facts);
/// `df`: /dev/shm and the places where things are installed.
void read_df(std::string_view text, const std::string& source, Facts& facts);
/// options lines of modprobe files, also as `grep -r` prints them.
void read_modprobe(std::string_view text, const std::string& source, Facts& facts);
void read_cgroup(std::string_view text, const std::string& source, Facts& facts);
void read_capabilities(std::string_view text, const std::string& source, Facts& facts);
/// `pip list` and `pip freeze`.
void read_pip_list(std::string_view text, const std::string& source, Facts& facts);
/// "cat: /proc/driver/nvidia/version: No such file or directory".
void read_missing_path(std::string_view text, const std::string& source, Facts& facts);
/// "product_name: p5.48xlarge", as a file of /sys/class/dmi/id had it.
void read_dmi(std::string_view text, const std::string& source, Facts& facts);

/// What follows from the pieces together: the container from variables, drivers of RDMA devices and the
/// processor from names that tell them for certain.
void conclude_system(Facts& facts);

}  // namespace ep
