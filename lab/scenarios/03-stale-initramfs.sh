#!/bin/bash
# The option is in the files but the initramfs was not rebuilt: a finding with the reason after the reboot, not a loop.
fresh_vm
vm 'lab-plan options >/root/plan.json'
say "a broken initramfs tool: it says yes and does nothing (as a wrapper in some images does)"
vm 'mv /usr/sbin/update-initramfs /usr/sbin/update-initramfs.real; printf "#!/bin/sh\nexit 0\n" >/usr/sbin/update-initramfs; chmod 755 /usr/sbin/update-initramfs'
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
