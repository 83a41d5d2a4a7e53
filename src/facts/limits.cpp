// Limits of this process and where the host sets them; shared memory.
#include "base/text.h"
#include "facts/reading.h"

namespace ep {

namespace {

const std::string kLimits = "/proc/self/limits";

struct Pair {
  Fact<std::string> soft, hard;
};

Pair limit(const Result<std::string>& text, std::string_view name) {
  if (!text)
    return {from_error<std::string>(text.error(), kLimits), from_error<std::string>(text.error(), kLimits)};
  for (auto line : lines(*text)) {
    if (!starts_with(line, name)) continue;
    auto words = split_ws(line.substr(name.size()));
    if (words.size() < 2) break;
    return {known(std::string(words[0]), kLimits), known(std::string(words[1]), kLimits)};
  }
  auto none = absent<std::string>(kLimits, "no line " + std::string(name));
  return {none, none};
}

Fact<uint64_t> number(const Fact<std::string>& text) {
  if (!text) return same_trouble<uint64_t>(text);
  if (*text == "unlimited") return known(UINT64_MAX, text.where);
  auto n = parse_int(*text);
  return n && *n >= 0 ? known(uint64_t(*n), text.where)
                      : malformed<uint64_t>(text.where, "expected a number or unlimited");
}

void find_lines(const Host& host, const std::string& path, std::string_view word,
                std::vector<std::string>& out) {
  auto text = host.read(path, 256u << 10);
  int number = 0;
  for (auto line : lines(text_of(text))) {
    ++number;
    if (!starts_with(trim(line), "#") && icontains(line, word))
      out.push_back(path + ":" + std::to_string(number) + ": " + std::string(trim(line)));
  }
}

// `systemctl show` writes "infinity", older ones the largest number.
void read_services(const Reading& r, LimitFacts& l) {
  auto text = probe_text(r.probes.get("systemctl-limits"), "systemctl-limits");
  if (!text) return;
  LimitFacts::Service s;
  bool active = false;
  const auto flush = [&] {
    if (active && !s.unit.empty() && s.memlock.ok()) l.services.push_back(s);
    s = {};
    active = false;
  };
  for (auto line : lines(*text)) {
    if (trim(line).empty()) flush();
    if (starts_with(line, "Id=")) s.unit = line.substr(3);
    if (starts_with(line, "ActiveState=")) active = line == "ActiveState=active";
    if (starts_with(line, "LimitMEMLOCK=")) {
      const std::string value(line.substr(13));
      const bool none = value == "infinity" || value == "18446744073709551615";
      if (none || parse_int(value)) s.memlock = known(none ? "unlimited" : value, text.where);
    }
  }
  flush();
}

}  // namespace

void read_limits(const Reading& r, Facts& f) {
  LimitFacts& l = f.limits;
  auto text = r.host.read(kLimits);
  auto memlock = limit(text, "Max locked memory");
  l.memlock = memlock.soft;
  l.memlock_hard = memlock.hard;
  auto files = limit(text, "Max open files");
  l.nofile = number(files.soft);
  l.nofile_hard = number(files.hard);
  auto shm = r.host.space("/dev/shm");
  l.shm_bytes = shm ? known(shm->total_bytes, "/dev/shm") : from_error<uint64_t>(shm.error(), "/dev/shm");
  l.shm_free_bytes = shm ? known(shm->free_bytes, "/dev/shm") : from_error<uint64_t>(shm.error(), "/dev/shm");
  struct Word {
    const char *pam, *unit;
    std::vector<std::string>& set_in;
  };
  for (const Word& w :
       {Word{"memlock", "LimitMEMLOCK", l.memlock_set_in}, Word{"nofile", "LimitNOFILE", l.nofile_set_in}}) {
    find_lines(r.host, "/etc/security/limits.conf", w.pam, w.set_in);
    for (const auto& name : names_in(r.host, "/etc/security/limits.d"))
      if (ends_with(name, ".conf")) find_lines(r.host, "/etc/security/limits.d/" + name, w.pam, w.set_in);
    find_lines(r.host, "/etc/systemd/system.conf", w.unit, w.set_in);
    for (const auto& name : names_in(r.host, "/etc/systemd/system.conf.d"))
      if (ends_with(name, ".conf"))
        find_lines(r.host, "/etc/systemd/system.conf.d/" + name, w.unit, w.set_in);
  }
  read_services(r, l);
}

}  // namespace ep
