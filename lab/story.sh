#!/bin/bash
# Tells one story in a process of its own: lab/run starts it with IMAGE, LAB and WORK in the environment and the
# script's path as its argument. Not for use by hand.
set -euo pipefail
# shellcheck source=lab/vm.sh
. "$LAB/vm.sh"
trap vm_end EXIT
trap 'exit 1' INT TERM
SECONDS=0
# shellcheck source=/dev/null
. "$1"
