// See paste.h. Cuts texts by the rules of paste_rules.h and sorts the pieces by host.
#include "host/paste.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "base/text.h"
#include "host/paste_forms.h"
#include "host/paste_rules.h"
#include "host/paste_system_rules.h"

namespace ep {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
size_t digit_run(std::string_view s, size_t i) {
  size_t n = 0;
  while (i + n < s.size() && digit(s[i + n])) ++n;
  return n;
}
bool any_start(std::string_view line, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(), [&](std::string_view h) { return starts_with(line, h); });
}

// "root@node7:~# nvidia-smi topo -mp" -> node7, also behind "(env)" and "[": "((vllm) ) [me@node7 ~]$"; empty
// when the line is no prompt.
std::string prompt_host(std::string_view t) {
  size_t at = t.find('@');
  if (at == std::string_view::npos || at == 0 || at > 80) return {};
  size_t from = t.find_last_of(" [()$#", at);
  from = from == std::string_view::npos ? 0 : from + 1;
  std::string_view before = trim(t.substr(0, from));
  bool user = from < at && std::all_of(t.begin() + long(from), t.begin() + long(at), [](unsigned char c) {
                return std::isalnum(c) || c == '_' || c == '-' || c == '.';
              });
  // In front stand environments in brackets, or the mark of a fenced line: no words.
  bool front = before.empty() || before[0] == '(' || before == "[" || before == "$";
  size_t end = t.find_first_of(": ]", at), mark = t.find_first_of("#$", at);
  if (!user || !front || end == std::string_view::npos || mark == std::string_view::npos || mark < end ||
      mark - end > 120)
    return {};
  return std::string(t.substr(at + 1, end - at - 1));
}

bool plain_command(std::string_view t) {
  return any_start(t,
                   {"$ ", "# nvidia", "# ib", "# show_gids", "# rdma", "# cat ", "# ls ", "> nvidia", "```"});
}

// What was typed, when the line is a prompt with a command or begins with a command's name; else empty.
std::string command_of(std::string_view t) {
  if (!prompt_host(t).empty()) {
    const size_t mark = t.find_first_of("#$", t.find('@'));
    return std::string(trim(t.substr(mark + 1)));
  }
  for (std::string_view head : {"$ ", "# ", "+ ", "> "})
    if (starts_with(t, head)) return std::string(trim(t.substr(2)));
  return any_start(t, {"ls ", "systemctl ", "sudo ", "kubectl ", "docker "}) ? std::string(t) : std::string();
}

struct Unit {
  std::string source, text;
};

constexpr size_t kShownUnread = 20;  // lines that are kept to be shown; all are counted

class Cutter {
 public:
  explicit Cutter(std::map<std::string, PastedHost>& by_host, std::vector<std::string>& order)
      : hosts_(by_host), order_(order) {}

  void cut(const Unit& unit, const std::string& file_host) {
    host_ = file_host;
    command_.clear();
    bool mp = contains(unit.source, "-mp") || contains(unit.source, "_mp");
    const PieceRule* rule = nullptr;
    int line_no = 0;
    auto all = lines(unit.text);
    for (size_t i = 0; i < all.size(); ++i) {
      line_no = int(i) + 1;
      std::string clean = clean_pasted_line(all[i].substr(0, 20000));
      PasteLine l{clean, trim(clean), {}, {}};
      if (l.text.empty()) continue;
      if (auto typed = command_of(l.text); !typed.empty()) {
        command_ = typed.substr(0, 400);  // every line behind it is held against it
        if (rule && rule->with_command) rule = nullptr;
      }
      l.command = command_;
      if (any_start(l.text, {"<?xml", "<system", "<topology", "<!DOCTYPE topology"})) {
        size_t end = i;
        while (end < all.size() && !contains(all[end], "</system>") && !contains(all[end], "</topology>"))
          ++end;
        std::string body;
        for (size_t k = i; k < std::min(end + 1, all.size()); ++k) body += std::string(all[k]) + "\n";
        const char* kind = contains(body, "<topology") ? "hwloc-xml" : "nccl-xml";
        add(kind, unit.source, line_no, body);
        i = std::min(end, all.size() - 1);
        rule = nullptr;
        continue;
      }
      if (std::string host = prompt_host(l.text); !host.empty()) {
        host_ = file_host.empty() ? host : file_host;
        mp = contains(l.text, "-mp");
        rule = nullptr;
        ask(l.text, line_no);
        continue;
      }
      l.words = split_ws(l.text);
      if (answered(l, unit.source)) {
        rule = nullptr;
        continue;
      }
      if (rule && !rule->weak && rule->more(l)) {
        append(clean);
        continue;
      }
      const PieceRule* next = nullptr;
      for (const PieceRule& r : piece_rules())
        if (r.start && r.start(l)) {
          next = &r;
          break;
        }
      if (rule && rule->weak && (!next || next == rule) && rule->more(l)) {
        append(clean);
        continue;
      }
      if (next) {
        rule = next;
        const bool fresh = open(*rule, unit.source, line_no, clean, mp);
        if (fresh && rule->with_command && !command_.empty())
          target().pieces.back().text = "$ " + command_ + "\n" + clean + "\n";
        continue;
      }
      if (contains(l.text, "topo -mp")) mp = true;
      if (plain_command(l.text)) {
        ask(l.text, line_no);
        continue;
      }
      note_unread(line_no, l.text);
      // A line of prose inside a table ends it, one strange line does not.
      if (rule && ++strange_ > 2) rule = nullptr;
    }
  }

 private:
  PastedHost& target() {
    auto [it, fresh] = hosts_.try_emplace(host_);
    if (fresh) {
      it->second.name = host_;
      order_.push_back(host_);
    }
    return it->second;
  }
  /// A prompt or "$ " line: what its output is, if only the command tells.
  void ask(std::string_view line, int line_no) {
    asked_ = asked_by(typed_command(line));
    asked_line_ = line_no;
    answers_ = 0;
  }
  /// Takes a line as the answer to the last command.
  bool answered(const PasteLine& l, const std::string& source) {
    if (!asked_.kind) return false;
    const bool refused = contains(l.text, "No such file") || contains(l.text, "ommand not found");
    if (refused || answers_ >= asked_.most || !asked_.line(l) || !typed_command(l.text).empty()) {
      asked_ = {};
      return false;
    }
    if (answers_++ == 0)
      add(asked_.kind, source, asked_line_, asked_.first.empty() ? std::string() : asked_.first + "\n");
    target().pieces.back().text += asked_.head + std::string(l.text) + "\n";
    return true;
  }
  void note_unread(int line, std::string_view text) {
    PastedHost& h = target();
    ++h.unread_lines;
    if (h.unread.size() < kShownUnread) h.unread.push_back({line, std::string(text.substr(0, 120))});
  }
  void add(const char* kind, const std::string& source, int line, std::string text) {
    target().pieces.push_back({kind, source, line, std::move(text)});
    strange_ = 0;
  }
  // True when it began a piece, false when the line went to one that gathers.
  bool open(const PieceRule& r, const std::string& source, int line, const std::string& text, bool mp) {
    strange_ = 0;
    auto& pieces = target().pieces;
    std::string shown = source;
    if (mp && std::string_view(r.kind.kind) == "nvidia-smi-topo" && !contains(shown, "-mp"))
      shown += " (-mp)";
    if (r.gather) {
      auto [it, fresh] = gathered_.try_emplace({host_, r.kind.kind, shown}, pieces.size());
      if (!fresh) {
        pieces[it->second].text += text + "\n";
        last_ = it->second;
        return false;
      }
    }
    pieces.push_back({r.kind.kind, shown, line, text + "\n"});
    last_ = pieces.size() - 1;
    return true;
  }
  void append(const std::string& text) {
    strange_ = 0;
    auto& pieces = target().pieces;
    if (last_ < pieces.size()) pieces[last_].text += text + "\n";
  }

  std::map<std::string, PastedHost>& hosts_;
  std::vector<std::string>& order_;
  std::map<std::array<std::string, 3>, size_t> gathered_;  // host, kind, source -> piece
  std::string host_, command_;
  Asked asked_;
  int asked_line_ = 0, answers_ = 0;
  size_t last_ = 0;
  int strange_ = 0;
};

std::vector<std::string> stem_tokens(const std::string& path) {
  std::string stem = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.') == std::string::npos ? stem.size() : stem.rfind('.'));
  std::vector<std::string> out;
  std::string word;
  for (char c : stem) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') {
      if (!word.empty()) out.push_back(lower(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(lower(word));
  return out;
}

// Words in a file name that tell the form of an output, not a host.
bool form_word(const std::string& w) {
  static const std::set<std::string> kForms = {
      "m",   "mp",     "pasted", "one", "v",   "vv",   "verbose", "full",   "raw",   "clean",
      "out", "output", "txt",    "log", "cut", "old",  "new",     "before", "after", "copy",
      "p2p", "l",      "q",      "br",  "nn",  "addr", "link",    "query",  "table", "list"};
  return kForms.count(w) > 0;
}

std::string without_digits(const std::string& s) {
  std::string out;
  for (char c : s)
    if (!digit(c)) out += c;
  return out;
}

// A host's driver version and the like stand in several files of one report: they tell no hosts apart.
bool is_system_kind(const std::string& kind) {
  const auto& rules = system_rules();
  return std::any_of(rules.begin(), rules.end(), [&](const PieceRule& r) { return kind == r.kind.kind; });
}

// Which host a file belongs to, when several files hold the same kind under names that differ by more than
// form.
std::map<std::string, std::string> hosts_by_file_name(
    const std::map<std::string, std::set<std::string>>& sources_of_kind,
    const std::map<std::string, int>& families) {
  std::map<std::string, std::string> out;
  for (const auto& row : sources_of_kind) {
    const std::string& kind = row.first;
    const std::set<std::string>& sources = row.second;
    if (sources.size() < 2 || kind == "log" || kind == "environment" || kind == "collect_env") continue;
    if (is_system_kind(kind)) continue;
    // file0.txt, file1.txt ... with one output each are numbered files, not numbered hosts.
    auto family = families.find(without_digits(*sources.begin()));
    bool numbered = std::all_of(sources.begin(), sources.end(), [&](const std::string& s) {
      return without_digits(s) == without_digits(*sources.begin());
    });
    if (numbered && family != families.end() && size_t(family->second) > sources.size()) continue;
    std::set<std::string> common;
    bool first = true;
    for (const auto& s : sources) {
      auto t = stem_tokens(s);
      std::set<std::string> mine(t.begin(), t.end()), both;
      if (first)
        both = mine;
      else
        std::set_intersection(common.begin(), common.end(), mine.begin(), mine.end(),
                              std::inserter(both, both.begin()));
      common = std::move(both);
      first = false;
    }
    for (const auto& s : sources) {
      std::vector<std::string> own;
      bool differs = false;
      for (const auto& t : stem_tokens(s)) {
        bool shared = common.count(t) > 0;
        differs |= !shared && !form_word(t);
        // "pod-a-show_gids": a shared word before the one that differs belongs to the name.
        if (!shared && !form_word(t)) own.push_back(t);
      }
      if (differs) out[s] = join(own, "-");
    }
  }
  return out;
}

}  // namespace

std::string clean_pasted_line(std::string_view line) {
  std::string s = replace_all(std::string(line), "^[[", "\x1b[");
  s = strip_ansi(s);
  std::string out;
  for (size_t i = 0; i < s.size();) {
    auto c = static_cast<unsigned char>(s[i]);
    if (c == 0xEF && i + 2 < s.size() && s[i + 1] == '\xBF' && s[i + 2] == '\xBD') {  // U+FFFD
      i += 3;
    } else if (c == 0xEF && i + 2 < s.size() && s[i + 1] == '\xBB' &&
               s[i + 2] == '\xBF') {  // byte order mark
      i += 3;
    } else if (c == 0xC2 && i + 1 < s.size() && s[i + 1] == '\xA0') {  // no-break space
      out += ' ';
      i += 2;
    } else if (c == 0xE2 && i + 2 < s.size() && s[i + 1] == '\x80' &&
               static_cast<unsigned char>(s[i + 2]) <= 0xAF) {  // en quad .. narrow no-break space
      out += static_cast<unsigned char>(s[i + 2]) == 0x8B ? "" : " ";
      i += 3;
    } else if (c == 0xE3 && i + 2 < s.size() && s[i + 1] == '\x80' &&
               s[i + 2] == '\x80') {  // ideographic space
      out += ' ';
      i += 3;
    } else if (c == '[' && digit_run(s, i + 1) > 0 && i + 1 + digit_run(s, i + 1) < s.size() &&
               s[i + 1 + digit_run(s, i + 1)] == 'm') {  // an escape sequence that lost its ESC
      i += 2 + digit_run(s, i + 1);
    } else {
      out += s[i++];
    }
  }
  return out;
}

std::vector<PastedHost> take_apart(const std::vector<std::pair<std::string, std::string>>& given) {
  std::vector<std::pair<std::string, std::string>> texts;
  std::map<std::string, int> families;
  for (const auto& [source, text] : given) {
    texts.emplace_back(source, plain_paste(text));
    ++families[without_digits(source)];
  }
  // First pass: which kinds each file holds, to see hosts in file names.
  std::map<std::string, std::set<std::string>> sources_of_kind;
  auto folder = [](const std::string& source) {
    size_t slash = source.find('/');
    return slash == std::string::npos ? std::string() : source.substr(0, slash);
  };
  std::set<std::string> folders;
  for (const auto& [source, text] : texts) {
    folders.insert(folder(source));
    std::map<std::string, PastedHost> scratch;
    std::vector<std::string> order;
    Cutter(scratch, order).cut({source, text}, "");
    for (const auto& [name, host] : scratch)
      for (const auto& p : host.pieces) sources_of_kind[folder(source) + "\n" + p.kind].insert(source);
  }
  std::map<std::string, std::string> by_file;
  for (const auto& [key, sources] : sources_of_kind) {
    std::string kind = key.substr(key.find('\n') + 1);
    for (auto& [s, h] : hosts_by_file_name({{kind, sources}}, families)) by_file.emplace(s, h);
  }
  // "node3-ibstat.txt" beside several "nodeN-topo.txt" belongs to node3, though it is the only ibstat.
  std::set<std::string> names;
  for (const auto& [s, h] : by_file)
    if (!h.empty()) names.insert(h);
  for (const auto& [source, text] : texts) {
    if (by_file.count(source)) continue;
    auto words = stem_tokens(source);
    std::string owner;
    for (const auto& n : names) {
      auto own = stem_tokens(n);
      bool all = std::all_of(own.begin(), own.end(), [&](const std::string& w) {
        return std::find(words.begin(), words.end(), w) != words.end();
      });
      if (all && n.size() > owner.size()) owner = n;
    }
    if (!owner.empty()) by_file[source] = owner;
  }
  std::map<std::string, PastedHost> hosts;
  std::vector<std::string> order;
  Cutter cutter(hosts, order);
  for (const auto& [source, text] : texts) {
    std::string host = folders.size() > 1 ? folder(source) : "";
    if (auto it = by_file.find(source); it != by_file.end() && !it->second.empty())
      host = host.empty() ? it->second : host + "/" + it->second;
    cutter.cut({source, text}, host);
  }
  // One prompt in the whole paste names the host, it does not make a second one.
  std::vector<PastedHost> out;
  if (auto main = hosts.find(""); main != hosts.end() && hosts.size() == 2) {
    std::string other = order[0].empty() ? order[1] : order[0];
    bool from_prompt = !folders.count(other) && std::none_of(by_file.begin(), by_file.end(),
                                                             [&](auto& kv) { return kv.second == other; });
    if (from_prompt) {
      PastedHost joined = std::move(main->second);
      for (auto& p : hosts[other].pieces) joined.pieces.push_back(std::move(p));
      joined.unread_lines += hosts[other].unread_lines;
      for (auto& u : hosts[other].unread)
        if (joined.unread.size() < kShownUnread) joined.unread.push_back(std::move(u));
      joined.name = "";
      out.push_back(std::move(joined));
      return out;
    }
  }
  if (auto main = hosts.find(""); main != hosts.end() && !main->second.pieces.empty())
    out.push_back(std::move(main->second));
  int stray = 0;
  for (const auto& name : order) {
    if (name.empty() && !out.empty()) continue;
    auto& h = hosts[name];
    if (h.pieces.empty()) {
      stray += h.unread_lines;
      continue;
    }
    out.push_back(std::move(h));
  }
  if (out.empty()) out.emplace_back();
  out[0].unread_lines += stray;
  return out;
}

}  // namespace ep
