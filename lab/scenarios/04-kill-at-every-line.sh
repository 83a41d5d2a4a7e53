#!/bin/bash
# kill -9 of the program after every line of its journal; each time a second run converges, and undo gives /etc back.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
# Building an initramfs takes most of a minute here and says nothing about kills: a quick stand-in for its tool.
vm 'mv /usr/sbin/update-initramfs /usr/sbin/update-initramfs.real; printf "#!/bin/sh\necho stand-in: \$*\n" >/usr/sbin/update-initramfs; chmod 755 /usr/sbin/update-initramfs'
etc_picture >"$WORK/etc.before"
# After the Nth line is point 3N; inside the machine, so that one connection serves them all.
vm 'cat >/root/kill-all' <<'GUEST'
plan=$1 reached=$2 # a command that says whether the host is as the plan wants it
n=0
while :; do
  n=$((n + 1))
  EPREADY_TEST_KILL_AT=$((3 * n)) epready-lab apply "$plan" --yes=all --jobs 1 >/root/first.log 2>&1
  rc=$?
  [ $rc = 137 ] || break
  epready-lab apply "$plan" --yes=all --jobs 1 >/root/second.log 2>&1 || { echo "after a kill at line $n: exit $?"; cat /root/second.log; exit 1; }
  sh -c "$reached" || { echo "after a kill at line $n: not converged"; exit 1; }
  epready-lab undo --yes=all >/root/undo.log 2>&1 || { echo "undo after a kill at line $n: exit $?"; cat /root/undo.log; exit 1; }
  [ ! -e /opt/epready ] || { echo "undo after a kill at line $n left the prefix"; exit 1; }
done
[ $rc = 0 ] || { echo "the whole run ended with $rc"; cat /root/first.log; exit 1; }
[ $n -gt 8 ] || { echo "only $n journal lines: the kills did not happen"; exit 1; }
echo "killed after each of $((n - 1)) journal lines, converged and undone from each"
epready-lab undo --yes=all >/root/undo.log 2>&1
GUEST
say "files, module options and a git checkout"
vm 'lab-plan no-packages >/root/plan.json'
expect 0 'sh /root/kill-all /root/plan.json "test -e /opt/epready/gdrcopy/.epready-part && grep -qx a /etc/lab/a.conf && grep -q PeerMappingOverride=1 /etc/modprobe.d/epready-nvidia.conf"'
sed 's/^/    | /' "$WORK/out"
say "a package source and a package"
vm 'lab-plan packages >/root/plan.json'
expect 0 'sh /root/kill-all /root/plan.json "test -x /usr/local/cuda-12.9/bin/nvcc && test -z \"\$(dpkg --audit)\""'
sed 's/^/    | /' "$WORK/out"
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after all kills and undos"
