#!/bin/sh
# --version answers with the program's name and a version.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 0 --version
grep -qE '^epready [0-9]+\.[0-9]+\.[0-9]+$' out || die "no version"
