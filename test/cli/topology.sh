#!/bin/sh
# topology reads pastes of several kinds, says what is wrong with its exit code, draws, and compares hosts.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
hosts=$EP_SOURCE_DIR/test/hosts

mkdir one && cp "$hosts"/hopper-12hca-ib-eth-ties/*.txt one/
run 0 topology --from one --json
json "d['verdict'] == 'ok' and d['answer'] == 'pass' and d['missing'] == []"
json "d['mapping']['confidence'] == 'derived' and d['mapping']['pairs']['7'] == 'mlx5_11'"
json "[n['role'] for n in d['nics'] if n['name'] == 'mlx5_7'] == ['storage']"
run 0 topology --from one
out_has "DEEP_EP_DEVICE_TO_HCA_MAPPING=0:mlx5_0:1,1:mlx5_3:1"
out_has "next: epready env"
run 0 topology --from one --lang zh
out_has "计算网"

# A cut table: an answer for the rows that are there, and a warning. Rows and port states are not shown.
run 3 topology --from "$hosts/hopper-10nic-permuted-cut/topo.txt" --json
json "d['answer'] == 'unknown' and {'rows_not_shown', 'states_not_shown'} <= {m['code'] for m in d['missing']}"
json "d['verdict'] == 'warn' and '0' not in d['mapping']['pairs'] and d['env']['NVSHMEM_HCA_LIST'] is None"

# Missing NICs are an error and no guess.
run 1 topology --from "$hosts/hopper-8numa-missing-nics/topo.txt" --json
json "any(f['code'] == 'missing_nic' for f in d['findings']) and sorted(d['mapping']['pairs']) == ['0', '1', '2', '4', '6']"

# Two pods: two hosts, and the difference is named.
mkdir pods && cp "$hosts"/gid-two-pods-5-7/*.txt pods/
run 3 topology --from pods --json
json "d['answer'] == 'unknown' and d['verdict'] == 'warn'"
json "len(d['hosts']) == 1 and any(f['code'] == 'gid_differs_per_host' for f in d['findings'])"

# The picture is well-formed and shows names.
run 0 topology --from one --svg host.svg
grep -q "mlx5_11" host.svg || die "the picture lacks a NIC"
python3 -c "import xml.dom.minidom as m; m.parse('host.svg')" || die "the picture is no XML"

# Unknown is never pass: what is missing is said, with the command that shows it, in both languages and in JSON.
printf '$ nvidia-smi -L\nGPU 0: NVIDIA H200 (UUID: GPU-0)\nGPU 1: NVIDIA H200 (UUID: GPU-1)\n' >gpus.txt
run 3 topology --from gpus.txt
out_has "UNKNOWN"
out_has "the RDMA NICs: ibstat"
out_has "next: ibstat"
out_lacks "PASS"
run 3 topology --from gpus.txt --lang zh
out_has "RDMA 网卡: ibstat"
run 3 topology --from gpus.txt --json
json "d['answer'] == 'unknown' and d['verdict'] == 'unknown' and d['missing'][0] == {'code': 'nics_not_shown', 'text': 'the RDMA NICs', 'command': 'ibstat'}"
cp "$hosts/imbue-h100-ibdev2netdev/ibdev2netdev.txt" netdevs.txt
run 3 topology --from netdevs.txt --json
json "d['answer'] == 'unknown' and [m['code'] for m in d['missing']] == ['gpus_not_shown', 'states_not_shown']"
run 3 topology --from "$hosts/h100-8nic-diagonal/topo.txt"
out_has "DEEP_EP_DEVICE_TO_HCA_MAPPING="
out_has "the port states of"
out_has "next: ibstat"
cat gpus.txt netdevs.txt >both.txt
run 3 topology --from both.txt
out_has "which NIC is near which GPU: nvidia-smi topo -m"

# A pod without /dev/infiniband has NICs in sysfs that nothing can open.
{ cat gpus.txt; printf '$ ls /dev/infiniband\nls: cannot access '\''/dev/infiniband'\'': No such file or directory\n$ ls /sys/class/infiniband\nmlx5_0 mlx5_1\n'; } >pod.txt
run 1 topology --from pod.txt
out_has "container_hidden_nics"
out_has "next: epready doctor --from pod.txt"

# Files that know outputs and none of a topology: one error, not a verdict for each.
mkdir code && printf 'export NCCL_DEBUG=INFO\n' >code/a.sh && printf 'export NCCL_DEBUG=WARN\n' >code/b.sh
run 3 topology --from code
err_has "no GPU, no NIC and no link is shown here"
run 3 topology --from code --lang zh
err_has "没有显示任何 GPU"
[ ! -s out ] || die "an answer for files that show nothing"
# Beside a host they are left out, by name.
mkdir mixed && cp -r one mixed/node1 && cp -r code mixed/scripts
run 0 topology --from mixed
err_has "left out"

printf 'nothing of interest\nat all\n' >prose.txt
run 3 topology --from prose.txt
err_has "nothing in this text is known"
run 3 topology --from missing.txt
run 2 topology --from one --watch
