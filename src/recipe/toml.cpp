// The only file that includes toml++.
#include "recipe/toml.h"

#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"

namespace ep {
namespace {

TomlNode convert(const toml::node& in) {
  TomlNode out;
  out.line = int(in.source().begin.line);
  out.column = int(in.source().begin.column);
  if (const auto* s = in.as_string()) {
    out.kind = TomlNode::Kind::string;
    out.text = s->get();
  } else if (const auto* i = in.as_integer()) {
    out.kind = TomlNode::Kind::integer;
    out.integer = i->get();
  } else if (const auto* d = in.as_floating_point()) {
    out.kind = TomlNode::Kind::real;
    out.real = d->get();
  } else if (const auto* b = in.as_boolean()) {
    out.kind = TomlNode::Kind::boolean;
    out.boolean = b->get();
  } else if (const auto* a = in.as_array()) {
    out.kind = TomlNode::Kind::array;
    for (const auto& item : *a) out.items.push_back(convert(item));
  } else if (const auto* t = in.as_table()) {
    out.kind = TomlNode::Kind::table;
    for (const auto& [key, value] : *t) out.members.emplace_back(std::string(key.str()), convert(value));
    std::sort(out.members.begin(), out.members.end(),
              [](const auto& x, const auto& y) { return x.first < y.first; });
  } else {  // dates and times: as text
    std::ostringstream text;
    if (const auto* v = in.as_date()) text << v->get();
    if (const auto* v = in.as_time()) text << v->get();
    if (const auto* v = in.as_date_time()) text << v->get();
    out.kind = TomlNode::Kind::string;
    out.text = text.str();
  }
  return out;
}

}  // namespace

std::string_view to_string(TomlNode::Kind kind) {
  switch (kind) {
    case TomlNode::Kind::none:
      return "nothing";
    case TomlNode::Kind::string:
      return "a string";
    case TomlNode::Kind::integer:
      return "a whole number";
    case TomlNode::Kind::real:
      return "a number";
    case TomlNode::Kind::boolean:
      return "true or false";
    case TomlNode::Kind::array:
      return "a list";
    case TomlNode::Kind::table:
      return "a table";
  }
  return "nothing";
}

const TomlNode* TomlNode::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Result<TomlNode> parse_toml(std::string_view text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    const auto& e = parsed.error();
    return fail(ErrorKind::malformed, "not valid TOML",
                fmt::format("{}:{}:{}", file, e.source().begin.line, e.source().begin.column),
                std::string(e.description()), "epready data lint");
  }
  return convert(parsed.table());
}

TomlReader::TomlReader(const TomlNode& table, std::string file, std::vector<Error>& errors)
    : node_(table), file_(std::move(file)), errors_(errors) {
  if (!table.is_table())
    complain(table, "wrong type", fmt::format("{}; expected a table", to_string(table.kind)));
}

void TomlReader::complain(const TomlNode& at, std::string what, std::string why, std::string next) {
  errors_.push_back(Error{ErrorKind::malformed,
                          std::move(what),
                          fmt::format("{}:{}:{}", file_, at.line, at.column),
                          std::move(why),
                          std::move(next),
                          {}});
}

const TomlNode* TomlReader::ask(std::string_view key, TomlNode::Kind kind, bool required) {
  asked_.emplace_back(key);
  const TomlNode* found = node_.find(key);
  if (!found) {
    if (required)
      complain(node_, fmt::format("key \"{}\" is missing", key), fmt::format("expected {}", to_string(kind)));
    return nullptr;
  }
  if (kind != TomlNode::Kind::none && found->kind != kind) {
    complain(*found, fmt::format("wrong type for \"{}\"", key),
             fmt::format("{}; expected {}", to_string(found->kind), to_string(kind)));
    return nullptr;
  }
  return found;
}

std::string TomlReader::text(std::string_view key, bool required) {
  const TomlNode* n = ask(key, TomlNode::Kind::string, required);
  if (n && required && n->text.empty()) complain(*n, fmt::format("\"{}\" is empty", key));
  return n ? n->text : std::string();
}

std::string TomlReader::one_of(std::string_view key, const std::vector<std::string>& words,
                               std::string fallback) {
  const TomlNode* n = ask(key, TomlNode::Kind::string, false);
  if (!n) return fallback;
  if (std::find(words.begin(), words.end(), n->text) == words.end()) {
    const auto near = closest(n->text, words);
    complain(*n, fmt::format("\"{}\" is not a value of \"{}\"", n->text, key),
             fmt::format("expected one of: {}", join(words, ", ")),
             near ? fmt::format("did you mean \"{}\"?", *near) : std::string());
    return fallback;
  }
  return n->text;
}

int64_t TomlReader::integer(std::string_view key, int64_t fallback) {
  const TomlNode* n = ask(key, TomlNode::Kind::integer, false);
  return n ? n->integer : fallback;
}

double TomlReader::real(std::string_view key, double fallback) {
  const TomlNode* n = ask(key, TomlNode::Kind::none, false);
  if (!n) return fallback;
  if (n->kind == TomlNode::Kind::real) return n->real;
  if (n->kind == TomlNode::Kind::integer) return double(n->integer);
  complain(*n, fmt::format("wrong type for \"{}\"", key),
           fmt::format("{}; expected a number", to_string(n->kind)));
  return fallback;
}

bool TomlReader::boolean(std::string_view key, bool fallback) {
  const TomlNode* n = ask(key, TomlNode::Kind::boolean, false);
  return n ? n->boolean : fallback;
}

std::vector<std::string> TomlReader::strings(std::string_view key) {
  const TomlNode* n = ask(key, TomlNode::Kind::none, false);
  std::vector<std::string> out;
  if (!n) return out;
  if (n->is_string()) return {n->text};
  if (!n->is_array()) {
    complain(*n, fmt::format("wrong type for \"{}\"", key),
             fmt::format("{}; expected a list of strings", to_string(n->kind)));
    return out;
  }
  for (const auto& item : n->items) {
    if (item.is_string())
      out.push_back(item.text);
    else
      complain(item, fmt::format("wrong type in \"{}\"", key),
               fmt::format("{}; expected a string", to_string(item.kind)));
  }
  return out;
}

const TomlNode* TomlReader::table(std::string_view key) {
  return ask(key, TomlNode::Kind::table, false);
}

std::vector<const TomlNode*> TomlReader::tables(std::string_view key) {
  std::vector<const TomlNode*> out;
  const TomlNode* n = ask(key, TomlNode::Kind::array, false);
  if (!n) return out;
  for (const auto& item : n->items) {
    if (item.is_table())
      out.push_back(&item);
    else
      complain(item, fmt::format("wrong type in \"{}\"", key),
               fmt::format("{}; expected a table", to_string(item.kind)));
  }
  return out;
}

const TomlNode* TomlReader::any(std::string_view key) {
  return ask(key, TomlNode::Kind::none, false);
}

void TomlReader::finish() {
  for (const auto& [key, value] : node_.members) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    const auto near = closest(key, asked_);
    complain(value, fmt::format("unknown key \"{}\"", key), {},
             near ? fmt::format("did you mean \"{}\"?", *near) : "data/VOCABULARY.md lists the keys");
  }
}

}  // namespace ep
