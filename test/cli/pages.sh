#!/bin/sh
# Every command has an English and a Chinese page, help that names its options, a manual page without warnings.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 0 __complete help ""
cp out names
[ "$(wc -l <names)" -ge 5 ] || die "completion lists too few commands"
while IFS= read -r name; do
  case $name in --*) continue ;; esac
  run 0 help "$name"; grep -q '^# epready' out || die "no page for $name"
  run 0 help "$name" --lang zh; grep -q '[^ -~]' out || die "no Chinese page for $name"
  # shellcheck disable=SC2086
  run 0 $name --help; out_has "epready $name"
  if command -v man >/dev/null 2>&1; then
    run 0 help --man "$name"
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z ./out 2>&1 >/dev/null || :)
    [ -z "$warnings" ] || die "man page of $name: $warnings"
  fi
done <names
