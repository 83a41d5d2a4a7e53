// Speed of the doctor's scan over a realistic log, with the whole catalogue, on one core; beside it the copy
// of the same bytes through the same blocks (the ceiling of anything that reads a file) and, by the script
// beside it, ripgrep.
//   scan_bench FILE [--literals OUT]
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "doctor/judge.h"
#include "doctor/text_facts.h"
#include "recipe/data_files.h"

using namespace ep;

namespace {

double cpu_now() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}
double now() {
  return cpu_now();
}

ReadBlock reader(const char* path) {
  const int fd = ::open(path, O_RDONLY);
  if (fd < 0) {
    std::perror(path);
    std::exit(1);
  }
  return [fd](char* into, size_t most) -> Result<size_t> {
    const ssize_t n = ::read(fd, into, most);
    return size_t(n < 0 ? 0 : n);
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  auto files = data_files("problems", "");
  std::vector<Error> errors;
  const double t0 = now();
  const Catalogue c = load_catalogue(*files, errors);
  const double t_load = now() - t0;
  if (argc > 3 && !std::strcmp(argv[2], "--literals")) {
    std::set<std::string> all;
    auto add = [&](const LinePattern& p) {
      if (!p.literals.empty()) all.insert(p.literals[p.anchor()]);
    };
    for (const auto& p : c.problems) {
      for (const auto& s : p.signatures) add(s.pattern);
      for (const auto& s : p.against) add(s.pattern);
    }
    for (const auto& f : fact_patterns()) add(f.pattern);
    std::ofstream out(argv[3]);
    for (const auto& l : all) out << l << "\n";
    std::printf("%zu literals\n", all.size());
    return 0;
  }
  std::vector<char> block(256 << 10);
  auto copy = reader(argv[1]);
  double t = now();
  size_t bytes = 0;
  for (;;) {
    auto n = copy(block.data(), block.size());
    if (*n == 0) break;
    bytes += *n;
  }
  const double t_read = now() - t;
  Observed observed;
  std::vector<LogInput> logs;
  logs.push_back({argv[1], reader(argv[1])});
  t = now();
  const LogEvidence e = read_logs(c, std::move(logs), observed);
  const double t_scan = now() - t;
  t = now();
  const Diagnosis d = judge(c, e, observed, Lang::en);
  const double t_judge = now() - t;
  std::printf(
      "%zu problems loaded in %.1f ms; %.2f GB: read alone %.2f GB/s, doctor %.2f GB/s (%.2f s), judge %.1f "
      "ms\n",
      c.problems.size(), t_load * 1e3, double(bytes) / 1e9, double(bytes) / 1e9 / t_read,
      double(bytes) / 1e9 / t_scan, t_scan, t_judge * 1e3);
  for (const auto& f : d.findings)
    std::printf("  %s %s %.2f\n", std::string(to_string(f.severity)).c_str(), f.code.c_str(), f.confidence);
  return 0;
}
