// Finding and Verdict: what checks, the topology, the doctor, verify and bench conclude. Renderers read them;
// nothing else.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace ep {

enum class Severity { info, warn, fail };

struct Evidence {
  std::string source;  ///< file, probe or fact name
  int line = 0;        ///< 1-based; 0 when the source has no lines
  std::string text;    ///< the line or value itself
};

struct Finding {
  std::string code;  ///< stable id: a problem kind, a topology code, a check id
  Severity severity = Severity::info;
  double confidence = 1.0;             ///< 0..1, computed from counted evidence
  std::string title;                   ///< one line
  std::string cause;                   ///< at most two sentences
  std::string title_zh, cause_zh;      ///< the same in Chinese; empty: not translated
  std::vector<std::string> fix;        ///< commands or acts, in order
  std::vector<Evidence> evidence;      ///< what proves it
  std::vector<std::string> ruled_out;  ///< "KIND: by what"
  std::string next;                    ///< the cheapest next observation or command
};

/// Title and cause in the language of the reader; English where there is no Chinese.
inline const std::string& title_of(const Finding& f, Lang lang) {
  return lang == Lang::zh && !f.title_zh.empty() ? f.title_zh : f.title;
}
inline const std::string& cause_of(const Finding& f, Lang lang) {
  return lang == Lang::zh && !f.cause_zh.empty() ? f.cause_zh : f.cause;
}

/// Missing evidence is never pass: it is unknown, with the reason.
enum class Verdict { pass, warn, fail, skip, not_run, unknown };

struct Outcome {
  Verdict verdict = Verdict::unknown;
  std::string reason;  ///< required for everything but pass
};

std::string_view to_string(Severity s);  ///< info warn fail
std::string_view to_string(Verdict v);   ///< PASS WARN FAIL SKIP NOT_RUN UNKNOWN
/// The worst of two for a summary line: fail > unknown > warn > not_run > skip > pass.
Verdict worst(Verdict a, Verdict b);

}  // namespace ep
