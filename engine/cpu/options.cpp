#include "cpu/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

namespace ep::engine::cpu {

namespace {

/// Sets an option from its text; returns "" or what was expected.
using Setter = std::function<std::string(Options&, const std::string&)>;

struct Flag {
  const char* name;
  const char* value;  // "" for switches
  const char* sentence;
  Setter set;
};

template <class Number>
Setter number(Number Options::*field, Number low, Number high) {
  return [=](Options& options, const std::string& text) -> std::string {
    Number value{};
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec == std::errc() && end.ptr == text.data() + text.size() && value >= low && value <= high) {
      options.*field = value;
      return {};
    }
    return "a number from " + std::to_string(low) + " to " + std::to_string(high);
  };
}

Setter shape_number(int32_t Shape::*field, int32_t low, int32_t high) {
  return [=](Options& options, const std::string& text) -> std::string {
    int32_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec == std::errc() && end.ptr == text.data() + text.size() && value >= low && value <= high) {
      options.shape.*field = value;
      return {};
    }
    return "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  };
}

Setter word(std::string Options::*field, std::vector<std::string> allowed) {
  return [=](Options& options, const std::string& text) -> std::string {
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
      options.*field = text;
      return {};
    }
    std::string expected = "one of";
    for (const auto& choice : allowed) expected += " " + choice;
    return expected;
  };
}

Setter on(bool Options::*field) {
  return [=](Options& options, const std::string&) -> std::string {
    options.*field = true;
    return {};
  };
}

std::string set_dtype(Options& options, const std::string& text) {
  return parse_dtype(text, options.shape.dtype) ? "" : "bf16 or fp8";
}

std::string set_pattern(Options& options, const std::string& text) {
  if (parse_pattern(text, options.pattern)) return {};
  std::string expected = "one of";
  for (const auto& row : all_patterns()) expected += std::string(" ") + row.name;
  return expected;
}

std::string set_backing(Options& options, const std::string& text) {
  if (text != "memfd" && text != "posix") return "memfd or posix";
  options.backing = text == "memfd" ? Backing::kMemfd : Backing::kPosix;
  return {};
}

std::string set_fault(Options& options, const std::string& text) {
  return parse_fault(text, options.fault);
}

const std::vector<Flag>& flags() {
  static const std::vector<Flag> kFlags = {
      {"--ranks", "N", "processes that exchange tokens (4)", shape_number(&Shape::ranks, 1, kMaxRanks)},
      {"--num-tokens", "N", "tokens of each rank (2048)", shape_number(&Shape::max_tokens, 0, (1 << 24) - 1)},
      {"--hidden", "N", "values of a row (7168)", shape_number(&Shape::hidden, 1, 1 << 18)},
      {"--num-experts", "N", "experts of all ranks (256)", shape_number(&Shape::experts, 1, kMaxExperts)},
      {"--num-topk", "N", "experts that a token selects (8)", shape_number(&Shape::topk, 1, kMaxTopk)},
      {"--dtype", "T", "bf16, or fp8 (e4m3 with a float scale per 128 values) for dispatch (bf16)",
       set_dtype},
      {"--pattern", "P", "routing: uniform hot masked one-rank uneven zero all-zero (uniform)", set_pattern},
      {"--seed", "N", "seed of routing and data (1)", number<uint64_t>(&Options::seed, 0, UINT64_MAX)},
      {"--iters", "N", "timed iterations (20)", number<int>(&Options::iters, 1, 100000)},
      {"--warmup", "N", "iterations before, checked but not timed (3)",
       number<int>(&Options::warmup, 0, 100000)},
      {"--weighted", "", "weighted combine", on(&Options::weighted)},
      {"--threads", "N", "threads of each rank (1)", number<int>(&Options::threads, 1, 256)},
      {"--copy", "K", "copy functions: auto plain sse2 avx2 avx512 (auto)",
       word(&Options::copy, {"auto", "plain", "sse2", "avx2", "avx512"})},
      {"--pin", "W", "one CPU for each rank: auto on off (auto: when there are enough)",
       word(&Options::pin, {"auto", "on", "off"})},
      {"--shm", "B", "shared memory: memfd or posix (memfd)", set_backing},
      {"--memory-limit-mb", "N", "use no more memory than this; 0 = what the machine has (0)",
       number<uint64_t>(&Options::memory_limit_mb, 0, uint64_t{1} << 40)},
      {"--min-share", "X", "share of the ceiling below which the verdict is WARN (0.85)",
       number<double>(&Options::min_share, 0, 10)},
      {"--peers", "P", "compare with other exchanges: auto none mpi (auto: those that are here)",
       word(&Options::peers, {"auto", "none", "mpi"})},
      {"--timeout-s", "X", "end the run when no rank moved for so long (30)",
       number<double>(&Options::timeout_s, 0.05, 86400)},
      {"--fault", "F", "for tests: die:RANK:PHASE, hang:RANK:PHASE or corrupt:RANK:PHASE", set_fault},
      {"--json", "", "result as JSON", on(&Options::json)},
      {"--list", "", "the cases", on(&Options::list)},
      {"--help", "", "this text", on(&Options::help)},
  };
  return kFlags;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = 3;
  for (const auto& name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string parse_options(const std::vector<std::string>& arguments, Options& out) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    if (name.compare(0, 1, "-") != 0) {
      if (!out.case_name.empty()) return "one case at a time: '" + out.case_name + "' or '" + name + "'";
      out.case_name = name;
      continue;
    }
    const size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name == "-h") name = "--help";
    const auto flag =
        std::find_if(flags().begin(), flags().end(), [&](const Flag& f) { return name == f.name; });
    if (flag == flags().end()) {
      std::vector<std::string> names;
      for (const auto& f : flags()) names.push_back(f.name);
      const std::string near = nearest(name, names);
      return "unknown flag '" + name + "'" + (near.empty() ? "" : "; did you mean " + near + "?");
    }
    const bool takes_value = flag->value[0] != 0;
    if (takes_value && !joined) {
      if (i + 1 == arguments.size()) return name + " needs a value: " + flag->sentence;
      value = arguments[++i];
    }
    if (!takes_value && joined) return name + " takes no value";
    const std::string expected = flag->set(out, value);
    if (!expected.empty()) return name + " '" + value + "': expected " + expected;
  }
  return {};
}

std::string flags_help() {
  std::string out;
  for (const auto& flag : flags()) {
    std::string left = std::string("  ") + flag.name + " " + flag.value;
    left.resize(std::max<size_t>(left.size() + 1, 24), ' ');
    out += left + flag.sentence + "\n";
  }
  return out;
}

}  // namespace ep::engine::cpu
