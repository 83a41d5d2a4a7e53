// Pasted variables: `export` lines and scripts, env-files, dumps of `env`. Values as a shell would hand them
// on; nothing is expanded.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "facts/text_host.h"
#include "host/paste.h"

namespace ep {
namespace {

bool is_name(std::string_view s) {
  return !s.empty() && s.size() <= 100 && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isupper(c) || std::isdigit(c) || c == '_';
  });
}

/// The next word of a shell line from `at`: quotes taken off, ended by a blank, ";" or a comment.
std::string shell_word(std::string_view s, size_t& at) {
  std::string out;
  char quote = 0;
  for (; at < s.size(); ++at) {
    const char c = s[at];
    if (quote) {
      if (c == quote)
        quote = 0;
      else if (c == '\\' && quote == '"' && at + 1 < s.size() && contains("\"\\$`", s.substr(at + 1, 1)))
        out += s[++at];
      else
        out += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '\\' && at + 1 < s.size()) {
      out += s[++at];
    } else if (c == ' ' || c == '\t' || c == ';') {
      break;
    } else {
      out += c;
    }
  }
  return out;
}

/// `export A=1 B="2 3"  # why`: every assignment of the line.
void exported(std::string_view words, Facts& facts) {
  for (size_t at = 0; at < words.size();) {
    if (words[at] == ' ' || words[at] == '\t' || words[at] == ';') {
      ++at;
      continue;
    }
    if (words[at] == '#') return;
    const size_t begin = at;
    const std::string word = shell_word(words, at);
    const size_t eq = word.find('=');
    if (at == begin) ++at;
    if (eq != word.npos && is_name(std::string_view(word).substr(0, eq)))
      facts.environment[word.substr(0, eq)] = word.substr(eq + 1);
  }
}

/// A value outside a shell keeps its blanks; a comment ends it, quotes around all of it go.
std::string plain_value(std::string_view v) {
  v = trim(v);
  if (v.size() >= 2 && (v[0] == '"' || v[0] == '\'')) {
    const size_t end = v.find(v[0], 1);
    const std::string_view behind = end == v.npos ? v : trim(v.substr(end + 1));
    if (end != v.npos && (behind.empty() || behind[0] == '#')) return std::string(v.substr(1, end - 1));
  }
  for (size_t i = 1; i < v.size(); ++i)
    if (v[i] == '#' && (v[i - 1] == ' ' || v[i - 1] == '\t')) return std::string(trim(v.substr(0, i)));
  return !v.empty() && v[0] == '#' ? std::string() : std::string(v);
}

}  // namespace

void read_environment(std::string_view text, const std::string& source, Facts& facts) {
  (void)source;
  for (std::string_view raw : lines(text)) {
    const std::string line = clean_pasted_line(raw);
    std::string_view t = trim(line);
    bool shell = false;
    for (std::string_view head : {"export ", "declare -x "})
      if (starts_with(t, head)) {
        shell = true;
        t = trim(t.substr(head.size()));
      }
    if (shell) {
      exported(t, facts);
      continue;
    }
    for (std::string_view head : {"ENV ", "- "})
      if (starts_with(t, head)) t = trim(t.substr(head.size()));
    const size_t eq = t.find('=');
    if (eq == t.npos || !is_name(t.substr(0, eq))) continue;
    facts.environment[std::string(t.substr(0, eq))] = plain_value(t.substr(eq + 1));
  }
}

}  // namespace ep
