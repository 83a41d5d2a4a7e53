// TextLook: is this a text at all? Looks at the bytes of a log's head; tells compressed and binary files by
// their magic numbers and by how few of their bytes can be read. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "doctor/sightings.h"

namespace ep {

struct TextLook {
  std::string head;  ///< first bytes, for magic numbers
  int64_t bytes = 0, controls = 0, high = 0, zeros = 0, letters = 0;
  int64_t pairs = 0;  ///< bytes of well-formed UTF-8 sequences (first and following)

  void at(std::string_view block);
  /// `utf16`: the scan decoded it, so zero bytes are half of it and mean nothing.
  Unreadable verdict(bool utf16) const;
};

/// What it is, and the command that makes a text of it.
std::string unreadable_text(Unreadable what, const std::string& name, Lang lang);

}  // namespace ep
