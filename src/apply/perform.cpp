// perform: from an Action to its function.
#include "apply/actions.h"

namespace ep {

Result<> perform(const Action& action, Job& job) {
  return std::visit([&](const auto& a) { return act(a, job); }, action);
}

}  // namespace ep
