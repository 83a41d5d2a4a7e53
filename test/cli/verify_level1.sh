#!/bin/sh
# Level 1 without a run: the plan's lane is judged, what is missing fails, what a text does not show is unknown.
# shellcheck source=test/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A fresh host: the lane that a plan is made for has all its steps missing, and that is no PASS.
run 1 verify -r 1 --from sample/gcp-a4-fresh
out_has "lane v1"
out_has "steps missing: "
out_has "next: epready plan --lane v1 --from sample/gcp-a4-fresh"
run 1 verify -r 1 --from sample/gcp-a4-fresh --json
json "d['lane'] == 'v1' and any(i['id'] == 'lane.installed' and i['verdict'] == 'FAIL' for i in d['items'])"

# The finished one passes; its DeepEP is a commit that has the fix which its NVSHMEM needs.
run 0 verify -r 1 --from sample/gcp-a4-done
out_has "stack v1-gcp-b200"
out_lacks "564"

# The local lane needs nothing installed.
run 0 verify -r 1 --lane local --from sample/gcp-a4-fresh
out_lacks "steps missing"

# A pod builds no kernel module, and no network but EP's gets a new MTU.
run 1 verify -r 1 --from sample/gke-a4-pod
out_lacks "linux-headers"
run 1 verify -r 1 --lane v2 --from sample/h100-ib
out_lacks "ip link set"

# A matrix alone: eight NICs are there, everything else is not known, and nothing else passes or fails.
{
  printf '\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n'
  printf 'GPU0\t X \tNV18\tPIX\tNODE\t0-55\t0\t\tN/A\n'
  printf 'GPU1\tNV18\t X \tNODE\tPIX\t0-55\t0\t\tN/A\n'
  printf 'NIC0\tPIX\tNODE\t X \tNODE\n'
  printf 'NIC1\tNODE\tPIX\tNODE\t X \n'
  printf '\nNIC Legend:\n\n  NIC0: rocep145s0\n  NIC1: rocep146s0\n'
} >matrix.txt
run 3 verify -r 1 --lane v1 --from matrix.txt --json
json "[i['id'] for i in d['items'] if i['verdict'] == 'PASS'] == ['ib.devices']"
json "not [i for i in d['items'] if i['verdict'] in ('FAIL', 'SKIP')]"
# Neither system nor processor is shown: a plan for reading, with the question.
run 3 plan --lane v1 --from matrix.txt
out_has "reading only"
out_lacks "no NVIDIA driver is loaded"

# A folder of many small files costs no more memory than they hold.
mkdir many
i=0
while [ $i -lt 300 ]; do
  echo "NCCL_DEBUG=INFO" >many/$i.txt
  i=$((i + 1))
done
if grep -q __asan_init "$EPREADY"; then
  echo "left out: the memory limit, under AddressSanitizer"
  run 0 env lint many
else
  prlimit --as=2000000000 "$EPREADY" env lint many >/dev/null 2>&1 || die "300 small files do not fit 2 GB"
fi
