#!/bin/bash
# For comparison: the driver script appends at each run and checks nothing; phase 3 of the runbook leaves the initramfs.
fresh_vm
say "the driver script's way, run twice: every run adds its line again"
vm 'for run in 1 2; do echo "options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords=\"PeerMappingOverride=1;\"" >>/etc/modprobe.d/nvidia.conf; done'
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 2
vm 'rm /etc/modprobe.d/nvidia.conf'
say "the runbook's way (a new file, then reboot): the driver comes from the initramfs and does not see it"
vm 'echo "options nvidia NVreg_RegistryDwords=PeerMappingOverride=0x1" >/etc/modprobe.d/nvidia-peermapping.conf'
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: ""'
put_tools
say "epready on top of both: twice the same command, one line, live after one reboot"
vm 'lab-plan options >/root/plan.json'
expect 4 epready-lab apply /root/plan.json --yes=kernel
expect 4 epready-lab apply /root/plan.json --yes=kernel
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 1
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'PeerMappingOverride'; says_not 'RegistryDwords: ""'
expect 0 epready-lab apply --resume
