// plan(facts, recipe, options): what would change on this host for a lane, as a value, and why each step is
// there. Pure: no clock, no environment, no file; the same input gives the same bytes.
#pragma once
#include <string>
#include <vector>

#include "facts/facts.h"
#include "plan/plan.h"
#include "plan/solver.h"
#include "recipe/recipe.h"

namespace ep {

struct PlanOptions {
  std::string lane;   ///< empty: the best that works here
  std::string stack;  ///< empty: the first that fits lane, consumer, platform and facts
  std::string consumer = "plain";
  std::vector<std::string> with;  ///< NAME=VALUE
  std::string prefix = "/opt/epready";
  Lang lang = Lang::en;
  /// Part of the work: all; libs: what needs no root (Python, wheels, DeepEP); driver: module options, peer
  /// memory, reboot.
  enum class Scope { all, libs, driver } scope = Scope::all;
  bool wheel = false;  ///< build DeepEP into PREFIX/dist instead of installing it
};

/// A plan with what led to it.
struct Planned {
  Plan plan;
  const Stack* stack = nullptr;        ///< belongs to the recipe
  const Platform* platform = nullptr;  ///< nullptr: none recognised
  Solution solution;
  // For the lock: what the steps would take, whether or not it is there already.
  const WheelSet* wheels = nullptr;            ///< closed set of the environment; belongs to the recipe
  std::vector<std::string> overridden;         ///< packages of that set that the stack takes from elsewhere
  std::string torch_index;                     ///< address, when torch is of an index of its own
  std::map<std::string, std::string> commits;  ///< component -> commit, where one was given by hand
};

/// Errors: usage (unknown lane, stack, consumer, wish, with the nearest name); unsupported: no working set,
/// `why` holds the proof and `next` the smallest change.
Result<Planned> make_plan(const Facts& facts, const Recipe& recipe, const PlanOptions& options);

/// The note of what a plan needs to know and the facts do not say (operating system, processor): with it a
/// plan is for reading only; nullptr: everything is known.
const Finding* unanswered(const Plan& plan);

/// The lane that plan, env, verify and doctor speak of: the one applied below the prefix, else the plan's; on
/// a host whose plan is refused, the lane that was refused.
std::string lane_of(const Facts& facts, const Recipe& recipe, const PlanOptions& options);

/// Components whose package source has a signing key that neither a hash nor a fingerprint pins: apply,
/// fetch and the rendered forms refuse them. Each wants --with COMPONENT-key=FINGERPRINT.
std::vector<std::string> unpinned_keys(const Plan& plan);
/// The first platform whose conditions all hold; nullptr when none does.
const Platform* detect_platform(const Recipe& recipe, const Scope& scope);
/// Stacks for a lane (empty: any) and consumer on a platform, best first. Those whose `when` is false come
/// only with `all`.
std::vector<const Stack*> fitting_stacks(const Recipe& recipe, const Scope& scope, const Platform* platform,
                                         std::string_view lane, std::string_view consumer, bool all);
/// Input of the solver for a stack on these facts, installed toolkits and the platform's own parts included.
Result<SolveInput> solve_input(const Facts& facts, const Recipe& recipe, const Stack& stack,
                               const Platform* platform, const PlanOptions& options);
/// "what is wrong; what would change it" of an unsolved stack, for people.
std::string refusal_text(const Solution& solution, Lang lang);

}  // namespace ep
