"""Times of DeepEP on the GPUs of this host, beside which the engine's own can be laid: same shape, routing drawn
from the same distribution, cold cache, ranks aligned, slowest rank of each iteration, median. For whichever
generation is installed: `Buffer` (version 1, `v1`) or `ElasticBuffer` (version 2, `v2`). Needs PyTorch and DeepEP;
epready itself needs neither. It is not a test of DeepEP: it only checks that rows arrive and come back.

    python3 deepep_times.py v1|v2 [--tokens 128,2048,4096,8192] [--sms 0] [--ranks 2]
"""
import argparse
import os
import statistics

import torch
import torch.distributed as dist

HIDDEN, EXPERTS, TOPK = 7168, 256, 8


def timed(group, op, iters=30, warmup=5):
    """Median, over iterations, of the slowest rank's microseconds between events around `op`."""
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    word = torch.zeros(1, device="cuda")
    times = []
    for i in range(warmup + iters):
        flush.fill_(i & 127)
        dist.all_reduce(word, group=group)  # ranks leave it together
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        op()
        end.record()
        torch.cuda.synchronize()
        slowest = torch.tensor([begin.elapsed_time(end) * 1e3], device="cuda")
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=group)
        if i >= warmup:
            times.append(slowest.item())
    return statistics.median(times), min(times)


def kernels(op, iters=10):
    """Mean microseconds of every GPU kernel of `op`, by name, on this rank."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(iters):
            op()
        torch.cuda.synchronize()
    found = {}
    for event in profile.events():
        if str(event.device_type).endswith("CUDA"):
            found[event.name] = found.get(event.name, 0) + event.device_time / iters
    return found


def operations_v1(deep_ep, group, tokens, sms, inputs):
    deep_ep.Buffer.set_num_sms(sms or 24)
    buffer = deep_ep.Buffer(group, int(1e9), 0)
    x, idx, weights = inputs

    def full(rows=x):
        per_rank, _, per_expert, in_rank, _ = buffer.get_dispatch_layout(idx, EXPERTS)
        return buffer.dispatch(rows, topk_idx=idx, topk_weights=weights, num_tokens_per_rank=per_rank,
                               is_token_in_rank=in_rank, num_tokens_per_expert=per_expert)

    received, _, _, _, handle, _ = full()
    return (buffer, received, full, lambda: buffer.dispatch(x, handle=handle),
            lambda: buffer.combine(received, handle)[0])


def operations_v2(deep_ep, group, tokens, sms, inputs):
    buffer = deep_ep.ElasticBuffer(group, num_max_tokens_per_rank=tokens, hidden=HIDDEN, num_topk=TOPK,
                                   allow_hybrid_mode=False)
    x, idx, weights = inputs

    def full():
        return buffer.dispatch(x, topk_idx=idx, topk_weights=weights, num_experts=EXPERTS, num_sms=sms,
                               do_cpu_sync=False)

    received, _, _, handle, _ = full()
    return (buffer, received, full,
            lambda: buffer.dispatch(x, handle=handle, num_experts=EXPERTS, num_sms=sms),
            lambda: buffer.combine(received, handle, num_sms=sms)[0])


def run(rank, args):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29533", rank=rank, world_size=args.ranks,
                            device_id=torch.device("cuda", rank))
    group = dist.new_group(list(range(args.ranks)))
    import deep_ep
    torch.manual_seed(rank)
    for tokens in args.tokens:
        x = torch.full((tokens, HIDDEN), float(rank + 1), dtype=torch.bfloat16, device="cuda")
        idx = torch.rand(tokens, EXPERTS, device="cuda").topk(TOPK).indices
        idx = idx.to(getattr(deep_ep, "topk_idx_t", torch.int64))
        weights = torch.rand(tokens, TOPK, device="cuda")
        make = operations_v1 if args.generation == "v1" else operations_v2
        buffer, received, full, cached, combine = make(deep_ep, group, tokens, args.sms, (x, idx, weights))
        owners = idx // (EXPERTS // args.ranks)
        spread = sum((owners == r).any(dim=1).to(torch.float32) for r in range(args.ranks))
        back = combine().to(torch.float32)
        right = torch.equal(back, x.to(torch.float32) * spread[:, None])
        rows = torch.zeros(1, device="cuda") + spread.sum()
        dist.all_reduce(rows, group=group)
        logical = rows.item() / args.ranks * HIDDEN * 2
        for name, op in (("dispatch, layout and counts", full), ("dispatch, cached", cached), ("combine", combine)):
            median, least = timed(group, op)
            inside = ", ".join(f"{key.split('(')[0][-48:]} {us:.1f}" for key, us in kernels(op).items())
            if rank == 0:
                print(f"deepep {args.generation} tokens {tokens} {name}: {median:.1f} us (min {least:.1f}), "
                      f"{logical / median * 1e-3:.1f} GB/s logical, rows {'right' if right else 'WRONG'}; "
                      f"kernels (us): {inside}", flush=True)
        dist.barrier(group)
        del buffer
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("generation", choices=("v1", "v2"))
    parser.add_argument("--tokens", type=lambda text: [int(t) for t in text.split(",")], default=[128, 2048, 4096, 8192])
    parser.add_argument("--sms", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=2)
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
    parsed = parser.parse_args()
    torch.multiprocessing.spawn(run, args=(parsed,), nprocs=parsed.ranks)
