// Cross-references of data/: what one file names must stand in another. Misspelt names end here, with the
// nearest one.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "recipe/load.h"

namespace ep {
namespace {

struct Checker {
  const Recipe& recipe;
  std::vector<Error>& errors;
  std::vector<std::string> names;  // everything that a condition may name

  void complain(const std::string& place, std::string what, const std::string& word,
                const std::vector<std::string>& candidates) {
    const auto near = closest(word, candidates);
    errors.push_back(Error{ErrorKind::malformed,
                           std::move(what),
                           place,
                           near ? std::string() : fmt::format("known: {}", join(candidates, ", ")),
                           near ? fmt::format("did you mean \"{}\"?", *near) : std::string(),
                           {}});
  }

  void conditions(const std::vector<Condition>& list, const std::string& place) {
    for (const auto& name : names_in(list)) {
      if (starts_with(name, "env.") || std::find(names.begin(), names.end(), name) != names.end()) continue;
      complain(place, fmt::format("condition names \"{}\", which nothing defines", name), name, names);
    }
  }
};

template <class T>
std::vector<std::string> ids(const std::vector<T>& items) {
  std::vector<std::string> out;
  for (const auto& i : items) out.push_back(i.id);
  return out;
}

template <class T>
void check_unique(const std::vector<T>& items, std::vector<Error>& errors) {
  std::set<std::string> seen;
  for (const auto& i : items)
    if (!seen.insert(i.id).second)
      errors.push_back(
          Error{ErrorKind::malformed, fmt::format("\"{}\" is defined twice", i.id), i.place, {}, {}, {}});
}

}  // namespace

void check_references(const Recipe& recipe, const std::vector<std::string>& known_names,
                      std::vector<Error>& errors) {
  Checker check{recipe, errors, known_names};
  const auto components = ids(recipe.components);
  const auto platforms = ids(recipe.platforms);
  std::set<std::string> options;
  for (const auto& s : recipe.stacks)
    for (const auto& [key, value] : s.options) options.insert("option." + key);
  check.names.insert(check.names.end(), components.begin(), components.end());
  check.names.insert(check.names.end(), options.begin(), options.end());
  for (const char* name : {"lane", "consumer", "platform", "stack"}) check.names.emplace_back(name);

  std::vector<Rule> all_rules;
  for (const auto& c : recipe.components) {
    std::set<std::string> versions;
    for (const auto& r : c.releases) {
      if (!versions.insert(r.version).second)
        errors.push_back(Error{
            ErrorKind::malformed, fmt::format("release {} is listed twice", r.version), r.place, {}, {}, {}});
      if (!r.apt_repo.empty() &&
          std::none_of(c.apt.begin(), c.apt.end(), [&](const AptRepo& a) { return a.id == r.apt_repo; }))
        check.complain(r.place, fmt::format("no [[apt]] table \"{}\"", r.apt_repo), r.apt_repo, ids(c.apt));
      for (const auto& [name, version] : r.pins)
        if (!recipe.component(std::string_view(name).substr(0, name.find('@'))))
          check.complain(r.place, fmt::format("pins unknown component \"{}\"", name), name, components);
    }
    for (const auto& rule : c.rules) {
      if (!known_names.empty()) {
        check.conditions(rule.when, rule.place);
        check.conditions(rule.need, rule.place);
      }
      all_rules.push_back(rule);
    }
  }
  check_unique(all_rules, errors);
  check_unique(recipe.baselines, errors);
  for (const auto& s : recipe.stacks) {
    for (const auto& part : s.parts)
      if (!recipe.component(part))
        check.complain(s.file, fmt::format("part \"{}\" is no component", part), part, components);
    for (const auto& p : s.platforms)
      if (p != "any" && !recipe.platform(p))
        check.complain(s.file, fmt::format("unknown platform \"{}\"", p), p, platforms);
    for (const auto& [name, version] : s.pins) {
      const Component* c = recipe.component(name);
      if (!c) {
        check.complain(s.file, fmt::format("pins unknown component \"{}\"", name), name, components);
      } else if (!c->release(version)) {
        std::vector<std::string> known;
        for (const auto& r : c->releases) known.push_back(r.version);
        check.complain(s.file, fmt::format("pins {} {}, which {} does not list", name, version, c->file),
                       version, known);
      }
    }
    for (const auto& [name, phase] : s.phases)
      if (!recipe.component(name))
        check.complain(s.file, fmt::format("phase of unknown component \"{}\"", name), name, components);
    if (!known_names.empty()) check.conditions(s.when, s.file);
  }
  for (const auto& p : recipe.platforms) {
    for (const auto& [name, why] : p.skip)
      if (!recipe.component(name))
        check.complain(p.file, fmt::format("skips unknown component \"{}\"", name), name, components);
    if (known_names.empty()) continue;
    check.conditions(p.when, p.file);
    for (const auto& line : p.pod) check.conditions(line.unless, p.file);
  }
}

}  // namespace ep
