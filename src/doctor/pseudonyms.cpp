#include "doctor/pseudonyms.h"

#include <fmt/core.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/text.h"

namespace ep {

namespace {

struct Shape {
  const char* what;
  const char* regex;  ///< one group before, one of what is replaced, rest is looked at again
};

// In this order: what has the most certain shape first. `keep` below lets harmless values through.
#define HEX "[0-9a-fA-F]"
const Shape kShapes[] = {
    {"token",
     R"(()((?:hf_|ghp_|gho_|github_pat_|glpat-|sk-|xox[bp]-|AKIA|ASIA|eyJ[A-Za-z0-9_-]{10,}\.)[A-Za-z0-9_.\-]{12,}))"},
    {"token",
     R"((?i)((?:token|passw(?:or)?d|secret|api[_-]?key|access[_-]?key|secret[_-]?key|credentials?)["']?\s*[=:]\s*["']?)([^\s"',;]{6,}))"},
    {"token", R"((?i)((?:bearer|authorization:\s*basic)\s+)([^\s"',;]{6,}))"},
    {"token", R"((://[^\s/:@]+:)([^\s/:@]{3,})@)"},
    {"host", R"((https?://(?:[^\s/@]+@)?)([A-Za-z0-9][\w.-]*\.[A-Za-z]{2,}))"},
    {"email", R"(()([A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]*[A-Za-z]))"},
    {"host",
     R"((^|[^\w.-])((?:[a-z0-9][a-z0-9-]*\.)+(?:internal|local|localdomain|lan|corp|intra|intranet|home|priv|private))\b)"},
    {"bucket", R"(((?:s3a?|gs|az|abfss?|hdfs|oss|cos|tos)://)([A-Za-z0-9][\w.-]+))"},
    {"project", R"((\bprojects/|--project[= ])([a-z][a-z0-9-]{4,}))"},
    {"account", R"((\barn:aws[\w-]*:[\w-]*:[\w-]*:)(\d{12})\b)"},
    {"instance", R"((^|[^\w-])(i-[0-9a-f]{8,17})\b)"},
    {"uuid", "()(" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12})"},
    {"gid", R"((^|[^:\d])((?:\d{1,3}:){10}255:255(?::\d{1,3}){4})(?:$|[^:\d]))"},
    {"mac", "(^|[^:0-9a-fA-F])((?:" HEX "{2}:){5,19}" HEX "{2})(?:$|[^:0-9a-fA-F])"},
    {"ipv6", "(^|[^:.0-9a-fA-F])((?:" HEX "{1,4}:){7}" HEX "{1,4}|(?:" HEX "{1,4}:){1,6}:(?:" HEX
             "{1,4}:){0,5}" HEX "{1,4})"},
    {"guid",
     R"((^|[^:0-9a-fA-F])([0-9a-fA-F]{4}:[0-9a-fA-F]{4}:[0-9a-fA-F]{4}:[0-9a-fA-F]{4})(?:$|[^:0-9a-fA-F]))"},
    {"guid", R"((?i)((?:guid|node_guid|port_guid|sys_image)\S*\s+)(0x[0-9a-f]{12,16}))"},
    {"serial", R"((?i)(serial(?: number| no\.?)?\s*[=:]\s*)([A-Z0-9]{6,}))"},
    {"serial", R"((?i)(serial number\s+)([0-9a-f]{2}(?:-[0-9a-f]{2}){5,7}))"},
    {"ipv4",
     R"((^|[^0-9.\-]|[^0-9]-)((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})\b)"},
};

/// Public places that say nothing about who writes.
bool public_host(const std::string& host) {
  static const char* const kKnown[] = {"github.com",     "githubusercontent.com",
                                       "pytorch.org",    "nvidia.com",
                                       "python.org",     "pypi.org",
                                       "ubuntu.com",     "pythonhosted.org",
                                       "huggingface.co", "docker.io",
                                       "docker.com",     "debian.org",
                                       "kernel.org",     "microsoft.com",
                                       "google.com",     "redhat.com",
                                       "anaconda.org",   "anaconda.com",
                                       "example.org",    "example.com",
                                       "w3.org",         "vllm.ai",
                                       "quay.io",        "ghcr.io",
                                       "nvcr.io",        "mellanox.com",
                                       "linux-rdma.org", "openucx.org",
                                       "slurm.net",      "schedmd.com",
                                       "apache.org",     "gnu.org",
                                       "deepseek.com",   "json.org",
                                       "schemastore.org"};
  for (std::string_view one : kKnown)
    if (host == one || ends_with(host, "." + std::string(one))) return true;
  return false;
}

bool keep(const std::string& what, const std::string& value) {
  // "tokens: 204440" and "pad_token='<|end|>'" are no secrets.
  if (what == "token")
    return value[0] == '<' || value.find_first_not_of("0123456789.,%") == std::string::npos;
  if (what == "host") return public_host(value);
  if (what == "ipv4") return value == "127.0.0.1" || value == "0.0.0.0" || starts_with(value, "255.");
  if (what == "ipv6") return value == "::1" || value.find_first_not_of("0:") == std::string::npos;
  if (what == "mac" || what == "guid") return value.find_first_not_of("0:xX") == std::string::npos;
  return false;
}

const re2::RE2& compiled(size_t i) {
  static const std::vector<std::unique_ptr<re2::RE2>> kAll = [] {
    std::vector<std::unique_ptr<re2::RE2>> out;
    for (const Shape& s : kShapes) out.push_back(std::make_unique<re2::RE2>(s.regex));
    return out;
  }();
  return *kAll[i];
}

bool word_byte(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

/// Words that stand where a host name may stand and are none.
/// Words of the field's own outputs: taken for a name, they would tear "Linux version", "driver" and the like
/// out of every file.
bool common_word(const std::string& w) {
  static const std::set<std::string, std::less<>> kWords = {
      "INFO",   "WARNING", "WARN",      "ERROR",  "DEBUG",   "Linux",  "linux",   "ubuntu",    "debian",
      "admin",  "client",  "container", "cuda",   "default", "device", "docker",  "driver",    "error",
      "false",  "gpu",     "home",      "host",   "kernel",  "local",  "master",  "localhost", "main",
      "module", "mpi",     "nccl",      "node",   "none",    "nvidia", "nvshmem", "python",    "python3",
      "rank",   "root",    "server",    "slurm",  "stdin",   "stdout", "torch",   "true",      "unknown",
      "user",   "version", "warning",   "worker", "null"};
  return w.size() < 3 || kWords.count(w) || w.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

void Pseudonyms::know_host(const std::string& name) {
  if (common_word(name) || words_.count(name)) return;
  words_[name] = stand_in("host", name);
  const size_t dot = name.find('.');  // the short name of a full one
  if (dot != std::string::npos && !common_word(name.substr(0, dot)))
    words_[name.substr(0, dot)] = words_[name];
}

void Pseudonyms::know_user(const std::string& name) {
  if (!common_word(name) && !words_.count(name)) words_[name] = stand_in("user", name);
}

void Pseudonyms::learn(std::string_view text) {
  static const re2::RE2 kPrompt(R"(^\W{0,3}([a-z_][a-z0-9_-]*)@([A-Za-z0-9][A-Za-z0-9.-]*)[:~ ])");
  static const re2::RE2 kNccl(R"(([A-Za-z0-9][\w.-]*):\d+:\d+ \[\d+\] (?:\S+:\d+ )?(?:NCCL|NVSHMEM))");
  static const re2::RE2 kMpi(R"(^\W{0,2}(?:\[?\d+,\d+\]?<\w+>:)?\[([A-Za-z][\w.-]*):\d+(?: :\d+:\d+)?\])");
  static const re2::RE2 kSlurm(R"(\bs(?:run|batch|lurmstepd): (?:error: )?([a-z][\w-]*\d[\w-]*): )");
  static const re2::RE2 kSsh(R"(\bssh\s+(?:-\S+\s+(?:\d+\s+)?)*(?:[\w.-]+@)?([A-Za-z][\w.-]*))");
  static const re2::RE2 kNodeRow(R"(^Node:\s+([a-z][\w.-]*))");
  static const re2::RE2 kOwner(R"(\b(?:USER|LOGNAME|SUDO_USER)=([a-z_][\w-]*))");
  static const re2::RE2 kUname(R"(^Linux ([A-Za-z0-9][\w.-]*) \d+\.\d+\S* #)");
  static const re2::RE2 kSyslog(R"(^[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d ([A-Za-z0-9][\w.-]*) \w+)");
  static const re2::RE2 kHome(R"(/(?:home|Users|users|scratch)/([A-Za-z0-9._-]+))");
  static const re2::RE2 kNamed(
      R"((?i)(?:host_?name|node_?name|master[_-]addr|rdzv[_-]endpoint|(?:dist|nccl)[_-]init[_-]addr|head[_-]?node)["']?\s*[=: ]\s*["']?([A-Za-z][\w.-]*))");
  for (std::string_view line : lines(text)) {
    line = line.substr(0, 4096);
    std::string user, host;
    if (re2::RE2::PartialMatch(line, kPrompt, &user, &host)) {
      know_user(user);
      know_host(host);
    }
    for (const re2::RE2* re : {&kNccl, &kUname, &kSyslog, &kNamed, &kMpi, &kSlurm, &kSsh, &kNodeRow})
      if (re2::RE2::PartialMatch(line, *re, &host)) know_host(host);
    for (const re2::RE2* re : {&kHome, &kOwner}) {
      std::string_view rest = line;
      while (re2::RE2::PartialMatch(rest, *re, &user)) {
        know_user(user);
        rest.remove_prefix(std::min(rest.size(), rest.find(user) + user.size()));
      }
    }
  }
}

std::string Pseudonyms::ipv4(const std::string& address) {
  const size_t dot = address.rfind('.');
  const std::string subnet = address.substr(0, dot);
  const int s = subnets_.emplace(subnet, int(subnets_.size())).first->second;
  auto& hosts = hosts_in_subnet_[subnet];
  const int h = hosts.emplace(address, int(hosts.size()) + 1).first->second;
  return fmt::format("198.{}.{}.{}", 18 + s / 256 % 2, s % 256,
                     h % 256);  // 198.18.0.0/15 is set aside for tests
}

std::string Pseudonyms::make(const std::string& what, const std::string& original) {
  const int n = ++counts_[what];
  if (what == "ipv4") return ipv4(original);
  if (what == "gid") {  // perftest prints them in decimal: the address behind it is the same as elsewhere
    const auto parts = split(original, ':');
    std::string address;
    for (size_t k = 12; k < 16; ++k) address += (k > 12 ? "." : "") + std::string(parts[k]);
    return join(std::vector<std::string>(10, "00"), ":") + ":255:255:" + replace_all(ipv4(address), ".", ":");
  }
  if (what == "account") return fmt::format("{:012}", n);
  if (what == "ipv6" && original.size() == 39) {  // a GID as sysfs prints it: its kind must stay visible
    const std::string mapped = "0000:0000:0000:0000:0000:ffff:";
    if (starts_with(lower(original), mapped)) {
      int part[4] = {0, 0, 0, 0};
      for (int k = 0; k < 4; ++k)
        part[k] = int(parse_int("0x" + original.substr(size_t(30 + k * 2 + k / 2), 2)).value_or(0));
      const std::string fake = ipv4(fmt::format("{}.{}.{}.{}", part[0], part[1], part[2], part[3]));
      const auto pieces = split(fake, '.');
      for (int k = 0; k < 4; ++k) part[k] = int(parse_int(pieces[size_t(k)]).value_or(0));
      return fmt::format("{}{:02x}{:02x}:{:02x}{:02x}", mapped, part[0], part[1], part[2], part[3]);
    }
    return (starts_with(lower(original), "fe80") ? "fe80" : "2001") +
           fmt::format(":0000:0000:0000:0000:5eed:0000:{:04x}", n);
  }
  if (what == "ipv6")
    return (starts_with(lower(original), "fe80") ? "fe80::5eed:" : "2001:db8::") + fmt::format("{:x}", n);
  if (what == "mac") {
    std::string out = "02";
    for (size_t i = 1; i < (original.size() + 1) / 3; ++i)
      out += i + 1 == (original.size() + 1) / 3 ? fmt::format(":{:02x}", n & 255) : ":00";
    return out;
  }
  if (what == "guid")
    return starts_with(original, "0x") ? fmt::format("0x5eed{:012x}", n)
                                       : fmt::format("5eed:0000:0000:{:04x}", n);
  if (what == "uuid") return fmt::format("00000000-0000-4000-8000-{:012x}", n);
  if (what == "email") return fmt::format("person-{}@example.org", n);
  return fmt::format("{}-{}", what, n);
}

const std::string& Pseudonyms::stand_in(const std::string& what, const std::string& original) {
  auto key =
      std::make_pair(what, what == "token" || what == "host" || what == "user" ? original : lower(original));
  auto it = map_.find(key);
  if (it == map_.end()) {
    it = map_.emplace(key, make(what, original)).first;
    entries_.push_back({what, original, it->second});
    stand_ins_.insert(it->second);
  }
  return it->second;
}

std::string Pseudonyms::replace(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    std::string next;
    std::string_view rest = out;
    std::string before, value;
    while (re2::RE2::PartialMatch(rest, compiled(i), &before, &value)) {
      const size_t at = rest.find(before + value) + before.size();
      next.append(rest.substr(0, at));
      next +=
          keep(kShapes[i].what, value) || stand_ins_.count(value) ? value : stand_in(kShapes[i].what, value);
      rest.remove_prefix(at + value.size());
    }
    next.append(rest);
    out = std::move(next);
  }
  return replace_names(out);
}

std::string Pseudonyms::replace_names(std::string_view text) const {
  std::string out(text);
  // Longest first, so that a full name is not cut by its short form.
  std::vector<std::pair<std::string, std::string>> words(words_.begin(), words_.end());
  std::sort(words.begin(), words.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [name, stand] : words) {
    std::string next;
    size_t from = 0;
    for (size_t at; (at = out.find(name, from)) != std::string::npos; from = at + name.size()) {
      next.append(out, from, at - from);
      const bool whole = (at == 0 || !word_byte(out[at - 1])) &&
                         (at + name.size() == out.size() || !word_byte(out[at + name.size()]));
      next += whole ? stand : name;
    }
    next.append(out, from);
    out = std::move(next);
  }
  return out;
}

}  // namespace ep
