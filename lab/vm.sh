#!/bin/bash
# Functions that scenarios tell their story with. Sourced by lab/run; expects IMAGE (folder of lab/build) and WORK.
# The disk of a machine is a copy; `qemu -no-reboot` ends at a reboot and the next boot takes kernel and initramfs
# from the disk again, as a boot loader would: a stale initramfs stays stale.

say() { printf '%5d s  %s\n' "$SECONDS" "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
skip() { printf 'SKIPPED: %s\n' "$*" >&2; exit 77; }

# vm_new: a fresh machine with a disk of its own, not yet running.
vm_new() {
  cp --sparse=always --reflink=auto "$IMAGE/disk.raw" "$WORK/disk.raw"
}

# qemu OPTION...: the machine, on this scenario's disk. Software emulation unless LAB_ACCEL asks otherwise: a /dev/kvm
# that is there need not work (nested hosts).
qemu() {
  PORT=${PORT:-$((20000 + BASHPID % 20000))}
  local accel=${LAB_ACCEL:-tcg,thread=multi} cpu=Nehalem
  case $accel in kvm*) cpu=host ;; esac
  rm -f "$WORK/monitor"
  # pc without the devices nobody needs: every one of them costs boot time under emulation. norandmaps: the emulator
  # keeps translated code by address, so with random addresses every process is translated anew (an initramfs: 79 s
  # instead of 10 s). no_timer_check: on a busy host the kernel's test of its timer fails and it panics.
  qemu-system-x86_64 -M pc,usb=off,vmport=off,i8042=off -accel "$accel" -cpu $cpu -smp "${LAB_CPUS:-1}" -m 1024 -no-reboot -nodefaults -display none \
    -kernel "$WORK/kernel" -initrd "$WORK/initrd" \
    -append "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off audit=0 norandmaps nokaslr init_on_alloc=0 no_timer_check panic=-1 quiet systemd.show_status=0 random.trust_cpu=on" \
    -drive file="$WORK/disk.raw",if=virtio,format=raw,cache=unsafe \
    -netdev user,id=n,hostfwd=tcp:127.0.0.1:"$PORT"-:22 -device virtio-net-pci,netdev=n,romfile= -device virtio-rng-pci \
    -serial file:"$WORK/console.log" "$@" &
  QEMU=$!
}

# vm_kernel: takes kernel and initramfs from the machine's disk, as a boot loader would.
vm_kernel() {
  local kernel initrd
  kernel=$(debugfs -R 'ls -p /boot' "$WORK/disk.raw" 2>/dev/null | cut -d/ -f6 | grep ^vmlinuz- | tail -1)
  initrd=initrd.img-${kernel#vmlinuz-}
  debugfs -R "dump /boot/$kernel $WORK/kernel" "$WORK/disk.raw" 2>/dev/null
  debugfs -R "dump /boot/$initrd $WORK/initrd" "$WORK/disk.raw" 2>/dev/null
  if [ ! -s "$WORK/kernel" ] || [ ! -s "$WORK/initrd" ]; then fail "no kernel or initramfs on the disk"; fi
}

# vm_boot: starts the machine from what its disk holds now and waits until it answers.
vm_boot() {
  local rc=0
  e2fsck -fp "$WORK/disk.raw" >"$WORK/fsck.log" 2>&1 || rc=$?
  [ $rc -le 1 ] || fail "file system after the last shutdown: $(tail -1 "$WORK/fsck.log")"
  vm_kernel
  qemu
  vm_wait
}

# vm_wait: until ssh answers and the boot is finished.
vm_wait() {
  for _ in $(seq 1 "${VM_BOOT_LIMIT:-900}"); do
    kill -0 "$QEMU" 2>/dev/null || fail "the machine ended while booting: $(tail -3 "$WORK/console.log")"
    vm true 2>/dev/null && return 0
    sleep 1
  done
  fail "no answer after ${VM_BOOT_LIMIT:-900} s: $(tail -3 "$WORK/console.log")"
}

# kept_folder: where the memory and disk of the booted machine are kept, for this emulator and this machine.
kept_folder() {
  echo "$IMAGE/booted-$( (echo "${LAB_ACCEL:-tcg}"; qemu-system-x86_64 --version; grep -A20 '^qemu()' "$LAB/vm.sh") | sha256sum | cut -c1-12)"
}

# keep_booted_vm: boots the machine once and keeps it as it is then: no scenario boots for the first time.
keep_booted_vm() {
  local kept
  kept=$(kept_folder)
  if [ -e "$kept/memory" ]; then return 0; fi
  vm_new
  vm_kernel
  mkfifo "$WORK/monitor.in" "$WORK/monitor.out"
  qemu -chardev pipe,id=mon,path="$WORK/monitor" -mon chardev=mon
  vm_wait
  vm 'systemctl is-system-running --wait >/dev/null; sync' || true
  ssh_close
  rm -rf "$kept.new"
  mkdir "$kept.new"
  cat "$WORK/monitor.out" >/dev/null &
  # Migration stops the machine itself; after an explicit stop the restored one would stay stopped.
  printf 'migrate "exec:cat >%s/memory"\nquit\n' "$kept.new" >"$WORK/monitor.in"
  wait "$QEMU" || true
  QEMU=
  [ -s "$kept.new/memory" ] || fail "the booted machine could not be kept"
  cp "$WORK/kernel" "$WORK/initrd" "$kept.new/"
  mv "$WORK/disk.raw" "$kept.new/"
  mv -T "$kept.new" "$kept"
}

# fresh_vm: a machine that has booted and has never seen epready, with the program and the lab's tools copied in.
fresh_vm() {
  local kept
  kept=$(kept_folder)
  cp --sparse=always --reflink=auto "$kept/disk.raw" "$WORK/disk.raw"
  cp "$kept/kernel" "$kept/initrd" "$WORK/"
  qemu -incoming "exec:cat $kept/memory"
  vm_wait
  vm "date -s @$(date +%s) >/dev/null"
  put_tools
}

# vm COMMAND...: runs it in the machine as root, output and exit code as there.
vm() {
  ssh -q -p "$PORT" -i "$IMAGE/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=5 \
    -o ControlMaster=auto -o ControlPath="$WORK/ssh-%p" -o ControlPersist=60 -o ServerAliveInterval=15 -o ServerAliveCountMax=40 root@127.0.0.1 "$@"
}
vm_put() { tar -C "$(dirname "$1")" -cf - "$(basename "$1")" | vm "mkdir -p $2 && tar -C $2 -xf - --no-same-owner"; }

ssh_close() { ssh -q -p "$PORT" -o ControlPath="$WORK/ssh-%p" -O exit root@127.0.0.1 2>/dev/null || true; }
# vm_down: waits until the machine has ended by itself (a reboot or poweroff that was begun inside).
vm_down() {
  for _ in $(seq 1 1200); do
    kill -0 "$QEMU" 2>/dev/null || { wait "$QEMU" 2>/dev/null || true; QEMU=; ssh_close; return 0; }
    sleep 0.5
  done
  fail "the machine did not go down"
}
vm_reboot() { vm systemctl reboot || true; vm_down; vm_boot; }
# power_cut: the plug is pulled. cache=unsafe keeps what the guest had written to its disk device.
power_cut() { kill -9 "$QEMU"; wait "$QEMU" 2>/dev/null || true; QEMU=; ssh_close; }
vm_end() { if [ -n "${QEMU:-}" ]; then kill "$QEMU" 2>/dev/null || true; wait "$QEMU" 2>/dev/null || true; QEMU=; ssh_close; fi; }

# expect EXIT COMMAND...: the command ends with that exit code in the machine; its output is kept in $WORK/out.
expect() {
  local want=$1 got=0; shift
  vm "$@" >"$WORK/out" 2>&1 || got=$?
  [ "$got" = "$want" ] || { tail -40 "$WORK/out" | sed 's/^/    | /' >&2; fail "exit $got instead of $want: $*"; }
}
# says TEXT: the last `expect` printed it, on one line or wrapped.
folded() { tr '\n' ' ' <"$WORK/out" | tr -s ' '; }
says() { folded | grep -F -- "$1" >/dev/null || { tail -40 "$WORK/out" | sed 's/^/    | /' >&2; fail "it did not say: $1"; }; }
says_not() { ! folded | grep -F -- "$1" >/dev/null || { tail -40 "$WORK/out" | sed 's/^/    | /' >&2; fail "it said: $1"; }; }

put_tools() {
  vm 'cat >/usr/local/bin/epready && chmod 755 /usr/local/bin/epready' <"$EPREADY"
  vm 'cat >/usr/local/bin/lab-plan && chmod 755 /usr/local/bin/lab-plan' <"$LAB/guest/lab-plan"
  vm 'cat >/usr/local/bin/kill-everywhere && chmod 755 /usr/local/bin/kill-everywhere' <"$LAB/guest/kill-everywhere"
  vm 'cat >/usr/local/bin/lab-stamp && chmod 755 /usr/local/bin/lab-stamp' <"$LAB/guest/lab-stamp"
  if [ -n "${LAB_BROKEN:-}" ]; then # lab/run --broken: this scenario's own way of going wrong stands before the program
    vm 'mv /usr/local/bin/epready /usr/local/bin/epready.real && cat >/usr/local/bin/epready && chmod 755 /usr/local/bin/epready' <"$LAB_BROKEN"
  fi
  # On the disk, not only in memory: after a power cut an empty file would still be there and end with 0.
  vm 'cat >/usr/local/bin/epready-lab && chmod 755 /usr/local/bin/epready-lab && sync' <"$LAB/guest/epready-lab"
}
# etc_picture: every entry of /etc with mode, owner and content digest; what undo must restore. Files that the system
# itself rewrites at a boot or a package run (caches, random ids) are left out, and these are all that are.
etc_picture() {
  vm "cd /etc && find . -printf '%p %y %m %U %G %l\n' | grep -v -E '^\./(ld.so.cache|\.updated|machine-id|adjtime|resolv.conf) ' | sort; \
    find . -type f ! -name ld.so.cache ! -name .updated ! -name machine-id ! -name adjtime -print0 | sort -z | xargs -0 sha256sum"
}
# shown EXIT COMMAND: as `expect`, and the recording gets the command and what it printed, each line with its second.
shown() {
  local want=$1; shift
  expect "$want" "set -o pipefail; export NO_COLOR=1; { $*; } 2>&1 | lab-stamp"
  { printf '\n$ %s\n' "$*"; cat "$WORK/out"; } >>"$WORK/recording"
}
recorded() { printf '\n%s\n' "$*" >>"$WORK/recording"; }
# apply_and_reboot PLAN: apply with all consent; the program begins the reboot, the machine goes down and comes back,
# and the resume unit does the rest. Leaves what the first half printed in $WORK/out.
apply_and_reboot() {
  local rc
  vm "NO_COLOR=1 epready-lab apply $1 --yes=all 2>&1 | lab-stamp >/root/apply.log; echo \${PIPESTATUS[0]} >/root/apply.rc; sync; cat /root/apply.rc" >"$WORK/rc" 2>/dev/null || true
  rc=$(cat "$WORK/rc")
  # Empty: the machine went down before the answer came back.
  if [ -n "$rc" ] && [ "$rc" != 4 ]; then vm cat /root/apply.log >&2; fail "apply ended with $rc, not 4 (reboot)"; fi
  vm_down
  vm_boot
  vm cat /root/apply.log >"$WORK/out"
  rc=$(vm cat /root/apply.rc)
  [ "$rc" = 4 ] || { cat "$WORK/out" >&2; fail "apply ended with $rc, not 4 (reboot)"; }
}
# wait_resumed: until the resume unit has gone.
wait_resumed() {
  for _ in $(seq 1 900); do
    vm 'test ! -e /etc/systemd/system/epready-resume.service' && return 0
    sleep 1
  done
  vm 'journalctl -u epready-resume --no-pager | tail -30' >&2
  fail "the resume unit did not finish"
}
# kill_story PLAN REACHED: a plan of lab-plan, killed at every point of its journal.
kill_story() {
  local rc=0
  # Building an initramfs takes long here and says nothing about kills: a quick stand-in for its tool.
  vm 'mv /usr/sbin/update-initramfs /usr/sbin/update-initramfs.real; printf "#!/bin/sh\necho stand-in: \$*; touch /boot/initrd.img-*\n" >/usr/sbin/update-initramfs; chmod 755 /usr/sbin/update-initramfs'
  etc_picture >"$WORK/etc.before"
  vm "lab-plan $1 >/root/plan.json"
  say "killed at every journal point of the plan $1"
  vm "kill-everywhere /root/plan.json '$2' ${LAB_KILL_LIMIT:-780}" >"$WORK/out" 2>&1 || rc=$?
  sed 's/^/    | /' "$WORK/out"
  [ $rc != 77 ] || skip "not every point was reached in time"
  [ $rc = 0 ] || fail "a kill did not converge"
  etc_picture >"$WORK/etc.after"
  diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after all kills and undos"
}
