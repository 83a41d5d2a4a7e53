// Inside src/recipe only: one reader a kind of file.
#pragma once
#include <vector>

#include "recipe/recipe.h"
#include "recipe/toml.h"

namespace ep {

Phrase read_phrase(TomlReader& reader, std::string_view key, bool required);
std::vector<Condition> read_conditions(TomlReader& reader, std::string_view key);
std::vector<Citation> read_sources(TomlReader& reader, std::string_view key, bool required);
std::map<std::string, std::string> read_map(TomlReader& reader, std::string_view key,
                                            std::vector<Error>& errors);

Component read_component(const TomlNode& doc, const std::string& file, std::vector<Error>& errors);
Stack read_stack(const TomlNode& doc, const std::string& file, std::vector<Error>& errors);
Platform read_platform(const TomlNode& doc, const std::string& file, std::vector<Error>& errors);
std::vector<Baseline> read_baselines(const TomlNode& doc, const std::string& file,
                                     std::vector<Error>& errors);

/// Cross-references: unknown components, releases, platforms, names in conditions, phases.
void check_references(const Recipe& recipe, const std::vector<std::string>& known_names,
                      std::vector<Error>& errors);

}  // namespace ep
