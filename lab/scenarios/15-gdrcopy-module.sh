#!/bin/bash
# GDRCopy's kernel module, as the plan has it for the handler that opens it: built for this kernel, its node there at every boot, taken back.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
etc_picture >"$WORK/etc.before"
vm 'lab-plan gdrdrv >/root/plan.json'
say "without consent for the kernel nothing is built"
expect 3 epready-lab apply /root/plan.json --yes=packages
expect 1 test -e /dev/gdrdrv
say "built, loaded, and its node is made: the module itself makes none"
expect 0 epready-lab apply /root/plan.json --yes=kernel
expect 0 'stat -c "%F %a" /dev/gdrdrv; grep gdrdrv /proc/devices'; says "character special file 666"
expect 0 'modinfo -F version gdrdrv'; says 2.5.2
expect 0 epready-lab apply /root/plan.json --yes=kernel; says "1 already so"
say "after a boot it is there again, by its own unit"
vm_reboot
expect 0 systemctl is-active epready-gdrdrv.service
expect 0 'exec 3<>/dev/gdrdrv'
expect 0 epready-lab apply /root/plan.json --yes=kernel; says "1 already so"
say "undo: no unit, no module for the next boot, /etc as it was"
expect 0 epready undo --yes=all
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after undo"
vm_reboot
expect 1 test -e /dev/gdrdrv
expect 1 'modprobe gdrdrv'
