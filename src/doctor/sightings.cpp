#include "doctor/sightings.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "doctor/mention.h"
#include "doctor/rank.h"
#include "doctor/text_facts.h"
#include "doctor/text_look.h"

namespace ep {

namespace {

constexpr size_t kFirst = 8, kWho = 64, kText = 400, kPlaces = 1024;
constexpr int64_t kSpoken = 64;  // nobody speaks of one thing more often: further lines are a program's
constexpr size_t kHeadBytes = 256 << 10;  // where people describe their machine; logs follow

/// Marks of a run. Hard: something died. Soft: worth a look when nothing better is known.
const char* const kHard[] = {"Traceback (most recent call last)",
                             "RuntimeError",
                             "ImportError",
                             "ModuleNotFoundError",
                             "AssertionError",
                             "Segmentation fault",
                             "core dumped",
                             "terminate called",
                             "CUDA error",
                             "Caught signal",
                             "FAILED: ",
                             "fatal error:",
                             "ninja: build stopped",
                             "undefined symbol",
                             "undefined reference",
                             "collect2: error",
                             "multiple definition",
                             "SIGABRT",
                             "SIGSEGV",
                             "SIGKILL",
                             "non-zero exit status",
                             "DeepEP error",
                             "timeout check failed",
                             "receiver timeout",
                             "forwarder timeout",
                             "modprobe: ERROR",
                             "modprobe: FATAL",
                             "could not insert",
                             "unrecognized arguments",
                             "cannot open shared object",
                             "OutOfMemoryError",
                             "Assertion error",
                             "Assertion failed",
                             "assertion failed",
                             "No matching distribution",
                             "404 Not Found",
                             "CMake Error",
                             "CalledProcessError",
                             "illegal memory access",
                             "exiting...",
                             "NotImplementedError",
                             "FileNotFoundError",
                             "PermissionError",
                             "Permission denied",
                             "NCCL exception",
                             "ptxas fatal",
                             "Xid (PCI",
                             "terminated by signal",
                             "unhandled system error",
                             "unhandled cuda error",
                             "remote process exited",
                             "Watchdog caught",
                             "gdr_open error",
                             "ncclSystemError",
                             "ncclInternalError",
                             "Signals.SIGKILL",
                             "unspecified launch failure",
                             "'invalid argument'",
                             "'invalid resource handle'",
                             "named symbol not found",
                             "no kernel image",
                             "out of memory",
                             "Engine core initialization failed",
                             "EngineDeadError",
                             "nvcc error",
                             "NVRM: Xid"};
const char* const kSoft[] = {
    " failed",   "Failed ",   "Failed:", "error:",           "Error:",        "ERROR: ",      "ERROR ",
    "NCCL WARN", "timed out", "timeout", "cannot ",          "Cannot ",       "No such file", "not found",
    "Unable to", "unable to", "Killed",  "Invalid argument", "not permitted", "WARN: "};
const char* const kRunSuccess[] = {"GB/s (RDMA)",        "GB/s (NVL)",
                                   "GB/s (SO)",          "Dispatch + combine bandwidth",
                                   "Avg bus bandwidth",  "Application startup complete",
                                   "Uvicorn running on", "fired up and ready to roll",
                                   "Combine=PASSED",     "Avg generation throughput",
                                   "Decode batch.",      "| lm loss:",
                                   "lm loss: ",          "[testing] Running with",
                                   "All tests passed",   "all tests passed"};
// Signs of life that prove less: they excuse hints, not lines that name a cause.
const char* const kAlive[] = {"Init COMPLETE",
                              "Connected all rings",
                              "Connected all trees",
                              "Capturing CUDA graphs",
                              "Graph capturing finished",
                              "init engine",
                              "Available KV cache memory"};
const char* const kBuildSuccess[] = {"Successfully installed", "Successfully built",
                                     "Finished processing dependencies", "DeepEP OK", "[100%] Built target"};

LinePattern literal_pattern(const char* text, const char* beside = nullptr) {
  LinePattern p;
  p.literals = {text};
  if (beside) p.literals.emplace_back(beside);
  return p;
}

struct Target {
  enum Kind { signature, against, fact, mark } kind;
  uint32_t problem = 0, index = 0;
  Sightings* mark_into = nullptr;
};

class Collector {
 public:
  Collector(const Catalogue& c, LogEvidence& e, Observed& o) : catalogue_(c), out_(e), observed_(o) {
    out_.problems.resize(c.problems.size());
    for (uint32_t i = 0; i < c.problems.size(); ++i) {
      const Problem& p = c.problems[i];
      auto& slot = out_.problems[i];
      slot.signatures.resize(p.signatures.size());
      slot.against.resize(p.against.size());
      for (const auto& s : p.signatures) slot.gap.emplace_back(s.with.size(), -1);
      for (uint32_t k = 0; k < p.signatures.size(); ++k)
        add(&p.signatures[k].pattern, {Target::signature, i, k, nullptr});
      for (uint32_t k = 0; k < p.against.size(); ++k)
        add(&p.against[k].pattern, {Target::against, i, k, nullptr});
    }
    const auto& facts = fact_patterns();
    for (uint32_t k = 0; k < facts.size(); ++k)
      if (!facts[k].pattern.literals.empty()) add(&facts[k].pattern, {Target::fact, 0, k, nullptr});
    marks_.reserve(200);
    for (const char* t : kHard) add_mark(t, &out_.hard_errors);
    for (const char* t : kSoft) add_mark(t, &out_.soft_errors);
    for (const char* t : kRunSuccess) add_mark(t, &out_.run_success);
    add_mark("200 OK", &out_.run_success, "POST ");  // a probe of /health proves less
    for (const char* t : kAlive) add_mark(t, &out_.alive);
    for (const char* t : kBuildSuccess) add_mark(t, &out_.build_success);
    add_mark("via NET/", &channels_);
    add_mark_regex(" passed", R"(\b\d+ passed\b.* in \d[\d.]*s|^\s*All \d+ tests? passed)",
                   &out_.tests_passed);
    add_mark_regex("[  PASSED  ]", R"(\[  PASSED  \] \d+ tests?)", &out_.tests_passed);
    add_mark_regex("% tests passed", R"(\b100% tests passed)", &out_.tests_passed);
    add_mark_regex("OK (expected failures=", "", &out_.tests_passed);
    add_mark_regex(" failed", R"(\b[1-9]\d* (?:failed|errors?)\b.* in \d[\d.]*s|\b[1-9]\d* tests? failed)",
                   &out_.tests_failed);
    add_mark_regex("[  FAILED  ]", "", &out_.tests_failed);
    add_mark_regex("FAILED (failures=", "", &out_.tests_failed);
  }

  void run(std::vector<LogInput>& logs) {
    LogScan scan(patterns_);
    for (auto& log : logs) {
      source_ = int(out_.names.size());
      out_.names.push_back(log.name);
      head_.clear();
      looked_ = {};
      reading_ = {};
      head_read_ = 0;
      head_line_ = 0;
      auto read = [&](char* into, size_t most) -> Result<size_t> {
        auto n = log.read(into, most);
        if (n) take_head(std::string_view(into, *n));
        return n;
      };
      auto notes = scan.run(read, [&](size_t p, const LogLine& l) { hit(p, l); });
      out_.told = out_.told || reading_.told();
      out_.own = out_.own || reading_.own();
      out_.guide = (source_ == 0 || out_.guide) && reading_.page();  // beside a log, a page is only read
      out_.unreadable.push_back(looked_.verdict(notes && notes->utf16));
      if (notes) {
        out_.notes.push_back(*notes);
      } else {
        out_.notes.emplace_back();
        out_.errors.push_back(std::move(notes.error()));
      }
    }
  }

 private:
  void add(const LinePattern* p, Target t) {
    ScanPattern s{p};
    if (t.kind == Target::fact) s.enough_hits = 256, s.enough_tries = 20000;
    if (t.kind == Target::mark) s.enough_hits = 256;
    patterns_.push_back(s);
    targets_.push_back(t);
  }
  void add_mark(const char* text, Sightings* into, const char* beside = nullptr) {
    marks_.push_back(literal_pattern(text, beside));
    add(&marks_.back(), {Target::mark, 0, 0, into});
  }

  void add_mark_regex(const char* text, const char* regex, Sightings* into) {
    marks_.push_back(literal_pattern(text));
    std::string error;
    if (*regex) marks_.back().regex = compile_regex(regex, false, &error);
    add(&marks_.back(), {Target::mark, 0, 0, into});
  }

  void hit(size_t pattern, const LogLine& l) {
    const Target& t = targets_[pattern];
    if (t.kind == Target::fact) {
      const FactPattern& row = fact_patterns()[t.index];
      Evidence where{out_.names.back(), int(l.number), cleaned(l)};
      read_text_fact(row, l.text, l.next, where, observed_);
      return;
    }
    // NCCL prints what it tried and did without as INFO; that is no error of the run.
    const bool complaint = t.mark_into == &out_.hard_errors || t.mark_into == &out_.soft_errors;
    if (complaint && (contains(l.text, "NCCL INFO") || harmless(l.text))) return;
    Sightings& into = t.kind == Target::mark      ? *t.mark_into
                      : t.kind == Target::against ? out_.problems[t.problem].against[t.index]
                                                  : out_.problems[t.problem].signatures[t.index];
    const Voice shown = reading_.shown_as(l.number);
    const Voice heard = into.count >= kSpoken     ? Voice::machine
                        : shown != Voice::machine ? shown
                                                  : voice(l.text, *patterns_[pattern].pattern);
    if (heard == Voice::mentioned || (heard == Voice::quoted && t.kind == Target::mark)) {
      if (!into.mention.known()) into.mention = {source_, l.number, std::nan("")};
      return;
    }
    into.quoted += heard == Voice::quoted;
    note(into, l);
    if (t.kind == Target::signature) measure_gaps(t, l.number);
    if (&into == &channels_) read_channel(l.text);
    if ((&into == &out_.hard_errors || &into == &out_.run_success) && into.places.size() < kPlaces &&
        (into.places.empty() || into.places.back().line != l.number))
      into.places.push_back({source_, l.number, std::nan("")});
  }

  /// "8[0] -> 0[0] [send] via NET/IB/0": the highest rank, and that two nodes speak (one GPU number, two
  /// ranks).
  void read_channel(std::string_view line) {
    static const re2::RE2 kChannel(R"((\d+)\[(\w+)\] -> (\d+)\[(\w+)\] .*via NET/)");
    int a = 0, b = 0;
    std::string from, to;
    if (!re2::RE2::PartialMatch(line, kChannel, &a, &from, &b, &to)) return;
    if (std::max(a, b) < 100000) out_.max_rank = std::max({out_.max_rank, a, b});
    out_.crosses_nodes |= a != b && from == to;
  }

  void note(Sightings& into, const LogLine& l) {
    ++into.count;
    into.last = {source_, l.number, std::nan("")};
    if (into.count > 1024) return;  // repetitions teach nothing new; their place and number are kept
    const LineTag& tag = tag_of(l);
    if (!tag.who.empty() && into.who.size() < kWho) into.who.insert(tag.who);
    if (tag.rank >= 0 && tag.rank < 100000) out_.max_rank = std::max(out_.max_rank, tag.rank);
    if (!tag.host.empty() && out_.hosts.size() < 1024) out_.hosts.insert(tag.host);
    if (into.first.size() >= kFirst) return;
    into.first.push_back({{source_, l.number, line_time(l.text)}, cleaned(l), tag.who});
  }

  /// Several patterns match one line; what it says of itself is read once.
  struct OfLine {
    int source = -1;
    int64_t serial = -1;
    bool is(int s, const LogLine& l) {
      const bool same = source == s && serial == l.serial;
      source = s, serial = l.serial;
      return same;
    }
  };
  const LineTag& tag_of(const LogLine& l) {
    if (!tagged_.is(source_, l)) tag_ = line_tag(l.text);
    return tag_;
  }
  const std::string& cleaned(const LogLine& l) {
    if (!cleaned_.is(source_, l)) clean_ = clean(l.text);
    return clean_;
  }

  static std::string clean(std::string_view line) {
    std::string text = strip_ansi(line.substr(0, 2 * kText));
    for (char& ch : text)  // what no terminal and no XML should be given
      if ((static_cast<unsigned char>(ch) < 0x20 && ch != '\t') || ch == 0x7f) ch = ' ';
    if (text.size() > kText) {
      text.resize(kText);
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
      text += "...";
    }
    return std::string(trim(text));
  }

  void measure_gaps(const Target& t, int64_t line) {
    const Problem& p = catalogue_.problems[t.problem];
    auto& slot = out_.problems[t.problem];
    auto between = [&](size_t owner, size_t position, const Sightings& other) {
      if (other.count == 0 || other.last.source != source_) return;
      int64_t& gap = slot.gap[owner][position];
      const int64_t d = std::abs(line - other.last.line);
      if (gap < 0 || d < gap) gap = d;
    };
    for (size_t i = 0; i < p.signatures.size(); ++i)
      for (size_t k = 0; k < p.signatures[i].with.size(); ++k) {
        const bool is_owner = i == t.index, is_partner = p.signatures[i].with[k] == p.signatures[t.index].id;
        if (is_owner)
          for (size_t j = 0; j < p.signatures.size(); ++j)
            if (p.signatures[j].id == p.signatures[i].with[k]) between(i, k, slot.signatures[j]);
        if (is_partner) between(i, k, slot.signatures[i]);
      }
  }

  /// Short words (GPU models, "RoCE", "2 nodes") are no good as scanner literals; they are looked for in the
  /// head only, line by line as it comes in. Empty `block`: the end.
  void take_head(std::string_view block) {
    if (head_read_ >= kHeadBytes) return;
    looked_.at(block);
    head_read_ += block.size();
    for (char ch : block)
      if (ch != '\0') head_ += ch;  // UTF-16 of plain text becomes readable enough
    const size_t whole = block.empty() || head_read_ >= kHeadBytes ? head_.size() : head_.rfind('\n') + 1;
    std::string plain;
    for (std::string_view line : lines(std::string_view(head_).substr(0, whole))) {
      ++head_line_;
      line = line.substr(0, 2048);
      if (contains(line, "\x1b")) line = plain = strip_ansi(line);
      reading_.line(line, head_line_);
      for (const FactPattern& row : fact_patterns())
        if (row.pattern.literals.empty() && re2::RE2::PartialMatch(line, *row.pattern.regex))
          read_text_fact(row, line, {}, {out_.names.back(), head_line_, clean(line)}, observed_);
    }
    head_.erase(0, whole);
  }

  const Catalogue& catalogue_;
  LogEvidence& out_;
  Observed& observed_;
  std::vector<ScanPattern> patterns_;
  std::vector<Target> targets_;
  std::vector<LinePattern> marks_;
  Sightings channels_;
  int source_ = 0;
  OfLine tagged_, cleaned_;
  LineTag tag_;
  std::string clean_;
  std::string head_;
  size_t head_read_ = 0;
  int head_line_ = 0;
  TextLook looked_;
  Reading reading_;
};

}  // namespace

bool earlier(const Place& a, const Place& b) {
  if (a.known() != b.known()) return a.known();
  if (a.source == b.source) return a.line < b.line;
  if (std::isfinite(a.time) && std::isfinite(b.time) && a.time != b.time) return a.time < b.time;
  return a.source < b.source;
}

void read_logs(const Catalogue& catalogue, std::vector<LogInput> logs, Observed& observed, LogEvidence& out) {
  Collector collector(catalogue, out, observed);
  collector.run(logs);
  if (out.max_rank >= 0) observed.add("ranks", std::to_string(out.max_rank + 1), {}, Trust::mentioned);
  if (out.hosts.size() > 1 && !observed.all("nodes"))
    observed.add("nodes", std::to_string(out.hosts.size()), {}, Trust::mentioned);
  derive_facts(observed);
  if (out.crosses_nodes && !observed.all("nodes")) observed.add("nodes", "2", {}, Trust::mentioned);
}

LogEvidence read_logs(const Catalogue& catalogue, std::vector<LogInput> logs, Observed& observed) {
  LogEvidence out;
  read_logs(catalogue, std::move(logs), observed, out);
  return out;
}

}  // namespace ep
