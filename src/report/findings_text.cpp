// Findings of topology, counters and hosts for people: mark, code, sentence, evidence.
#include <fmt/format.h>

#include "base/text.h"
#include "report/topology_text.h"

namespace ep {

std::string findings_text(const std::vector<Finding>& findings, const Look& look, bool verbose) {
  std::string out;
  for (const auto& f : findings) {
    if (f.severity == Severity::info && !verbose) continue;
    std::string line = fmt::format("{}: {}", f.code, title_of(f, look.lang));
    if (!f.cause.empty()) line += (look.lang == Lang::zh ? "；" : "; ") + cause_of(f, look.lang);
    out += fmt::format("{} {}\n", severity_mark(look, f.severity), wrap(line, look.width - 8, 8));
    size_t shown = 0;
    for (const auto& e : f.evidence) {
      if (e.text.empty() || (!verbose && shown++ >= 3)) continue;
      out += look.paint(Style::dim, fmt::format("        {}{}: {}", e.source,
                                                e.line ? fmt::format(":{}", e.line) : "", e.text)) +
             "\n";
    }
  }
  return out;
}

}  // namespace ep
