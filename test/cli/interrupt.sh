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

# An engine that somebody else ends is no failure of the host.
"$EPREADY" bench --ranks 2 --num-tokens 256 --hidden 1024 --iters 100000 >out 2>err &
pid=$!
n=0
until pgrep -P "$pid" >/dev/null 2>&1; do
  n=$((n + 1))
  [ $n -lt 2000 ] || die "the engine did not start"
  kill -0 "$pid" 2>/dev/null || die "the run ended by itself"
done
kill -TERM "$(pgrep -P "$pid" | head -1)"
code=0
wait "$pid" || code=$?
[ "$code" = 5 ] || { cat out err >&2; die "engine ended from outside: exit code $code, expected 5"; }

# Ctrl-C while a command reads the machine: the tool that it waits for ends, nothing half read is shown.
mkdir -p tools
cat >tools/getconf <<'SLOW'
#!/bin/sh
echo $$ >>"$READING"
exec tail -f /dev/null
SLOW
chmod +x tools/getconf
READING=$PWD/reading
export READING
for command in facts lanes plan env "topology --json" doctor report "verify -r 1" up; do
  rm -f "$READING"
  # The launcher of a program in the environment keeps only what the host needs: the path is written in.
  sed -i "s|\"\$READING\"|$READING|" tools/getconf
  # shellcheck disable=SC2086
  HOME=$PWD PATH=$PWD/tools:$PATH "$EPREADY" $command >out 2>err &
  pid=$!
  n=0
  until [ -s "$READING" ]; do
    n=$((n + 1))
    [ $n -lt 200000 ] || die "$command: the slow tool was not run"
    kill -0 "$pid" 2>/dev/null || { cat err >&2; die "$command ended by itself"; }
  done
  kill -INT "$pid"
  code=0
  wait "$pid" || code=$?
  [ "$code" = 5 ] || { cat out err >&2; die "$command: exit code $code, expected 5"; }
  read -r tool <"$READING"
  ! kill -0 "$tool" 2>/dev/null || die "$command: the tool is still running"
  grep -q PASS out && die "$command: a verdict from half a reading"
done
exit 0
