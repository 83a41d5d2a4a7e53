// Short makers of check results, and the one rule for facts that are not known: they never pass.
#pragma once
#include "check/check.h"

namespace ep::check_detail {

inline CheckResult pass(std::string seen, std::string where) {
  return {{Verdict::pass, std::move(seen)}, {std::move(where), 0, {}}, {}};
}
inline CheckResult bad(Verdict v, std::string reason, std::string where, std::string next) {
  return {{v, std::move(reason)}, {std::move(where), 0, {}}, std::move(next)};
}
inline CheckResult skip(std::string reason) {
  return {{Verdict::skip, std::move(reason)}, {}, {}};
}
/// A fact that is not known gives UNKNOWN with its own reason.
template <class T>
CheckResult unknown(const Fact<T>& f, const Words& w, std::string next = {}) {
  const std::string kind = f.known == Known::absent      ? w("absent", "不存在")
                           : f.known == Known::malformed ? w("malformed", "格式不对")
                                                         : w("unreadable", "不可读");
  return {{Verdict::unknown, f.why.empty() ? kind : kind + ": " + f.why}, {f.where, 0, {}}, std::move(next)};
}
/// There is none of it here: nothing to judge, except in a text, which shows what was pasted and no more.
inline CheckResult none_here(const Facts& f, const Words& w, std::string reason) {
  if (f.host_kind != "paste") return skip(std::move(reason));
  return {{Verdict::unknown, w("the text does not show it", "文本中没有此项")}, {}, {}};
}
/// A text shows what was pasted and no more: silence is no evidence either way.
inline bool only_shown(const Facts& f) {
  return f.host_kind == "paste";
}
inline CheckResult not_shown(const Words& w, std::string next = {}) {
  return {{Verdict::unknown, w("the text does not show it", "文本中没有此项")}, {}, std::move(next)};
}
/// Every RDMA device here is EFA: no IBGDA, no mlx5 verbs.
inline bool efa_only(const Facts& f) {
  if (f.rdma.empty()) return false;
  for (const auto& d : f.rdma)
    if (d.driver.value_or("") != "efa") return false;
  return true;
}
inline CheckResult no_gpu(const Facts& f, const Words& w) {
  return none_here(f, w, w("no NVIDIA GPU here", "本机没有 NVIDIA GPU"));
}

}  // namespace ep::check_detail
