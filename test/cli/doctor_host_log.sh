#!/bin/sh
# A host and a log together: the host's facts confirm or refute what the log may mean.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
host() { rm -rf host; run 0 snapshot --from "sample/$1" -o host; site=host/root/opt/epready/venv/lib/python3.12/site-packages; }
edit() {
  python3 - "$1" <<'PY'
import json, sys
m = json.load(open("host/manifest.json"))
exec(sys.argv[1])
json.dump(m, open("host/manifest.json", "w"))
PY
}
wheel() { # distribution version
  d="$site/$(echo "$1" | tr - _)-$2.dist-info"; mkdir -p "$d"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" >"$d/METADATA"
}
first() { # kind: the first alarm
  run 1 doctor --json --from host log
  json "[f['kind'] for f in d['findings'] if f['severity'] != 'info'][0] == '$1'"
}
never() { # kind: not a fail or warn
  code=0; "$EPREADY" doctor --json --from host log >"$scratch/out" 2>"$scratch/err" || code=$?
  json "'$1' not in [f['kind'] for f in d['findings'] if f['severity'] != 'info']"
}
timeout_log() {
  cat >log <<'LOG'
[config] num_tokens=4096, hidden=7168, num_topk_groups=2, num_topk=8
[layout] Kernel performance: 0.051 ms
DeepEP dispatch forwarder timeout (RDMA meta), channel: 7, RDMA: 0, nvl: 5, src RDMA lane: 1, dst NVL: 5, meta: 0, 0, 0, 0
Global rank: 5, num_recv_tokens: -1, num_rdma_recv_tokens: -1
[rank5]: RuntimeError: DeepEP error: timeout (dispatch CPU)
LOG
}

# The message that says nothing, on hosts that know more.
timeout_log; host gcp-a4-done; first hang.dispatch-network
rm -rf "$site"/deep_ep-* host/root/opt/epready/deepep; wheel deep-ep 1.1.0; first nvshmem.qp-layout
host gcp-a4-done; edit 'm["environment"]["NVSHMEM_IBGDA_NIC_HANDLER"] = "cpu"'; first hang.nic-handler
host gcp-a4-done; edit 'm["environment"]["NVSHMEM_IB_GID_INDEX"] = "0"'; first init.roce-gid
# What the host lacks, and the log does not point to, comes after the log; what a lane would like, not at all.
host gcp-a4-fresh; first hang.dispatch-network; never driver.ibgda-options
host gcp-a4-done; edit 'm["space"]["/dev/shm"] = {"total": 67108864, "free": 67108864, "type": "tmpfs"}'; first hang.dispatch-network

# IBGDA that does not come up.
cat >log <<'LOG'
src/modules/transport/ibgda/ibgda.cpp: NULL value cudaHostRegister with IoMemory failed with error=800
src/modules/transport/ibgda/ibgda.cpp: GPU cannot map UAR of device mlx5_0. Skipping...
init failed for transport: IBGDA
LOG
host gcp-a4-fresh; first driver.ibgda-options
host gcp-a4-done; never driver.ibgda-options

# Locked memory: the limit of the host beside the errno.
cat >log <<'LOG'
node1:311:402 [0] NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory
node1:311:402 [0] NCCL INFO transport/net.cc:745 -> 2
LOG
host gcp-a4-fresh; first container.memlock
host gcp-a4-done; never container.memlock

# peermem: the log says that none was found, the host has it loaded.
cat >log <<'LOG'
src/modules/transport/ibgda/ibgda.cpp:nvshmemt_init: neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.
init failed for transport: IBGDA
LOG
host gcp-a4-done; never driver.peermem-missing
sed -i '/^nvidia_peermem /d' host/root/proc/modules; first driver.peermem-missing

# NCCL over sockets, and why.
cat >log <<'LOG'
node1:311:402 [0] NCCL INFO NET/Socket : Using [0]eth0:198.18.0.5<0>
node1:311:402 [0] NCCL INFO Using network Socket
node1:311:402 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0
# Avg bus bandwidth    : 2.31
LOG
host gcp-a4-done; edit 'm["environment"]["NCCL_IB_DISABLE"] = "1"'; first perf.net-socket
json "any('NCCL_IB_DISABLE' in e['text'] for f in d['findings'] for e in f['evidence'])"

# Code for this GPU: the host's architectures decide.
cat >log <<'LOG'
RuntimeError: Failed: CUDA error csrc/kernels/launch.cuh 'named symbol not found'
LOG
host gcp-a4-done; first init.gpu-arch
echo "hosts and logs decide together"
