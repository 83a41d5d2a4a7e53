#!/bin/sh
# A later install moved NCCL back: the doctor proves it and its mend is a plan of one step, in the place where DeepEP is.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
unset VIRTUAL_ENV CONDA_PREFIX 2>/dev/null || :

environment() { # ROOT NCCL
  site=$1/lib/python3.12/site-packages
  mkdir -p "$1/bin" "$site"
  : >"$1/bin/python3"
  echo 'version = 3.12.1' >"$1/pyvenv.cfg"
  for w in "sgl_deep_ep 0.1.2" "torch 2.13.0" "nvidia_nccl_cu13 $2"; do
    name=${w% *} version=${w#* }
    mkdir -p "$site/$name-$version.dist-info"
    printf 'Name: %s\nVersion: %s\n' "$name" "$version" >"$site/$name-$version.dist-info/METADATA"
  done
}

environment "$PWD/good/venv" 2.30.7
run 0 doctor --prefix good
out_lacks "nccl-too-old"

environment "$PWD/ours/venv" 2.28.9
run 1 doctor --prefix ours
out_has "import.nccl-too-old"
out_has "nvidia-nccl-cu13 2.28.9"
run 1 doctor --prefix ours --fix
out_has "Install NCCL 2.30.7"
out_has "next: epready doctor --fix --prefix ours -o mend.json && epready apply mend.json"
run 1 doctor --prefix ours --fix -o mend.json
cp mend.json out
json "[s['id'] for s in d['steps']] == ['nccl'] and d['prefix'].endswith('/ours')"

# Made by hand and active: mended where it is.
environment "$PWD/hand" 2.29.7
VIRTUAL_ENV=$PWD/hand run 1 doctor --fix -o hand.json
cp hand.json out
json "[s['id'] for s in d['steps']] == ['nccl'] and d['steps'][0]['after'][0]['args'][0].endswith('/hand')"
