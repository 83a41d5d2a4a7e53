// Lines of builds, kernels, terminals and services around them.
#include "doctor/bench_lines.h"

namespace ep::bench_lines {

void build(Pen& p) {
  Dice& d = p.d;
  static const char* const kUnits[] = {
      "internode",    "intranode", "layout", "runtime",       "flash_fwd_hdim128", "moe_align",
      "gemm_grouped", "elastic",   "engine", "cache_kernels", "custom_all_reduce"};
  const char* unit = d.of(kUnits);
  const int n = d.below(900);
  switch (d.below(10)) {
    case 0:
    case 1:
    case 2:
      return p.put(
          "[{}/900] /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile --dependency-output "
          "/src/build/temp/{}.o.d -I/usr/local/lib/python3.12/dist-packages/torch/include "
          "-I/usr/local/lib/python3.12/dist-packages/torch/include/torch/csrc/api/include "
          "-I/usr/local/cuda/include -I/opt/nvshmem/include -I/usr/include/python3.12 -c -c "
          "/src/csrc/kernels/{}.cu -o "
          "/src/build/temp/{}_{}.o -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ "
          "--expt-relaxed-constexpr --compiler-options ''\"'\"'-fPIC'\"'\"'' -O3 -std=c++17 "
          "--ptxas-options=-v "
          "-gencode=arch=compute_90a,code=sm_90a -rdc=true -DTORCH_API_INCLUDE_EXTENSION_H "
          "-DTORCH_EXTENSION_NAME=_C\n",
          n, unit, unit, unit, n);
    case 3:
      return p.put(
          "ptxas info    : Function properties for _ZN7kernels{}{}{:x}EPKvPviii\n    {} bytes stack frame, 0 "
          "bytes "
          "spill stores, 0 bytes spill loads\nptxas info    : Used {} registers, used {} barriers, {} bytes "
          "cumulative stack size, {} bytes smem\n",
          10 + d.below(20), unit, d.next(), d.below(300), d.below(255), d.below(16), d.below(600),
          d.below(200000));
    case 4:
      return p.put(
          "/src/csrc/kernels/{}.cu({}): warning #177-D: variable \"{}\" was declared but never referenced\n"
          "      const auto num_bytes_{} = hidden * sizeof(int4);\n                 ^\n\n",
          unit, d.below(2000), d.of({"lane_id", "num_sms", "rdma_rank", "warp_id"}), d.below(90));
    case 5:
      return p.put("[{:3}%] Building CXX object src/CMakeFiles/objects.dir/{}_{}.cpp.o\n", d.below(100), unit,
                   n);
    case 6:
      return p.put(
          "-- {}\n",
          d.of({"Looking for pthread.h - found", "Performing Test HAS_FLTO - Success",
                "Found CUDAToolkit: /usr/local/cuda/include (found version \"12.9.86\")",
                "The CXX compiler identification is GNU 13.3.0", "Detecting CUDA compile features - done",
                "Could NOT find MPI_CXX (missing: MPI_CXX_WORKS)", "Configuring done (2.1s)"}));
    case 7:
      return p.put(
          "copying build/lib.linux-x86_64-cpython-312/{0}/{1}_{2}.py -> "
          "build/bdist.linux-x86_64/wheel/./{0}\n",
          d.of({"vllm/model_executor/models", "sglang/srt/layers", "torch/_inductor"}), unit, n);
    case 8:
      return p.put(
          "Collecting {}=={}.{}.{}\n  Downloading {}-cp312-cp312-manylinux_2_28_x86_64.whl.metadata ({}.{} "
          "kB)\n"
          "Requirement already satisfied: numpy>=1.26 in /usr/local/lib/python3.12/dist-packages (from {}) "
          "(2.2.6)\n",
          unit, d.below(9), d.below(30), d.below(9), unit, d.below(99), d.below(9), unit);
    default:
      return p.put(
          "g++ -pthread -B /opt/conda/compiler_compat -fno-strict-overflow -Wsign-compare -DNDEBUG -O2 -Wall "
          "-fPIC "
          "-I/usr/local/cuda/include -c src/{}.cc -o build/{}_{}.o -MMD -MF build/{}.d\n",
          unit, unit, n, unit);
  }
}

void kernel(Pen& p) {
  Dice& d = p.d;
  const std::string head = d.below(2) ? fmt::format("[{:6}.{:06}] ", p.tick / 30, d.below(1000000))
                                      : fmt::format("Nov 30 {} gpu-{:02} kernel: [{:6}.{:06}] ", p.clock(),
                                                    d.below(16), p.tick / 30, d.below(1000000));
  const int bus = d.below(256);
  switch (d.below(12)) {
    case 0:
      return p.put("{}mlx5_core 0000:{:02x}:00.0: Port module event: module {}, Cable plugged\n", head, bus,
                   d.below(8));
    case 1:
      return p.put("{}pci 0000:{:02x}:00.0: BAR {} [mem 0x{:012x}-0x{:012x} 64bit pref]: assigned\n", head,
                   bus, d.below(6), d.next() >> 20, d.next() >> 20);
    case 2:
      return p.put(
          "{}audit: type=1400 audit({}.{:03}:{}): apparmor=\"STATUS\" operation=\"profile_replace\" "
          "profile=\"unconfined\" name=\"docker-default\" pid={} comm=\"apparmor_parser\"\n",
          head, 1796000000 + d.below(100000), d.below(1000), d.below(9000), d.below(99999));
    case 3:
      return p.put("{}veth{:07x}: entered promiscuous mode\n{}eth0: renamed from veth{:07x}\n", head,
                   d.below(1 << 28), head, d.below(1 << 28));
    case 4:
      return p.put("{}cni0: port {}(veth{:08x}) entered {} state\n", head, d.below(60), d.next() >> 32,
                   d.of({"blocking", "forwarding", "disabled"}));
    case 5:
      return p.put("{}nvidia-nvlink: Nvlink Core is being initialized, major device number {}\n", head,
                   d.below(511));
    case 6:
      return p.put("{}systemd[1]: Started Session {} of user root.\n", head, d.below(100000));
    case 7:
      return p.put(
          "{}[UFW BLOCK] IN=eth0 OUT= MAC={:012x} SRC=10.0.{}.{} DST=10.0.0.{} LEN=40 TTL=244 ID={} "
          "PROTO=TCP "
          "SPT={} DPT={} WINDOW=1024 RES=0x00 SYN URGP=0\n",
          head, d.next() >> 16, d.below(255), d.below(255), d.below(255), d.below(65535), d.below(65535),
          d.below(65535));
    case 8:
      return p.put(
          "Nov 30 {} gpu-{:02} kubelet[2211]: I1130 {}.{:06}    2211 reconciler_common.go:{}] "
          "\"operationExecutor.Verify"
          "ControllerAttachedVolume started for volume\" volumeName=\"kubernetes.io/{:x}\"\n",
          p.clock(), d.below(16), p.clock(), d.below(1000000), d.below(500), d.next());
    case 9:
      return p.put(
          "{}EDAC MC{}: {} CE memory read error on CPU_SrcID#{} (channel:{} page:0x{:x} offset:0x{:x})\n",
          head, d.below(8), 1, d.below(2), d.below(8), d.next() >> 36, d.below(4096));
    case 10:
      return p.put("{}IPv6: ADDRCONF(NETDEV_CHANGE): cali{:x}: link becomes ready\n", head, d.next() >> 20);
    default:
      return p.put("Nov 30 {} gpu-{:02} sshd[{}]: Connection closed by 10.0.{}.{} port {} [preauth]\n",
                   p.clock(), d.below(16), d.below(99999), d.below(255), d.below(255), d.below(65535));
  }
}

void progress(Pen& p) {
  Dice& d = p.d;
  const int done = d.below(163), percent = done * 100 / 163;
  const std::string bar(size_t(percent / 10), d.below(2) ? '#' : '=');
  switch (d.below(6)) {
    case 0:
    case 1:
      return p.put(
          "\rLoading safetensors checkpoint shards: {:3}% Completed | {}/163 [{:02}:{:02}<{:02}:{:02}, "
          "{:5.2f}it/s]{}",
          percent, done, d.below(60), d.below(60), d.below(60), d.below(60), d.real(20),
          d.below(20) ? "" : "\n");
    case 2:
      return p.put(
          "\rmodel-{:05}-of-00163.safetensors: {:3}%|{:<10}| {:.2f}G/4.30G [{:02}:{:02}<{:02}:{:02}, "
          "{:.0f}MB/s]{}",
          done, percent, bar, d.real(4.3), d.below(60), d.below(60), d.below(60), d.below(60), d.real(900),
          d.below(20) ? "" : "\n");
    case 3:
      return p.put(
          "(EngineCore_DP{} pid={}) \rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE): {:3}%|{:<10}| "
          "{}/67 "
          "[00:{:02}<00:{:02}, {:5.2f}it/s]\n",
          d.below(16), 4100 + d.below(16), percent, bar, d.below(67), d.below(60), d.below(60), d.real(9));
    case 4:
      return p.put(
          "\x1b[1;36m(VllmWorker rank={} pid={})\x1b[0;0m DeepGEMM warmup: {:3}%|{:<10}| {}/8192 "
          "[{:02}:{:02}<{:02}:{:02}, "
          "{:.1f}it/s]\r",
          d.below(16), 4000 + d.below(99), percent, bar, d.below(8192), d.below(60), d.below(60), d.below(60),
          d.below(60), d.real(90));
    default:
      return p.put("\x1b[2K\x1b[1G{} {:<24} {}/s eta 0:{:02}:{:02}\x1b[0m\n", d.of({"⠋", "⠙", "⠹", "⠸"}),
                   "━━━━━━━━━━", fmt::format("{:.1f} MB", d.real(300)), d.below(60), d.below(60));
  }
}

void json(Pen& p) {
  Dice& d = p.d;
  const int r = d.below(16);
  switch (d.below(4)) {
    case 0:
      return p.put(
          "{{\"timestamp\":\"2026-11-30T{}.{:06}Z\",\"level\":\"INFO\",\"target\":\"dynamo_runtime::pipeline:"
          ":network\","
          "\"message\":\"request "
          "completed\",\"request_id\":\"{:016x}-{:016x}\",\"latency_ms\":{:.3f},\"ttft_ms\":{:.3f},"
          "\"tokens\":{},\"status\":200,\"error\":null}}\n",
          p.clock(), d.below(1000000), d.next(), d.next(), d.real(9000), d.real(900), d.below(8000));
    case 1:
      return p.put(
          "{{\"log\":\"(EngineCore_DP{} pid={}) INFO 11-30 {} [loggers.py:127] Engine {:03}: Avg prompt "
          "throughput: "
          "{:.1f} tokens/s, Running: {} reqs, Waiting: 0 "
          "reqs\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-30T{}.{:09}Z\"}}\n",
          r, 4100 + r, p.clock(), r, d.real(9000), d.below(200), p.clock(), d.below(1000000000));
    case 2:
      return p.put(
          "{{\"ts\":{}.{:03},\"level\":\"debug\",\"logger\":\"controller.leader\",\"caller\":"
          "\"leaderworkerset/controller.go:{}\","
          "\"msg\":\"Reconciling\",\"namespace\":\"inference\",\"name\":\"decode-{}\",\"reconcileID\":\"{:"
          "016x}\","
          "\"failed\":0,\"retries\":{}}}\n",
          1796000000 + p.tick / 40, d.below(1000), d.below(400), d.below(64), d.next(), d.below(3));
    default:
      return p.put(
          "{{\"name\":\"ncclKernel_AllReduce_RING_LL_Sum_bfloat16\",\"cat\":\"kernel\",\"ph\":\"X\",\"pid\":{"
          "},\"tid\":{},"
          "\"ts\":{},\"dur\":{},\"args\":{{\"External "
          "id\":{},\"device\":{},\"stream\":{},\"correlation\":{}}}}}\n",
          r, d.below(64), 1796000000000 + p.tick, d.below(9000), d.below(1000000), r % 8, d.below(64),
          d.below(1000000));
  }
}

void complaints(Pen& p) {
  Dice& d = p.d;
  const int r = d.below(16);
  switch (d.below(9)) {
    case 0:
      return p.put(
          "WARNING 11-30 {} [health.py:{}] probe of http://10.0.{}.{}:8000/health failed with status {}: "
          "retrying in {} s\n",
          p.clock(), d.below(400), d.below(250), d.below(250), 503, d.below(30));
    case 1:
      return p.put(
          "2026-11-30 {},{:03} - ERROR - tool call could not be parsed: Expecting value: line {} column {} "
          "(char {})\n",
          p.clock(), d.below(1000), d.below(90), d.below(90), d.below(9000));
    case 2:
      return p.put(
          "Traceback (most recent call last):\n  File "
          "\"/usr/local/lib/python3.12/dist-packages/vllm/entrypoints/"
          "openai/serving_chat.py\", line {}, in create_chat_completion\n    raise ValueError(f\"maximum "
          "context length "
          "is {}\")\nValueError: This model's maximum context length is {} tokens. However, you requested {} "
          "tokens.\n",
          d.below(900), d.below(131072), 131072, 131072 + d.below(9000));
    case 3:
      return p.put(
          "[rank{}]:[W1130 {}.{:09} ProcessGroupNCCL.cpp:{}] Warning: device_id was not given, using GPU {} "
          "for this "
          "barrier\n",
          r, p.clock(), d.below(1000000000), d.below(5000), r % 8);
    case 4:
      return p.put(
          "/usr/local/lib/python3.12/dist-packages/torch/utils/cpp_extension.py:{}: UserWarning: the flag "
          "was not set, all "
          "archs for visible cards are included for compilation.\n  warnings.warn(\n",
          d.below(2500));
    case 5:
      return p.put(
          "[2026-11-30 {}] client disconnected before response, request {:016x} aborted after {:.1f} s "
          "(timeout={})\n",
          p.clock(), d.next(), d.real(600), d.below(600));
    case 6:
      return p.put(
          "E1130 {}.{:06} {} grpc_client.go:{}] failed to export 12 spans: rpc error: code = Unavailable "
          "desc = connection "
          "error: dial tcp 10.0.{}.{}:4317: connect: connection refused\n",
          p.clock(), d.below(1000000), d.below(9000), d.below(300), d.below(250), d.below(250));
    case 7:
      return p.put(
          "(Worker_TP{} pid={}) WARNING 11-30 {} [custom_all_reduce.py:{}] Custom allreduce is disabled "
          "because it's not "
          "supported on more than two PCIe-only GPUs.\n",
          r, 4000 + r, p.clock(), d.below(300));
    default:
      return p.put("gpu-{:02}:{}:{} [{}] NCCL WARN NET/IB : Got async event : GID table change ({})\n", r,
                   4100 + r, 4300 + r, r % 8, d.below(1000000));
  }
}

}  // namespace ep::bench_lines
