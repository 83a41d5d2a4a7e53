#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/version.h"
#include "doctor/text_facts.h"

namespace ep {

namespace {

int capability(std::string_view model) {
  const std::pair<std::string_view, int> kModels[] = {
      {"GB300", 103}, {"B300", 103}, {"GB200", 100}, {"B200", 100}, {"GH200", 90}, {"GB10", 121},
      {"H100", 90},   {"H200", 90},  {"H800", 90},   {"H20", 90},   {"A100", 80},  {"A800", 80},
      {"A6000", 86},  {"L40", 89},   {"L20", 89},    {"L4", 89}};
  for (const auto& [name, cc] : kModels)
    if (contains(model, name)) return cc;
  return 0;
}

std::string driver_of(std::string_view device) {
  const std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"mlx5", "mlx5_core"}, {"erdma", "erdma"},     {"rdmap", "efa"},
      {"efa", "efa"},        {"bnxt_re", "bnxt_re"}, {"irdma", "irdma"}};
  for (const auto& [prefix, driver] : kPrefixes)
    if (starts_with(device, prefix)) return std::string(driver);
  return {};
}

size_t distinct(const Observed& o, std::initializer_list<std::string_view> facts) {
  std::set<std::string> values;
  for (auto f : facts)
    if (const auto* list = o.all(f))
      for (const auto& one : *list)
        if (one.trust != Trust::mentioned) values.insert(one.value);
  return values.size();
}

/// Counters of at least four NICs: how many in a hundred carried next to nothing while another carried much.
void idle_nics(Observed& o) {
  const auto* lines = o.all("nic.traffic");
  if (!lines || o.all("nic.idle_percent")) return;
  std::map<std::string, double> sent;
  for (const Observation& one : *lines) {
    static const re2::RE2 kRate(R"(([\d.]+) ([KMG])[Bb]\S+$)");  // "mlx5_0 21.9 GB/s", of a monitor
    const size_t name = one.value.find_first_of("/ \t:=|"), number = one.value.find_last_not_of("0123456789");
    std::string rate, unit;
    sent[one.value.substr(0, name)] = re2::RE2::PartialMatch(one.value, kRate, &rate, &unit)
                                          ? parse_double(rate).value_or(0) * (unit == "G"   ? 1e9
                                                                              : unit == "M" ? 1e6
                                                                                            : 1e3)
                                          : parse_double(one.value.substr(number + 1)).value_or(0);
  }
  double most = 0;
  for (const auto& [name, bytes] : sent) most = std::max(most, bytes);
  if (sent.size() < 4 || most < 1e7) return;
  const auto idle =
      std::count_if(sent.begin(), sent.end(), [&](const auto& s) { return s.second < most / 1000; });
  o.add("nic.idle_percent", std::to_string(size_t(idle) * 100 / sent.size()), lines->front().where,
        Trust::running);
}

/// Pull request 564 (2026-01) came after 1.2.1 was numbered: older numbers cannot hold it, 1.2.1 may; these
/// commits do or are older.
void rc_fix(Observed& o) {
  if (o.all("deepep.rc_fix")) return;
  const Observation* version = o.best("deepep.version");
  if (version && compare_versions(VersionOrder::dotted, version->value, "1.2.1") < 0) {
    o.add("deepep.rc_fix", "false", version->where, version->trust);
    return;
  }
  std::string commit;
  const Observation* by = o.best("deepep.commit");
  if (by)
    commit = by->value;
  else if (version && contains(version->value, "+"))
    by = version, commit = version->value.substr(version->value.find('+') + 1);
  if (starts_with(commit, "29d31c0")) o.add("deepep.rc_fix", "true", by->where, by->trust);
  for (const char* old : {"9af0e0d", "a84a248", "c939644", "9249c25"})
    if (starts_with(commit, old)) o.add("deepep.rc_fix", "false", by->where, by->trust);
}

/// The NVSHMEM that DeepEP was built with against the one that a process would load.
void nvshmem_pair(Observed& o) {
  const Observation* built = o.best("nvshmem.build_version");
  const Observation* host = o.best("nvshmem.host_version");
  if (!host || host->trust != Trust::running) host = o.best("nvshmem.version");
  if (!built || !host || o.all("nvshmem.pair_ok")) return;
  const bool same = compare_versions(VersionOrder::dotted, built->value, host->value) == 0;
  o.add("nvshmem.pair_ok", same ? "true" : "false", host->where, host->trust);
}

/// "Two nodes hang, one node passes": where only words tell the number of nodes, the largest is the case.
void most_nodes(Observed& o) {
  const auto* said = o.all("nodes");
  if (!said) return;
  const Observation* most = nullptr;
  for (const Observation& one : *said) {
    if (one.trust != Trust::mentioned) return;
    if (!most || parse_double(one.value).value_or(0) > parse_double(most->value).value_or(0)) most = &one;
  }
  if (most->value == said->back().value) return;
  const Observation copy = *most;
  o.add("nodes", copy.value, copy.where, copy.trust);
}

void arch_ok(Observed& o) {
  const auto* archs = o.all("deepep.archs");
  const Observation* gpu = o.best("gpu.compute_capability");
  if (!archs || !gpu || o.all("deepep.arch_ok")) return;
  std::string all;
  for (const Observation& a : *archs) all += a.value + " ";
  const auto wanted = parse_int(gpu->value);
  if (wanted)
    o.add("deepep.arch_ok", archs_serve(all, int(*wanted)) ? "true" : "false", archs->front().where);
}

}  // namespace

bool archs_serve(const std::string& list, int wanted) {
  static const re2::RE2 kOne(R"((\d+)(?:\.(\d))?([af]?)(\+PTX)?)");
  bool fits = false;
  std::string number, minor, letter, ptx;
  for (re2::StringPiece rest(list); re2::RE2::FindAndConsume(&rest, kOne, &number, &minor, &letter, &ptx);) {
    const auto n = int(parse_int(number + minor).value_or(0));
    fits |= n == wanted || (letter != "a" && n / 10 == wanted / 10 && n <= wanted) ||
            (!ptx.empty() && n <= wanted);
  }
  return fits;
}

void derive_facts(Observed& o) {
  if (const auto* t = o.best("torch.version"); t && !o.all("torch.cuda")) {
    std::string digits;
    static const re2::RE2 kLocal(R"(\+cu(\d\d)(\d))");
    std::string major, minor;
    if (re2::RE2::PartialMatch(t->value, kLocal, &major, &minor))
      o.add("torch.cuda", major + "." + minor, t->where, t->trust);
  }
  if (const auto* models = o.all("gpu.model"); models && !o.all("gpu.compute_capability"))
    for (const auto& m : std::vector<Observation>(*models))
      if (int cc = capability(m.value)) o.add("gpu.compute_capability", std::to_string(cc), m.where, m.trust);
  if (const auto* v = o.best("deepep.version"))
    o.add("deepep.generation",
          compare_versions(VersionOrder::dotted, v->value, "2") < 0     ? "v1"
          : compare_versions(VersionOrder::dotted, v->value, "2.5") < 0 ? "v2"
                                                                        : "v25",
          v->where, v->trust);
  rc_fix(o);
  nvshmem_pair(o);
  if (const auto* names = o.all("nic.names"))
    for (const auto& n : std::vector<Observation>(*names))
      if (std::string d = driver_of(n.value); !d.empty()) o.add("nic.driver", d, n.where, n.trust);
  auto copies = [&](std::string_view fact, std::initializer_list<std::string_view> of) {
    if (size_t n = distinct(o, of); n > 0 && !o.all(fact))
      o.add(fact, std::to_string(n), {}, Trust::installed);
  };
  copies("nvshmem.copies", {"nvshmem.version", "nvshmem.host_version", "nvshmem.device_version"});
  copies("nccl.copies", {"nccl.version", "nccl.wheel_version"});
  if (const auto* r = o.best("ranks"); r && !o.all("nodes"))
    if (auto n = parse_int(r->value); n && *n > 8)
      o.add("nodes", std::to_string((*n + 7) / 8), r->where, Trust::mentioned);
  if (const auto* r = o.best("local_ranks"); r && !o.all("gpu.count"))
    o.add("gpu.count", r->value, r->where, Trust::mentioned);
  most_nodes(o);
  arch_ok(o);
  idle_nics(o);
}

}  // namespace ep
