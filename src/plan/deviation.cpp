// See deviation.h.
#include "plan/deviation.h"

#include <algorithm>

#include "base/words.h"

namespace ep {
namespace {

/// The trait that names DeepEP's interface.
std::string generation(const Release* release) {
  if (release)
    for (const auto& t : release->traits)
      if (t == "v1" || t == "v2" || t == "v25") return t;
  return {};
}

}  // namespace

Deviation deviation(const Stack& stack, const Recipe& recipe, const Solution& solution, const Wishes& wishes,
                    const std::string& platform) {
  Deviation out;
  for (const auto& choice : solution.choices) {
    const auto pin = stack.pins.find(choice.component);
    if (pin == stack.pins.end() || pin->second == choice.version || wishes.versions.count(choice.component))
      continue;
    out.changes.push_back({choice.component, pin->second, choice.version, choice.why});
    const Component* c = recipe.component(choice.component);
    if (choice.component == "deepep" && c)
      out.other_generation = generation(c->release(pin->second)) != generation(choice.release);
  }
  const auto listed = [&](const std::string& id) {
    return std::find(stack.platforms.begin(), stack.platforms.end(), id) != stack.platforms.end();
  };
  out.other_platform = !listed("any") && !listed(platform);
  return out;
}

std::string change_text(const Deviation::Change& x, Lang lang) {
  return Words{lang}("{} {} instead of {} ({})", "{} 使用 {} 而非 {}（{}）", x.component, x.chosen, x.pinned,
                     x.why);
}

}  // namespace ep
