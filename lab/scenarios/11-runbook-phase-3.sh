#!/bin/bash
# For comparison, what people have today: phase 3 of the runbook (write a file, reboot) on a host whose initramfs loads the driver.
fresh_vm
say "phase 3 as written, then its reboot"
vm 'echo "options nvidia NVreg_RegistryDwords=PeerMappingOverride=0x1" >/etc/modprobe.d/nvidia-peermapping.conf'
vm_reboot
say "phase 4 looks for the option: the driver came from the initramfs, which does not know the file"
expect 1 grep PeerMappingOverride /proc/driver/nvidia/params
say "phase 3 once more changes nothing, however often it is rebooted"
vm 'echo "options nvidia NVreg_RegistryDwords=PeerMappingOverride=0x1" >/etc/modprobe.d/nvidia-peermapping.conf'
vm_reboot
expect 1 grep PeerMappingOverride /proc/driver/nvidia/params
say "epready sees that the file asks for it and the initramfs does not have it: its plan from these facts is live after one reboot"
put_tools
expect 0 'NO_COLOR=1 epready driver -o /root/plan.json'
expect 4 epready apply /root/plan.json --yes=kernel
vm_reboot
expect 0 grep PeerMappingOverride /proc/driver/nvidia/params
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 1
say "undo leaves the runbook's file as it was"
expect 0 epready undo --yes=all
expect 0 cat /etc/modprobe.d/nvidia-peermapping.conf; says "options nvidia NVreg_RegistryDwords=PeerMappingOverride=0x1"
