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
echo "a bundle hides names"
