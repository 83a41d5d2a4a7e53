// Speed of the doctor's scan with the whole catalogue, on one core: over logs of eleven kinds made here, or
// over given files. Beside each figure, in the same run: the read of the same bytes through the same blocks
// (the ceiling of anything that reads a file) and ripgrep with the same literals. Medians are printed.
//
//   scan_bench [--mb N] [--runs N] [--no-rg] [KIND|FILE]...   without a name: all kinds
//   scan_bench --costs FILE       the patterns for which most lines of FILE are tried in vain
//   scan_bench --make KIND MB FILE  writes a log
//   scan_bench --literals FILE    writes the literals
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "doctor/bench_logs.h"
#include "doctor/judge.h"
#include "doctor/text_facts.h"
#include "recipe/data_files.h"

using namespace ep;

namespace {

double now() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/// Reads to the end of the file and closes it there.
ReadBlock reader(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    std::perror(path.c_str());
    std::exit(1);
  }
  return [fd](char* into, size_t most) -> Result<size_t> {
    const ssize_t n = ::read(fd, into, most);
    if (n <= 0) ::close(fd);
    return size_t(n < 0 ? 0 : n);
  };
}

void write_literals(const Catalogue& c, const std::string& path) {
  std::set<std::string> all;
  auto add = [&](const LinePattern& p) {
    if (!p.literals.empty()) all.insert(p.literals[p.anchor()]);
  };
  for (const auto& p : c.problems) {
    for (const auto& s : p.signatures) add(s.pattern);
    for (const auto& s : p.against) add(s.pattern);
  }
  for (const auto& f : fact_patterns()) add(f.pattern);
  std::ofstream out(path);
  for (const auto& l : all) out << l << "\n";
  std::printf("%zu literals\n", all.size());
}

/// Which patterns make the work: so many lines tried in vain, of what kind, by which word it began.
void print_costs(const Catalogue& c, const std::string& path) {
  std::vector<ScanPattern> rows;
  std::vector<std::string> names;
  for (const auto& p : c.problems) {
    for (const auto& s : p.signatures) rows.push_back({&s.pattern}), names.push_back(p.kind);
    for (const auto& s : p.against) rows.push_back({&s.pattern}), names.push_back(p.kind + " (not)");
  }
  for (const auto& f : fact_patterns())
    if (!f.pattern.literals.empty())
      rows.push_back({&f.pattern, 256, 20000}), names.push_back("fact " + f.fact);
  LogScan scan(rows);
  auto notes = scan.run(reader(path), [](size_t, const LogLine&) {});
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < rows.size(); ++i) order.emplace_back(scan.loads()[i].tries, i);
  std::sort(order.rbegin(), order.rend());
  const double mb = notes ? double(notes->bytes) * 1e-6 : 1;
  std::printf("%10s %8s  pattern (lines tried in vain for one MB, lines that matched)\n", "tries/MB", "hits");
  for (size_t k = 0; k < std::min<size_t>(20, order.size()); ++k) {
    const auto& [tries, i] = order[k];
    const LinePattern& p = *rows[i].pattern;
    std::printf("%10.1f %8lld  %s: '%s' /%s/\n", double(tries) / mb,
                static_cast<long long>(scan.loads()[i].hits), names[i].c_str(),
                p.literals[p.anchor()].c_str(), p.regex_text.substr(0, 70).c_str());
  }
}

double time_read(const std::string& path) {
  std::vector<char> block(256 << 10);
  auto copy = reader(path);
  const double t = now();
  while (*copy(block.data(), block.size()) > 0) {
  }
  return now() - t;
}

double time_doctor(const Catalogue& c, const std::string& path, Diagnosis* d) {
  Observed observed;
  std::vector<LogInput> logs;
  logs.push_back({path, reader(path)});
  const double t = now();
  const LogEvidence e = read_logs(c, std::move(logs), observed);
  const double seconds = now() - t;
  *d = judge(c, e, observed, Lang::en);
  return seconds;
}

/// CPU seconds of `rg -j1 -c -a -F -f literals path`; 0 when there is no ripgrep.
double time_rg(const std::string& literals, const std::string& path) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::execlp("rg", "rg", "-j1", "-c", "-a", "-F", "-f", literals.c_str(), path.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage use{};
  if (pid < 0 || ::wait4(pid, &status, 0, &use) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
    return 0;
  return double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         double(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Options {
  size_t megabytes = 200;
  int runs = 3;
  bool rg = true;
  std::vector<std::string> names;
};

/// A made log with one fault in its last tenth, so that there is something to find.
void make(std::string_view kind, size_t megabytes, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  const size_t piece = 8000000;
  for (size_t i = 0, pieces = std::max<size_t>(1, megabytes * 1000000 / piece); i < pieces; ++i) {
    out << make_bench_log(kind, std::min(piece, megabytes * 1000000), unsigned(i + 1));
    if (i == pieces * 9 / 10)
      out << "[rank 3] RuntimeError: DeepEP error: timeout (dispatch CPU)\n"
             "DeepEP timeout check failed: rank = 3, thread = 0, value = 0\n";
  }
}

void measure(const Catalogue& c, const Options& o, const std::string& name, const std::string& literals) {
  std::string path = name;
  const bool made =
      std::any_of(bench_logs().begin(), bench_logs().end(), [&](auto& l) { return l.name == name; });
  if (made) make(name, o.megabytes, path = literals + "." + name);
  const double gb = double(std::filesystem::file_size(path)) / 1e9;
  std::vector<double> read, doctor, rg;
  Diagnosis d;
  for (int i = 0; i < o.runs; ++i) {
    read.push_back(time_read(path));
    doctor.push_back(time_doctor(c, path, &d));
    rg.push_back(o.rg ? time_rg(literals, path) : 0);
  }
  const double scan = median(doctor), other = median(rg);
  std::string first;
  for (const auto& f : d.findings)
    if (first.empty() && f.severity != Severity::info) first = f.code;
  std::printf("%-12s %6.3f %7.2f %8.2f %6.2f %7.2f   %s\n", made ? name.c_str() : "file", gb,
              gb / median(read), gb / scan, other > 0 ? gb / other : 0.0, other / scan, first.c_str());
  std::fflush(stdout);
  if (made) std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 4 && args[0] == "--make") {
    make(args[1], size_t(std::atol(args[2].c_str())), args[3]);
    return 0;
  }
  auto files = data_files("problems", "");
  std::vector<Error> errors;
  const double t0 = now();
  const Catalogue c = load_catalogue(*files, errors);
  const double loaded = now() - t0;
  if (args.size() == 2 && args[0] == "--literals") {
    write_literals(c, args[1]);
    return 0;
  }
  if (args.size() == 2 && args[0] == "--costs") {
    print_costs(c, args[1]);
    return 0;
  }
  Options o;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--no-rg")
      o.rg = false;
    else if (args[i] == "--mb" && i + 1 < args.size())
      o.megabytes = size_t(std::atol(args[++i].c_str()));
    else if (args[i] == "--runs" && i + 1 < args.size())
      o.runs = std::max(1, std::atoi(args[++i].c_str()));
    else
      o.names.push_back(args[i]);
  }
  if (o.names.empty())
    for (const auto& l : bench_logs()) o.names.emplace_back(l.name);
  char literals[] = "/tmp/scan_bench.XXXXXX";
  ::close(::mkstemp(literals));
  write_literals(c, literals);
  std::printf(
      "%zu problems loaded in %.1f ms; CPU time, GB/s, medians of %d runs; log(s) of 1e9 bytes as given\n",
      c.problems.size(), loaded * 1e3, o.runs);
  std::printf("%-12s %6s %7s %8s %6s %7s   %s\n", "log", "GB", "read", "doctor", "rg", "ratio",
              "first finding");
  for (const auto& name : o.names) measure(c, o, name, literals);
  std::filesystem::remove(literals);
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  std::printf("memory at most %ld MB\n", use.ru_maxrss / 1024);
  return 0;
}
