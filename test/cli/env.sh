#!/bin/sh
# env writes a script that is valid, can be sourced twice, and chooses the NIC of a rank; env lint judges what is set.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
hosts=$EP_SOURCE_DIR/test/hosts
mkdir one && cp "$hosts"/hopper-12hca-ib-eth-ties/*.txt one/

run 0 env --lane v1 --from one
cp out env.sh
sh -n env.sh || die "the script is no shell"
sh -c '. ./env.sh; env | sort >a; . ./env.sh; env | sort >b; cmp a b' || die "sourcing twice changes something"
LOCAL_RANK=1 sh -c '. ./env.sh; [ "$NVSHMEM_HCA_LIST" = mlx5_3:1 ] && [ "$NVSHMEM_ENABLE_NIC_PE_MAPPING" = 1 ]' || die "rank 1 has another NIC"
sh -c 'unset LOCAL_RANK; . ./env.sh; [ -z "${NVSHMEM_HCA_LIST:-}" ]' || die "a NIC list without a rank"
grep -q '^export NVSHMEM_REMOTE_TRANSPORT' env.sh && die "ibgda is written as a transport"
grep '^export' env.sh | grep -q 'GID_INDEX' && die "a GID index is pinned"
if command -v shellcheck >/dev/null 2>&1; then shellcheck -s sh env.sh || die "shellcheck"; fi

run 0 env --lane v1 --from one --docker
grep -vE '^(#.*|[A-Z0-9_]+=.*|)$' out && die "a line that is no env-file line"
run 0 env --lane v1 --from one --k8s
out_has "- name: NCCL_IB_HCA"
run 0 env --lane v1 --from one --systemd
out_has 'NCCL_IB_HCA="=mlx5_0:1'
run 0 env --lane v1 --from one --json
json "d['lane'] == 'v1' and len(d['per_rank']) == 8 and all(v['why'] for v in d['variables'])"

# Versions decide which lines exist.
run 0 env --from "$hosts/sr680a-bf3-11nic-rocep/topo-mp.txt" --nvshmem 3.4.5
out_has "export NVSHMEM_HCA_PREFIX=rocep"
run 0 env --from "$hosts/sr680a-bf3-11nic-rocep/topo-mp.txt" --nvshmem 3.5.19
out_lacks "export NVSHMEM_HCA_PREFIX"
run 1 env --from "$hosts/sr680a-bf3-11nic-rocep/topo-mp.txt" --nvshmem 3.3.20
err_has "rdma dev set"

# A convention is never written.
run 0 env --lane v1 --from "$hosts/gb200-8nic-openshift/topo.txt"
out_lacks "export DEEP_EP_DEVICE_TO_HCA_MAPPING"

printf 'NVSHMEM_REMOTE_TRANSPORT=ibgda\nNVSHMEM_DISABLED_GDRCOPY=1\nNCCL_IB_HCA=mlx5_1\n' >bad.env
run 1 env lint bad.env --lane v1 --from one
out_has "env-value"
out_has "use NVSHMEM_DISABLE_GDRCOPY"
run 2 env --shell --k8s --from one

run 2 env --nvshmem abc --from sample/gcp-a4-done
err_has "abc is no version"
# The runbook's own file: comments end a value, several assignments may share a line; gpu without the driver's option is said.
cat >unified.sh <<'END'
#!/bin/bash
export NVSHMEM_IBGDA_NIC_HANDLER=gpu      # GPU Handler
export NVSHMEM_ENABLE_NIC_PE_MAPPING=1 NVSHMEM_HCA_LIST="mlx5_0:1"   # two
END
run 1 env lint unified.sh --from sample/gke-a4-pod
out_has "gpu needs PeerMappingOverride=1"
out_lacks "GPU Handler"
run 0 env lint unified.sh --from sample/gcp-a4-done
out_lacks "needs PeerMappingOverride"

# gIB in a pod: the whole block with the pod's own paths, first in the library path however often it is sourced.
run 0 env --from sample/gke-a4-pod
cp out gib.sh
LD_LIBRARY_PATH=/mine sh -euc '. ./gib.sh; . ./gib.sh; [ "$LD_LIBRARY_PATH" = /host/home/kubernetes/bin/gib/lib64:/mine ] && [ "$NCCL_IB_TC" = 52 ] &&
  [ "$NCCL_TUNER_CONFIG_PATH" = /host/home/kubernetes/bin/gib/configs/tuner_config_a4.txtpb ]' || die "gIB block"
run 0 env --from sample/gke-a4-pod --k8s
out_has "value: '/host/home/kubernetes/bin/gib/lib64:/usr/local/nvidia/lib64'"

# A prefix brings its Python, whose hook chooses the NIC.
run 0 env --from sample/gcp-a4-done --prefix /opt/epready
cp out venv.sh
sh -euc '. ./venv.sh; . ./venv.sh; case $PATH in /opt/epready/venv/bin:*/opt/epready/venv/bin*) exit 1 ;; /opt/epready/venv/bin:*) ;; *) exit 1 ;; esac' || die "PATH"
