#!/bin/bash
# A fresh host to the end, through its reboot, with one command; then nothing is left to do; then undo. Makes the tutorial's recording.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
say "a fresh host: NICs are called rocep*, the driver has no option, there is no toolkit"
shown 0 ls /sys/class/infiniband; says rocep145s0
shown 0 grep RegistryDwords: /proc/driver/nvidia/params; says 'RegistryDwords: ""'
etc_picture >"$WORK/etc.before"
vm 'lab-plan all >/root/plan.json'

say "apply with all consent: everything that can be done before the reboot is done, then the host reboots"
apply_and_reboot /root/plan.json
sed 's/^/    | /' "$WORK/out"
says "rebooting now; the plan goes on by itself"
recorded '$ epready-lab apply /root/plan.json --yes=all'
cat "$WORK/out" >>"$WORK/recording"
recorded '(the machine reboots, and its resume unit goes on)'

say "it is up again and goes on by itself"
wait_resumed
shown 0 epready-lab status
sed 's/^/    | /' "$WORK/out"
says "13 already so"
shown 0 grep RegistryDwords: /proc/driver/nvidia/params; says 'RegistryDwords: "PeerMappingOverride=1"'
shown 0 ls /sys/class/infiniband; says mlx5_0; says_not rocep
expect 0 /opt/epready/venv/bin/python -c "'import deep_ep, torch; print(deep_ep.STAND_IN, torch.__version__)'"; says "True 2.9.1"
expect 0 test -e /opt/epready/nvshmem/lib/libnvshmem_host.so.3

say "a second apply finds nothing to do and changes nothing"
vm 'touch /root/stamp; sleep 1'
shown 0 epready-lab apply /root/plan.json --yes=all
says "13 already so"; says_not "done ("
# Each sample beside a bare start of its helpers' kind: an emulated or busy machine is slow at both.
expect 0 'for i in 1 2 3 4 5; do a=$(date +%s%N); epready-lab apply /root/plan.json --yes=all --json >/root/second.json || exit 1; b=$(date +%s%N)
  lsinitramfs /boot/initrd.img-$(uname -r) >/dev/null; python3 -c "import json, ssl"; c=$(date +%s%N); echo $(((b - a) / 1000000)) $(((c - b) / 1000000)); done | sort -n | head -1'
read -r took bare <"$WORK/out"
say "it took $took ms (best of 5; listing the initramfs and starting one Python takes $bare ms here)"
# It has a second; on a machine so busy that the bare starts take long as well, three times those.
[ "$took" -lt 1000 ] || [ "$took" -lt $((3 * bare)) ] || fail "a finished host took $took ms"
expect 0 "grep -c '\"state\": \"satisfied\"' /root/second.json"; says 13
expect 0 "find /etc /usr /opt/epready -newer /root/stamp ! -path '/opt/epready/state*' ! -path /opt/epready"
[ ! -s "$WORK/out" ] || { cat "$WORK/out"; fail "a finished host was changed"; }

say "undo: /etc is as it was, the prefix is gone, packages are gone"
shown 0 epready-lab undo --yes=all
sed 's/^/    | /' "$WORK/out"
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after undo"
expect 1 test -e /opt/epready
expect 1 test -e /usr/local/cuda
expect 1 dpkg-query -W cuda-nvcc-12-9
vm_reboot
shown 0 grep RegistryDwords: /proc/driver/nvidia/params; says 'RegistryDwords: ""'
shown 0 ls /sys/class/infiniband; says rocep145s0
