#!/bin/sh
# topology reads pastes of several kinds, says what is wrong with its exit code, draws, and compares hosts.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
hosts=$EP_SOURCE_DIR/test/hosts

mkdir one && cp "$hosts"/hopper-12hca-ib-eth-ties/*.txt one/
run 0 topology --from one --json
json "d['verdict'] == 'ok' and d['mapping']['confidence'] == 'derived' and d['mapping']['pairs']['7'] == 'mlx5_11'"
json "[n['role'] for n in d['nics'] if n['name'] == 'mlx5_7'] == ['storage']"
run 0 topology --from one
out_has "DEEP_EP_DEVICE_TO_HCA_MAPPING=0:mlx5_0:1,1:mlx5_3:1"
out_has "next: epready env"
run 0 topology --from one --lang zh
out_has "计算网"

# A cut table: an answer for the rows that are there, and a warning.
run 0 topology --from "$hosts/hopper-10nic-permuted-cut/topo.txt" --json
json "d['verdict'] == 'warn' and '0' not in d['mapping']['pairs'] and d['env']['NVSHMEM_HCA_LIST'] is None"

# Missing NICs are an error and no guess.
run 1 topology --from "$hosts/hopper-8numa-missing-nics/topo.txt" --json
json "any(f['code'] == 'missing_nic' for f in d['findings']) and sorted(d['mapping']['pairs']) == ['0', '1', '2', '4', '6']"

# Two pods: two hosts, and the difference is named.
mkdir pods && cp "$hosts"/gid-two-pods-5-7/*.txt pods/
run 0 topology --from pods --json
json "len(d['hosts']) == 1 and any(f['code'] == 'gid_differs_per_host' for f in d['findings'])"

# The picture is well-formed and shows names.
run 0 topology --from one --svg host.svg
grep -q "mlx5_11" host.svg || die "the picture lacks a NIC"
python3 -c "import xml.dom.minidom as m; m.parse('host.svg')" || die "the picture is no XML"

printf 'nothing of interest\nat all\n' >prose.txt
run 3 topology --from prose.txt
err_has "nothing in this text is known"
run 3 topology --from missing.txt
run 2 topology --from one --watch
