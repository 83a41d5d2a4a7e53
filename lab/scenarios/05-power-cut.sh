#!/bin/bash
# The plug is pulled in the middle of a package installation and of a build; the next run converges.
fresh_vm
vm 'lab-plan small >/root/plan.json'
for seconds in 3 8; do
  say "apply, and after $seconds s the power goes"
  vm 'nohup epready-lab apply /root/plan.json --yes=all >/root/apply.log 2>&1 &'
  sleep "$seconds"
  power_cut
  vm_boot
  expect 0 'epready-lab status || true'
  sed 's/^/    | /' "$WORK/out"
done
expect 0 epready-lab apply /root/plan.json --yes=all
expect 0 test -x /opt/epready/venv/bin/python -a -x /usr/local/cuda-12.9/bin/nvcc
expect 0 dpkg --audit
expect 0 epready-lab undo --yes=all
expect 1 test -e /opt/epready
