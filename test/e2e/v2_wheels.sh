#!/bin/sh
# The V2 environment for real, on a machine with or without a GPU: `libs` and `apply` against the package index, the
# linter, the consumer's probe, a downgrade of NCCL by plain pip that the doctor notices and mends; once through pip and
# once through uv. Time against the same pip commands typed by hand: EPREADY_E2E_ROUNDS rounds (default 3), by hand and
# ours in turns, the median of the ratios. Downloads about 3 GB twice a round and once for uv, takes minutes: runs only
# when asked for (EPREADY_E2E=1 .ci/run). Resumable: finished parts are kept in EPREADY_E2E_DIR (default: the user's
# cache). Arguments: path of the program. Closes with "N passed, N failed, N skipped".
set -u
epready=$1
dir=${EPREADY_E2E_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/epready-e2e}
mkdir -p "$dir" && cd "$dir" || exit 1
export LC_ALL=C NO_COLOR=1
unset VIRTUAL_ENV
passed=0 failed=0 skipped=0
begun=$(date +%s)

say() { printf '[%4d s] %s\n' $(($(date +%s) - begun)) "$*"; }
ok() { passed=$((passed + 1)); say "ok: $*"; }
bad() {
  failed=$((failed + 1))
  say "FAILED: $*"
}
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
  exit
}
# expect CODE command...: exit code, output in ./out
expect() {
  want=$1
  shift
  code=0
  "$@" >out 2>err </dev/null || code=$?
  if [ "$code" = "$want" ]; then
    ok "exit $code: $(printf '%s ' "$@" | sed "s#$epready#epready#; s#$dir/##g")"
  else
    bad "exit $code, not $want: $*"
    tail -15 out err
  fi
}
has() { if grep -qF -- "$1" out; then ok "says: $1"; else bad "lacks: $1"; cat out; fi; }
# timed FILE command...: milliseconds into FILE; kept, so that a second run goes on behind it. What was there is removed
# and the disk is quiet before the clock starts: neither is part of an install.
timed() {
  file=$1
  shift
  [ -s "$file" ] && return 0
  rm -rf plain ours
  sync
  at=$(date +%s%N)
  "$@" >"$file.log" 2>&1 </dev/null || {
    bad "$*"
    tail -15 "$file.log"
    finish
  }
  echo "$(($(date +%s%N) - at))" | sed 's/\(.*\).\{6\}$/\1/' >"$file"
}

without_uv=$PATH
if command -v uv >/dev/null; then # one that does not work is not used
  mkdir -p no-uv && printf '#!/bin/sh\nexit 1\n' >no-uv/uv && chmod 755 no-uv/uv
  without_uv=$dir/no-uv:$PATH
fi
load() { cut -d' ' -f1 /proc/loadavg; }

date -u "+%Y-%m-%d %H:%M UTC, $(nproc) cores, $(python3 --version), pip $(python3 -m pip --version | cut -d" " -f2)"
say "plan"
expect 0 "$epready" libs --workspace "$dir/ours" --with deepep=2.1.0+sgl0.1.2 -o libs.json
[ "$failed" = 0 ] || finish

# shellcheck disable=SC2317  # called by name
by_hand() {
  python3 -m venv plain &&
    plain/bin/python -m pip install numpy setuptools wheel ninja packaging &&
    plain/bin/python -m pip install torch==2.13.0 &&
    plain/bin/python -m pip install --no-deps nvidia-nccl-cu13==2.30.7 &&
    plain/bin/python -m pip install --no-deps nvidia-nvshmem-cu13==3.4.5 &&
    plain/bin/python -m pip install --no-deps sgl-deep-ep==0.1.2
}
# shellcheck disable=SC2317
ours() {
  "$epready" libs --workspace "$dir/ours" --with deepep=2.1.0+sgl0.1.2 -o libs.json &&
    "$epready" apply libs.json
}
# What stands after an install: linter, probe, doctor; then plain pip moves NCCL back, which is noticed and mended.
story() {
  say "linter and probe ($1)"
  expect 0 "$epready" libs lint ours
  has "nothing wrong with these libraries"
  has "23007"
  sed "s#$dir/##g" out
  if ls /dev/nvidia0 >/dev/null 2>&1; then
    expect 0 ours/venv/bin/python -c 'import deep_ep; assert hasattr(deep_ep, "ElasticBuffer")'
  else
    has "NOT_RUN"
    skipped=$((skipped + 1))
    say "skipped: import deep_ep needs the driver, which is not here"
  fi
  expect 0 ours/venv/bin/python -c 'import ctypes, sys, os
import nvidia.nccl; v = ctypes.c_int(); ctypes.CDLL(os.path.join(list(nvidia.nccl.__path__)[0], "lib", "libnccl.so.2")).ncclGetVersion(ctypes.byref(v))
assert v.value == 23007, v.value'
  expect 0 "$epready" doctor --prefix "$dir/ours"

  say "a later pip install moves NCCL back ($1)"
  expect 0 ours/venv/bin/python -m pip install --no-deps nvidia-nccl-cu13==2.28.9
  expect 1 "$epready" libs lint ours
  has "libs-nccl-old"
  sed -n '/^fail/,/^next/p' out | sed "s#$dir/##g"
  expect 1 "$epready" doctor --prefix "$dir/ours"
  has "import.nccl-too-old"
  has "libnccl.so.2"
  expect 1 "$epready" doctor --prefix "$dir/ours" --fix -o mend.json
  has "Install NCCL 2.30.7"
  sed -n '/^Plan/,$p' out | sed "s#$dir/##g"
  expect 0 "$epready" apply mend.json
  expect 0 "$epready" libs lint ours
  has "nothing wrong with these libraries"
  expect 0 "$epready" doctor --prefix "$dir/ours"
}

PATH=$without_uv
round=1
while [ "$round" -le "${EPREADY_E2E_ROUNDS:-3}" ]; do
  say "round $round: the same pip commands by hand (load $(load))"
  timed "plain.$round.ms" by_hand
  say "round $round: epready apply (load $(load))"
  timed "ours.$round.ms" ours
  hand=$(cat "plain.$round.ms") own=$(cat "ours.$round.ms")
  say "round $round: by hand $hand ms, epready $own ms: $(awk -v a="$own" -v b="$hand" 'BEGIN { printf "%.2f", a / b }')"
  round=$((round + 1))
done
ratio=$(for f in plain.*.ms; do paste -d' ' "ours${f#plain}" "$f"; done |
  awk '{ printf "%.2f\n", $1 / $2 }' | sort -n | awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }')
if awk -v r="$ratio" 'BEGIN { exit !(r <= 1) }'; then ok "not slower than by hand: median $ratio"; else bad "slower than by hand: median $ratio"; fi
"$epready" apply libs.json >/dev/null 2>&1 # a run that was cut may have left the downgrade
at=$(date +%s%N)
expect 0 "$epready" apply libs.json
again=$((($(date +%s%N) - at) / 1000000))
if [ "$again" -lt 2000 ]; then ok "a repeated run takes $again ms"; else bad "a repeated run takes $again ms"; fi
story pip

say "the same through uv"
if ! [ -x tools/bin/uv ]; then python3 -m venv tools && tools/bin/python -m pip install -q uv==0.13.9 >/dev/null; fi
if ! tools/bin/uv --version; then
  skipped=$((skipped + 1))
  say "skipped: the index has no uv"
  finish
fi
PATH=$dir/tools/bin:$PATH
UV_CACHE_DIR=$dir/uv-cache
export UV_CACHE_DIR
rm -rf uv-cache
timed ours.uv.ms ours
say "epready through uv, its cache empty: $(cat ours.uv.ms) ms (load $(load))"
expect 0 grep -q "uv pip install" ours/log/torch.log
story uv
finish
