#include "recipe/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/text.h"
#include "base/version.h"

namespace ep {
namespace {

constexpr std::string_view kOps[] = {"==", "!=", "<=", ">=", "<", ">", "in", "has", "lacks", "set", "unset"};

bool same(std::string_view a, std::string_view b) {
  if (lower(a) == lower(b)) return true;
  const bool digits = !a.empty() && !b.empty() && std::isdigit(static_cast<unsigned char>(a[0])) &&
                      std::isdigit(static_cast<unsigned char>(b[0]));
  return digits && compare_versions(VersionOrder::dotted, a, b) == 0;
}

Truth ask(const Atom& atom, const Scope& scope) {
  const auto found = scope.find(atom.name);
  if (found == scope.end() || !found->second.known) return Truth::unknown;
  const Named& n = found->second;
  const auto truth = [](bool b) { return b ? Truth::yes : Truth::no; };
  if (atom.op == "set") return truth(n.present);
  if (atom.op == "unset") return truth(!n.present);
  const std::string value = fill_in(atom.value, scope);
  if (value.find('{') != std::string::npos) return Truth::unknown;
  if (atom.op == "has" || atom.op == "lacks") {
    if (!n.present) return Truth::no;
    const bool has = std::find(n.traits.begin(), n.traits.end(), value) != n.traits.end();
    return truth(has == (atom.op == "has"));
  }
  if (atom.op == "!=") return truth(!n.present || !same(n.text, value));
  if (!n.present) return Truth::no;
  if (atom.op == "==") return truth(same(n.text, value));
  if (atom.op == "in") {
    for (std::string_view word : split(value, ','))
      if (same(n.text, trim(word))) return Truth::yes;
    return Truth::no;
  }
  const int c = compare_versions(VersionOrder::dotted, n.text, value);
  if (atom.op == "<") return truth(c < 0);
  if (atom.op == "<=") return truth(c <= 0);
  if (atom.op == ">") return truth(c > 0);
  return truth(c >= 0);
}

bool good_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

Result<Condition> Condition::parse(std::string_view text) {
  Condition out;
  out.text = std::string(text);
  for (std::string_view piece : split(text, '|')) {
    const auto words = split_ws(piece);
    const bool lone = words.size() == 2 && (words[1] == "set" || words[1] == "unset");
    if (words.size() < 3 && !lone)
      return fail(ErrorKind::malformed, "not a condition", std::string(text), "expected NAME OP VALUE");
    if (!good_name(words[0]))
      return fail(ErrorKind::malformed, "not a condition", std::string(text),
                  fmt::format("\"{}\" is not a name", words[0]));
    if (std::find(std::begin(kOps), std::end(kOps), words[1]) == std::end(kOps))
      return fail(
          ErrorKind::malformed, "not a condition", std::string(text),
          fmt::format("unknown operator \"{}\"; known: == != < <= > >= in has lacks set unset", words[1]));
    const std::string_view rest =
        lone ? std::string_view() : trim(piece.substr(size_t(words[2].data() - piece.data())));
    out.any_of.push_back({std::string(words[0]), std::string(words[1]), std::string(rest)});
  }
  return out;
}

Truth Condition::holds(const Scope& scope) const {
  Truth out = Truth::no;
  for (const auto& atom : any_of) {
    const Truth t = ask(atom, scope);
    if (t == Truth::yes) return Truth::yes;
    if (t == Truth::unknown) out = Truth::unknown;
  }
  return out;
}

std::string Condition::evidence(const Scope& scope) const {
  std::vector<std::string> parts;
  for (const auto& atom : any_of) {
    // The user knows what was asked for; facts and versions are what decides.
    if (atom.name == "lane" || atom.name == "consumer" || starts_with(atom.name, "option.")) continue;
    const auto found = scope.find(atom.name);
    std::string part;
    if (found == scope.end() || !found->second.known)
      part = fmt::format(
          "{} is not known{}", atom.name,
          found != scope.end() && !found->second.why.empty() ? " (" + found->second.why + ")" : "");
    else if (!found->second.present)
      part = fmt::format("{} is absent", atom.name);
    else
      part = fmt::format("{} is {}", atom.name, found->second.text);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return join(parts, ", ");
}

Truth all_hold(const std::vector<Condition>& conditions, const Scope& scope) {
  Truth out = Truth::yes;
  for (const auto& c : conditions) {
    const Truth t = c.holds(scope);
    if (t == Truth::no) return Truth::no;
    if (t == Truth::unknown) out = Truth::unknown;
  }
  return out;
}

std::vector<std::string> names_in(const std::vector<Condition>& conditions) {
  std::vector<std::string> out;
  const auto add = [&](std::string name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
  };
  for (const auto& c : conditions)
    for (const auto& a : c.any_of) {
      add(a.name);
      for (size_t at = a.value.find('{'); at != std::string::npos; at = a.value.find('{', at + 1)) {
        std::string name = a.value.substr(at + 1, a.value.find('}', at) - at - 1);
        if (ends_with(name, ".major")) name.resize(name.size() - 6);
        add(std::move(name));
      }
    }
  return out;
}

std::string fill_in(std::string_view text, const Scope& scope) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    out += text.substr(0, open);
    std::string_view name = text.substr(open + 1, close - open - 1);
    const bool major = ends_with(name, ".major");
    if (major) name.remove_suffix(6);
    const auto found = scope.find(name);
    if (found == scope.end() || !found->second.present)
      out += text.substr(open, close - open + 1);
    else
      out += major ? std::string(split(found->second.text, '.')[0]) : found->second.text;
    text.remove_prefix(close + 1);
  }
  out += text;
  return out;
}

}  // namespace ep
