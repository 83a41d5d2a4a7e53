// Look-ups by name in the lists of facts.
#include "facts/facts.h"

namespace ep {
namespace {
template <class T>
const T* by_name(const std::vector<T>& list, const std::string& name) {
  for (const auto& x : list)
    if (x.name == name) return &x;
  return nullptr;
}
}  // namespace

const KernelModule* KernelFacts::module(const std::string& name) const {
  return by_name(modules, name);
}
const Tool* Facts::tool(const std::string& name) const {
  return by_name(tools, name);
}
const Package* Facts::package(const std::string& name) const {
  return by_name(packages, name);
}

}  // namespace ep
