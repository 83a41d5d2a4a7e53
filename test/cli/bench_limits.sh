#!/bin/sh
# Shapes that cannot be are usage errors that say the range; a run that hangs ends within its limit, named.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 2 bench --ranks 0
err_has "1 to 64"
run 2 bench --num-topk 17
run 2 bench --hidden 7
err_has "16 bytes"
run 2 bench --dtype fp8 --hidden 64
err_has "128"
run 2 bench --dtype fp16
run 0 bench --json --ranks 2 --num-tokens 8 --hidden 128 --num-experts 4 --num-topk 2 --iters 2
json 'd["schema"] == "epready-bench-1" and d["outcome"]["verdict"] in ("PASS", "WARN") and d["result"]["checks"]["mismatches"] == 0'
EPREADY_ENGINE=$scratch/nowhere
export EPREADY_ENGINE
mkdir -p "$scratch/alone"
cp "$EPREADY" "$scratch/alone/epready"
code=0
"$scratch/alone/epready" bench --num-tokens 8 >out 2>err || code=$?
[ "$code" = 3 ] || die "without an engine: exit code $code, expected 3"
err_has "epready-engine"
err_has "next:"
