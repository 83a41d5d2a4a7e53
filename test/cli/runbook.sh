#!/bin/sh
# The eight problems that an installation runbook knows, each as a log and, where facts show it, as a host.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
logs=$EP_SOURCE_DIR/test/problems/runbook

first() {  # first KIND of the last answer
  json "d['findings'] and d['findings'][0]['kind'] == '$1' and d['findings'][0]['severity'] != 'info'"
}
fix_has() {
  json "any('$1' in x for x in d['findings'][0]['fix'])"
}
n=0
while read -r log kind word; do
  run 1 doctor --json "$logs/$log.log"
  first "$kind"
  fix_has "$word"
  n=$((n + 1))
done <<'EOF'
1-hca-name driver.hca-name DOCA-OFED
1-hca-name-list driver.hca-name DOCA-OFED
2-gdrcopy-include build.gdrcopy-include GDRCOPY_INCLUDE=
3-single-nic perf.single-nic DEEP_EP_DEVICE_TO_HCA_MAPPING
4-nic-handler hang.nic-handler NVSHMEM_IBGDA_NIC_HANDLER=gpu
5-nvshmem-mismatch nvshmem.device-host-mismatch LD_PRELOAD
6-permission build.permission chown
7-gpu-arch init.gpu-arch TORCH_CUDA_ARCH_LIST
8-no-ibgda nvshmem.no-ibgda NVSHMEM_DIR
EOF
[ $n = 9 ] || die "only $n logs"

# Hosts: a finished GCP A4 machine with one thing wrong each.
host() {
  rm -rf host
  run 0 snapshot --from sample/gcp-a4-done -o host
  epready=host/root/opt/epready
  site=$epready/venv/lib/python3.12/site-packages
}
set_env() {
  python3 - "$@" <<'PY'
import json, sys
m = json.load(open("host/manifest.json"))
m["environment"].update(a.split("=", 1) for a in sys.argv[1:])
json.dump(m, open("host/manifest.json", "w"))
PY
}
host; run 0 doctor --json --from host; json "d['findings'] == []"

# 1: the names of rdma-core, and an NVSHMEM that takes only mlx5: DeepEP put on the machine before DOCA-OFED was.
host
mv host ready
run 0 snapshot --from sample/gcp-a4-fresh -o host
mkdir -p host/root/opt && cp -R ready/root/opt/epready host/root/opt/
python3 - <<'PY'
import json
m = json.load(open("host/manifest.json"))
m.update(complete=True, absent=[], listed=[p for p in m.get("listed", []) if p != "/opt"])
json.dump(m, open("host/manifest.json", "w"))
PY
site=host/root/opt/epready/venv/lib/python3.12/site-packages
mv "$site"/nvidia_nvshmem_cu12-3.5.19.dist-info "$site"/nvidia_nvshmem_cu12-3.3.24.dist-info
sed -i 's/^Version: .*/Version: 3.3.24/' "$site"/nvidia_nvshmem_cu12-3.3.24.dist-info/METADATA
run 1 doctor --json --from host; json "'driver.hca-name' in [f['kind'] for f in d['findings'] if f['severity'] != 'info']"

# 3: every rank is sent to the first NIC.
host; set_env NVSHMEM_HCA_LIST=mlx5_0:1
run 1 doctor --json --from host; json "'perf.single-nic' in [f['kind'] for f in d['findings'] if f['severity'] != 'info']"

# 4: the CPU handler, though the driver allows the GPU's.
host; set_env NVSHMEM_IBGDA_NIC_HANDLER=cpu
run 1 doctor --json --from host; json "'hang.nic-handler' in [f['kind'] for f in d['findings']]"

# 5: the device part of one NVSHMEM inside DeepEP, the host part of another in front of it.
host; sed -i 's/^nvshmem=.*/nvshmem=3.4.5/' "$epready/deepep/.epready-part"; grep -q '^nvshmem=3.4.5' "$epready/deepep/.epready-part"
run 1 doctor --json --from host; json "'nvshmem.device-host-mismatch' in [f['kind'] for f in d['findings'] if f['severity'] != 'info']"

# 7: DeepEP built for Hopper on a B200.
host; sed -i 's/^arch=.*/arch=90/' "$epready/deepep/.epready-part"
run 1 doctor --json --from host; first init.gpu-arch

# 8: DeepEP v1 beside an NVSHMEM without the IBGDA transport.
host
mkdir -p "$epready/nvshmem"
printf 'version=3.5.19\nibgda=no\n' >"$epready/nvshmem/.epready-part"
run 1 doctor --json --from host; first nvshmem.no-ibgda
echo "the runbook's eight problems are known"
