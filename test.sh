#!/bin/sh
# Builds the program with its tests and runs them, all but the slow ones (fuzzing, which compiles half of the program
# again): `./test.sh -L slow` runs those. Arguments go to ctest (-R NAME, -V ...).
# EP_SANITIZE=address,undefined ./test.sh builds beside, with sanitizers.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
# shellcheck source=cmake/build.sh
. "$here/cmake/build.sh"
build=$here/build
options=
if [ -n "${EP_SANITIZE:-}" ]; then
  build=$here/build-$(printf %s "$EP_SANITIZE" | tr ',;' '--')
  options="-DEP_SANITIZE=$(printf %s "$EP_SANITIZE" | tr ',' ';') -DCMAKE_BUILD_TYPE=RelWithDebInfo"
fi
# shellcheck disable=SC2086
ep_build "$here" "$build" ON $options || exit $?
cd "$build"
[ $# -gt 0 ] || {
  echo "slow tests left out here: $(ctest -N -L slow 2>/dev/null | sed -n 's/^Total Tests: //p'); ./test.sh -L slow runs them"
  set -- -LE slow
}
exec ctest --output-on-failure -j "${EPREADY_JOBS:-$(nproc)}" "$@"
