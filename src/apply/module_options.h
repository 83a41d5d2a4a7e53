// Kernel module options in modprobe.d, as kmod reads them: which line wins, how several meet, how to merge.
// Pure.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

/// One `options` line (continuations joined) of one file.
struct OptionLine {
  std::string path;
  int line = 0;  ///< 1-based, of its first physical line
  int num_lines = 1;
  std::string module;                                         ///< with _ for -
  std::vector<std::pair<std::string, std::string>> settings;  ///< in order, quotes taken off
};
/// A modprobe.d file as read: `path` full, `text` whole.
struct ModprobeFile {
  std::string path, text;
};

/// Files in kmod's reading order: by base name over all folders; an earlier folder hides the same name in a
/// later one
/// (/etc/modprobe.d, /run/modprobe.d, /usr/local/lib/modprobe.d, /usr/lib/modprobe.d, /lib/modprobe.d;
/// modprobe.d(5)).
extern const std::vector<std::string> kModprobeFolders;
std::vector<ModprobeFile> reading_order(std::vector<ModprobeFile> files);

std::vector<OptionLine> option_lines(const ModprobeFile& file);

/// "A=1;B=0x2" merged with "B=3" gives "A=1;B=3": NVIDIA's RegistryDwords is itself a list of keys. Order of
/// the old value is kept, new keys come last.
std::string merge_dword_lists(std::string_view old_value, std::string_view wanted);

struct MergedOptions {
  std::string owned_text;  ///< content of the one owned file
  /// Lines in other files that set one of our options: they would be read as well, and the last one wins.
  struct Conflict {
    std::string path;
    int line = 0, num_lines = 1;
    std::string option, value;
    bool last_wins = false;  ///< read after the owned file: it would beat ours
  };
  std::vector<Conflict> conflicts;
};
/// Merges `wanted` with what other files say about these options. Keys that others set in RegistryDwords are
/// kept.
MergedOptions merge_module_options(const std::string& module,
                                   const std::map<std::string, std::string>& wanted,
                                   const std::string& owned_path, const std::vector<ModprobeFile>& in_order);

/// The file with these options of the module taken out of every line that sets them; the old lines are kept
/// as comments that say why, and what else they set stays in force.
std::string disable_options(std::string_view text, const std::string& module,
                            const std::set<std::string>& options, const std::string& owned_path);

}  // namespace ep
