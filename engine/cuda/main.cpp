// epready-engine-gpu: dispatch and combine between the GPUs of a host, proved and measured. One case per
// process; the table of cases is below.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cases.h"
#include "failure.h"
#include "json.h"
#include "outcome.h"

namespace ep::engine::gpu {

namespace {

struct Case {
  const char* name;
  int (*run)(Group&, const Options&);
  const char* what;
};
constexpr Case kCases[] = {
    {"gate", case_gate, "GPUs, links, peer access, other processes, clocks: may this host be measured"},
    {"check", case_check, "exact comparison with the oracle: corners of the shape, then --num-tokens"},
    {"stress", case_stress, "--epochs rounds without host waits, random delays, row hashes each round"},
    {"fault", case_fault, "a rank that does not come: the others name it and the phase, and work again"},
    {"ceiling", case_ceiling, "what the link gives to stores, loads and copy engines, without protocol"},
    {"bench", case_bench, "the table of one shape or several, with ceilings and peers in the same run"},
    {"versus", case_versus, "ways of combine in turns within one run, against the one chosen by itself"},
    {"tune", case_tune, "dispatch and combine for every combination of the listed tilings"},
};

std::string usage() {
  std::string out = "usage: epready-engine-gpu CASE [options]\n\ncases:\n";
  for (const Case& c : kCases) {
    std::string left = std::string("  ") + c.name;
    left.resize(12, ' ');
    out += left + c.what + "\n";
  }
  return out + "\noptions:\n" + option_help() +
         "\nexit codes: 0 good, 1 wrong or failed, 2 usage, 3 cannot be done here, 70 our bug\n";
}

/// One rank per GPU, or `--ranks` dealt over them. Does not create a context, so that processes may follow.
std::string choose_devices(Options& o) {
  if (!o.devices.empty()) {
    if (o.ranks != 0 && o.ranks != static_cast<int>(o.devices.size()))
      return "--ranks and --devices disagree";
    return {};
  }
  int gpus = 0;
  const cudaError_t e = cudaGetDeviceCount(&gpus);
  if (e != cudaSuccess || gpus == 0) return "";
  const int ranks = o.ranks > 0 ? o.ranks : gpus;
  for (int r = 0; r < ranks; ++r) o.devices.push_back(r % gpus);
  return {};
}

int run(int argc, char** argv) {
  // Loading a kernel at its first launch waits for the GPU; ranks that wait for each other on one GPU would
  // stop.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  Options options;
  bool help = false;
  std::string wrong = parse_options(argc, argv, options, help);
  if (help) {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  const Case* chosen = nullptr;
  for (const Case& c : kCases) {
    if (options.case_name == c.name) chosen = &c;
  }
  if (wrong.empty() && chosen == nullptr) {
    wrong = options.case_name.empty() ? "no case is given" : "no case '" + options.case_name + "'";
  }
  // Counting devices initialises the driver, which does not survive fork: processes need --devices.
  if (wrong.empty() && options.procs && options.devices.empty()) {
    for (int r = 0; r < std::max(2, options.ranks); ++r) options.devices.push_back(r);
  }
  if (wrong.empty()) wrong = choose_devices(options);
  if (!wrong.empty()) {
    std::fprintf(stderr, "epready-engine-gpu: %s\nnext: epready-engine-gpu --help\n", wrong.c_str());
    return 2;
  }
  if (options.devices.empty()) {
    std::fprintf(stderr,
                 "epready-engine-gpu: no usable NVIDIA GPU or driver here\nnext: nvidia-smi; without a GPU, "
                 "epready-engine runs the same exchange over shared memory\n");
    if (options.json)
      std::fputs(failure_json(options, {3, -1, -1, "", "no usable NVIDIA GPU or driver here"}).c_str(),
                 stdout);
    return 3;
  }
  const int ranks = static_cast<int>(options.devices.size());
  open_outcome();
  const RankBody body = [&](Group& group) {
    try {
      return chosen->run(group, options);
    } catch (const Failure& f) {
      note_failure(group.rank(), f);
      throw;
    } catch (const std::exception& e) {
      note_failure(group.rank(), Failure(70, e.what()));
      throw;
    }
  };
  const int code = options.procs ? run_processes(ranks, options.limit_s, body) : run_threads(ranks, body);
  if (code != 0 && options.json && !written()) {
    Outcome outcome = first_failure();
    if (outcome.text.empty())
      outcome = {code, -1, -1, "", "a rank ended without saying why; see standard error"};
    std::fputs(failure_json(options, outcome).c_str(), stdout);
  }
  return code;
}

}  // namespace

GateResult pass_gate(Group& group, const Options& o) {
  GateResult gate;
  std::string stop;
  if (group.rank() == 0) {
    gate = read_gate(o.devices);
    for (const auto& s : gate.stop) stop += (stop.empty() ? "" : "; ") + s;
  }
  stop = first_text(group, o.gate_only_warns ? "" : stop);
  if (!stop.empty()) {
    throw Failure(3, "the gate is closed: " + stop +
                         "\nnext: free or mend the GPUs, or measure all the same with --busy-ok");
  }
  return gate;
}

int case_gate(Group& group, const Options& o) {
  if (group.rank() != 0) return 0;
  const GateResult gate = read_gate(o.devices);
  if (o.json) {
    Json json;
    json.begin_object().value("schema", "epready.engine.gate/1").value("tool", "epready-engine-gpu");
    to_json(gate, json);
    json.end_object();
    std::printf("%s\n", json.text().c_str());
    note_written();
  } else {
    std::fputs(to_text(gate).c_str(), stdout);
    std::printf("# verdict %s\n", gate.stop.empty() ? "PASS" : "FAIL");
  }
  return gate.stop.empty() ? 0 : 1;
}

}  // namespace ep::engine::gpu

int main(int argc, char** argv) {
  try {
    return ep::engine::gpu::run(argc, argv);
  } catch (const ep::engine::gpu::Failure& f) {
    std::fprintf(stderr, "epready-engine-gpu: %s\n", f.what());
    return f.exit_code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "epready-engine-gpu: %s\n", e.what());
    return 70;
  }
}
