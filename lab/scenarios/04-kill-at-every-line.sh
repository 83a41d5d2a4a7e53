#!/bin/bash
# kill -9 of the program after every line of its journal; each time a second run converges, and undo gives /etc back.
fresh_vm
vm 'lab-plan kills >/root/plan.json'
# Building an initramfs takes most of a minute here and says nothing about kills: a quick stand-in for its tool.
vm 'mv /usr/sbin/update-initramfs /usr/sbin/update-initramfs.real; printf "#!/bin/sh\necho stand-in: \$*\n" >/usr/sbin/update-initramfs; chmod 755 /usr/sbin/update-initramfs'
etc_picture >"$WORK/etc.before"
# After the Nth line is point 3N; inside the machine, so that one connection serves them all.
vm 'cat >/root/kill-all' <<'GUEST'
n=0
while :; do
  n=$((n + 1))
  EPREADY_TEST_KILL_AT=$((3 * n)) epready-lab apply /root/plan.json --yes=all --jobs 1 >/root/first.log 2>&1
  rc=$?
  [ $rc = 137 ] || break
  epready-lab apply /root/plan.json --yes=all --jobs 1 >/root/second.log 2>&1 || { echo "after a kill at line $n: exit $?"; cat /root/second.log; exit 1; }
  test "$(cat /etc/lab/a.conf)" = a && test -x /usr/local/cuda-12.9/bin/nvcc && test -e /opt/epready/gdrcopy/.epready-part &&
    grep -q PeerMappingOverride=1 /etc/modprobe.d/epready-nvidia.conf || { echo "after a kill at line $n: not converged"; exit 1; }
  epready-lab undo --yes=all >/root/undo.log 2>&1 || { echo "undo after a kill at line $n: exit $?"; cat /root/undo.log; exit 1; }
done
[ $rc = 0 ] || { echo "the whole run ended with $rc"; cat /root/first.log; exit 1; }
echo "killed after each of $((n - 1)) journal lines, converged and undone from each"
epready-lab undo --yes=all >/root/undo.log 2>&1
GUEST
expect 0 sh /root/kill-all
sed 's/^/    | /' "$WORK/out"
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after all kills and undos"
