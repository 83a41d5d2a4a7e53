#!/bin/sh
# A bundle shows before it writes, hides names, stays readable by the doctor, and never overwrites.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
cat >rank0.log <<'LOG'
alice@gpu17:~$ python3 tests/test_internode.py
gpu17:41:42 [0] NCCL INFO Bootstrap: Using eth0:10.1.2.3<0>
HF_TOKEN=hf_abcdefghijklmnopqrstuvwx
WARN: device rocep145s0 is not enumerated as an mlx5 device. Skipping...
RuntimeError: DeepEP error: timeout (dispatch CPU)
LOG
run 0 bundle --from sample/gcp-a4-fresh rank0.log; out_has "alice -> user-"; out_has "10.1.2.3 -> 198.18."
[ ! -e epready-bundle ] || die "the preview wrote something"
run 0 bundle --from sample/gcp-a4-fresh --yes -o b rank0.log
for word in alice gpu17 10.1.2.3 hf_abcdef; do
  ! grep -rq "$word" b || die "the bundle still holds $word"
done
grep -q alice b-map.json || die "the map lacks a name"
[ "$(stat -c %a b-map.json)" = 600 ] || die "the map is readable by others"
run 1 doctor --from b/host.snap b/logs/01-rank0.log; out_has driver.hca-name
run 1 bundle --from sample/gcp-a4-fresh --yes -o b rank0.log; err_has "b"

# A home folder's name stands in paths of the snapshot too; a NIC's serial number in binary product data.
run 0 snapshot --from sample/h100-ib -o host
mkdir -p host/root/home/zacharias/.config
echo 'alias x=y' >host/root/home/zacharias/.config/notes
python3 - <<'PY'
import json
m = json.load(open("host/manifest.json"))
m["environment"].update(HOME="/home/zacharias", USER="zacharias")
json.dump(m, open("host/manifest.json", "w"))
PY
run 0 bundle --from host --yes -o c
! grep -aq zacharias c/host.snap || die "a path still holds the user's name"
run 0 facts --from c/host.snap

# What hides names must leave the evidence: every sample says the same of its lanes from a bundle, also with the files
# that only live hosts have. A host called by a common word is hidden where its name stands alone.
for sample in gcp-a4-fresh gcp-a4-done gke-a4-pod h100-ib; do
  rm -rf s e && mkdir e
  run 0 snapshot --from sample/$sample -o s
  printf 'Linux version 6.14.0-1007-gcp (buildd@lcy02-amd64-044) #7-Ubuntu SMP\n' >s/root/proc/version
  mkdir -p s/root/proc/sys/kernel && printf 'vm\n' >s/root/proc/sys/kernel/hostname
  run 0 lanes --from s --json
  python3 -c 'import json; d = json.load(open("out")); print(json.dumps(d["lanes"]))' >e/before
  run 0 bundle --from s --yes -o e/b
  run 0 lanes --from e/b/host.snap --json
  python3 -c 'import json; d = json.load(open("out")); print(json.dumps(d["lanes"]))' >e/after
  cmp -s e/before e/after || die "the bundle of $sample says something else of its lanes"
  run 0 facts --from e/b/host.snap
  out_lacks "no line"
  grep -aq '^vm$' e/b/host.snap && die "the host's name still stands there alone"
done
echo "a bundle hides names"

# What is shown is a value for programs too; an archive's name is no folder; the next command goes to the same place.
run 0 bundle --from sample/gcp-a4-fresh --json
json "d['schema'] == 'epready-bundle-1' and d['written'] is False and d['files'][0]['name'] == 'host.snap' and isinstance(d['replaced'], list)"
run 2 bundle --from sample/gcp-a4-fresh --yes -o report.tar.gz
err_has "a folder, not an archive"
[ ! -e report.tar.gz ] || die "a folder with an archive's name"
run 0 bundle --from sample/gcp-a4-fresh -o elsewhere
out_has "next: epready bundle --yes -o elsewhere --from sample/gcp-a4-fresh"
# Of wheels only what facts need.
rm -rf w && mkdir -p w
run 0 snapshot --from sample/gcp-a4-done -o w/s
metadata=$(find w/s/root -name METADATA | head -1)
[ -n "$metadata" ] || die "the sample holds no wheel"
printf 'Metadata-Version: 2.1\nName: %s\nVersion: 1\nAuthor-email: Someone <someone@lists.example.org>\nRequires-Dist: numpy\n\nSee https://chat.example.org\n' torch >"$metadata"
run 0 bundle --from w/s
out_lacks "example.org"
