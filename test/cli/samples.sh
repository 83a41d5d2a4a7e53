#!/bin/sh
# Everything can be tried without a GPU: every sample answers every reading command, in both languages and as JSON.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
samples=$(find "$EP_SOURCE_DIR/data/samples" -name '*.snap' -exec basename {} .snap \;)
[ "$(echo "$samples" | wc -l)" -ge 5 ] || die "fewer than five samples"
for s in $samples; do
  for cmd in facts lanes plan topology "verify -r 1" report; do
    for lang in en zh; do
      code=0
      # shellcheck disable=SC2086
      "$EPREADY" $cmd --from "sample/$s" --lang $lang >out 2>err </dev/null || code=$?
      [ "$code" = 0 ] || [ "$code" = 1 ] || [ "$code" = 3 ] || die "$cmd --from sample/$s --lang $lang: exit code $code"
      [ -s out ] || [ "$code" != 0 ] || die "$cmd --from sample/$s said nothing"
    done
    code=0
    # shellcheck disable=SC2086
    "$EPREADY" $cmd --from "sample/$s" --json >out 2>err </dev/null || code=$?
    json '"schema" in d and d["tool"] == "epready"'
  done
done
