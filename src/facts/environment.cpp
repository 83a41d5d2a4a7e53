// Variables in force and files that NCCL reads as if they were variables.
#include "host/environment.h"

#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

constexpr size_t kMaxFile = 64u << 10, kMaxLines = 256;

std::string unquoted(std::string_view v) {
  v = trim(v);
  if (v.size() >= 2 && (v[0] == '"' || v[0] == '\'') && v.back() == v[0]) v = v.substr(1, v.size() - 2);
  return std::string(v);
}

// NAME=value, with or without `export`; a value that the shell would have to work out is left alone, and so
// is what stands indented, below a condition.
void take_assignment(std::string_view line, const std::string& where, std::vector<std::string>& out) {
  if (line.empty() || line[0] == ' ' || line[0] == '\t' || line[0] == '#') return;
  if (starts_with(line, "export ")) line = trim(line.substr(7));
  const size_t equals = line.find('=');
  if (equals == line.npos || !is_environment_setting(line.substr(0, equals))) return;
  const std::string value = unquoted(line.substr(equals + 1));
  if (contains(value, "$") || contains(value, "`") || contains(value, ";") || out.size() >= kMaxLines) return;
  out.push_back(where + ": " + std::string(line.substr(0, equals)) + "=" + value);
}

void take_file(const Host& host, const std::string& path, std::vector<std::string>& out) {
  auto text = host.read(path, kMaxFile);
  int number = 0;
  for (auto line : lines(text_of(text))) take_assignment(line, path + ":" + std::to_string(++number), out);
}

// Environment="A=1" "B=2" of units and their drop-ins.
void take_unit(const Host& host, const std::string& path, std::vector<std::string>& out) {
  auto text = host.read(path, kMaxFile);
  int number = 0;
  for (auto line : lines(text_of(text))) {
    ++number;
    line = trim(line);
    if (!starts_with(line, "Environment=")) continue;
    std::string word;
    char quote = 0;
    for (char c : std::string(line.substr(12)) + " ") {
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      } else if (quote == 0 && c == ' ') {
        take_assignment(word, path + ":" + std::to_string(number), out);
        word.clear();
      } else {
        word += c;
      }
    }
  }
}

std::vector<std::string> read_written(const Host& host) {
  std::vector<std::string> out;
  take_file(host, "/etc/environment", out);
  for (const auto& name : names_in(host, "/etc/profile.d"))
    if (ends_with(name, ".sh")) take_file(host, "/etc/profile.d/" + name, out);
  const std::string units = "/etc/systemd/system";
  for (const auto& name : names_in(host, units)) {
    const std::string path = units + "/" + name;
    if (ends_with(name, ".service")) take_unit(host, path, out);
    if (ends_with(name, ".service.d"))
      for (const auto& part : names_in(host, path))
        if (ends_with(part, ".conf")) take_unit(host, path + "/" + part, out);
  }
  return out;
}

}  // namespace

void read_environment_facts(const Reading& r, Facts& f) {
  for (const auto& [name, value] : r.environment)
    if (is_environment_setting(name)) f.environment.emplace(name, value);
  f.written_environment = read_written(r.host);
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
