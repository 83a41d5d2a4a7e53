#!/bin/sh
# Input that is not what it should be: a clear error or an empty answer, never a crash and never a confident claim.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
head -c 20000 /dev/urandom >noise
printf 'nothing to see here\njust prose\n' >prose
mkdir empty
for cmd in facts lanes topology report "verify -r 1"; do
  for input in noise prose empty; do
    code=0
    # shellcheck disable=SC2086
    "$EPREADY" $cmd --from "$scratch/$input" >out 2>err </dev/null || code=$?
    [ "$code" -lt 70 ] || die "$cmd --from $input: exit code $code"
    [ -s err ] || [ -s out ] || die "$cmd --from $input said nothing"
  done
  code=0
  # shellcheck disable=SC2086
  "$EPREADY" $cmd --from "$scratch/not-there" >out 2>err </dev/null || code=$?
  [ "$code" = 3 ] || die "$cmd --from a missing path: exit code $code, expected 3"
  err_has "not-there"
  err_has "next:"
done
# A truncated snapshot is refused with its place.
run 0 snapshot -o "$scratch/shot.snap"
head -c 1000 shot.snap >cut.snap
code=0
"$EPREADY" facts --from "$scratch/cut.snap" >out 2>err || code=$?
[ "$code" = 1 ] || [ "$code" = 3 ] || die "cut snapshot: exit code $code"
err_has "cut.snap"
run 2 facts --from sample/no-such-host
err_has "gcp-a4-fresh"

# A reader that closed the pipe has what it wanted: quiet, and the command's own exit code.
python3 - <<'PY' || die "a closed pipe is an error"
import os, subprocess
r, w = os.pipe()
os.close(r)
p = subprocess.run([os.environ["EPREADY"], "facts", "--from", "sample/gcp-a4-fresh", "--all"], stdout=w, stderr=subprocess.PIPE)
assert p.returncode == 0 and b"cannot write" not in p.stderr, p
PY
if [ -w /dev/full ]; then
  code=0
  "$EPREADY" facts --from sample/gcp-a4-fresh >/dev/full 2>err || code=$?
  [ "$code" = 1 ] || die "a full disk looks like success"
  err_has "cannot write the result"
fi
