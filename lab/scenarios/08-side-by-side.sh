#!/bin/bash
# Four independent stand-in builds on two processors: side by side takes at most 0.65 of one after the other.
# alone: it measures
fresh_vm
vm 'lab-plan builds >/root/plan.json'
seconds() { vm "epready apply /root/plan.json --jobs $1 --json" | sed -n 's/^  "seconds": \([0-9.]*\).*/\1/p' | head -1; }
one=$(seconds 1)
two=$(seconds 2)
say "one after the other $one s, side by side $two s"
awk -v a="$one" -v b="$two" 'BEGIN { printf "ratio %.2f (limit 0.65)\n", b / a; exit !(b / a <= 0.65) }' || fail "not side by side enough"
