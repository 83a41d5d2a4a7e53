// A TOML document as a small tree of our own, every node with its place. toml++ lives in toml.cpp alone (it
// is slow to compile); every reader of data/ (components, stacks, platforms, problems, baselines, cases)
// walks this tree with the typed getters of TomlReader, which collect errors as file:line:column and offer
// the nearest known key.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ep {

struct TomlNode {
  enum class Kind { none, string, integer, real, boolean, array, table } kind = Kind::none;
  std::string text;  ///< string; date and time values as written
  int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<TomlNode> items;                            ///< array
  std::vector<std::pair<std::string, TomlNode>> members;  ///< table, sorted by key
  int line = 0, column = 0;                               ///< 1-based

  bool is_table() const { return kind == Kind::table; }
  bool is_array() const { return kind == Kind::array; }
  bool is_string() const { return kind == Kind::string; }
  const TomlNode* find(std::string_view key) const;  ///< nullptr when absent or not a table
};

std::string_view to_string(TomlNode::Kind kind);  ///< "a string", "a table" ...

/// Errors: malformed, `where` = "file:line:column".
Result<TomlNode> parse_toml(std::string_view text, const std::string& file);

/// Reads one table key by key and remembers what was asked for; `finish` complains about keys nobody asked
/// for. All complaints of a document go to one list, so that a person sees every mistake at once.
class TomlReader {
 public:
  TomlReader(const TomlNode& table, std::string file, std::vector<Error>& errors);

  std::string text(std::string_view key, bool required = false);
  std::string one_of(std::string_view key, const std::vector<std::string>& words, std::string fallback = {});
  int64_t integer(std::string_view key, int64_t fallback = 0);
  double real(std::string_view key, double fallback = 0);  ///< whole numbers are accepted
  bool boolean(std::string_view key, bool fallback = false);
  std::vector<std::string> strings(
      std::string_view key);                    ///< a list of strings; one string counts as a list of one
  const TomlNode* table(std::string_view key);  ///< nullptr when absent
  std::vector<const TomlNode*> tables(std::string_view key);  ///< [[key]]
  const TomlNode* any(std::string_view key);
  bool has(std::string_view key) const { return node_.find(key) != nullptr; }

  void finish();  ///< unknown keys become errors with "did you mean"
  void complain(const TomlNode& at, std::string what, std::string why = {}, std::string next = {});
  const TomlNode& node() const { return node_; }
  const std::string& file() const { return file_; }

 private:
  const TomlNode* ask(std::string_view key, TomlNode::Kind kind, bool required);
  const TomlNode& node_;
  std::string file_;
  std::vector<Error>& errors_;
  std::vector<std::string> asked_;
};

}  // namespace ep
