# shellcheck shell=sh
# Functions shared by ./epready and ./test.sh: the packages that the build needs, and the build itself.

# One list for both Debian 12 and Ubuntu 24.04; the names are the same there.
EP_BUILD_PACKAGES="g++ cmake ninja-build pkg-config libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libexpected-dev libre2-dev libsodium-dev"
EP_TEST_PACKAGES="curl git libgtest-dev libgmock-dev librapidcheck-dev python3 man-db"

ep_say() { printf 'epready: %s\n' "$*" >&2; }

# ep_packages NAME...: installs what is missing, saying which. Lists them when it cannot.
ep_packages() {
  command -v dpkg-query >/dev/null 2>&1 || return 0 # not Debian-like: CMake names what is missing
  missing=
  for p in "$@"; do
    case $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || :) in
      installed) ;;
      *) missing="$missing $p" ;;
    esac
  done
  [ -n "$missing" ] || return 0
  root=
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then root=sudo; else root=none; fi
  fi
  if [ "$root" = none ] || [ -n "${EPREADY_NO_INSTALL:-}" ]; then
    ep_say "these distribution packages are needed for the build and are not installed:$missing"
    ep_say "next: sudo apt-get update && sudo apt-get install -y$missing"
    return 3
  fi
  ep_say "installing distribution packages for the build:$missing"
  log=$(mktemp)
  # shellcheck disable=SC2086
  if ! { $root apt-get -q -o DPkg::Lock::Timeout=120 update &&
    $root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $missing; } \
    >"$log" 2>&1 </dev/null; then
    grep -E '^(E|W|Err):' "$log" | head -5 >&2
    ep_say "the packages could not be installed; full log: $log"
    ep_say "next: sudo apt-get update && sudo apt-get install -y$missing"
    return 3
  fi
  rm -f "$log"
}

# ep_build SOURCE BUILD TESTS(ON|OFF) [cmake options...]: one build at a time, quiet unless it fails.
ep_build() {
  source=$1 build=$2 tests=$3
  shift 3
  # The GPU engine is built where it can run: a driver is loaded and nvcc is there.
  if [ -e /proc/driver/nvidia/version ] && ep_nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
    set -- "$@" -DEP_GPU=ON -DCMAKE_CUDA_COMPILER="$ep_nvcc"
  fi
  packages=$EP_BUILD_PACKAGES
  [ "$tests" = ON ] && packages="$packages $EP_TEST_PACKAGES"
  # shellcheck disable=SC2086
  ep_packages $packages || return $?
  mkdir -p "$build"
  started=$(date +%s)
  stamp_new=$build/.building
  (
    if command -v flock >/dev/null 2>&1; then
      flock -n 9 || {
        ep_say "another build of this checkout is running; waiting for it"
        flock 9
      }
    fi
    : >"$stamp_new" # time of the sources that this build sees
    ep_say "building (the first time takes a few minutes; log: $build/build.log)"
    if ! cmake -S "$source" -B "$build" -G Ninja -DEP_TESTS="$tests" "$@" >"$build/build.log" 2>&1; then
      ep_first_error "$build/build.log"
      return 1
    fi
    if [ -t 2 ]; then
      ninja -C "$build" ${EPREADY_JOBS:+-j "$EPREADY_JOBS"} 2>&1 </dev/null | tee -a "$build/build.log" |
        awk '/^\[[0-9]+\/[0-9]+\]/ { printf "\r\033[K%.100s", $0 > "/dev/stderr"; fflush("/dev/stderr") } END { printf "\r\033[K" > "/dev/stderr" }'
      ! grep -q '^FAILED:\|^ninja: error' "$build/build.log" || {
        ep_first_error "$build/build.log"
        return 1
      }
    else
      ninja -C "$build" ${EPREADY_JOBS:+-j "$EPREADY_JOBS"} >>"$build/build.log" 2>&1 </dev/null || {
        ep_first_error "$build/build.log"
        return 1
      }
    fi
    mv -f "$stamp_new" "$build/.built"
  ) 9>"$build/.lock" || return $?
  ep_say "built in $(($(date +%s) - started)) s"
}

# The compiler's or CMake's first error, then what to do.
ep_first_error() {
  grep -n -m1 -A6 -E '(: |^)(fatal )?error: |^CMake Error|undefined reference|^ninja: error|Killed' "$1" >&2 || tail -5 "$1" >&2
  ep_say "the build failed; the first error stands above, the whole log is $1"
  ep_say "next: mend it and run the same command again; out of memory? EPREADY_JOBS=1 ./epready"
}
