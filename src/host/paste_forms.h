// The dresses that a tool's output comes in when people paste it, taken off: mail quotes, log prefixes, JSON
// strings, Markdown tables, a table folded into one line. Lines keep their order. Private to src/host.
#pragma once
#include <string>

namespace ep {

/// The text as the tool printed it, as far as its dress is known; other text comes back unchanged.
std::string plain_paste(std::string text);

}  // namespace ep
