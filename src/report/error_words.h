// Errors in the reader's language. Not here: what the system or another program said (errno, pip, apt); that
// stays in its own words, because people search for it.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace ep {

/// As Error::text(), with the sentence and the label of `next` in `lang`. A sentence without a translation
/// stays English.
std::string error_text(const Error& error, Lang lang);
/// The sentence alone; the longest known beginning is translated, the rest (a name, a value) follows as it
/// is.
std::string error_sentence(std::string_view what, Lang lang);

}  // namespace ep
