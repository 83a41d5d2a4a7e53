#!/bin/bash
# For comparison, what people have today: the second document's driver script appends at each run, replaces what a site had set, checks nothing.
fresh_vm
# The script's acts: one line to the end of the file, then the initramfs. Its exit code says nothing about the driver.
vm 'cat >/root/driver-script' <<'GUEST'
set -e
echo 'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1;"' | tee -a /etc/modprobe.d/nvidia.conf
update-initramfs -u
GUEST
vm 'echo "options nvidia NVreg_RegistryDwords=SitesOwn=2" >/etc/modprobe.d/aa-site.conf'

say "the script, twice (somebody was not sure whether it had run): its line stands there twice"
expect 0 'sh /root/driver-script && sh /root/driver-script'
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 2
say "after the reboot its option is live, and the one that the site had set is gone without a word"
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'PeerMappingOverride=1'; says_not SitesOwn

say "a site file that is read later: the script says all is well again, and after the reboot nothing of it is live"
vm 'mv /etc/modprobe.d/aa-site.conf /etc/modprobe.d/zz-site.conf'
expect 0 sh /root/driver-script
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: "SitesOwn=2"'; says_not PeerMappingOverride

say "epready on top of it, by a plan from this host's facts: both files named, one line sets each option, the site's key lives"
put_tools
vm 'epready driver -o /root/plan.json >/root/plan.txt 2>&1'
expect 4 epready apply /root/plan.json --yes=kernel
expect 0 cat /opt/epready/log/*.log
says "/etc/modprobe.d/nvidia.conf:1 sets NVreg_RegistryDwords"; says "/etc/modprobe.d/zz-site.conf:1 sets NVreg_RegistryDwords"
vm_reboot
expect 0 cat /proc/driver/nvidia/params
says 'PeerMappingOverride=1'; says 'SitesOwn=2'; says 'EnableStreamMemOPs: 1'
say "the same command again: nothing to do, and still one line"
expect 0 epready apply /root/plan.json --yes=kernel
expect 0 "modprobe -c | grep -c '^options nvidia.*PeerMappingOverride'"; says 1
expect 0 "modprobe -c | grep -c '^options nvidia.*EnableStreamMemOPs'"; says 1
