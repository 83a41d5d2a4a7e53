// Environment variables in a text: `env`, export lines, Dockerfile ENV, a service's file.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "facts/text_host.h"
#include "host/paste.h"

namespace ep {

void read_environment(std::string_view text, const std::string& source, Facts& facts) {
  (void)source;
  for (std::string_view raw : lines(text)) {
    std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    for (std::string_view head : {"export ", "declare -x ", "ENV ", "- "})
      if (starts_with(t, head)) t = trim(t.substr(head.size()));
    size_t eq = t.find('=');
    if (eq == std::string_view::npos || eq == 0 || eq > 100) continue;
    std::string_view key = t.substr(0, eq);
    if (!std::all_of(key.begin(), key.end(),
                     [](unsigned char c) { return std::isupper(c) || std::isdigit(c) || c == '_'; }))
      continue;
    std::string_view value = trim(t.substr(eq + 1));
    // A shell's comment begins at a # behind a blank, outside of quotes.
    if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
      const size_t close = value.find(value[0], 1);
      const std::string_view rest =
          close == std::string_view::npos ? std::string_view("?") : trim(value.substr(close + 1));
      if (rest.empty() || rest[0] == '#') value = value.substr(1, close - 1);
    } else {
      for (size_t hash = value.find('#'); hash != std::string_view::npos; hash = value.find('#', hash + 1))
        if (hash == 0 || value[hash - 1] == ' ' || value[hash - 1] == '\t') {
          value = trim(value.substr(0, hash));
          break;
        }
    }
    facts.environment[std::string(key)] = std::string(value);
  }
}

}  // namespace ep
