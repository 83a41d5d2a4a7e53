#include "doctor/rank.h"

#include <re2/re2.h>

#include <cmath>
#include <limits>

#include "base/text.h"

namespace ep {

namespace {

/// Days since 1970-01-01 (proleptic Gregorian).
long days(int y, int m, int d) {
  y -= m <= 2;
  const long era = (y >= 0 ? y : y - 399) / 400;
  const unsigned yoe = unsigned(y - era * 400);
  const unsigned doy = unsigned((153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1);
  const unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + long(doe) - 719468;
}

double seconds(int y, int mo, int d, int h, int mi, double s) {
  return double(days(y, mo, d)) * 86400 + h * 3600 + mi * 60 + s;
}

}  // namespace

LineTag line_tag(std::string_view line) {
  static const re2::RE2 kRank(
      R"((?i)^\W{0,8}(?:\x1b\[[0-9;]*m)*\[?\(?(?:rank|default|global rank|r)[ _:]?(\d+)\]?:?)");
  static const re2::RE2 kRankAnywhere(R"((?i)[\[( ]rank[ =:]*(\d+)[\]), ])");
  static const re2::RE2 kEngine(R"(\(((?:EngineCore|Worker|APIServer|RayWorker|VllmWorker|pid)\w*)[^)]*\))");
  static const re2::RE2 kSglang(R"(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ((?:(?:DP|TP|EP|PP)\d+ ?)+)\])");
  static const re2::RE2 kNccl(R"(([A-Za-z0-9][\w.-]*):(\d+):(\d+) \[(\d+)\] (?:\S+:\d+ )?NCCL)");
  static const re2::RE2 kNode(R"(^((?:node|host|worker|pod|gpu|b|n)[\w.-]*\d)\s*[:|>] )");
  static const re2::RE2 kPdsh(R"(^([a-z][\w.-]*\d[\w.-]*): )");
  std::string_view head = line.substr(0, 240);
  LineTag tag;
  std::string a, b, c, d;
  if (re2::RE2::PartialMatch(head, kNccl, &a, &b, &c, &d)) {
    tag.host = a;
    tag.who = a + ":" + b + " [" + d + "]";
  } else if (re2::RE2::PartialMatch(head, kNode, &a) || re2::RE2::PartialMatch(head, kPdsh, &a)) {
    tag.host = a;
    tag.who = a;
  }
  if (re2::RE2::PartialMatch(head, kRank, &a) || re2::RE2::PartialMatch(head, kRankAnywhere, &a)) {
    if (auto n = parse_int(a)) tag.rank = int(*n);
    tag.who = (tag.host.empty() ? "" : tag.host + " ") + "rank " + a;
  } else if (re2::RE2::PartialMatch(head, kEngine, &a) || re2::RE2::PartialMatch(head, kSglang, &a)) {
    tag.who = (tag.host.empty() ? "" : tag.host + " ") + std::string(trim(a));
  }
  return tag;
}

std::string_view past_prefix(std::string_view line) {
  static const re2::RE2 kPrefix(
      R"((?:\s+|>|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?: (?:stdout|stderr) [FP])?\s)"
      R"(|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d:\d\d \S+ [^\s:]+:\s)"
      R"(|\[(?:rank ?|default)?\d+(?:,\d+)?\](?:<\w+>)?:?|\[pod/[^\]]+\]|\((?:[\w ]+ )?pid=\d+[^)]*\))"
      R"(|\d{1,4}:\s|[a-z][\w.-]*\d[\w.-]*:\s|[\w.-]{1,60}\s+\|\s|#\d+ \d+\.\d+\s))");
  re2::StringPiece rest(line.data(), line.size());
  for (int i = 0; i < 6 && re2::RE2::Consume(&rest, kPrefix); ++i) {
  }
  return {rest.data(), rest.size()};
}

double line_time(std::string_view line) {
  static const re2::RE2 kIso(R"((\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d(?:[.,]\d+)?))");
  static const re2::RE2 kShort(R"(\b(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d(?:[.,]\d+)?))");
  static const re2::RE2 kGlog(R"(^\W{0,3}[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?))");
  static const re2::RE2 kSyslog(
      R"(\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(\d{1,2}) (\d\d):(\d\d):(\d\d))");
  static const re2::RE2 kKernel(R"(^\[ *(\d+\.\d+)\])");
  std::string_view head = line.substr(0, 160);
  int y, mo, d, h, mi;
  std::string s, month;
  auto number = [](std::string t) {
    for (char& c : t)
      if (c == ',') c = '.';
    return parse_double(t).value_or(0);
  };
  if (re2::RE2::PartialMatch(head, kIso, &y, &mo, &d, &h, &mi, &s))
    return seconds(y, mo, d, h, mi, number(s));
  if (re2::RE2::PartialMatch(head, kShort, &mo, &d, &h, &mi, &s) ||
      re2::RE2::PartialMatch(head, kGlog, &mo, &d, &h, &mi, &s))
    return seconds(2000, mo, d, h, mi, number(s));
  if (re2::RE2::PartialMatch(head, kSyslog, &month, &d, &h, &mi, &s)) {
    static const std::string kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
    return seconds(2000, int(kMonths.find(month) / 3) + 1, d, h, mi, number(s));
  }
  if (re2::RE2::PartialMatch(head, kKernel, &s)) return number(s);
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ep
