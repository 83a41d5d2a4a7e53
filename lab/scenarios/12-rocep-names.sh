#!/bin/bash
# NICs under their udev names (rocep*): no obstacle for the plan, renamed for now, renamed for good by a step and a reboot.
fresh_vm
plan() { expect 3 'NO_COLOR=1 epready plan --lane v1'; }
say "the plan for lane v1 has ways around the names, so it blames only what has none: soft RoCE is not mlx5"
expect 0 ls /sys/class/infiniband; says rocep145s0; says rocep146s0
plan; says "nic.driver is rdma_rxe"; says "[efa-no-ibgda]"; says_not "[hca-names]"
say "the light way, as its problem's page says: rdma dev set; the names are no obstacle any more"
expect 0 epready explain driver.hca-name; says "rdma dev set rocep145s0 name mlx5_0"
vm 'rdma dev set rocep145s0 name mlx5_0 && rdma dev set rocep146s0 name mlx5_1'
expect 0 ls /sys/class/infiniband; says mlx5_0; says mlx5_1; says_not rocep
say "a reboot gives the old names back: it was for this boot only"
vm_reboot
expect 0 ls /sys/class/infiniband; says rocep145s0; says rocep146s0; says_not mlx5
say "the light way for good, without a package or a reboot: a file hides the udev rule, and the devices are renamed now"
vm 'lab-plan names >/root/names.json'
expect 0 epready apply /root/names.json --yes=kernel
expect 0 ls /sys/class/infiniband; says mlx5_0; says mlx5_1; says_not rocep
expect 0 epready apply /root/names.json --yes=kernel # renamed already: nothing to rename, and no error
vm_reboot
expect 0 ls /sys/class/infiniband; says mlx5_0; says mlx5_1; says_not rocep
expect 0 epready undo --yes=all
expect 0 ls /sys/class/infiniband; says rocep145s0; says rocep146s0
expect 1 test -e /etc/udev/rules.d/60-rdma-persistent-naming.rules -o -e /etc/epready
say "the step that a stack with older NVSHMEM has: the RDMA stack's package; its names are there after the next boot"
vm 'lab-plan rdma >/root/plan.json'
expect 0 epready-lab apply /root/plan.json --yes=packages
says "ok doca-ofed"
expect 0 ls /sys/class/infiniband; says rocep145s0
vm_reboot
expect 0 ls /sys/class/infiniband; says mlx5_0; says mlx5_1; says_not rocep
expect 0 epready-lab apply --resume
say "undo, and the next boot has the first names"
expect 0 epready-lab undo --yes=all
vm_reboot
expect 0 ls /sys/class/infiniband; says rocep145s0
