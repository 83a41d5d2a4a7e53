#!/bin/bash
# Four independent stand-in builds on two processors: side by side takes at most 0.65 of one after the other.
# alone: it measures
[ "$(nproc)" -ge 2 ] || skip "one processor: nothing can run side by side"
export LAB_CPUS=2
vm_new
vm_boot
put_tools
vm 'lab-plan builds >/root/plan.json'
vm 'cat >/root/bare' <<'GUEST'
#!/bin/bash
# The builds' loop without epready, twice in turn and twice at once: what two processors are worth at this moment.
spin() { sh -c 'i=0; while [ $i -lt 250000 ]; do i=$((i+1)); done'; }
a=${EPOCHREALTIME/./}; spin; spin; b=${EPOCHREALTIME/./}; spin & spin & wait; c=${EPOCHREALTIME/./}
echo "$((b - a)) $((c - b))"
GUEST
seconds() { vm "epready apply /root/plan.json --jobs $1 --json" | sed -n 's/^  "seconds": \([0-9.]*\).*/\1/p' | head -1; }
# On a machine whose processors others use as well, the bare loop shows it, and nothing can be said, good or bad.
for _ in 1 2 3; do
  [ "$SECONDS" -lt 400 ] || break # slow as well: another try would run into the story's limit
  read -r in_turn at_once < <(vm bash /root/bare)
  awk -v a="$in_turn" -v b="$at_once" 'BEGIN { printf "bare ratio %.2f\n", b / a; exit !(b / a <= 0.8) }' || continue
  one=$(seconds 1)
  two=$(seconds 2)
  say "bare loops: in turn $in_turn us, at once $at_once us; epready: one after the other $one s, side by side $two s"
  awk -v a="$one" -v b="$two" 'BEGIN { printf "ratio %.2f (limit 0.65)\n", b / a; exit !(b / a <= 0.65) }' && exit 0
  awk -v a="$in_turn" -v b="$at_once" 'BEGIN { exit !(b / a <= 0.57) }' && fail "not side by side enough"
done
skip "others used the processors in every try: two bare loops at once were no faster either"
