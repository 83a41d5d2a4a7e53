// By which words the lines of a pattern can be found: sets of literals, one of which stands on every line
// that matches. The pattern's own literals are such sets of one; its regular expression gives more, by RE2's
// own account of what must stand in a match. A scan chooses the set that stands most rarely in the log it
// reads.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "doctor/literal_scan.h"
#include "doctor/problem.h"

namespace ep {

using AnchorSet = std::vector<LiteralScan::Literal>;

/// How often a literal stands in some text, or anything else to be kept small.
using LiteralCost = std::function<double(const LiteralScan::Literal&)>;

/// The same expression made weaker, so that more of it is plain words: `x?` as (?:x|), classes of many
/// characters as any character. Whatever line (without newline) matches the first matches this, too.
std::string relaxed(std::string_view regex);

class Anchors {
 public:
  explicit Anchors(const LinePattern& pattern);  ///< compiles the expression twice more: some 100 us
  ~Anchors();
  Anchors(Anchors&&) noexcept;
  Anchors& operator=(Anchors&&) noexcept;

  /// All words that may come into a set: literals of the pattern (long enough for the scan) and what its
  /// expression asks for (ASCII, case ignored).
  std::vector<LiteralScan::Literal> words() const;
  /// Words of three bytes and more that may come into a check.
  std::vector<LiteralScan::Literal> short_words() const;

  /// The set that costs least by `cost`; never empty, all of it long enough for the scan.
  AnchorSet cheapest(const LiteralCost& cost) const;
  /// A set for lines on which one of `found` stands already: the cheapest that this does not decide; empty
  /// when there is none.
  AnchorSet check(const AnchorSet& found, const LiteralCost& cost) const;

 private:
  class Needs;
  std::vector<LiteralScan::Literal> own_;
  std::unique_ptr<Needs> long_, short_;  ///< null when the expression asks for no such word
};

}  // namespace ep
