#include "doctor/problem_lint.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/judge.h"

namespace ep {

namespace {

class Lint {
 public:
  Lint(const Catalogue& c, const std::map<std::string, std::vector<Fixture>>& f)
      : catalogue_(c), fixtures_(f) {}

  std::vector<LintMark> run() {
    for (const Problem& p : catalogue_.problems) {
      names(p);
      look_alikes(p);
      sources(p);
      texts(p);
      if (!fixtures_.empty()) fixtures(p);
    }
    for (const auto& [kind, files] : fixtures_)
      if (!catalogue_.find(kind))
        mark(true, files.front().path, "fixtures of a kind that has no problem file: " + kind);
    return std::move(marks_);
  }

 private:
  void mark(bool error, std::string where, std::string text) {
    marks_.push_back({error, std::move(where), std::move(text)});
  }

  void names(const Problem& p) {
    const std::string stem = p.file.substr(p.file.rfind('/') + 1);
    if (stem != p.kind + ".toml") mark(true, p.file, "the file name must be the kind: " + p.kind + ".toml");
    static const re2::RE2 kKind("[a-z]+\\.[a-z0-9]+(-[a-z0-9]+)*");
    if (!re2::RE2::FullMatch(p.kind, kKind))
      mark(true, p.file, "a kind is group.words-with-hyphens: " + p.kind);
    for (const auto& a : p.after_effects) {
      if (!catalogue_.find(a)) mark(false, p.file, "after_effects names an unknown kind: " + a);
      if (a == p.kind) mark(true, p.file, "a problem cannot be its own after-effect");
    }
  }

  void look_alikes(const Problem& p) {
    for (const auto& l : p.look_alikes) {
      const Problem* other = catalogue_.find(l.kind);
      if (!other) {
        mark(false, p.file, "look-alike is not in the catalogue (yet): " + l.kind);
        continue;
      }
      const auto& back = other->look_alikes;
      if (std::none_of(back.begin(), back.end(), [&](const LookAlike& b) { return b.kind == p.kind; }))
        mark(false, other->file, p.kind + " names it as a look-alike, it does not name " + p.kind);
    }
    bool decisive = !p.require.empty();
    for (const auto& s : p.signatures) decisive |= s.decisive;
    for (const auto& r : p.rules) decisive |= r.decisive;
    if (!decisive && p.look_alikes.empty())
      mark(true, p.file, "only supporting evidence and no look-alike: nothing could decide");
  }

  void sources(const Problem& p) {
    static const re2::RE2 kUrl("https://[a-zA-Z0-9.-]+/\\S+"), kDate("20\\d\\d(-\\d\\d(-\\d\\d)?)?");
    for (const auto& s : p.sources) {
      if (!re2::RE2::FullMatch(s.url, kUrl)) mark(true, p.file, "a source is an https link: " + s.url);
      if (!re2::RE2::FullMatch(s.date, kDate))
        mark(true, p.file, "a date is YYYY, YYYY-MM or YYYY-MM-DD: " + s.date);
    }
    if (!re2::RE2::FullMatch(p.first_seen, kDate))
      mark(true, p.file, "first_seen is YYYY-MM: " + p.first_seen);
  }

  static int sentences(std::string_view text) {
    int n = 0;
    for (size_t i = 0; i < text.size(); ++i)
      n += (text[i] == '.' || text[i] == '!' || text[i] == '?') &&
           (i + 1 == text.size() ||
            (text[i + 1] == ' ' && i + 2 < text.size() && isupper(static_cast<unsigned char>(text[i + 2]))));
    return n;
  }

  void texts(const Problem& p) {
    if (p.title.en.size() > 120) mark(true, p.file, "the title is longer than 120 bytes");
    if (sentences(p.cause.en) > 3) mark(false, p.file, "the cause has more than two sentences");
    static const re2::RE2 kChanging(
        R"((\.(cpp|cu|cuh|h|py|c):\d+|0x[0-9a-f]{6,}|/home/\w+|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}))");
    for (const auto& s : p.signatures)
      for (const auto& l : s.pattern.literals)
        if (re2::RE2::PartialMatch(l, kChanging))
          mark(true, p.file + ":" + std::to_string(s.line_in_file),
               "a literal that changes with versions or machines: " + l);
  }

  void fixtures(const Problem& p) {
    auto it = fixtures_.find(p.kind);
    if (it == fixtures_.end()) {
      mark(true, p.file, "no fixtures in test/problems/" + p.kind);
      return;
    }
    bool hit = false, miss = false;
    for (const Fixture& f : it->second) {
      const std::string name = f.path.substr(f.path.rfind('/') + 1);
      const bool is_hit = starts_with(name, "hit");
      (is_hit ? hit : miss) = true;
      check(p, f, is_hit);
    }
    if (!hit) mark(true, p.file, "no hit fixture");
    if (!miss) mark(true, p.file, "no miss fixture");
    unseen_literals(p, it->second);
  }

  void check(const Problem& p, const Fixture& f, bool is_hit) {
    Observed observed;
    std::vector<LogInput> logs;
    logs.push_back({f.path, read_text(f.text)});
    const LogEvidence evidence = read_logs(catalogue_, std::move(logs), observed);
    const Diagnosis d = judge(catalogue_, evidence, observed, Lang::en);
    std::string got;
    bool found = false;
    for (const Finding& x : d.findings) {
      if (x.severity == Severity::info && !(is_hit && p.severity == Severity::info)) continue;
      if (got.empty() && is_hit) found = x.code == p.kind;
      if (!is_hit) found |= x.code == p.kind;
      got += (got.empty() ? "" : ", ") + x.code + " " + std::to_string(x.confidence).substr(0, 4);
    }
    if (is_hit && !found)
      mark(true, f.path,
           "the first finding must be " + p.kind + ", it is " + (got.empty() ? "nothing" : got));
    if (!is_hit && found) mark(true, f.path, p.kind + " must not be found: " + got);
  }

  /// A signature that no hit fixture shows was never seen to work: say so.
  void unseen_literals(const Problem& p, const std::vector<Fixture>& files) {
    for (const Signature& s : p.signatures) {
      bool seen = false;
      for (const Fixture& f : files)
        if (contains(f.path, "/hit"))
          for (std::string_view line : lines(f.text)) seen |= s.pattern.matches(line);
      if (!seen)
        mark(false, p.file + ":" + std::to_string(s.line_in_file),
             "no hit fixture shows this signature: " + s.pattern.literals[0]);
    }
  }

  const Catalogue& catalogue_;
  const std::map<std::string, std::vector<Fixture>>& fixtures_;
  std::vector<LintMark> marks_;
};

}  // namespace

std::vector<LintMark> lint_problems(const Catalogue& catalogue,
                                    const std::map<std::string, std::vector<Fixture>>& fixtures) {
  return Lint(catalogue, fixtures).run();
}

}  // namespace ep
