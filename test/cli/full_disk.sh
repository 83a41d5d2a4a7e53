#!/bin/sh
# A result that cannot be written is a failure, not a success.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
[ -c /dev/full ] || skip "/dev/full is not here"
code=0
"$EPREADY" help >/dev/full 2>err || code=$?
[ "$code" = 1 ] || die "exit code $code, expected 1"
grep -q 'cannot write the result' err || die "no word about it"
