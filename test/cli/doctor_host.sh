#!/bin/sh
# Problems that facts show before anything fails: a finished GCP A4 machine (or a pod on one) with one thing wrong.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
host() { # sample
  rm -rf host
  run 0 snapshot --from "sample/$1" -o host
  site=host/root/opt/epready/venv/lib/python3.12/site-packages
}
edit() { # Python that changes m, the manifest
  python3 - "$1" <<'PY'
import json, sys
m = json.load(open("host/manifest.json"))
exec(sys.argv[1])
json.dump(m, open("host/manifest.json", "w"))
PY
}
wheel() { # distribution version
  d="$site/$(echo "$1" | tr - _)-$2.dist-info"
  mkdir -p "$d"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" >"$d/METADATA"
}
found() { # kind, severity
  run 1 doctor --json --from host
  json "('$1', '$2') in [(f['kind'], f['severity']) for f in d['findings']]"
}

# As the samples are: silence, or what is true of them.
for sample in gcp-a4-done laptop; do
  host $sample
  run 0 doctor --json --from host; json '[f for f in d["findings"] if f["severity"] != "info"] == []'
done

host gcp-a4-done; edit 'm["environment"]["NVSHMEM_IB_GID_INDEX"] = "0"'
found init.roce-gid fail

host gcp-a4-done; sed -i 's/^Max locked memory .*/Max locked memory         8388608              8388608              bytes/' host/root/proc/self/limits
found container.memlock warn

host gcp-a4-done; edit 'm["space"]["/dev/shm"] = {"total": 67108864, "free": 67108864, "type": "tmpfs"}'
found container.shm warn

# Written for the next boot, not live.
host h100-ib
found driver.ibgda-options warn

# DeepEP V2, then something that pulls NCCL back.
host gcp-a4-done; rm -rf "$site"/deep_ep-* "$site"/nvidia_nccl_*; rm -rf host/root/opt/epready/deepep
wheel deep-ep 2.0.0; wheel nvidia-nccl-cu12 2.28.9
found import.nccl-too-old fail

# Two copies of NCCL in the environment of DeepEP V2.
wheel nvidia-nccl-cu13 2.30.7; rm -rf "$site"/nvidia_nccl_cu12-*; wheel nvidia-nccl-cu12 2.31.2
found import.nccl-discovery warn

# DeepEP of before the NVSHMEM 3.5 queue order beside NVSHMEM 3.5.19: it will hang at the first dispatch between nodes.
host gcp-a4-done; rm -rf "$site"/deep_ep-* host/root/opt/epready/deepep; wheel deep-ep 1.1.0
found nvshmem.qp-layout fail

# Two environments with one copy each are no conflict.
host gcp-a4-done
other=host/root/opt/other/venv/lib/python3.12/site-packages
mkdir -p "$other/nvidia_nccl_cu12-2.18.1.dist-info"; echo 'home = /usr/bin' >host/root/opt/other/venv/pyvenv.cfg
printf 'Name: nvidia-nccl-cu12\nVersion: 2.18.1\n' >"$other/nvidia_nccl_cu12-2.18.1.dist-info/METADATA"
run 0 doctor --json --from host

# gdrdrv was built by dkms, and then the kernel was updated.
host gcp-a4-done
mkdir -p host/root/var/lib/dkms/gdrdrv/2.5.1/6.5.0-1001-gcp/x86_64/module
echo x >host/root/var/lib/dkms/gdrdrv/2.5.1/6.5.0-1001-gcp/x86_64/module/gdrdrv.ko
edit 'm["absent"] = [p for p in m["absent"] if not p.startswith("/var/lib/dkms")]; m["listed"] = [p for p in m["listed"] if p not in ("/var/lib", "/var")]; m["complete"] = True'
found driver.gdrdrv-build warn

# A pod that was given no RDMA device.
host gke-a4-pod
rm -rf host/root/dev/infiniband
edit 'for k in ("info", "no_read", "more"): m[k] = {p: v for p, v in m.get(k, {}).items() if not p.startswith("/dev/infiniband")}'
edit 'm["listed"] = [p for p in m["listed"] if not p.startswith("/dev")]; m["absent"].append("/dev/infiniband")'
found container.ibverbs-provider warn
echo "facts alone show what will fail"
