#include "facts/reading.h"

#include "base/text.h"

namespace ep {

void Probes::start(const std::vector<std::string>& names) {
  if (host_.kind() != HostKind::live) return;  // looked up, not run: nothing to wait for
  std::lock_guard lock(mutex_);
  for (const auto& name : names)
    if (!running_.count(name))
      running_[name] = std::async(std::launch::async, [this, name] { return host_.probe(name); }).share();
}

const ProbeResult& Probes::get(const std::string& name) const {
  std::shared_future<ProbeResult> future;
  {
    std::lock_guard lock(mutex_);
    auto& slot = running_[name];
    if (!slot.valid())
      slot = std::async(std::launch::deferred, [this, name] { return host_.probe(name); }).share();
    future = slot;
  }
  return future.get();  // lives in running_ as long as this object
}

std::string Reading::variable(const std::string& name) const {
  auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

Fact<std::string> read_text(const Host& host, const std::string& path) {
  auto text = host.read(path);
  if (!text) return from_error<std::string>(text.error(), path);
  return known(std::string(trim(*text)), path);
}

namespace {
template <class T>
Fact<T> read_number(const Host& host, const std::string& path, long long low, unsigned long long high) {
  auto text = read_text(host, path);
  if (!text) return same_trouble<T>(text);
  auto n = parse_int(*text);
  if (!n || *n < low || (*n > 0 && (unsigned long long)*n > high))
    return malformed<T>(path, "expected a whole number, read \"" + text->substr(0, 40) + "\"");
  return known(T(*n), path);
}
}  // namespace

Fact<int> read_int(const Host& host, const std::string& path) {
  return read_number<int>(host, path, INT32_MIN, INT32_MAX);
}
Fact<uint64_t> read_u64(const Host& host, const std::string& path) {
  return read_number<uint64_t>(host, path, 0, INT64_MAX);
}

Fact<std::string> read_link_name(const Host& host, const std::string& path) {
  auto target = host.link(path);
  if (!target) return from_error<std::string>(target.error(), path);
  return known(target->substr(target->rfind('/') + 1), path);
}

Fact<bool> read_exists(const Host& host, const std::string& path) {
  auto info = host.info(path);
  if (info) return known(info->type != FileInfo::Type::link, path);  // a dangling link leads nowhere
  if (info.error().kind == ErrorKind::absent) return known(false, path);
  return from_error<bool>(info.error(), path);
}

std::vector<std::string> names_in(const Host& host, const std::string& path) {
  return host.list(path).value_or(std::vector<std::string>{});
}

Fact<std::string> probe_text(const ProbeResult& p, const std::string& name) {
  std::string where = "probe " + name;
  if (!p.found) return absent<std::string>(where, p.why);
  if (p.timed_out) return unreadable<std::string>(where, p.why);
  if (p.exit_code != 0) {
    auto words = lines(trim(p.err.empty() ? p.out : p.err));
    std::string why = "exit " + std::to_string(p.exit_code);
    if (!words.empty()) why += ": " + std::string(words[0].substr(0, 200));
    return unreadable<std::string>(where, why);
  }
  return known(p.out, where);
}

}  // namespace ep
