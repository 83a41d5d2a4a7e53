# shellcheck shell=sh
# For the scripts beside it: a scratch folder, `run` with exit code and outputs, small assertions with clear words.
set -eu
: "${EPREADY:?run through ctest}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME="$scratch/home" XDG_DATA_HOME="$scratch/data" LC_ALL=C NO_COLOR=1
mkdir -p "$HOME"
cd "$scratch"

die() { echo "FAILED: $*"; [ -e "$scratch/out" ] && { echo "--- stdout"; head -c 4000 "$scratch/out"; echo "--- stderr"; head -c 4000 "$scratch/err"; }; exit 1; }
skip() { echo "SKIPPED: $*"; exit 77; }
run() { # expected exit code, arguments
  want=$1; shift
  code=0
  "$EPREADY" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
  [ "$code" = "$want" ] || die "epready $*: exit code $code, expected $want"
}
# pip is the installer here, whatever this machine has: a uv that does not work is not used.
without_uv() {
  mkdir -p "$scratch/no-uv"
  printf '#!/bin/sh\nexit 1\n' >"$scratch/no-uv/uv"
  chmod +x "$scratch/no-uv/uv"
  export PATH="$scratch/no-uv:$PATH"
}
out_has() { grep -qF -- "$1" "$scratch/out" || die "stdout lacks: $1"; }
err_has() { grep -qF -- "$1" "$scratch/err" || die "stderr lacks: $1"; }
out_lacks() { ! grep -qF -- "$1" "$scratch/out" || die "stdout has: $1"; }
json() { python3 - "$scratch/out" "$1" <<'PY' || die "JSON: $1"
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2], {"d": d}) else 1)
PY
}
