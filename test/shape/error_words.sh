#!/bin/sh
# Every sentence of the table of translated errors is still said somewhere in the sources.
set -eu
cd "${1:-.}"
all=$(mktemp) bad=0 rows=0
trap 'rm -f "$all"' EXIT
find src -name '*.cpp' ! -name 'error_words*.cpp' -exec cat {} + >"$all"
sed -n 's/^    {"\(.*[^ ]\) *",.*/\1/p' src/report/error_words.cpp >"$all.rows"
while IFS= read -r sentence; do
  rows=$((rows + 1))
  grep -qF -- "\"$sentence" "$all" || { echo "nobody says: $sentence"; bad=1; }
done <"$all.rows"
rm -f "$all.rows"
[ "$rows" -gt 50 ] || { echo "only $rows rows were found in src/report/error_words.cpp"; exit 1; }
exit $bad
