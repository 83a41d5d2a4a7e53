// Lines of servers, trainers and libraries at work.
#include "doctor/bench_lines.h"

namespace ep::bench_lines {

void vllm(Pen& p) {
  Dice& d = p.d;
  const int dp = d.below(16);
  const std::string head = fmt::format("(EngineCore_DP{} pid={}) ", dp, 4100 + dp);
  switch (d.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return p.put(
          "{}INFO 11-30 {} [loggers.py:127] Engine {:03}: Avg prompt throughput: {:.1f} tokens/s, Avg "
          "generation throughput: {:.1f} tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache "
          "usage: {:.1f}%, Prefix cache hit rate: {:.1f}%, MM cache hit rate: 0.0%\n",
          head, p.clock(), dp, d.real(9000), d.real(2000), d.below(256), d.below(20), d.real(100),
          d.real(100));
    case 4:
    case 5:
    case 6:
    case 7:
      return p.put("(APIServer pid=4001) INFO:     10.12.{}.{}:{} - \"{} HTTP/1.1\" {}\n", d.below(250),
                   d.below(250), 20000 + d.below(40000),
                   d.of({"POST /v1/chat/completions", "GET /health", "GET /metrics", "POST /v1/completions"}),
                   d.below(40) ? "200 OK" : "400 Bad Request");
    case 8:
      return p.put(
          "(APIServer pid=4001) INFO 11-30 {} [logger.py:41] Received request chatcmpl-{:016x}{:016x}: "
          "prompt: None, params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, "
          "repetition_penalty=1.0, temperature={:.2f}, top_p=0.95, top_k=0, min_p=0.0, seed=None, "
          "stop=[], stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, "
          "ignore_eos=False, max_tokens={}, min_tokens=0, logprobs=None, prompt_logprobs=None, "
          "skip_special_tokens=True, guided_decoding=None, extra_args=None), prompt_token_ids: None, "
          "prompt_embeds shape: None, lora_request: None.\n",
          p.clock(), d.next(), d.next(), d.real(1), 128 + d.below(8000));
    case 9:
      return p.put(
          "(APIServer pid=4001) INFO 11-30 {} [async_llm.py:269] Added request chatcmpl-{:016x}{:016x}.\n",
          p.clock(), d.next(), d.next());
    case 10:
      return p.put(
          "{}DEBUG 11-30 {} [core.py:812] EngineCore loop active. {} requests unfinished, {} blocks "
          "free, wave {}\n",
          head, p.clock(), d.below(300), d.below(20000), d.below(100000));
    default:
      return p.put(
          "(Worker_DP{0}_EP{0} pid={1}) WARNING 11-30 {2} [fused_moe.py:881] Using default MoE config. "
          "Performance might be sub-optimal! Config file not found at /usr/local/lib/python3.12/"
          "dist-packages/vllm/model_executor/layers/fused_moe/configs/E={3},N=2048,device_name="
          "NVIDIA_H200,dtype=fp8_w8a8.json\n",
          dp, 4300 + dp, p.clock(), d.below(64));
  }
}

void sglang(Pen& p) {
  Dice& d = p.d;
  const int r = d.below(16);
  const std::string head = fmt::format("[2026-11-30 {} DP{} TP{} EP{}] ", p.clock(), r, r, r);
  switch (d.below(8)) {
    case 0:
    case 1:
    case 2:
      return p.put(
          "{}Decode batch. #running-req: {}, #token: {}, token usage: {:.2f}, accept len: {:.2f}, cuda "
          "graph: True, gen throughput (token/s): {:.2f}, #queue-req: {},\n",
          head, d.below(128), d.below(100000), d.real(1), 1 + d.real(2), d.real(3000), d.below(9));
    case 3:
    case 4:
      return p.put(
          "{}Prefill batch. #new-seq: {}, #new-token: {}, #cached-token: {}, token usage: {:.2f}, "
          "#running-req: {}, #queue-req: {}, #unbootstrapped-req: 0, #transferring-req: {}, input "
          "throughput (token/s): {:.2f},\n",
          head, d.below(8), d.below(8192), d.below(4096), d.real(1), d.below(64), d.below(30), d.below(30),
          d.real(30000));
    case 5:
    case 6:
      return p.put("[2026-11-30 {}] INFO:     10.1.{}.{}:{} - \"POST /{} HTTP/1.1\" 200 OK\n", p.clock(),
                   d.below(250), d.below(250), 20000 + d.below(40000),
                   d.of({"generate", "v1/chat/completions", "v1/completions"}));
    default:
      return p.put(
          "{}max_total_num_tokens={}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
          "max_running_requests={}, context_len=131072, available_gpu_mem={:.2f} GB\n",
          head, d.below(900000), d.below(2048), d.real(20));
  }
}

void nccl(Pen& p) {
  Dice& d = p.d;
  const int node = d.below(16), gpu = d.below(8), rank = node * 8 + gpu, peer = (rank + 8) % 128,
            ch = d.below(32);
  const std::string head = fmt::format("gpu-{:02}:{}:{} [{}] NCCL INFO ", node, 4100 + gpu, 4300 + gpu, gpu);
  switch (d.below(14)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return p.put("{}Channel {:02}/0 : {}[{}] -> {}[{}] [{}] via NET/IB/{}/GDRDMA\n", head, ch, rank, gpu,
                   peer, gpu, d.of({"send", "receive"}), gpu);
    case 4:
    case 5:
    case 6:
      return p.put("{}Channel {:02}/0 : {}[{}] -> {}[{}] via P2P/CUMEM\n", head, ch, rank, gpu,
                   node * 8 + (gpu + 1) % 8, (gpu + 1) % 8);
    case 7:
      return p.put(
          "{}Trees [0] {}/-1/-1->{}->{} [1] {}/{}/-1->{}->-1 [2] -1/-1/-1->{}->{} [3] {}/-1/-1->{}->{}\n",
          head, peer, rank, gpu, rank + 1, peer, rank, rank, gpu, peer, rank, gpu);
    case 8:
      return p.put("{}comm 0x{:012x} rank {} nRanks 128 nNodes 16 localRanks 8 localRank {} MNNVL 0\n", head,
                   d.next() >> 20, rank, gpu);
    case 9:
      return p.put(
          "{}AllReduce: opCount {:x} sendbuff 0x{:012x} recvbuff 0x{:012x} count {} datatype 9 op 0 root 0 "
          "comm 0x{:012x} [nranks=128] stream 0x{:012x}\n",
          head, d.below(100000), d.next() >> 20, d.next() >> 20, d.below(1 << 28), d.next() >> 20,
          d.next() >> 20);
    case 10:
      return p.put(
          "{}NET/IB: IbDev {} Port 1 qpn {} mtu 5 query_ece={{supported=1, vendor_id=0x15b3, "
          "options=0x30000002, comp_mask=0x0}} GID {} (0/{:X}) fifoRkey=0x{:x} fifoLkey=0x{:x}\n",
          head, gpu, 500 + d.below(9000), 3, d.next() >> 8, d.next() >> 40, d.next() >> 40);
    case 11:
      return p.put("{}Connected all {}\n", head, d.of({"rings, use ring PXN 0 GDR 1", "trees", "rings"}));
    case 12:
      return p.put("{}{}\n", head,
                   d.of({"32 coll channels, 32 collnet channels, 0 nvls channels, 32 p2p channels, 4 p2p "
                         "channels per peer",
                         "threadThresholds 8/8/64 | 1024/8/64 | 512 | 512",
                         "TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.",
                         "ncclCommInitRankConfig comm init COMPLETE", "Using network IB",
                         "DMA-BUF is available on GPU device", "NCCL_IB_GID_INDEX set by environment to 3.",
                         "Setting affinity for GPU to ffff,ffff0000"}));
    default:
      return p.put(
          "{}proxyProgressAsync opId=0x{:012x} op.type={} op.reqBuff=0x{:012x} op.respSize={} done\n", head,
          d.next() >> 20, d.below(9), d.next() >> 20, d.below(200));
  }
}

void train(Pen& p) {
  Dice& d = p.d;
  const int r = d.below(64);
  switch (d.below(8)) {
    case 0:
    case 1:
    case 2:
      return p.put(
          "[default{}]: [2026-11-30 {}] iteration {:8}/ 5000000 | consumed samples: {:12} | elapsed time per "
          "iteration (ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): {:.1f} | learning rate: {:.6E} | "
          "global "
          "batch size: 1024 | lm loss: {:.6E} | load_balancing_loss: {:.6E} | loss scale: 1.0 | grad norm: "
          "{:.3f} | number of skipped iterations: 0 | number of nan iterations: 0 |\n",
          r % 8, p.clock(), p.tick, p.tick * 1024, d.real(2000), d.real(600), d.real(0.001), d.real(9),
          d.real(2), d.real(1));
    case 3:
      return p.put(
          "    forward-backward ...............................: ({:.2f}, {:.2f})\n"
          "    all-grads-sync .................................: ({:.2f}, {:.2f})\n"
          "    optimizer-inner-step ...........................: ({:.2f}, {:.2f})\n",
          d.real(900), d.real(990), d.real(90), d.real(99), d.real(9), d.real(9));
    case 4:
      return p.put(
          "[Rank {}] (after {} iterations) memory (MB) | allocated: {:.4f} | max allocated: {:.4f} | "
          "reserved: "
          "{:.1f} | max reserved: {:.1f}\n",
          r, p.tick, d.real(90000), d.real(90000), d.real(90000), d.real(90000));
    case 5:
      return p.put(
          "node{}: {{'loss': {:.4f}, 'grad_norm': {:.4f}, 'learning_rate': {:.3e}, 'epoch': {:.2f}}}\n",
          r / 8, d.real(9), d.real(2), d.real(0.001), d.real(3));
    case 6:
      return p.put(
          "[rank{}]:W1130 {}.{:06} {} torch/_dynamo/convert_frame.py:960] [{}/{}] function: 'forward' "
          "(/usr/local/lib/python3.12/dist-packages/megatron/core/transformer/moe/router.py:{}) last reason: "
          "{}/0: tensor 'x' size mismatch at index 0. expected {}, actual {}\n",
          r, p.clock(), d.below(1000000), 4100 + r % 8, d.below(90), d.below(8), d.below(400), d.below(90),
          d.below(9000), d.below(9000));
    default:
      return p.put("[rank{}]: step {} loss {:.4f} lr {:.2e} mem {:.1f}GiB({:.0f}%) tps {} mfu {:.2f}%\n", r,
                   p.tick, d.real(9), d.real(0.001), d.real(80), d.real(100), d.below(9000), d.real(60));
  }
}

void deepep(Pen& p) {
  Dice& d = p.d;
  const int r = d.below(32);
  switch (d.below(8)) {
    case 0:
    case 1:
      return p.put(
          "[tuning] SMs {}, NVL chunk {}, RDMA chunk {}: {:.2f} + {:.2f} us, {:.2f} GB/s (RDMA), {:.2f} GB/s "
          "(NVL)\n",
          24, 4 + d.below(40), 4 + d.below(28), d.real(90), d.real(2000), d.real(60), d.real(160));
    case 2:
    case 3:
      return p.put(
          "[rank {}] Dispatch + combine bandwidth: {:.2f} GB/s, avg_t={:.2f} us, min_t={:.2f} us, "
          "max_t={:.2f} us\n",
          r, d.real(100), d.real(900), d.real(900), d.real(900));
    case 4:
      return p.put("[testing] Running with {}, {}top-k (async={}, previous={}) ... passed\n",
                   d.of({"FP8", "BF16"}), d.of({"with ", "without "}), d.of({"True", "False"}),
                   d.of({"True", "False"}));
    case 5:
      return p.put(
          "/src/nvshmem/src/modules/transport/ibgda/ibgda.cpp:{}: NULL value ep_handle: {:x} rank {} qp {} "
          "cq {}\n",
          d.below(4000), d.next() >> 16, r, d.below(9000), d.below(9000));
    case 6:
      return p.put(
          "gpu-{:02}:{}:{} [{}] NVSHMEM INFO mem handle {:x} registered, peer {} addr 0x{:012x} size {}\n",
          r / 8, 4100 + r % 8, 4300 + r % 8, r % 8, d.next(), d.below(32), d.next() >> 20, d.next() >> 30);
    default:
      return p.put(
          "[rank {}] Dispatch bandwidth: {:.2f} GB/s, avg_t={:.2f} us | Combine bandwidth: {:.2f} GB/s, "
          "avg_t={:.2f} us\n",
          r, d.real(60), d.real(900), d.real(60), d.real(900));
  }
}

}  // namespace ep::bench_lines
