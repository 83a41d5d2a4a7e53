// The one-file form of a snapshot, made to be read and reviewed as text:
//   epready-snapshot 1
//   manifest SIZE      then SIZE bytes of JSON and a newline
//   text PATH CONTENT  a file of one plain line (its newline is implied)
//   file PATH SIZE     then SIZE bytes and a newline
//   hex PATH DIGITS    a small file of bytes that are no text
//   link PATH TARGET   a symbolic link
//   dir PATH           a directory without entries
//   probe NAME OUT ERR then OUT bytes of output, a newline, ERR bytes of error output, a newline
//   end
// Blanks, control characters and % in PATH and TARGET are written %XX.
#include <fmt/format.h>

#include "base/text.h"
#include "host/snapshot.h"

namespace ep {

namespace {

using Type = FileInfo::Type;
constexpr std::string_view kMagic = "epready-snapshot 1";
constexpr size_t kMaxTextChars = 400;

std::string encode(std::string_view word) {
  std::string out;
  for (char c : word) {
    if ((unsigned char)c <= ' ' || c == '%' || c == 0x7f)
      out += fmt::format("%{:02x}", (unsigned char)c);
    else
      out += c;
  }
  return out;
}

std::optional<std::string> decode(std::string_view word) {
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      if ((unsigned char)word[i] <= ' ' || word[i] == 0x7f) return std::nullopt;  // such are written %XX
      out += word[i];
      continue;
    }
    if (i + 2 >= word.size()) return std::nullopt;
    const long long value = parse_int("0x" + std::string(word.substr(i + 1, 2))).value_or(0);
    if (value <= 0) return std::nullopt;
    out += char(value);
    i += 2;
  }
  return out;
}

bool is_plain_line(std::string_view content) {
  if (content.size() < 2 || content.size() > kMaxTextChars || content.back() != '\n') return false;
  content.remove_suffix(1);
  if (content.front() == ' ' || content.back() == ' ') return false;
  for (char c : content)
    if ((unsigned char)c < ' ' || c == 0x7f) return false;
  return true;
}

bool is_small_binary(std::string_view content) {
  if (content.size() > 4096) return false;
  for (char c : content)
    if (((unsigned char)c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f) return true;
  return false;
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", (unsigned char)c);
  return out;
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < digits.size(); i += 2) {
    std::string_view pair = digits.substr(i, 2);
    if (pair.find_first_not_of("0123456789abcdef") != pair.npos) return std::nullopt;
    out += char(*parse_int("0x" + std::string(pair)));
  }
  return out;
}

// Walks the text; every error carries source:line.
struct Reader {
  std::string_view text;
  std::string source;
  size_t at = 0, line = 0;

  Failure bad(std::string why) const {
    return fail(ErrorKind::malformed, "the snapshot is damaged", fmt::format("{}:{}", source, line),
                std::move(why), "take a new snapshot: epready snapshot -o FILE.snap");
  }
  std::optional<std::string_view> next_line() {
    size_t end = text.find('\n', at);
    if (end == text.npos) return std::nullopt;
    std::string_view out = text.substr(at, end - at);
    at = end + 1;
    ++line;
    return out;
  }
  Result<std::string_view> bytes(std::string_view size_word) {
    auto size = parse_int(size_word);
    if (!size || *size < 0) return bad(fmt::format("\"{}\" is not a size in bytes", size_word));
    if (size_t(*size) > kMaxSnapshotFileBytes)
      return bad(fmt::format("{} bytes are more than a snapshot may hold", *size));
    if (text.size() - at < size_t(*size) + 1)
      return bad(fmt::format("cut short: {} bytes announced, {} left", *size, text.size() - at));
    std::string_view out = text.substr(at, size_t(*size));
    if (text[at + size_t(*size)] != '\n')
      return bad(fmt::format("no newline after {} bytes: the size is wrong", *size));
    at += size_t(*size) + 1;
    for (char c : out) line += c == '\n';
    ++line;
    return out;
  }
};

Result<std::string> path_word(const Reader& r, std::string_view word) {
  auto path = decode(word);
  if (!path || !is_canonical_path(*path))
    return r.bad(fmt::format("\"{}\" is not a canonical absolute path (no empty, . or .. part)", word));
  return *path;
}

Result<> take_record(Reader& r, std::string_view line, SnapshotData& d) {
  auto words = split(line, ' ');
  std::string_view word = words[0];
  if (word == "manifest" && words.size() == 2) {
    std::string place = fmt::format("{}:{}", r.source, r.line);
    auto json = r.bytes(words[1]);
    return json ? from_manifest(*json, place, d) : Result<>(Failure(json.error()));
  }
  if (word == "probe" && words.size() == 4) {
    auto name = decode(words[1]);
    auto out = r.bytes(words[2]);
    if (!out) return Failure(out.error());
    auto err = r.bytes(words[3]);
    if (!err) return Failure(err.error());
    if (!name || !d.probes.count(*name))
      return r.bad(fmt::format("probe \"{}\" is not in the manifest", words[1]));
    d.probes[*name].out = *out;
    d.probes[*name].err = *err;
    return {};
  }
  if (words.size() < 2) return r.bad(fmt::format("\"{}\" is not a record", word));
  auto path = path_word(r, words[1]);
  if (!path) return Failure(path.error());
  if (auto it = d.nodes.find(*path);
      it != d.nodes.end() && word != "dir" && (it->second.content || !it->second.target.empty()))
    return r.bad(*path + " is given twice");
  if (word == "text" && words.size() >= 3) {
    d.file(*path, std::string(line.substr(word.size() + words[1].size() + 2)) + "\n");
  } else if (word == "file" && words.size() == 3) {
    auto content = r.bytes(words[2]);
    if (!content) return Failure(content.error());
    d.file(*path, std::string(*content));
  } else if (word == "hex" && words.size() == 3) {
    auto content = from_hex(words[2]);
    if (!content) return r.bad("expected pairs of lower-case hexadecimal digits");
    d.file(*path, std::move(*content));
  } else if (word == "link" && words.size() == 3) {
    auto target = decode(words[2]);
    if (!target || target->empty()) return r.bad("a link needs a target");
    d.link(*path, *target);
  } else if (word == "dir" && words.size() == 2) {
    d.add(*path, Type::directory);
  } else {
    return r.bad(fmt::format("\"{}\" is not a record", word));
  }
  return {};
}

}  // namespace

std::string to_snap_text(const SnapshotData& d) {
  std::string out = std::string(kMagic) + "\n";
  std::string manifest = to_manifest(d);
  manifest.pop_back();
  out += fmt::format("manifest {}\n{}\n", manifest.size(), manifest);
  for (const auto& [path, node] : d.nodes) {
    if (node.type == Type::link) {
      if (node.target.empty()) continue;  // known from the manifest alone
      out += fmt::format("link {} {}\n", encode(path), encode(node.target));
    } else if (node.content && is_plain_line(*node.content)) {
      out += fmt::format("text {} {}", encode(path), *node.content);
    } else if (node.content && is_small_binary(*node.content)) {
      out += fmt::format("hex {} {}\n", encode(path), to_hex(*node.content));
    } else if (node.content) {
      out += fmt::format("file {} {}\n{}\n", encode(path), node.content->size(), *node.content);
    } else if (node.type == Type::directory && !node.info && !node.listed) {
      auto after = d.nodes.upper_bound(path + "/");
      if (path != "/" && (after == d.nodes.end() || !starts_with(after->first, path + "/")))
        out += fmt::format("dir {}\n", encode(path));
    }
  }
  for (const auto& [name, p] : d.probes)
    if (!p.out.empty() || !p.err.empty())
      out += fmt::format("probe {} {} {}\n{}\n{}\n", encode(name), p.out.size(), p.err.size(), p.out, p.err);
  return out + "end\n";
}

Result<SnapshotData> from_snap_text(std::string_view text, const std::string& source) {
  Reader r{text, source};
  if (text.size() > kMaxSnapshotBytes) return r.bad("larger than a snapshot may be");
  auto first = r.next_line();
  if (!first || *first != kMagic) return r.bad(fmt::format("the first line is not \"{}\"", kMagic));
  SnapshotData d;
  d.add("/", Type::directory);
  bool has_manifest = false;
  for (size_t records = 0;; ++records) {
    auto line = r.next_line();
    if (!line) {
      ++r.line;
      return r.bad("cut short: no \"end\"");
    }
    if (*line == "end") break;
    if (records >= kMaxSnapshotEntries) return r.bad("more records than a snapshot may have");
    bool is_manifest = starts_with(*line, "manifest ");
    if (is_manifest != !has_manifest) return r.bad("one manifest comes first, and only one");
    has_manifest = true;
    if (auto ok = take_record(r, *line, d); !ok) return Failure(ok.error());
  }
  if (!has_manifest) return r.bad("there is no manifest");
  if (r.at != text.size()) {
    ++r.line;
    return r.bad("something follows \"end\"");
  }
  if (auto ok = check_sound(d, source); !ok) return Failure(ok.error());
  return d;
}

}  // namespace ep
