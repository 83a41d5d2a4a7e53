#!/bin/bash
# For comparison: the driver script appends at each run and checks nothing; phase 3 of the runbook leaves the initramfs.
fresh_vm
say "the driver script's way, run twice: every run adds its line again"
vm 'for run in 1 2; do echo "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\"" >>/etc/modprobe.d/nvidia.conf; done'
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 2
say "the runbook's way beside it (a new file, then reboot): the driver comes from the initramfs and sees neither"
vm 'echo "options nvidia NVreg_RegistryDwords=PeerMappingOverride=0x1" >/etc/modprobe.d/nvidia-peermapping.conf'
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: ""'
put_tools
say "epready on top of both: a plan from this host's facts; one line sets each option, live after one reboot"
vm 'epready driver -o /root/plan.json >/root/plan.txt 2>&1'
expect 4 epready apply /root/plan.json --yes=kernel
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'PeerMappingOverride=1'; says 'EnableStreamMemOPs: 1'
say "the same command again: nothing to do, and still one line"
expect 0 epready apply /root/plan.json --yes=kernel
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 1
expect 0 "modprobe -c | grep -c '^options nvidia.*EnableStreamMemOPs'"; says 1
