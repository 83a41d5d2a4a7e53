#!/bin/sh
# Ctrl-C in the middle of a run: exit code 5, no rank left running, no shared memory left behind.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
before=$(find /dev/shm -mindepth 1 2>/dev/null | wc -l)
# A run that is long enough to be interrupted at any speed of the machine.
"$EPREADY" bench --ranks 2 --num-tokens 256 --hidden 1024 --iters 100000 >out 2>err &
pid=$!
n=0
until pgrep -P "$pid" >/dev/null 2>&1; do # the engine is there
  n=$((n + 1))
  [ $n -lt 2000 ] || die "the engine did not start"
  kill -0 "$pid" 2>/dev/null || die "the run ended by itself"
done
engine=$(pgrep -P "$pid" | head -1)
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 5 ] || die "exit code $code, expected 5"
! kill -0 "$engine" 2>/dev/null || die "the engine is still running"
[ "$(find /dev/shm -mindepth 1 2>/dev/null | wc -l)" -le "$before" ] || die "something was left in /dev/shm"
