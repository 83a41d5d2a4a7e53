#!/bin/sh
# libs lint judges an environment from its files alone: a mixed one, an empty one, none.
. "$EP_SOURCE_DIR/test/cli/lib.sh"

site=$PWD/mixed/venv/lib/python3.12/site-packages
mkdir -p "$PWD/mixed/venv/bin" "$site/nvidia/nccl/lib"
: >"$PWD/mixed/venv/bin/python3"
echo 'version = 3.12.1' >"$PWD/mixed/venv/pyvenv.cfg"
echo 'not a library' >"$site/nvidia/nccl/lib/libnccl.so.2"
wheel() { # NAME VERSION RECORD-LINE
  mkdir -p "$site/$1-$2.dist-info"
  printf 'Name: %s\nVersion: %s\n' "$1" "$2" >"$site/$1-$2.dist-info/METADATA"
  printf '%s\n' "$3" >"$site/$1-$2.dist-info/RECORD"
}
wheel nvidia_nccl_cu12 2.27.5 'nvidia/nccl/lib/libnccl.so.2,sha256=a,14'
wheel nvidia_nccl_cu13 2.30.7 'nvidia/nccl/lib/libnccl.so.2,sha256=b,14'
wheel deep_ep 1.0.0 'deep_ep_stub.py,sha256=c,1'

run 1 libs lint mixed
out_has "libs-overwritten"
out_has "libs-cuda-major"
out_has "libs-wrong-package"
out_has "libs-not-read"
out_has "next: "
run 1 libs lint "$PWD/mixed/venv" --json
json "d['schema'] == 'epready-libs-lint-1' and any(f['code'] == 'libs-overwritten' and f['evidence'] for f in d['findings'])"
json "d['probes']['vllm.has_deep_ep']['verdict'] == 'FAIL'"

run 3 libs lint nowhere
err_has "no Python environment there"
mkdir -p empty/venv/bin && : >empty/venv/bin/python3
run 0 libs lint empty
out_has "FAIL"
