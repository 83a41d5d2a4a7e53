#!/bin/bash
# A fresh host to the end, through its reboot, with one command; then nothing is left to do; then undo.
fresh_vm
say "a fresh host: NICs are called rocep*, the driver has no option, there is no toolkit"
expect 0 ls /sys/class/infiniband; says rocep145s0
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: ""'
etc_picture >"$WORK/etc.before"
vm 'lab-plan all >/root/plan.json'

say "apply with all consent: everything that can be done before the reboot is done, then the host reboots"
apply_and_reboot /root/plan.json
sed 's/^/    | /' "$WORK/out"
says "rebooting now; the plan goes on by itself"

say "it is up again and goes on by itself"
wait_resumed
expect 0 epready-lab status
sed 's/^/    | /' "$WORK/out"
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: "PeerMappingOverride=1"'
expect 0 ls /sys/class/infiniband; says mlx5_0; says_not rocep
expect 0 /opt/epready/venv/bin/python -c "'import deep_ep, torch; print(deep_ep.STAND_IN, torch.__version__)'"; says "True 2.9.1"
expect 0 test -e /opt/epready/nvshmem/lib/libnvshmem_host.so.3

say "a second apply finds nothing to do"
expect 0 "epready-lab apply /root/plan.json --yes=all --json >/root/second.json && grep -c '\"state\": \"satisfied\"' /root/second.json"
expect 1 "grep '\"state\": \"done\"' /root/second.json"

say "undo: /etc is as it was, the prefix is gone, packages are gone"
expect 0 epready-lab undo --yes=all
sed 's/^/    | /' "$WORK/out"
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after undo"
expect 1 test -e /opt/epready
expect 1 test -e /usr/local/cuda
expect 1 dpkg-query -W cuda-nvcc-12-9
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: ""'
