#include "bench/history.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"

namespace ep {
namespace {

using Json = nlohmann::ordered_json;

Failure errno_fail(const std::string& what, const std::string& path) {
  return fail(ErrorKind::failed, what, path, std::strerror(errno),
              "check the folder's owner and free space: df -h " + shell_quote(path));
}

void make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), 0755);
}

Result<HistoryEntry> parse_line(std::string_view line) {
  auto j = Json::parse(line, nullptr, false);
  if (j.is_discarded() || !j.is_object() || !j.contains("result"))
    return fail(ErrorKind::malformed, "not a record of epready bench");
  // A line of the history keeps when and where; a `bench --json` file has only the result.
  auto r = parse_bench(j["result"].dump());
  if (!r) return Failure(r.error());
  HistoryEntry e;
  e.when = j.value("when", "");
  e.host = j.value("host", "");
  e.version = j.value("version", "");
  e.result = *r;
  return e;
}

std::string shape_words(const BenchResult& r) {
  return fmt::format("{} ranks, {} tokens, hidden {}, {} experts, top-{}, {}", r.ranks, r.num_tokens,
                     r.hidden, r.num_experts, r.num_topk, r.dtype);
}

}  // namespace

Result<> append_history(const std::string& path, const HistoryEntry& e) {
  make_folders(path);
  Json j = {{"schema", "epready-history-1"}, {"when", e.when}, {"host", e.host}, {"version", e.version}};
  j["result"] = Json::parse(e.result.raw_json, nullptr, false);
  std::string line = j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return errno_fail("the history cannot be opened", path);
  // After a torn last line, begin a new one: the torn record stays alone.
  char last = '\n';
  off_t size = lseek(fd, 0, SEEK_END);
  if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n') line.insert(0, "\n");
  bool ok = write(fd, line.data(), line.size()) == ssize_t(line.size()) && fsync(fd) == 0;
  int saved = errno;
  close(fd);
  errno = saved;
  if (!ok) return errno_fail("the history cannot be written", path);
  return {};
}

Result<History> read_history(const std::string& path) {
  History h;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (access(path.c_str(), F_OK) != 0) return h;
    return errno_fail("the history cannot be read", path);
  }
  std::string line;
  int number = 0;
  while (std::getline(in, line)) {
    ++number;
    if (trim(line).empty()) continue;
    auto e = parse_line(line);
    if (!e) {
      ++h.num_unreadable;
      continue;
    }
    e->number = number;
    h.entries.push_back(std::move(*e));
  }
  return h;
}

Result<HistoryEntry> find_entry(const std::string& path, const std::string& which) {
  auto number = which == "last"   ? std::optional<long long>(-1)
                : which == "prev" ? std::optional<long long>(-2)
                                  : parse_int(which);
  if (!number) {
    std::ifstream in(which, std::ios::binary);
    if (!in)
      return fail(ErrorKind::absent, "no such run", which,
                  "expected a number of `epready history`, \"last\", or a file of `epready bench --json`",
                  "epready history");
    std::stringstream all;
    all << in.rdbuf();
    auto e = parse_line(all.str());
    if (!e) return add_context(e.error(), "while reading " + which);
    return e;
  }
  auto h = read_history(path);
  if (!h) return Failure(h.error());
  if (*number < 0) {
    long long at = (long long)h->entries.size() + *number;
    if (at >= 0) return h->entries[size_t(at)];
  }
  for (auto& e : h->entries)
    if (e.number == *number) return e;
  return fail(ErrorKind::absent, fmt::format("no run {} in the history ({} there)", which, h->entries.size()),
              path, {}, "epready history");
}

Comparison compare(const BenchResult& a, const BenchResult& b) {
  Comparison c;
  if (shape_words(a) != shape_words(b)) c.differences.push_back(shape_words(a) + " / " + shape_words(b));
  if (a.device != b.device) c.differences.push_back(a.device + " / " + b.device);
  if (a.engine != b.engine) c.differences.push_back("engine " + a.engine + " / " + b.engine);
  auto find = [](const BenchResult& r, const BenchPhase& p) -> const BenchPhase* {
    for (const auto& x : r.phases)
      if (x.name == p.name && x.mode == p.mode) return &x;
    return nullptr;
  };
  for (const auto& p : a.phases) {
    const BenchPhase* q = find(b, p);
    PhaseChange x{p.name, p.mode, p.time.median_us, q ? q->time.median_us : 0, 0, PhaseChange::Kind::only_a};
    if (q && p.time.median_us > 0) {
      x.ratio = q->time.median_us / p.time.median_us;
      bool within = q->time.median_us >= p.time.min_us && q->time.median_us <= p.time.p95_us;
      bool back = p.time.median_us >= q->time.min_us && p.time.median_us <= q->time.p95_us;
      x.kind = within || back ? PhaseChange::Kind::same
               : x.ratio < 1  ? PhaseChange::Kind::faster
                              : PhaseChange::Kind::slower;
    }
    c.phases.push_back(x);
  }
  for (const auto& q : b.phases)
    if (!find(a, q)) c.phases.push_back({q.name, q.mode, 0, q.time.median_us, 0, PhaseChange::Kind::only_b});
  return c;
}

}  // namespace ep
