#!/bin/sh
# shellcheck disable=SC2016,SC2013 # the words are for the stand-ins; addresses have no blanks
# The generated script, run for real against stand-ins: it asks for a reboot only while something is not live, says so when a
# reboot did not help, ends well when it did, and a second run changes nothing and reboots nothing.
. "$EP_SOURCE_DIR/test/cli/lib.sh"

prefix=$scratch/opt
run 0 plan --as script --from sample/gcp-a4-fresh --prefix "$prefix"
# Nothing of this machine is touched: system folders lie in the scratch folder.
sed "s#/etc/#$scratch/etc/#g; s#/run/modprobe.d#$scratch/run#g; s#/usr/lib/modprobe.d#$scratch/lib#g" out >setup.sh
grep -q "EP_PROC" setup.sh || die "the script asks nothing of the driver"
grep -nE "(^|[ '\"(])/(etc|opt|root|boot)/" setup.sh | grep -v '^[0-9]*:#' && die "a path outside the scratch folder"

# Stand-ins: each writes what it was asked, and makes what its like would make.
mkdir -p bin sys/class/infiniband proc/driver/nvidia proc/sys/kernel/random etc
calls=$scratch/calls
stand_in() { printf '#!/bin/sh\necho "%s $*" >>%s\n%s\n' "$1" "$calls" "$2" >"bin/$1"; chmod +x "bin/$1"; }
stand_in dpkg-query 'for a; do :; done; grep -qx "$a" '"$scratch"'/packages 2>/dev/null && echo "install ok installed"'
stand_in apt-get 'for a; do case $a in -*|install|update) ;; *) echo "$a" >>'"$scratch"'/packages ;; esac; done'
stand_in curl 'while [ $# -gt 1 ]; do [ "$1" = -o ] && echo data >"$2"; shift; done'
stand_in sha256sum 'exit 0'
stand_in gpg 'case "$*" in *--show-keys*) for f in $(grep -ohE "[0-9A-F]{40}" '"$scratch"'/setup.sh | sort -u); do echo "fpr:::::::::$f:"; done ;; *--export*) while [ $# -gt 1 ]; do [ "$1" = --output ] && echo key >"$2"; shift; done ;; esac'
stand_in tar 'while [ $# -gt 1 ]; do [ "$1" = -C ] && : >"$2/unpacked"; shift; done'
stand_in git 'case "$*" in *"init -q"*) ;; *rev-parse*) cat "$2/.commit" 2>/dev/null ;; *"checkout -q --"*) ;; *checkout*) for c; do :; done; echo "$c" >"$2/.commit" ;; esac'
stand_in patch ''
stand_in cmake ''
stand_in make ''
stand_in modprobe ''
stand_in update-initramfs ''
stand_in dracut ''
stand_in systemctl ''
stand_in reboot ''
stand_in shutdown ''
cat >bin/python3 <<END
#!/bin/sh
echo "python3 \$*" >>$calls
[ "\$1 \$2" = "-m venv" ] && { mkdir -p "\$3/bin"; cp "\$0" "\$3/bin/python"; }
exit 0
END
chmod +x bin/python3
export PATH="$scratch/bin:$PATH" EP_SYS="$scratch/sys" EP_PROC="$scratch/proc"
script() { # expected exit code
  want=$1; shift
  : >"$calls"
  code=0
  sh ./setup.sh >out 2>err || code=$?
  [ "$code" = "$want" ] || { tail -5 "$calls"; die "the script ended with $code, expected $want"; }
}
picture() { (cd "$scratch" && find opt etc -type f -exec md5sum {} + -o -type l -print | sort); }
no_reboot() { ! grep -qE '^(systemctl reboot|reboot|shutdown)' "$calls" || die "it rebooted"; }

# The driver is loaded with other options, the NICs have other names.
echo 'RegistryDwords: ""' >proc/driver/nvidia/params
echo boot-1 >proc/sys/kernel/random/boot_id
mkdir sys/class/infiniband/rocep145s0
script 4
err_has "reboot now, then run this script again"
err_has "PeerMappingOverride=1"
no_reboot
grep -q '^update-initramfs' "$calls" || die "the initramfs was not built"
# Run again before the reboot: the same answer, nothing done twice.
script 4
no_reboot
grep -qE '^(apt-get|update-initramfs|curl)' "$calls" && die "a step was done twice: $(cat "$calls")"
# Rebooted, and it did not help: an error that names what is missing.
echo boot-2 >proc/sys/kernel/random/boot_id
script 1
err_has "the machine was rebooted, and still"
err_has "PeerMappingOverride=1"
[ ! -e opt/env/env.sh ] || die "an environment file although the option is not live"
# It helped: all is done.
{
  echo 'RegistryDwords: "PeerMappingOverride=0x1"'
  echo 'EnableStreamMemOPs: 1'
} >proc/driver/nvidia/params
rmdir sys/class/infiniband/rocep145s0
n=0
for address in $(grep -ohE 'ep_nic [0-9a-f:.]+' setup.sh | awk '{ print $2 }'); do
  mkdir -p "sys/bus/pci/devices/$address/infiniband/mlx5_$n" "sys/class/infiniband/mlx5_$n"
  n=$((n + 1))
done
[ "$n" = 8 ] || die "$n NICs in the script"
script 0
err_has "finished"
no_reboot
grep -q "NVSHMEM_IBGDA_NIC_HANDLER=gpu" opt/env/env.sh || die "no environment file"
before=$(picture)
script 0
no_reboot
[ "$(picture)" = "$before" ] || die "the second run changed a file"
[ ! -s "$calls" ] || die "the second run called: $(cat "$calls")"
# An option that is lost again is a reason for another reboot, not for an error.
echo 'RegistryDwords: ""' >proc/driver/nvidia/params
script 4
err_has "reboot now"

# The playbook: the reboot hangs on a question, and what it was for is proven after it.
run 0 plan --as ansible --from sample/h100-ib
out_has "is what was written live?"
if python3 -c 'import yaml' 2>/dev/null; then :; else PATH=${PATH#*:}; fi
if env PATH="${PATH#"$scratch/bin:"}" python3 -c 'import yaml' 2>/dev/null; then
  for host in h100-ib gcp-a4-fresh; do
    run 0 plan --as ansible --from sample/$host
    env PATH="${PATH#"$scratch/bin:"}" python3 - out <<'PY' || die "the playbook of $host"
import sys, yaml
tasks = yaml.safe_load(open(sys.argv[1]))[0]["tasks"]
reboots = [i for i, t in enumerate(tasks) if "ansible.builtin.reboot" in t]
assert len(reboots) == 1, reboots
i = reboots[0]
assert tasks[i].get("when"), "a reboot without a condition"
ask = [t for t in tasks[:i] if t.get("register") == "ep_boot"]
assert len(ask) == 1 and ask[0]["changed_when"] is False and ask[0]["check_mode"] is False
assert "PeerMappingOverride" in ask[0]["ansible.builtin.shell"]["cmd"]
after = tasks[i + 1]
assert "ep_live" in after["ansible.builtin.shell"]["cmd"] and after["when"] == tasks[i]["when"]
for t in tasks:
    shell = t.get("ansible.builtin.shell")
    assert not shell or "creates" in shell or t.get("changed_when") is False or t.get("when"), t["name"]
open("ask.sh", "w").write(ask[0]["ansible.builtin.shell"]["cmd"])
PY
  done
  # The question itself, asked of the stand-ins.
  sed "s#/opt/epready#$scratch/opt#g" ask.sh >asked.sh
  rm -f opt/script-state/boot
  case $(sh ./asked.sh) in pending:*PeerMappingOverride*) ;; *) die "not live is not said: $(sh ./asked.sh)" ;; esac
  echo boot-1 >opt/script-state/boot
  case $(sh ./asked.sh) in vain:*) ;; *) die "a reboot in vain is not said" ;; esac
  {
    echo 'RegistryDwords: "PeerMappingOverride=0x1"'
    echo 'EnableStreamMemOPs: 1'
  } >proc/driver/nvidia/params
  [ "$(sh ./asked.sh)" = live ] || die "live is not said"
fi
if command -v ansible-playbook >/dev/null 2>&1; then
  ansible-playbook --syntax-check -i localhost, out >/dev/null || die "ansible does not take it"
else
  echo "ansible-playbook is not here: syntax not checked by it"
fi
