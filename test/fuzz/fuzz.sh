#!/bin/sh
# Builds a fuzz target with clang's libFuzzer and sanitizers and runs it for some seconds:
#   fuzz.sh SOURCE_DIR BUILD_DIR NAME SECONDS
# Skips (77) where clang or its fuzzer is missing. The corpus beside it is the start; a crash is kept in BUILD_DIR/fuzz.
set -eu
source=$1 build=$2/fuzz name=$3 seconds=$4
mkdir -p "$build/$name.corpus"
clang=
for c in clang++-14 clang++-18 clang++-17 clang++-16 clang++-15 clang++; do
  if command -v "$c" >/dev/null 2>&1; then clang=$c; break; fi
done
[ -n "$clang" ] || { echo "SKIPPED: no clang++ here"; exit 77; }
printf '#include <cstddef>\n#include <cstdint>\nextern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }\n' >"$build/probe.cpp"
"$clang" -fsanitize=fuzzer "$build/probe.cpp" -o "$build/probe" 2>/dev/null || { echo "SKIPPED: $clang has no libFuzzer"; exit 77; }
[ -e "$build/embedded.cpp" ] || cat >"$build/embedded.cpp" <<'CPP'
#include "base/embedded.h"
namespace ep {
static const EmbeddedFile kRows[] = {{nullptr, nullptr, nullptr}};
const EmbeddedFile* const kEmbeddedFiles = kRows;
const unsigned long kNumEmbeddedFiles = 0;
}
CPP
# The sources behind a target: pastes need few of them.
case $name in
paste_fuzz)
  sources="$source/src/base/result.cpp $source/src/base/text.cpp $source/src/base/version.cpp"
  for f in "$source"/src/host/paste.cpp "$source"/src/host/paste_forms.cpp "$source"/src/host/paste_rules.cpp \
    "$source"/src/facts/text_*.cpp "$source"/src/facts/topology*.cpp; do
    case $f in *topology_hosts.cpp) ;; *) sources="$sources $f" ;; esac
  done
  ;;
*) sources="$(echo "$source"/src/base/*.cpp "$source"/src/host/*.cpp "$source"/src/facts/*.cpp) $build/embedded.cpp" ;;
esac
# Pairs of source and object that are older than a source or any header; compiled as many at a time as there are cores.
launcher=
command -v ccache >/dev/null 2>&1 && launcher=ccache
set --
: >"$build/todo"
for f in $sources "$source/test/fuzz/$name.cpp"; do
  case $f in *_test.cpp) continue ;; esac
  o=$build/$(basename "$(dirname "$f")")_$(basename "$f").o
  if [ ! -e "$o" ] || [ -n "$(find "$source/src/base" "$source/src/host" "$source/src/facts" "$f" -newer "$o" \( -name '*.h' -o -path "$f" \) | head -n 1)" ]; then
    printf '%s %s\n' "$f" "$o" >>"$build/todo"
  fi
  set -- "$@" "$o"
done
flags="-std=c++20 -O1 -gline-tables-only -DFMT_HEADER_ONLY=1 -I$source/src -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined"
# shellcheck disable=SC2016
xargs -r -P "${EPREADY_JOBS:-$(nproc)}" -n 2 sh -c "$launcher $clang $flags"' -c "$0" -o "$1.tmp" && mv "$1.tmp" "$1"' <"$build/todo"
"$clang" -fsanitize=address,undefined,fuzzer "$@" -lsodium -lpthread -o "$build/$name"
code=0
"$build/$name" -max_total_time="$seconds" -timeout=60 -report_slow_units=1 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
  -artifact_prefix="$build/" "$build/$name.corpus" "$source/test/fuzz/corpus/$name" >"$build/$name.log" 2>&1 || code=$?
tail -n 12 "$build/$name.log"
exit "$code"
