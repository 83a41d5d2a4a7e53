#!/bin/sh
# Problems that facts show before anything fails: a finished GCP A4 machine (or a pod on one) with one thing wrong.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
host() { # sample
  rm -rf host
  [ -d "kept-$1" ] || run 0 snapshot --from "sample/$1" -o "kept-$1" # synced to the disk: once each
  cp -a "kept-$1" host
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
put() { # path on the host; content from stdin
  mkdir -p "host/root$(dirname "$1")"
  cat >"host/root$1"
  edit "m['absent'] = [p for p in m['absent'] if p != '$1' and not '$1'.startswith(p + '/')]
above = '$1'.split('/')[1:-1]
m['listed'] += ['/' + '/'.join(above[:n]) for n in range(2, len(above) + 1)]"
}
quiet() { # no finding of this kind
  run "${2:-0}" doctor --json --from host
  json "'$1' not in [f['kind'] for f in d['findings']]"
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
# A fresh machine: what its lanes need and it lacks is told, though nothing has failed.
host gcp-a4-fresh
found container.memlock warn
found driver.ibgda-options warn
run 1 doctor --json --from host
json "('driver.hca-name', 'info') in [(f['kind'], f['severity']) for f in d['findings']]"
# A container cannot set it: said, not held against it.
host gke-a4-pod
run 0 doctor --json --from host
json "('driver.ibgda-options', 'info') in [(f['kind'], f['severity']) for f in d['findings']]"

# Runbook 1: DOCA-OFED installed, the kernel's own driver still loaded.
host gcp-a4-done
edit 'm["absent"] += [p for p in ("/sys/module/mlx5_core/version",)]'; rm -f host/root/sys/module/mlx5_core/version
sed -i '/^mlx_compat /d' host/root/proc/modules
found driver.ofed-kernel warn
# Runbook 2: the configured NVSHMEM build found no gdrapi.h.
host gcp-a4-done
echo x | put /opt/deepep/nvshmem-src/CMakeLists.txt
echo x | put /opt/deepep/nvshmem-src/src/include/nvshmem.h
printf 'GDRCOPY_INCLUDE:PATH=/opt/deepep/gdrcopy/include\nNVSHMEM_IBGDA_SUPPORT:BOOL=ON\n' | put /opt/deepep/nvshmem-src/build/CMakeCache.txt
quiet build.gdrcopy-include; quiet nvshmem.no-ibgda
printf 'GDRCOPY_INCLUDE:PATH=GDRCOPY_INCLUDE-NOTFOUND\nNVSHMEM_IBGDA_SUPPORT:BOOL=OFF\n' | put /opt/deepep/nvshmem-src/build/CMakeCache.txt
found build.gdrcopy-include warn
found nvshmem.no-ibgda warn
# Runbook 6: a build folder of root's, looked at by another user.
host gcp-a4-done
for f in setup.py csrc/x deep_ep/__init__.py build/x; do echo x | put "/opt/deepep/DeepEP/$f"; done
sed -i 's/^Uid:.*/Uid:	1000	1000	1000	1000/' host/root/proc/self/status
edit 'm["info"]["/opt/deepep/DeepEP/build"] = "directory 755 4096 rw"; m["info"]["/opt/deepep/DeepEP"] = "directory 755 4096 rw"; m["info"]["/opt/deepep/DeepEP/deep_ep"] = "directory 755 4096 rw"'
quiet build.permission
edit 'm["info"]["/opt/deepep/DeepEP/build"] = "directory 755 4096 r-"'
found build.permission warn

# Option files: two that fight, and a line that modprobe ignores.
host gcp-a4-done
echo 'options nvidia NVreg_RegistryDwords="RMUseSwI2c=1"' | put /etc/modprobe.d/zz-local.conf
found driver.ibgda-options warn
run 1 doctor --json --from host; json "any('zz-local' in e['text'] for f in d['findings'] for e in f['evidence'])"
host gcp-a4-fresh
echo 'NVreg_RegistryDwords="PeerMappingOverride=1;"' | put /etc/modprobe.d/zz-local.conf
found driver.ibgda-options warn
json "any('zz-local.conf:1' in e['text'] for f in d['findings'] for e in f['evidence'])"

# Variables that do not fit the host; the same ones that do.
for ok in NCCL_IB_HCA=mlx5 NCCL_SOCKET_IFNAME=gpu0 CUDA_VISIBLE_DEVICES=0,1,2,3 NVSHMEM_HCA_PREFIX=mlx5; do
  host gcp-a4-done; edit "m['environment']['${ok%%=*}'] = '${ok#*=}'"
  run 0 doctor --json --from host; json '[f for f in d["findings"] if f["severity"] != "info"] == []'
done
host gcp-a4-done; edit 'm["environment"]["NCCL_IB_HCA"] = "rocep145s0,rocep146s0"'; found perf.net-socket warn
host gcp-a4-done; edit 'm["environment"]["NCCL_SOCKET_IFNAME"] = "bond0"'; found init.bootstrap-iface warn
host gcp-a4-done; edit 'm["environment"]["CUDA_VISIBLE_DEVICES"] = "0,1,8"'; found init.visible-devices warn
host gcp-a4-done; edit 'm["environment"]["NVSHMEM_HCA_PREFIX"] = "rocep"'; found driver.hca-name warn
host gcp-a4-done; printf '# site\nNCCL_IB_DISABLE=1\n' | put /etc/nccl.conf; found perf.net-socket warn
run 1 doctor --json --from host; json "('/etc/nccl.conf', 2) in [(e['source'], e['line']) for f in d['findings'] for e in f['evidence']]"
host gcp-a4-done; printf 'PATH="/usr/bin"\nNVSHMEM_IB_GID_INDEX=0\n' | put /etc/environment
found init.roce-gid fail

# Fabric Manager of another version; a driver whose libraries moved on; a GPU that waits for a reset.
host gcp-a4-done; sed -i 's/^\(nvidia-fabricmanager[^\t]*\t\)580\.95\.05/\1580.82.07/' host/probe/dpkg.out
found driver.fabricmanager warn
host gcp-a4-done; printf 'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n' >host/probe/nvidia-smi-gpus.out
edit 'm["probes"]["nvidia-smi-gpus"]["exit_code"] = 18'
found driver.version-mix fail
host gcp-a4-done; sed -i '0,/^    Fabric$/s//    Remapped Rows\n        Pending                           : No\n    Fabric/' host/probe/nvidia-smi-q.out
quiet driver.gpu-lost
sed -i 's/\(Pending                           : \)No/\1Yes/' host/probe/nvidia-smi-q.out
found driver.gpu-lost warn
host gcp-a4-done; sed -i '0,/State                             : Completed/s//State                             : In Progress/' host/probe/nvidia-smi-q.out
found driver.fabricmanager warn

# A NIC at half its lanes carries less than its port; at full width nothing is said.
nic=host/root/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0
host h100-ib; quiet perf.pcie-link 1
for f in current_link_width max_link_width; do [ -e $nic/$f ] || echo 16 >$nic/$f; done
echo 8 >$nic/current_link_width; found perf.pcie-link warn

# ACS on the switch between a GPU and a NIC: seen in configuration space; without root it is not known.
config() { # bytes kept, ACS control
  python3 - "$1" "$2" <<'PY'
import glob, json, os, sys
keep, control = int(sys.argv[1]), int(sys.argv[2], 16)
made = []
for link in glob.glob("host/root/sys/bus/pci/devices/*"):
    folder = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
    depth = len([p for p in folder.split("/") if p.count(":") == 2])
    leaf = not glob.glob(folder + "/*:*.*")
    port = 0 if leaf else {1: 4, 2: 5}.get(depth, 6)
    b = bytearray(4096)
    b[0:4] = bytes([0xb3, 0x15, 0x21, 0x10])
    b[6] = 0x10; b[0x34] = 0x40; b[0x40] = 0x10; b[0x42] = port << 4 | 2
    b[0x48] = 0x10; b[0x49] = 0x20
    if port == 6:
        b[0x100:0x104] = bytes([0x0d, 0, 1, 0]); b[0x106] = control
    open(folder + "/config", "wb").write(bytes(b[:keep]))
    made.append(folder[len("host/root"):] + "/config")
m = json.load(open("host/manifest.json"))
m["absent"] = [p for p in m["absent"] if p not in made]
json.dump(m, open("host/manifest.json", "w"))
PY
}
host h100-ib; config 4096 0x1d; found perf.acs warn
host h100-ib; config 4096 0x01; quiet perf.acs 1
host h100-ib; config 64 0x1d; quiet perf.acs 1
run 0 facts --from host --area kernel; out_has "acs_redirect               (unreadable"
echo "facts alone show what will fail"
