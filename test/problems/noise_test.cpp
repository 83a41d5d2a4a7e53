// Properties of the doctor's answer over all fixtures: a hit keeps its first kind when the log is written in
// another dress (prefixes of ranks, journald, kubectl, docker; colours; CRLF) or when harmless lines of other
// programs stand around or between its lines; harmless lines stay harmless in every dress. Each hit meets one
// dress and one harmless log here, in turn; EP_NOISE=all gives it every one (many minutes).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "doctor/judge.h"
#include "recipe/data_files.h"

namespace ep {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

struct Log {
  std::string name, kind;
  Lines text;
};

/// hits.log holds several short logs, lines of three dashes between them.
std::vector<Lines> read_logs_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  std::vector<Lines> out(1);
  const std::string all = s.str();
  for (std::string_view l : lines(all))
    if (l == "---" && path.filename() == "hits.log")
      out.emplace_back();
    else
      out.back().emplace_back(l);
  return out;
}

std::string joined(const Lines& l, const char* end = "\n") {
  std::string out;
  for (const auto& one : l) out += one + end;
  return out;
}

const Catalogue& catalogue() {
  static const Catalogue kAll = [] {
    std::vector<Error> errors;
    auto files = data_files("problems", "");
    return files ? load_catalogue(*files, errors) : Catalogue{};
  }();
  return kAll;
}

/// The kind of the first finding that is not mere information; a problem that is itself information counts.
std::string first_kind(const std::string& text, Severity least) {
  Observed observed;
  std::vector<LogInput> logs;
  logs.push_back({"log", read_text(text)});
  const LogEvidence e = read_logs(catalogue(), std::move(logs), observed);
  for (const Finding& f : judge(catalogue(), e, observed, Lang::en).findings)
    if (f.severity >= least) return f.code;
  return "";
}

std::vector<Log> fixtures(bool hits) {
  std::vector<Log> out;
  for (const auto& d : fs::directory_iterator(fs::path(EP_SOURCE_DIR) / "test/problems")) {
    if (!d.is_directory() || (d.path().filename() == "healthy") == hits) continue;
    for (const auto& f : fs::directory_iterator(d.path())) {
      const std::string name = f.path().filename().string();
      if (hits && !starts_with(name, "hit")) continue;
      const std::string kind = d.path().filename().string();
      for (Lines& text : read_logs_of(f.path()))
        out.push_back({kind + "/" + name + "#" + std::to_string(out.size()), kind, std::move(text)});
    }
  }
  std::sort(out.begin(), out.end(), [](const Log& a, const Log& b) { return a.name < b.name; });
  return out;
}

struct Dress {
  const char* name;
  const char* prefix;
  const char* suffix;
  const char* end = "\n";
};
const Dress kDresses[] = {
    {"torchrun", "[rank3]: ", ""},
    {"mpirun", "[1,3]<stderr>:", ""},
    {"srun", "11: ", ""},
    {"pdsh", "node7: ", ""},
    {"vllm", "(EngineCore_DP0 pid=4242) ", ""},
    {"ray", "(RayWorkerWrapper pid=771, ip=10.0.0.7) ", ""},
    {"journald", "Nov 30 12:41:07 node7 vllm[4242]: ", ""},
    {"kubectl", "2026-11-30T12:41:07.123456789Z ", ""},
    {"containerd", "2026-11-30T12:41:07.123456789Z stderr F ", ""},
    {"kubectl --prefix", "[pod/decode-0/worker] ", ""},
    {"compose", "worker-1  | ", ""},
    {"buildkit", "#14 128.4 ", ""},
    {"quote", "> ", ""},
    {"indent", "    ", ""},
    {"colour", "\x1b[31m", "\x1b[0m"},
    {"crlf", "", "\r"},
};

Lines dressed(const Lines& in, const Dress& d) {
  Lines out;
  for (const auto& l : in) out.push_back(l.empty() ? l : d.prefix + l + d.suffix);
  return out;
}

struct Tally {
  int runs = 0, wrong = 0;
  void check(const std::string& what, const std::string& got, const std::string& want) {
    ++runs;
    if (got == want) return;
    ++wrong;
    std::printf("%s: got %s\n", what.c_str(), got.empty() ? "nothing" : got.c_str());
  }
};

Severity least(const Log& hit) {
  const Problem* p = catalogue().find(hit.kind);
  return p && p->severity == Severity::info ? Severity::info : Severity::warn;
}

bool all_of_them() {
  return std::getenv("EP_NOISE") != nullptr;
}

TEST(Noise, AHitKeepsItsAnswerInAnotherDress) {
  const auto hits = fixtures(true);
  ASSERT_FALSE(hits.empty());
  Tally t;
  size_t turn = 0;
  for (const Log& h : hits)
    for (size_t k = 0; k < (all_of_them() ? std::size(kDresses) : 1); ++k, ++turn) {
      const Dress& d = kDresses[turn % std::size(kDresses)];
      t.check(h.name + " dressed as " + d.name, first_kind(joined(dressed(h.text, d)), least(h)), h.kind);
    }
  std::printf("%d runs, %d wrong\n", t.runs, t.wrong);
  EXPECT_EQ(t.wrong, 0);
}

TEST(Noise, HarmlessLogsStayHarmlessInEveryDress) {
  Tally t;
  for (const Log& h : fixtures(false))
    for (const Dress& d : kDresses)
      t.check(h.name + " dressed as " + d.name, first_kind(joined(dressed(h.text, d)), Severity::warn), "");
  EXPECT_GT(t.runs, 0);
  EXPECT_EQ(t.wrong, 0);
}

/// A harmless log without the lines that say something about its own run (success, life, facts of the
/// machine) or that would name a cause if that run had not gone well.
Lines neutral(const Log& log) {
  Observed observed;
  std::vector<LogInput> in;
  const std::string text = joined(log.text);
  in.push_back({"log", read_text(text)});
  const LogEvidence e = read_logs(catalogue(), std::move(in), observed);
  std::set<int64_t> out;
  for (const Sightings* s : {&e.run_success, &e.alive, &e.build_success, &e.hard_errors})
    for (const auto& one : s->first) out.insert(one.place.line);
  for (const Place& p : e.run_success.places) out.insert(p.line);
  for (size_t i = 0; i < e.problems.size(); ++i)
    for (size_t k = 0; k < e.problems[i].signatures.size(); ++k)
      if (catalogue().problems[i].signatures[k].decisive)
        for (const auto& one : e.problems[i].signatures[k].first) out.insert(one.place.line);
  for (const auto& [fact, seen] : observed.table())
    for (const Observation& o : seen) out.insert(o.where.line);
  Lines kept;
  for (size_t i = 0; i < log.text.size(); ++i)
    if (!out.count(int64_t(i) + 1)) kept.push_back(log.text[i]);
  return kept;
}

/// Line by line, as two ranks write into one file; a shell command and a lock file's name keep their next
/// line.
Lines interleaved(const Lines& a, const Lines& b) {
  Lines out;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const bool bound =
        i > 0 && i - 1 < a.size() && (starts_with(a[i - 1], "$ ") || contains(a[i - 1], "name = "));
    if (i < b.size() && !bound) out.push_back(b[i].empty() ? "" : "[rank1]: " + b[i]);
    if (i < a.size()) out.push_back(a[i].empty() ? "" : "[rank3]: " + a[i]);
  }
  return out;
}

Lines sum(const Lines& a, const Lines& b) {
  Lines out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

TEST(Noise, AHitKeepsItsAnswerAmongHarmlessLines) {
  const auto hits = fixtures(true);
  auto healthy = fixtures(false);
  // Pages, letters and reports of test runners (whole_*.log) mean something as a whole: no noise of a run.
  std::erase_if(healthy, [](const Log& h) { return h.name.find("/whole_") != std::string::npos; });
  size_t kept = 0;
  for (Log& h : healthy) kept += (h.text = neutral(h)).size();
  std::erase_if(healthy, [](const Log& h) { return h.text.size() < 2; });
  ASSERT_GT(kept, 100u);
  Tally t;
  size_t turn = 0;
  for (const Log& h : hits)
    for (size_t k = 0; k < (all_of_them() ? healthy.size() : 1); ++k, ++turn) {
      const Log& n = healthy[turn % healthy.size()];
      const std::string what = h.name + " with " + n.name;
      t.check(what + " around", first_kind(joined(sum(sum(n.text, h.text), n.text)), least(h)), h.kind);
      t.check(what + " between", first_kind(joined(interleaved(h.text, n.text)), least(h)), h.kind);
    }
  std::printf("%d runs, %zu harmless lines, %d wrong\n", t.runs, kept, t.wrong);
  EXPECT_EQ(t.wrong, 0);
}

}  // namespace
}  // namespace ep
