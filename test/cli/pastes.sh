#!/bin/sh
# Reports as people paste them, through every command that plans or judges: what they show is used, what they do not show is
# neither there nor missing, and the commands speak of the same host.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
pastes=$EP_SOURCE_DIR/test/cli/pastes

# EFA on AWS P5: a plan is refused with what works there; nothing asks for driver options.
p=$pastes/p5.txt
run 3 plan --from "$p"
err_has "amazon-contributing"
err_has "--with nodes=1"
run 3 plan --from "$p" --lane v2
err_has "v2-efa-fork"
run 3 plan --from "$p" --lane v1
run 0 plan --from "$p" --lane v2 --with nodes=1 --json
json 'not [s for s in d["plan"]["steps"] if s["id"] in ("driver", "driver-options", "reboot", "peermem", "cuda-toolkit")]'
run 0 lanes --from "$p" --json
json 'all(x["possible"]["verdict"] == "WARN" and "EFA" in x["possible"]["reason"] for x in d["lanes"] if x["lane"] != "local")'
run 1 env --from "$p"
out_has "NCCL_GIN_TYPE=2"
out_lacks "export NVSHMEM_IB_ENABLE_IBGDA"
err_has "transport_unsupported_efa"
run 1 topology --from "$p"
out_has "EFA"
out_lacks "epready driver"
run 1 verify -r 1 --from "$p"
out_lacks "is not loaded"
out_lacks "no CUDA toolkit"
out_lacks "epready driver"

# A RoCE node: its own system and packages, the keys that modprobe.d has already, ports that are up.
r=$pastes/roce.txt
run 0 plan --from "$r" --json
json 'd["plan"]["steps"] and all("ubuntu2404" not in str(s) for s in d["plan"]["steps"])'
json 'any("ubuntu2204/x86_64" in str(s) for s in d["plan"]["steps"])'
json 'any("RMForceStaticBar1=1;PeerMappingOverride=1" in str(s) for s in d["plan"]["steps"])'
json 'not [s for s in d["plan"]["steps"] if s["id"] == "driver"]'
json 'any(n["kind"] == "stack-untested" and "--with driver=580" in str(n) for n in d["plan"]["notes"])'
run 0 plan --from "$r" --consumer vllm --json
json 'any("nvshmem-cu12==3.5.19" in str(s) for s in d["plan"]["steps"])'
run 0 plan --from "$r" --with driver=580 --json
json '[s for s in d["plan"]["steps"] if s["id"] == "driver"] and any("torch==2.13.0" in str(s) for s in d["plan"]["steps"])'
code=0
"$EPREADY" verify -r 1 --from "$r" >out 2>err </dev/null || code=$?
[ "$code" = 1 ] || [ "$code" = 3 ] || die "verify of a text says $code"
out_lacks "no RDMA port is active"
out_lacks "missing: nvidia-smi"
out_lacks "no CUDA toolkit"

# Grace: its own architecture in every address; the paste names it twice.
g=$pastes/gb200.txt
run 0 plan --from "$g" --json
json 'any("ubuntu2404/sbsa" in str(s) for s in d["plan"]["steps"]) and "x86_64" not in str(d["plan"]["steps"])'
run 0 plan --from "$g" --as script
out_lacks "ubuntu2404/x86_64"

# GPUs without NVLink and older than Hopper: the local lane, with the reason; verify does not pass for EP.
l=$pastes/l40s.txt
run 0 plan --from "$l" --json
json 'd["plan"]["lane"] == "local" and any(n["kind"] == "why-local" and "NVLink" in str(n) for n in d["plan"]["notes"])'
run 3 plan --from "$l" --lane v1 --with nodes=1
err_has "NVLink"
run 3 verify -r 1 --from "$l"

# A pod: driver, options and reboot are the node's; its system is not shown, so the plan is for reading only.
k=$pastes/k8s.txt
run 3 plan --from "$k"
out_has "reading only"
out_has "DeepEP is installed already"
out_has "1.2.1+73b6ea4"
run 3 plan --from "$k" --as script
err_has "--with os="
run 0 plan --from "$k" --with os=ubuntu22.04 --json
json 'not [s for s in d["plan"]["steps"] if s["id"] in ("driver", "driver-options", "reboot")]'
run 2 plan --from "$k" --with os=ubuntu22.04 --with machine=aarch64
err_has "x86_64"
run 1 verify -r 1 --from "$k"
out_lacks "driver is not loaded"
out_has "/dev/infiniband is not in this container"

# The first commands of the GCP runbook, csv without header among them.
a=$pastes/a4.txt
run 0 plan --from "$a" --json
json 'any("ubuntu2404/x86_64" in str(s) for s in d["plan"]["steps"]) and "9.0" not in str([s["title"] for s in d["plan"]["steps"]])'
json 'not [s for s in d["plan"]["steps"] if s["id"] == "driver"]'

# Nothing but GPUs: no system, no driver, no claim.
printf 'GPU 0: NVIDIA H200 (UUID: GPU-0)\nGPU 1: NVIDIA H200 (UUID: GPU-1)\nwhat is this line\n' >few.txt
run 3 plan --from few.txt --json
json 'not [s for s in d["plan"]["steps"] if s["id"] == "driver"] and any(n["kind"] == "driver-unknown" for n in d["plan"]["notes"])'
json 'any(n["kind"] == "paste-unread" and "what is this line" in str(n) for n in d["plan"]["notes"])'
json '"2404" not in str(d["plan"]["steps"])'
run 3 plan --from few.txt -o plan.json
[ ! -e plan.json ] || die "a plan of an unknown system was written"
run 0 plan --from few.txt --with os=ubuntu22.04 --with machine=x86_64 -o plan.json
[ -s plan.json ] || die "no plan was written"
run 2 plan --from few.txt --with os=22.04

# One lane for every command.
for f in "$r" "$g" "$a"; do
  run 0 plan --from "$f" --json
  lane=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["plan"]["lane"])' out)
  "$EPREADY" env --from "$f" --json >out 2>err </dev/null || true
  json "d['lane'] == '$lane'"
done
echo "pastes: all right"
