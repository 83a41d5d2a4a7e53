// Small text tools used everywhere. Pure; no locale.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ep {

enum class Lang { en, zh };
/// A human sentence in both languages of the product; literals only.
struct Text {
  std::string_view en, zh;
  std::string_view in(Lang lang) const { return lang == Lang::zh && !zh.empty() ? zh : en; }
};

std::string_view trim(std::string_view s);
std::vector<std::string_view> split(std::string_view s, char sep);  ///< keeps empty pieces
std::vector<std::string_view> split_ws(std::string_view s);         ///< drops empty pieces
std::vector<std::string_view> lines(std::string_view s);            ///< without \n and \r
// The pieces are views: never loop over the pieces of a temporary, as in `for (auto l : lines(f()))`.
std::string join(const std::vector<std::string>& parts, std::string_view sep);
std::string lower(std::string_view s);  ///< ASCII only
bool starts_with(std::string_view s, std::string_view prefix);
bool ends_with(std::string_view s, std::string_view suffix);
bool contains(std::string_view s, std::string_view part);
bool icontains(std::string_view s, std::string_view part);  ///< ASCII case ignored
std::string replace_all(std::string s, std::string_view from, std::string_view to);

/// Whole-string number: "0x1f", "31", "-4"; nullopt when anything is left over. Base is detected for `0x`
/// only.
std::optional<long long> parse_int(std::string_view s);
std::optional<double> parse_double(std::string_view s);

/// Edits (insert, delete, replace, swap neighbours) between two words; `closest` returns the best candidate
/// within a third of the word's length, for "did you mean".
size_t edit_distance(std::string_view a, std::string_view b);
std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& candidates);

/// One shell word that /bin/sh reads back as exactly s.
std::string shell_quote(std::string_view s);
std::string shell_join(const std::vector<std::string>& argv);
/// Natural order: mlx5_2 before mlx5_10.
bool natural_less(std::string_view a, std::string_view b);
/// Columns a terminal uses for UTF-8 text (CJK counts two).
size_t display_width(std::string_view s);
std::string pad(std::string_view s, size_t width);  ///< left-aligned to display width
std::string human_bytes(double bytes);              ///< "1.5 GB", 1e3 steps
/// CSI and OSC escape sequences and stray control characters taken out.
std::string strip_ansi(std::string_view s);

}  // namespace ep
