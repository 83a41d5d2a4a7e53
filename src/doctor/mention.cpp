#include "doctor/mention.h"

#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "doctor/rank.h"

namespace ep {

namespace {

constexpr size_t kMost = 2048;  // of a line; what follows is not prose that a person typed

bool matches(std::string_view text, const re2::RE2& re) {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), re);
}

/// Words that sentences are held together with; log lines have few.
bool joins(std::string_view word) {
  static const std::string_view kWords[] = {
      "a",    "about", "after", "all",  "an",    "and", "any",   "are",   "as",   "at",   "be",    "because",
      "been", "but",   "by",    "can",  "did",   "do",  "does",  "for",   "from", "had",  "has",   "have",
      "how",  "i",     "i'm",   "if",   "in",    "is",  "it",    "its",   "like", "my",   "not",   "now",
      "of",   "on",    "only",  "or",   "our",   "so",  "some",  "still", "that", "the",  "them",  "then",
      "they", "this",  "to",    "used", "was",   "we",  "we're", "were",  "what", "when", "where", "which",
      "who",  "why",   "will",  "with", "would", "you", "your"};
  const std::string low = lower(word);
  return std::binary_search(std::begin(kWords), std::end(kWords), std::string_view(low));
}

bool word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\'';
}

/// It has the words of a sentence: at least `least`, a fifth of them joining ones.
bool reads_like_prose(std::string_view text, int least = 5) {
  int words = 0, joining = 0;
  for (size_t i = 0; i < text.size();) {
    if (!word_byte(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && word_byte(text[end])) ++end;
    const char after = end < text.size() ? text[end] : ' ', before = i > 0 ? text[i - 1] : ' ';
    const bool plain = std::string_view(" ,.;:!?)").find(after) != std::string_view::npos &&
                       std::string_view(" (").find(before) != std::string_view::npos;
    words += plain;
    joining += plain && joins(text.substr(i, end - i));
    i = end;
  }
  return words >= least && joining >= 2 && joining * 5 >= words;
}

/// Level words, exception names, places in a source and process tags are a program's.
bool program_prefix(std::string_view line) {
  static const re2::RE2 kProgram(
      R"((?:^|[\s\[(])(?:WARN(?:ING)?|ERROR|FATAL|FAILED|INFO|DEBUG|TRACE|CRITICAL|NOTE)\b[\s:\]])"
      R"(|^\W*(?:E {2,})?\w*(?:[\w.]+(?:Error|Exception|Warning|Interrupt)|[Ee]rror|[Ff]atal|[Ff]ailed|[Ww]arning): )"
      R"(|^\W*(?:what\(\):|terminate called|File "|at /|#\d+ |[$#%>] ?\w+ )|\w+\.(?:cpp|cc|cu|cuh|h|hpp|py|c|go|rs):\d+)"
      R"(|\bpid=\d+|NCCL (?:WARN|INFO)|\bDeepEP error|^\W*\[?rank ?\d+\]?:|^\[ *\d+\.\d{4,}\])");
  return matches(line, kProgram);
}

/// `...`, "..." of two words or more, and their typographic kin blanked; the rest keeps its place.
std::string without_quotes(std::string_view text) {
  std::string out(text);
  const auto blank = [&](std::string_view open, std::string_view close) {
    for (size_t at = 0; (at = out.find(open, at)) != out.npos;) {
      const size_t end = out.find(close, at + open.size());
      if (end == out.npos) return;
      const std::string_view inside = std::string_view(out).substr(at + open.size(), end - at - open.size());
      if (open == "`" || contains(trim(inside), " "))  // CMake's "NVSHMEM" is a name, no quotation
        std::fill(out.begin() + long(at), out.begin() + long(end + close.size()), '_');
      at = end + close.size();
    }
  };
  blank("`", "`");
  blank("\"", "\"");
  blank("\xE2\x80\x9C", "\xE2\x80\x9D");
  blank("\xC2\xAB", "\xC2\xBB");
  return out;
}

/// Where the sentences of `outside` begin and end; marks inside quotes are blanked already.
std::vector<std::pair<size_t, size_t>> sentences(std::string_view outside) {
  std::vector<std::pair<size_t, size_t>> out;
  size_t from = 0;
  for (size_t i = 0; i < outside.size(); ++i) {
    const bool mark = outside[i] == '.' || outside[i] == '?' || outside[i] == '!';
    if (!mark || (i + 1 < outside.size() && outside[i + 1] != ' ')) continue;
    // "1. Fabric", "e.g. this": a short word before the dot ends no sentence.
    const size_t word = outside.find_last_of(" (", i);
    if (outside[i] == '.' && i - (word == outside.npos ? 0 : word) <= 3) continue;
    out.emplace_back(from, i + 1);
    from = i + 1;
  }
  if (from < outside.size()) out.emplace_back(from, outside.size());
  return out;
}

/// Told as past and over. "Since then we get it again" is no history.
bool history(std::string_view sentence) {
  static const re2::RE2 kOver(
      R"((?i)\b(?:went|gone|go(?:es)?) away\b|\b(?:disappeared|vanished|cured|history|historical\w*)\b|\b(?:was|were|got|been|is|are) (?:since |now |then |all |long |later )?(?:fixed|solved|resolved|mended|repaired|replaced|cured)\b|\bnever (?:came|come) back\b|\b(?:we|they|I|he|she|vendor|team) (?:\w+ )?(?:fixed|solved|resolved|repaired)\b|\b(?:solid|stable|quiet|clean|fine) (?:since|ever since|from then|after that)\b|\bsince then (?:it |all |everything )?(?:is |was |has been )?(?:solid|stable|quiet|clean|fine|nothing|no)\b)");
  static const re2::RE2 kPast(
      R"((?i)\b(?:back (?:in|when|then)|at (?:the|that) time|in the past|in those days|in the old (?:days|setup|image|cluster)|(?:days|weeks|months|years?) ago|last (?:month|year|spring|summer|autumn|fall|winter|quarter)|in (?:spring|summer|autumn|winter|(?:early |late )?(?:january|february|march|april|june|july|august|september|october|november|december)|20\d\d)|earlier this year|we (?:once|used to) (?:had|have|see|saw|get|got)|the (?:famous|dreaded|infamous|notorious))\b)");
  static const re2::RE2 kAgain(
      R"((?i)\b(?:again|still|came back|comes back|is back|now (?:we|I|it|all|they)|(?:but|and) now|today)\b)");
  if (matches(sentence, kAgain)) return false;
  return matches(sentence, kOver) || matches(sentence, kPast);
}

bool spoken_of(std::string_view sentence) {
  if (history(sentence)) return true;
  static const re2::RE2 kSpokenOf(
      R"((?i)\bif (?:you|somebody|someone|anyone|anybody|one|people|users?|they|it (?:has|is|does)|there|nvshmem|nccl|a |the |this|that|not\b))"
      R"(|\b(?:you|one|they|people|somebody|someone|users?)(?:'d| would| will|'ll| may| might| can| could| should)\b)"
      R"(|\b(?:or|then|and|otherwise) (?:you|one|they|people|users) (?:get|see|hit|run)\b)"
      R"(|\b(?:may|might|could|would|will|must|should) (?:also |then |not |never )?(?:be|see|get|end|show|print|fail|hang|appear|happen|stop|report|say|ignore)\b)"
      R"(|\b(?:typical|usual|classic|well[- ]known|famous|example|sample|known|possible|common)\w*(?: \w+)? (?:text|message|error|symptom|line|sign|output)s?\b)"
      R"(|\b(?:ever|whenever|in case|unless|otherwise|suppose|for example|for instance|e\.g\.|such as|look for|watch (?:out )?for|search for|grep for|means that|stands for)\b)"
      R"(|\b(?:wiki|docs?|documentation|manual|readme|runbook|faq|changelog|release notes?|issue tracker|thread|blog|article|paper|tutorial|guide)s? (?:says?|tells?|mentions?|claims?|lists?|describes?|has|warns?)\b)"
      R"(|\b(?:I|we|he|she|people) (?:just )?(?:read|remember|recall|heard|learn(?:ed|t))\b|\b(?:people|others|somebody|someone|some users?) (?:talk|say|report|mention|complain|had|have|hit)\w*\b|\bremember something\b)"
      R"(|\b(?:in|from) (?:(?:an)?other|old(?:er)?|earlier|previous|their) (?:issues?|threads?|tickets?|images?|releases?|versions?|teams?|clusters?)\b)"
      R"(|\b(?:no longer|not any ?more|never (?:again|seen|saw|see|appears?)|(?:do|does|did|has|have) not (?:see|seen|appear|happen|occur|come|show)\w*|(?:don't|doesn't|didn't|haven't|hasn't) (?:see|seen|appear|happen|occur|come|had)\w*|harmless|can be ignored|safe(?:ly)? (?:to )?ignored?|ignore|expected|on purpose|deliberate\w*|used to (?:be|see|get|have|hit|happen|fail|print))\b)"
      R"(|\b(?:formerly|back then|that (?:day|week|month)|incident|post-?mortem|root cause was|mentioned|impression)\b)"
      R"(|\b(?:many|most|several|some|other) (?:people|users?|teams?|folks)\b|\bwould (?:\S+ ){0,8}(?:give|cause|lead|end|result|produce|mean)\b)"
      R"(|\bwithout (?:any |a |the |ever )*_|\bno (?:more |such |single )*_)");
  return matches(sentence, kSpokenOf);
}

/// Somebody speaks: programs rarely say I or we, and tell nobody what people saw.
bool personal(std::string_view sentence) {
  static const re2::RE2 kPersonal(
      R"((?i)\b(?:I|we|our|my|you'd|you'll|people|somebody|someone|anybody|anyone|others|wiki|runbook|team|colleagues?|thread|folks|(?:went|gone) away|famous|dreaded|infamous|spring|summer|autumn|winter|incident|root cause|post-?mortem)\b|\bif you\b|\byou (?:get|see|would|will|may|might|can|could)\b)");
  return matches(sentence, kPersonal);
}

/// Rows of a list of commits or changes, and of tests that passed or were expected to fail.
bool of_a_list(std::string_view line) {
  static const re2::RE2 kChange(
      R"((?i)^\W*(?:[0-9a-f]{7,40} )?(?:\([^)]*\) )?(?:ci|docs?|fix|feat|chore|test|build|perf|refactor)(?:\([\w-]+\))?: \w)"
      R"(|^\W*[0-9a-f]{7,40} (?:\([^)]*\) )?[A-Z]\w+ \S)"
      R"(|^\s*[-*+] *(?:\[?\w+\]? ?)?(?:fix|fixe[sd]|add(?:ed|s)?|change[ds]?|remove[ds]?|avoid|handle|known|document|revert|improve|prevent)\b.{0,3}[: ])");
  static const re2::RE2 kTest(
      R"(\b(?:PASSED|XFAIL|XPASS|SKIPPED|DESELECTED)\b|\[ +OK +\]|\b(?:xfail|Passed)\b)");
  return matches(line, kChange) || matches(line, kTest);
}

/// Source lines that would print it, patterns that look for it, rows of a table of codes.
bool code_or_table(std::string_view line) {
  static const re2::RE2 kCode(
      R"(\b(?:f?printf|fputs|puts|runtime_error|(?:EP|NVSHMEM\w*|NCCL\w*|TORCH|CUDA|GTEST|DG)_\w*(?:ASSERT|CHECK|ERROR|WARN|LOG)\w*|logger\.\w+|logging\.\w+|print|raise \w+|throw [\w:]+|LOG|WARN|pytest\.raises|assertRaises\w*) ?\(.*"|std::c(?:err|out) ?<<)");
  static const re2::RE2 kPattern(
      R"x((?i)"(?:match|pattern|regexp?|expr|filter|grep|contains|search|query)" ?: ?")x"
      R"(|\b(?:match|pattern|regexp?|expr|summary|alert|description): ?['"])"
      R"(|\b(?:e?grep|rg|ack|zgrep|journalctl -g|awk|sed) (?:-\S+ |\d+ )*(?:-e ?)?['"/])");
  static const re2::RE2 kTable(
      R"(^\W*(?:[A-Za-z_]\w+\s+(?:[=:|-]+>?\s*)?)?\|?\s*(?:0x)?\d{1,4}\s*[|:)]?\s+[a-zA-Z][\w ,'()/-]{4,90}\|?\s*$)"
      R"(|^\s*(?:cuda|CUDA_|ncclr?|IBV_|NVSHMEMX?_|E[A-Z]{3})\w*\s*(?:->|=>|[=|])\s*[a-z][\w ,'()-]+$)");
  return matches(line, kCode) || matches(line, kPattern) || matches(line, kTable);
}

bool told(std::string_view sentence) {
  static const re2::RE2 kTold(
      R"((?i)\b(?:I|we|I'm|we're|I've|we've|it|this|they|always|now|job|jobs|run|runs|server|process\w*|rank\w*|nodes?|pods?|container|build|import|install\w*|training|inference|serving|test\w*|vllm|sglang|deepep|deep_ep|nccl|nvshmem|workers?|everything|nothing|both|each)\b[^.?!]{0,48}?)"
      R"(\b(?:gets?|getting|got|sees?|seeing|saw|hits?|hitting|fails?|failed|failing|crash\w*|hangs?|hung|hanging|dies|died|dying|prints?|throws?|threw|stuck|stops?|stopped|aborts?|aborted|errors? out|run(?:s|ning)? into|ran into|encounter\w*|facing|broken?|breaks|exits?|exited|raises?)\b)"
      R"(|\b(?:I|we|it|this) [^.?!]{0,20}\b(?:reports?|complains?|says|gives?)\b)"
      R"(|\b(?:fails?|failed|failing|crash\w*|dies|died|hangs?|stops?|aborts?|exits?) (?:with|at|in|after|immediately|every)\b|\b(?:error|failure|hang|crash) (?:when|while|on|during|with|in)\b|\b(?:no|without) (?:any |more |further )*output\b|\bnever (?:returns?|finish\w*|ends?|comes? back|starts?)\b|\bhelp\b|\bhow (?:do|can|to) (?:I|we)?\b)");
  return matches(sentence, kTold);
}

}  // namespace

bool prose_line(std::string_view line) {
  line = past_prefix(line.substr(0, kMost));
  return reads_like_prose(line) && !program_prefix(without_quotes(line));
}

bool harmless(std::string_view line) {
  static const re2::RE2 kHarmless(
      R"(-- (?:Performing Test|Looking for|Could NOT find|Check)|module verification failed: signature)"
      R"(|HTTP/\d\.\d" [45]\d\d|pip's dependency resolver does not currently|\[c10d\] The IPv6 network addr|\[c10d\] The hostname of)"
      R"(|, retrying\b|\bWARNING: Retrying|^\s*(?:-\w, +)?--[\w-]+[ =,<\[]|Ignore import error|debconf: )"
      R"(|Running pip as the 'root' user|Startup probe failed|Can't uninstall|\bcollected \d+ items)");
  return matches(past_prefix(line.substr(0, kMost)), kHarmless);
}

bool guide_title(std::string_view line) {
  static const re2::RE2 kTitle(
      R"((?i)^(?:#+|=+|subject:|title:)\s*.*\b(?:faqs?|frequently asked|trouble-?shooting|runbook|playbook|release notes?|change ?log|what's new|known (?:issues|problems|errors)|common (?:issues|problems|errors)|error (?:codes?|messages)|cheat ?sheet|guide|how ?to)\b)");
  return matches(past_prefix(line.substr(0, 200)), kTitle);
}

bool tells_own_trouble(std::string_view line) {
  static const re2::RE2 kOwn(
      R"((?i)\b(?:I|we|my|our|us|me|I'm|we're|I've|we've)\b|\bany (?:idea|help|hint|suggestion|clue)|\bplease help|\b(?:not sure|no idea) (?:what|why|how)\b|\bthanks\b)");
  return matches(past_prefix(line.substr(0, kMost)), kOwn) && tells_trouble(line);
}

bool tells_trouble(std::string_view line) {
  static const re2::RE2 kQuestion(R"(^\W*Q\d*[:.)])");
  line = past_prefix(line.substr(0, kMost));
  if (matches(line, kQuestion) || of_a_list(line)) return false;
  if (program_prefix(line)) return false;
  const std::string outside = without_quotes(line);
  for (const auto& [from, to] : sentences(outside)) {
    const std::string_view one = std::string_view(outside).substr(from, to - from);
    if (reads_like_prose(one) && told(one) && !spoken_of(one)) return true;
  }
  return false;
}

void Reading::line(std::string_view text, int64_t number) {
  static const re2::RE2 kModal(
      R"((?i)\b(?:you|one|users?|it|this|they|system|command|output|log|dmesg|kernel|tool)\b.{0,40}\b(?:may|might|could|would|can|should|will)\b.{0,80}:\s*$|\b(?:may|might|could|would|should) (?:see|get|find|show|print|report|appear|fail|look|display)\b.{0,80}:\s*$)");
  static const re2::RE2 kLike(
      R"((?i)\b(?:similar to|such as|for example|for instance|an example of|e\.g\.|typical(?:ly)?|sample)\b.{0,60}:\s*$|\bexamples?:\s*$)");
  static const re2::RE2 kAdvice(
      R"((?i)\b(?:you|your|must|should|see also|refer to|note that|make sure|ensure|by default|recommended|supported|required|can be)\b)");
  const std::string_view plain = trim(past_prefix(text.substr(0, kMost)));
  if (lines_ < 5 && guide_title(plain)) title_ = true;
  const bool fence = starts_with(plain, "```") || starts_with(plain, "~~~");
  if (open_) {
    Example& now = examples_.back();
    const bool begun = now.to >= now.from;
    const bool ends = fence ? fence_ : fence_ ? false : plain.empty() ? begun : begun && prose_line(plain);
    if (fence && !fence_)
      fence_ = true;
    else if (ends || number - now.from > 60)
      open_ = fence_ = false;
    else if (!plain.empty())
      now.to = number;
  }
  if (plain.empty()) return;
  ++lines_;
  const bool prose = prose_line(plain);
  prose_ += prose;
  const bool mine = tells_own_trouble(plain);
  told_ = told_ || mine || tells_trouble(plain);
  own_ = own_ || mine;
  if (prose) advice_ += matches(plain, kAdvice) || spoken_of(plain);
  if (open_ || mine || !ends_with(plain, ":")) return;
  const std::string outside = without_quotes(plain);
  if (program_prefix(outside)) return;
  const bool modal = matches(outside, kModal);
  if (!modal && !matches(outside, kLike)) return;
  examples_.push_back({number + 1, number, modal ? Voice::mentioned : Voice::quoted});
  open_ = true;
}

Voice Reading::shown_as(int64_t number) const {
  for (const Example& e : examples_)
    if (number >= e.from && number <= e.to) return e.voice;
  return Voice::machine;
}

bool Reading::page() const {
  return title_ || (!own_ && prose_ >= 4 && prose_ * 2 >= lines_ && advice_ >= 2);
}

Voice voice(std::string_view line, const LinePattern& pattern) {
  static const re2::RE2 kReports(
      R"((?i)^\W*(?:\[\S+\] *)?(?:fatal|error|failed|failure|msg|stderr)\b[^`]{0,40}?[:!])");
  if (line.size() > kMost) return Voice::machine;
  line = past_prefix(line);
  if (matches(line, kReports)) return Voice::machine;
  if (of_a_list(line)) return Voice::mentioned;
  if (code_or_table(line)) return Voice::quoted;
  if (!reads_like_prose(line, 4)) return Voice::machine;
  const std::string outside = without_quotes(line);
  if (program_prefix(outside)) return Voice::machine;
  auto parts = sentences(outside);
  const auto holds = [&](const auto& part) {
    return pattern.matches(line.substr(part.first, part.second - part.first));
  };
  if (std::none_of(parts.begin(), parts.end(), holds)) parts = {{0, line.size()}};
  Voice heard = Voice::machine;
  for (const auto& part : parts) {
    if (!holds(part)) continue;
    const std::string_view bare = std::string_view(outside).substr(part.first, part.second - part.first);
    const bool in_quotes = !pattern.matches(bare);
    if (!reads_like_prose(bare, 4))
      return in_quotes && reads_like_prose(outside) ? Voice::quoted : Voice::machine;
    if (spoken_of(bare) && (in_quotes || personal(outside))) {
      heard = Voice::mentioned;
      continue;
    }
    if (told(bare)) return Voice::told;
    if (!in_quotes) return Voice::machine;
    heard = Voice::quoted;
  }
  return heard;
}

}  // namespace ep
