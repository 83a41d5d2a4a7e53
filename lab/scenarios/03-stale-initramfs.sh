#!/bin/bash
# The option is in the files but not in the initramfs: a tool that does nothing is found at once, a stale image after the reboot; no loop.
fresh_vm
vm 'lab-plan options >/root/plan.json'
tool() { vm "printf '#!/bin/sh\n$1\n' >/usr/sbin/update-initramfs; chmod 755 /usr/sbin/update-initramfs"; }
say "an initramfs tool that says yes and does nothing (as a wrapper in some images does): found before any reboot"
vm 'mv /usr/sbin/update-initramfs /usr/sbin/update-initramfs.real'
tool 'exit 0'
expect 1 epready-lab apply /root/plan.json --yes=all
says "no image in /boot has changed"; says "update_initramfs=no"
says_not "rebooting"
say "one that writes an image without our file: only the reboot can show it"
tool 'touch /boot/initrd.img-*'
apply_and_reboot /root/plan.json
wait_resumed
expect 0 cat /proc/driver/nvidia/params; says 'RegistryDwords: ""'
boot=$(vm cat /proc/sys/kernel/random/boot_id)
say "the finding names the initramfs and the command; no second reboot"
expect 1 epready-lab apply --resume --yes=all
sed 's/^/    | /' "$WORK/out"
says "built before they changed"; says "update-initramfs -u"
[ "$(vm cat /proc/sys/kernel/random/boot_id)" = "$boot" ] || fail "it rebooted again"
say "mended by hand as told: live after the next boot"
vm 'mv /usr/sbin/update-initramfs.real /usr/sbin/update-initramfs; update-initramfs -u -k all'
vm_reboot
expect 0 cat /proc/driver/nvidia/params; says 'PeerMappingOverride=1'
expect 0 epready-lab apply --resume
