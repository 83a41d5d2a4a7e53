#!/bin/sh
# The main job on this machine: seven stages, a verified local lane, everything in one folder, nothing left to do the
# second time, and undo takes the folder away.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
prefix=$scratch/prefix
run 0 up --lane local --prefix "$prefix" --ranks 3 --num-tokens 64 --hidden 256 --num-experts 24 --iters 3
for n in 1 2 3 4 5 6 7; do out_has "[$n/7]"; done
out_has "rows right, bit for bit"
[ -s "$prefix/env/env.sh" ] || die "no environment file"
[ -s "$prefix/report/report.html" ] || die "no HTML report"
python3 -c "import json,sys; d=json.load(open(sys.argv[1])); assert d['verify']['outcome']['verdict'] in ('PASS','WARN'), d['verify']['outcome']; assert d['verify']['bench']['checks']['rows_checked'] > 0" "$prefix/report/report.json" || die "report.json"
# Sourcing the environment twice changes nothing.
a=$(sh -c ". '$prefix/env/env.sh'; env | grep -v '^_=' | sort") b=$(sh -c ". '$prefix/env/env.sh'; . '$prefix/env/env.sh'; env | grep -v '^_=' | sort")
[ "$a" = "$b" ] || die "sourcing twice differs"
run 0 up --lane local --prefix "$prefix" --ranks 2 --num-tokens 16 --hidden 256 --num-experts 8 --iters 2
out_has "Nothing to do"
run 0 undo --prefix "$prefix"
[ ! -e "$prefix" ] || die "undo left $prefix"
