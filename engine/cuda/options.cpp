// One table of options: name, what it sets, one line of help.
#include "options.h"

#include <charconv>
#include <cstdlib>
#include <functional>

namespace ep::engine::gpu {

namespace {

bool parse_int(const std::string& text, int& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}
bool parse_list(const std::string& text, std::vector<int>& out) {
  out.clear();
  for (size_t at = 0; at <= text.size();) {
    size_t comma = text.find(',', at);
    if (comma == std::string::npos) comma = text.size();
    int value = 0;
    if (!parse_int(text.substr(at, comma - at), value) || value < 0) return false;
    out.push_back(value);
    at = comma + 1;
  }
  return !out.empty();
}
bool parse_seconds(const std::string& text, double& out) {
  char* end = nullptr;
  out = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == 0 && out > 0;
}

struct Option {
  const char* name;
  const char* value;  // what follows it; null for a switch
  const char* help;
  std::function<bool(Options&, const std::string&)> set;
};

template <class T>
std::function<bool(Options&, const std::string&)> list(T Options::*field) {
  return [field](Options& o, const std::string& v) { return parse_list(v, o.*field); };
}
std::function<bool(Options&, const std::string&)> number(int Options::*field) {
  return [field](Options& o, const std::string& v) { return parse_int(v, o.*field) && o.*field >= 0; };
}

const std::vector<Option>& table() {
  static const std::vector<Option> kTable = {
      {"--num-tokens", "N[,N]", "tokens of each rank (2048); a list runs one after the other",
       [](Options& o, const std::string& v) { return parse_list(v, o.token_list); }},
      {"--hidden", "N", "values of a row (7168)",
       [](Options& o, const std::string& v) { return parse_int(v, o.shape.hidden); }},
      {"--num-experts", "N", "experts of all ranks (256)",
       [](Options& o, const std::string& v) { return parse_int(v, o.shape.experts); }},
      {"--num-topk", "N", "experts of a token (8)",
       [](Options& o, const std::string& v) { return parse_int(v, o.shape.topk); }},
      {"--dtype", "bf16|fp8", "rows of dispatch (bf16); combine moves bf16 always",
       [](Options& o, const std::string& v) { return parse_dtype(v, o.shape.dtype); }},
      {"--pattern", "NAME", "routing: uniform, hot, masked, one-rank, uneven, zero, all-zero",
       [](Options& o, const std::string& v) { return parse_pattern(v, o.pattern); }},
      {"--seed", "N", "of routing and data (1)",
       [](Options& o, const std::string& v) {
         o.seed = std::strtoull(v.c_str(), nullptr, 10);
         return !v.empty();
       }},
      {"--devices", "0,1", "GPU of each rank; the same GPU may appear several times",
       list(&Options::devices)},
      {"--ranks", "N", "ranks, dealt over the GPUs in turn (one per GPU)", number(&Options::ranks)},
      {"--mode", "threads|procs", "ranks as threads of one process, or processes (threads)",
       [](Options& o, const std::string& v) {
         o.procs = v == "procs";
         return v == "procs" || v == "threads";
       }},
      {"--provider", "p2p|ipc|vmm", "how ranks reach each other's memory (p2p; ipc with procs)",
       [](Options& o, const std::string& v) { return o.provider_set = parse_provider(v, o.provider); }},
      {"--path", "bulk|plain",
       "bulk copies (cc 9.0 and later), or 16-byte loads and stores (bulk where possible)",
       [](Options& o, const std::string& v) {
         o.path = v == "plain" ? Path::kPlain : Path::kBulk;
         return v == "plain" || v == "bulk";
       }},
      {"--iters", "N", "timed iterations (50)", number(&Options::iters)},
      {"--warmup", "N", "iterations before (10)", number(&Options::warmup)},
      {"--epochs", "N", "rounds of the stress case (2000)", number(&Options::epochs)},
      {"--timeout", "S", "a rank that waits longer gives up (10)",
       [](Options& o, const std::string& v) { return parse_seconds(v, o.timeout_s); }},
      {"--limit", "S", "the whole run is ended after this (240; procs)",
       [](Options& o, const std::string& v) { return parse_seconds(v, o.limit_s); }},
      {"--nccl", "FILE", "libnccl.so.2 for the peer cases (EPREADY_NCCL, the loader's, Python's)",
       [](Options& o, const std::string& v) {
         o.nccl = v;
         return !v.empty();
       }},
      {"--sms", "N[,N]", "multiprocessors of a rank (all)", list(&Options::sms)},
      {"--warps", "N[,N]", "dispatch: warps that move rows", list(&Options::warps)},
      {"--stages", "N[,N]", "dispatch: pieces in flight per warp", list(&Options::stages)},
      {"--lag", "N[,N]", "dispatch: stores that may still be reading when a stage is refilled",
       list(&Options::lag)},
      {"--seg", "N[,N]", "dispatch: bytes of a piece", list(&Options::seg)},
      {"--unroll", "N[,N]", "plain dispatch: vectors per thread, 4 or 7", list(&Options::unroll)},
      {"--ahead", "N[,N]", "dispatch: warps that load a piece before the counts are in",
       list(&Options::ahead)},
      {"--own", "N[,N]", "dispatch: warps that copy the rank's own rows (0: those that move the others)",
       list(&Options::own)},
      {"--combine", "auto|stream|pull|plain|words", "how combine moves rows (auto: words for many tokens)",
       [](Options& o, const std::string& v) {
         o.combine = v == "stream"  ? CombineMode::kStream
                     : v == "pull"  ? CombineMode::kPull
                     : v == "plain" ? CombineMode::kPullPlain
                     : v == "words" ? CombineMode::kWords
                                    : CombineMode::kAuto;
         return v == "auto" || o.combine != CombineMode::kAuto;
       }},
      {"--combine-warps", "N[,N]", "combine: warps", list(&Options::combine_warps)},
      {"--combine-stages", "N[,N]", "combine: pieces in flight per warp", list(&Options::combine_stages)},
      {"--adders", "N[,N]", "streamed combine: warps that add", list(&Options::adders)},
      {"--push-sms", "N[,N]",
       "combine by words: multiprocessors that only push, the others add (16; 0: all do both)",
       list(&Options::push_sms)},
      {"--combine-seg", "N[,N]", "combine: bytes of a piece", list(&Options::combine_seg)},
      {"--warm", nullptr, "leave the cache as it is between iterations",
       [](Options& o, const std::string&) { return o.warm = true; }},
      {"--no-peers", nullptr, "do not run NCCL and the copy engine beside ours",
       [](Options& o, const std::string&) { return !(o.peers = false); }},
      {"--busy-ok", nullptr, "measure although the gate says stop; every verdict says so",
       [](Options& o, const std::string&) { return o.gate_only_warns = true; }},
      {"--json", nullptr, "JSON on standard output",
       [](Options& o, const std::string&) { return o.json = true; }},
  };
  return kTable;
}

int first(const std::vector<int>& values, int otherwise = 0) {
  return values.empty() ? otherwise : values.front();
}

}  // namespace

Tuning Options::dispatch_tuning() const {
  Tuning t;
  t.ctas = first(sms), t.warps = first(warps), t.stages = first(stages), t.lag = first(lag);
  t.seg_bytes = first(seg), t.unroll = first(unroll), t.ahead = first(ahead, -1), t.own = first(own, -1);
  return t;
}
Tuning Options::combine_tuning() const {
  Tuning t;
  t.ctas = first(sms), t.warps = first(combine_warps), t.stages = first(combine_stages);
  t.seg_bytes = first(combine_seg), t.adders = first(adders);
  t.push_ctas = first(push_sms, -1);
  return t;
}

std::string option_help() {
  std::string out;
  for (const Option& o : table()) {
    std::string left = std::string("  ") + o.name + (o.value != nullptr ? std::string(" ") + o.value : "");
    left.resize(std::max<size_t>(left.size() + 1, 28), ' ');
    out += left + o.help + "\n";
  }
  return out;
}

std::string parse_options(int argc, char** argv, Options& out, bool& help) {
  help = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], value;
    if (word == "--help" || word == "-h") {
      help = true;
      return {};
    }
    if (word.rfind("--", 0) != 0) {
      if (!out.case_name.empty()) return "'" + word + "' after the case '" + out.case_name + "'";
      out.case_name = word;
      continue;
    }
    const size_t equals = word.find('=');
    const bool attached = equals != std::string::npos;
    if (attached) value = word.substr(equals + 1), word.resize(equals);
    const Option* option = nullptr;
    for (const Option& o : table()) {
      if (word == o.name) option = &o;
    }
    if (option == nullptr) return "no option " + word;
    if (option->value != nullptr && !attached) {
      if (++i == argc) return word + " needs " + option->value;
      value = argv[i];
    }
    if (!option->set(out, value))
      return "'" + value + "' is not a value of " + word + " (" + option->value + ")";
  }
  if (out.procs && !out.provider_set) out.provider = Provider::kIpc;
  if (out.token_list.empty()) out.token_list = {2048};
  return {};
}

}  // namespace ep::engine::gpu
