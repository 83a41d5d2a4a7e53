#!/bin/bash
# The plug is pulled in the middle of building the initramfs, of installing a package and of a long build; the next run converges.
fresh_vm
etc_picture >"$WORK/etc.before"
vm 'lab-plan small >/root/plan.json; sync'
# cut_in WHAT RECORD SECONDS: applies, and so long after the journal has that record the power goes.
cut_in() {
  say "apply, and $3 s into $1 the power goes"
  vm 'nohup epready-lab apply /root/plan.json --yes=all --jobs 1 >/root/apply.log 2>&1 </dev/null &'
  expect 0 "for i in \$(seq 1200); do grep -qE '$2' /opt/epready/state/journal.jsonl 2>/dev/null && exit 0; sleep 0.1; done; cat /root/apply.log; exit 1"
  sleep "$3"
  power_cut
  vm_boot
  expect 5 epready-lab status
  says "was cut off before its end"
  grep -v '^ *[=?]' "$WORK/out" | sed 's/^/    | /'
}
cut_in "building the initramfs" '"kind":"initramfs".*"s":"started"' 3
cut_in "apt-get install" '"e":"packages"' 2
cut_in "making a Python environment" '"kind":"python-venv".*"s":"started"' 6
say "the next run goes to the end"
expect 0 epready-lab apply --resume --yes=all
expect 0 test -x /opt/epready/venv/bin/python -a -x /usr/local/cuda-12.9/bin/nvcc -a -s /usr/local/cuda-12.9/bin/nvcc
expect 0 /opt/epready/venv/bin/python -c "'import pip'"
expect 0 dpkg --audit
[ ! -s "$WORK/out" ] || { cat "$WORK/out"; fail "dpkg has something to mend"; }
say "and the initramfs that was cut in two boots, with the option in it"
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'PeerMappingOverride=1'
expect 0 epready-lab undo --yes=all
expect 1 test -e /opt/epready
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after undo"
