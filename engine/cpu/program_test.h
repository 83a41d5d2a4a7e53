// Tools of program_test.cpp: running a program with its output on pipes, reading its JSON, looking at what it
// left.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "cpu/world.h"

namespace ep::engine::cpu {

struct Result {
  int exit = -1;
  std::string out, error;
};

/// A started program with its output on pipes.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments, const char* program = EP_ENGINE_PROGRAM) {
    int out[2], error[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) std::abort();
    arguments.insert(arguments.begin(), program);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      dup2(error[1], STDERR_FILENO);
      std::vector<char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    close(error[1]);
    out_ = out[0];
    error_ = error[0];
  }
  pid_t pid() const { return pid_; }
  Result end() {
    Result result;
    read_all(out_, result.out);
    read_all(error_, result.error);
    int status = 0;
    waitpid(pid_, &status, 0);
    result.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

 private:
  static void read_all(int fd, std::string& text) {
    char buffer[4096];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    close(fd);
  }
  pid_t pid_;
  int out_ = -1, error_ = -1;
};

/// True when the whole text is one JSON value. Enough of a reader to refuse a missing comma or quote.
class JsonReader {
 public:
  static bool valid(const std::string& text) {
    JsonReader reader(text);
    const bool good = reader.value();
    reader.space();
    return good && reader.at_ == text.size();
  }

 private:
  explicit JsonReader(const std::string& text) : text_(text) {}
  void space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool eat(char c) {
    space();
    return at_ < text_.size() && text_[at_] == c && ++at_;
  }
  bool string() {
    if (!eat('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_] == '\\') ++at_;
    }
    return eat('"');
  }
  bool list(char close, bool keys) {
    if (eat(close)) return true;
    do {
      if (keys && (!string() || !eat(':'))) return false;
      if (!value()) return false;
    } while (eat(','));
    return eat(close);
  }
  bool value() {
    space();
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '"') return string();
    if (eat('{')) return list('}', true);
    if (eat('[')) return list(']', false);
    for (const char* word : {"true", "false", "null"}) {
      if (text_.compare(at_, std::strlen(word), word) == 0) return at_ += std::strlen(word), true;
    }
    char* end = nullptr;
    std::strtod(text_.c_str() + at_, &end);
    const size_t next = static_cast<size_t>(end - text_.c_str());
    return next > at_ ? (at_ = next, true) : false;
  }
  const std::string& text_;
  size_t at_ = 0;
};

/// The value after "key": as text, first occurrence.
inline std::string field(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  if (at == std::string::npos) return "absent";
  const size_t begin = at + key.size() + 4;
  return json.substr(begin, json.find_first_of(",\n", begin) - begin);
}

inline std::vector<std::string> shared_memory_names() {
  std::vector<std::string> names;
  if (DIR* folder = opendir("/dev/shm")) {
    while (const dirent* entry = readdir(folder)) {
      if (std::strncmp(entry->d_name, "epready", 7) == 0) names.push_back(entry->d_name);
    }
    closedir(folder);
  }
  return names;
}

inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    std::ifstream file(std::string("/proc/") + entry->d_name + "/stat");
    std::string stat;
    if (!std::isdigit(static_cast<unsigned char>(entry->d_name[0])) || !std::getline(file, stat)) continue;
    int of = 0;
    char state = 0;
    std::sscanf(stat.c_str() + stat.rfind(')') + 1, " %c %d", &state, &of);
    if (of == parent && state != 'Z') out.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  return out;
}

/// True when the process is gone within the limit.
inline bool gone(pid_t pid) {
  for (const int64_t limit = now_ns() + 10'000'000'000; now_ns() < limit; poll(nullptr, 0, 5)) {
    if (kill(pid, 0) != 0) return true;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    if (!std::getline(file, stat) || stat.find(") Z ") != std::string::npos) return true;
  }
  return false;
}

/// A folder with a script named mpirun, first in PATH while it lives.
class FakeMpirun {
 public:
  explicit FakeMpirun(const std::string& script) : path_(std::getenv("PATH")) {
    char folder[] = "/tmp/ep_engine_test_XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    folder_ = folder;
    std::ofstream(folder_ + "/mpirun") << "#!/bin/sh\n" << script;
    chmod((folder_ + "/mpirun").c_str(), 0755);
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  ~FakeMpirun() {
    setenv("PATH", path_.c_str(), 1);
    unlink((folder_ + "/mpirun").c_str());
    rmdir(folder_.c_str());
  }

 private:
  std::string path_, folder_;
};

}  // namespace ep::engine::cpu
