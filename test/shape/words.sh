#!/bin/sh
# Small laws on the text of the repository: file length, first comment, shell scripts clean.
set -eu
cd "$1"
bad=0
files=$(find src engine -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')
[ -n "$files" ] || { echo "no sources found"; exit 1; }
for f in $files; do
  n=$(wc -l <"$f")
  if [ "$n" -gt 600 ] && ! head -6 "$f" | grep -qi 'longer'; then
    echo "$f has $n lines; say in its first comment why it is longer, or split it"; bad=1
  fi
done
if command -v shellcheck >/dev/null 2>&1; then
  # shellcheck disable=SC2046
  shellcheck -x epready test.sh .ci/run $(find cmake test lab -name '*.sh') || bad=1
else
  echo "note: shellcheck is not installed; scripts not checked here"
fi
exit $bad
