#!/bin/sh
# tutorial.sh ROOT: the tutorial's recording is of the scenario and the plan that the lab has today, and its one command is there.
set -eu
cd "$1"
page=docs/tutorial.md story=lab/scenarios/01-fresh-host.sh plan=lab/guest/lab-plan
bad() { echo "$page: $*" >&2; failed=1; }
failed=0
command=$(grep -o 'lab/run --record docs/tutorial.md' $page | head -1)
[ -n "$command" ] || bad "does not name the command that records it"
grep -q '^--record)' lab/run || bad "lab/run has no --record"
[ "$(grep -c '^<!-- recording \(begins\|ends\)' $page)" = 2 ] || bad "has no marks for a recording"
recording=$(sed -n '/^<!-- recording begins/,/^<!-- recording ends/s/^    //p' $page)
# Every command that it shows is one of the story.
echo "$recording" | sed -n 's/^\$ //p' >"${TMPDIR:-/tmp}/epready-tutorial.$$"
while IFS= read -r line; do
  case $line in
  "epready-lab apply /root/plan.json --yes=all") told="apply_and_reboot /root/plan.json" ;;
  *) told="shown 0 $line" ;;
  esac
  grep -qF -- "$told" $story || bad "shows a command that $story does not have: $line"
done <"${TMPDIR:-/tmp}/epready-tutorial.$$"
[ -s "${TMPDIR:-/tmp}/epready-tutorial.$$" ] || bad "shows no command"
rm -f "${TMPDIR:-/tmp}/epready-tutorial.$$"
# Every step of the plan is in it, done or found so, and no other one.
named=$(echo "$recording" | sed -n 's/^\[ *[0-9]* s\]   \(ok\|=\)  *\([a-z-]*\) .*/\2/p' | sort -u)
wanted=$(sed -n '/^def options/,/^def small/s/.*step("\([a-z-]*\)", .*/\1/p' $plan | sort -u)
[ "$named" = "$wanted" ] || bad "was recorded with other steps than $plan has: $(printf '%s\n%s\n' "$named" "$wanted" | sort | uniq -u | tr '\n' ' ')"
count=$(sed -n 's/^says "\([0-9]* already so\)".*/\1/p' $story | head -1)
echo "$recording" | grep -q "$count" || bad "does not end with $count, as $story does"
[ $failed = 0 ] || { echo "record it again: sudo lab/run --record $page" >&2; exit 1; }
