#!/bin/bash
# Two files that set the option differently: both are named, options beside it survive, one file sets it; reboot done by hand.
fresh_vm
vm "echo 'options nvidia NVreg_RegistryDwords=\"Foo=2;PeerMappingOverride=0\" NVreg_EnableStreamMemOPs=1' >/etc/modprobe.d/nvidia.conf
    echo 'options nvidia NVreg_RegistryDwords=PeerMappingOverride=0' >/etc/modprobe.d/zz-site.conf; cp -a /etc/modprobe.d /root/before
    lab-plan options >/root/plan.json"
say "the reboot is not agreed to: everything else is done, exit 4"
expect 4 epready-lab apply /root/plan.json --yes=kernel
sed 's/^/    | /' "$WORK/out"
says "it was left to you"
expect 0 cat /opt/epready/log/driver-options.log
says "/etc/modprobe.d/nvidia.conf:1 sets NVreg_RegistryDwords"; says "/etc/modprobe.d/zz-site.conf:1 sets NVreg_RegistryDwords"
say "one live option line sets it, whatever modprobe reads"
expect 0 "modprobe -c | grep '^options nvidia.*RegistryDwords'"
[ "$(wc -l <"$WORK/out")" = 1 ] || fail "more than one line sets the option"
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'PeerMappingOverride=1'; says "EnableStreamMemOPs: 1"
say "after the reboot by hand the plan is finished"
expect 0 epready-lab apply --resume
expect 0 epready-lab undo --yes=all
expect 0 diff -r /root/before /etc/modprobe.d
