// modprobe.d merging.
#include "apply/module_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ep {
namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

size_t folder_rank(const std::string& path) {
  std::string folder = path.substr(0, path.rfind('/'));
  for (size_t i = 0; i < kModprobeFolders.size(); ++i)
    if (kModprobeFolders[i] == folder) return i;
  return kModprobeFolders.size();
}

std::string normal_module(std::string_view name) {
  return replace_all(std::string(name), "-", "_");
}

// Words as the kernel's own parser takes them (kernel/params.c, next_arg): blanks end a word unless inside
// "".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false, any = false;
  for (char c : text) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (!quoted && (c == ' ' || c == '\t')) {
      if (any) out.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) out.push_back(word);
  return out;
}

std::string setting_text(const std::string& name, const std::string& value) {
  bool quote = value.find_first_of(" \t;") != std::string::npos;
  return quote ? fmt::format("{}=\"{}\"", name, value) : name + "=" + value;
}

bool is_registry_list(std::string_view option) {
  return option == "NVreg_RegistryDwords";
}

}  // namespace

const std::vector<std::string> kModprobeFolders = {"/etc/modprobe.d", "/run/modprobe.d",
                                                   "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
                                                   "/lib/modprobe.d"};

std::vector<ModprobeFile> reading_order(std::vector<ModprobeFile> files) {
  std::erase_if(files, [](const auto& f) { return !ends_with(f.path, ".conf"); });
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    std::string x = base_name(a.path), y = base_name(b.path);
    return x != y ? x < y : folder_rank(a.path) < folder_rank(b.path);
  });
  auto same = [](const auto& a, const auto& b) { return base_name(a.path) == base_name(b.path); };
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return files;
}

std::vector<OptionLine> option_lines(const ModprobeFile& file) {
  std::vector<OptionLine> out;
  auto physical = lines(file.text);
  for (size_t i = 0; i < physical.size(); ++i) {
    size_t first = i;
    std::string text(physical[i]);
    while (ends_with(text, "\\") && i + 1 < physical.size()) {
      text.pop_back();
      text += std::string(physical[++i]);
    }
    auto words = words_of(trim(text));
    if (words.size() < 2 || words[0] != "options") continue;
    OptionLine line;
    line.path = file.path;
    line.line = int(first) + 1;
    line.num_lines = int(i - first) + 1;
    line.module = normal_module(words[1]);
    for (size_t w = 2; w < words.size(); ++w) {
      size_t eq = words[w].find('=');
      line.settings.emplace_back(words[w].substr(0, eq),
                                 eq == std::string::npos ? "" : words[w].substr(eq + 1));
    }
    out.push_back(std::move(line));
  }
  return out;
}

std::string merge_dword_lists(std::string_view old_value, std::string_view wanted) {
  std::vector<std::pair<std::string, std::string>> keys;
  auto add = [&](std::string_view list) {
    for (auto piece : split(list, ';')) {
      piece = trim(piece);
      if (piece.empty()) continue;
      size_t eq = piece.find('=');
      std::string key(trim(piece.substr(0, eq)));
      std::string value(eq == std::string_view::npos ? "" : trim(piece.substr(eq + 1)));
      auto there = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.first == key; });
      if (there == keys.end())
        keys.emplace_back(key, value);
      else
        there->second = value;
    }
  };
  add(old_value);
  add(wanted);
  std::string out;
  for (const auto& [key, value] : keys) out += (out.empty() ? "" : ";") + key + "=" + value;
  return out;
}

MergedOptions merge_module_options(const std::string& module,
                                   const std::map<std::string, std::string>& wanted,
                                   const std::string& owned_path, const std::vector<ModprobeFile>& in_order) {
  MergedOptions out;
  std::map<std::string, std::string> values;  // what others say, in reading order: the last one wins
  bool past_owned = false;
  for (const auto& file : in_order) {
    if (file.path == owned_path) continue;
    if (base_name(file.path) > base_name(owned_path)) past_owned = true;
    for (const auto& line : option_lines(file)) {
      if (line.module != normal_module(module)) continue;
      for (const auto& [option, value] : line.settings) {
        if (!wanted.count(option)) continue;
        values[option] = value;
        out.conflicts.push_back({file.path, line.line, line.num_lines, option, value, past_owned});
      }
    }
  }
  // An owned file of an earlier run may hold keys taken over from a line that is a comment by now.
  for (const auto& file : in_order)
    if (file.path == owned_path)
      for (const auto& line : option_lines(file))
        for (const auto& [option, value] : line.settings)
          if (wanted.count(option) && !values.count(option)) values[option] = value;
  out.owned_text = "# Written by epready: the one place where these options of " + module + " are set.\n";
  std::string line = "options " + module;
  for (const auto& [option, value] : wanted) {
    auto old = values.find(option);
    bool merge = is_registry_list(option) && old != values.end();
    line += " " + setting_text(option, merge ? merge_dword_lists(old->second, value) : value);
  }
  out.owned_text += line + "\n";
  return out;
}

std::string disable_options(std::string_view text, const std::string& module,
                            const std::set<std::string>& options, const std::string& owned_path) {
  std::map<int, OptionLine> ours;  // by first line
  for (auto& line : option_lines({"", std::string(text)})) {
    bool sets = std::any_of(line.settings.begin(), line.settings.end(),
                            [&](const auto& s) { return options.count(s.first) != 0; });
    if (line.module == normal_module(module) && sets) ours.emplace(line.line, std::move(line));
  }
  std::string out;
  auto all = split(text, '\n');
  const OptionLine* inside = nullptr;
  for (size_t i = 0; i < all.size(); ++i) {
    int number = int(i) + 1;
    if (auto it = ours.find(number); it != ours.end()) {
      inside = &it->second;
      out += "# epready: set in " + owned_path + " now; this line was:\n";
    }
    std::string piece(all[i]);
    if (inside && ends_with(piece, "\\")) piece.pop_back();  // a comment must not continue
    out += (inside ? "# " : "") + piece;
    if (inside && number == inside->line + inside->num_lines - 1) {
      std::string rest;
      for (const auto& [option, value] : inside->settings)
        if (!options.count(option)) rest += " " + setting_text(option, value);
      if (!rest.empty()) out += "\noptions " + inside->module + rest;
      inside = nullptr;
    }
    if (i + 1 < all.size()) out += "\n";
  }
  return out;
}

}  // namespace ep
