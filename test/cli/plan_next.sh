#!/bin/sh
# The next command repeats what was asked: lane, stack, wishes, host. Stacks that would become another are refused or said.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
next_is() { [ "$(grep '^next: ' out)" = "next: $1" ] || die "next is not: $1"; }

run 0 plan --from sample/gcp-a4-fresh
next_is "epready plan -o plan.json && epready apply plan.json   # on a4-fresh-0"
run 0 plan --lane v2 --with rdma-names=keep --from sample/h100-ib
grep -q '^next: epready plan --lane v2 --with rdma-names=keep -o plan.json && epready apply plan.json' out || die "wishes are lost"
run 0 plan --stack v1-hopper --from sample/h100-ib
grep -q '^next: epready plan --stack v1-hopper -o plan.json' out || die "the stack is lost"
run 1 libs --lane v1 --workspace /tmp/w --from sample/gcp-a4-fresh
out_lacks "apply"
grep -q '^next: epready plan --stack' out || die "libs without a compiler has no way out"
run 0 topology --from sample/gcp-a4-done
grep -q '^next: epready env --from sample/gcp-a4-done' out || die "topology forgets the host"
out_has "#   NVSHMEM_HCA_PE_MAPPING="

# env speaks of the lane that plan chooses.
run 0 env --from sample/h100-ib
out_has "lane v2"
out_has "EP_NIC_NAME"
run 0 env --lane v1 --from sample/h100-ib
out_has "lane v1"

# A named stack is never swapped for another generation of DeepEP; other pins and platforms are a warning.
# Where a newer driver gives the stack as it is, the plan brings the driver and says so.
run 0 plan --stack v25-plain --from sample/h100-ib
out_has "too old"
out_has "Install the NVIDIA driver"
run 3 plan --stack v25-plain --from sample/h100-ib --with driver=570
err_has "another generation"
run 0 stacks --from sample/h100-ib --json
json "{s['id']: s['verdict'] for s in d['stacks']}['v25-plain'] == 'fail'"
json "{s['id']: s['verdict'] for s in d['stacks']}['v1-gcp-b200'] == 'warn'"
json "all(s['fits'] == (s['verdict'] != 'fail') for s in d['stacks'])"
run 0 stacks v1-blackwell --from sample/gcp-a4-fresh
out_has "instead of"
