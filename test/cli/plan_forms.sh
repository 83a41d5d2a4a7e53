#!/bin/sh
# plan --as: forms that can really run. Containers begin from an image with nvcc and take nothing of the host's userland for
# granted; scripts carry the environment file; unpinned keys are refused before anything is written.
. "$EP_SOURCE_DIR/test/cli/lib.sh"

run 0 plan --as k8s --from sample/gke-a4-pod
cp out pod.yaml
out_has "image: nvcr.io/nvidia/pytorch:25.06-py3"
for line in "hostNetwork: true" "hostPID: true" "privileged: true" "mountPath: /host, readOnly: true" '"interfaceName":"eth9","network":"rdma-7"' \
  "name: NCCL_TUNER_CONFIG_PATH, value: \"/host/home/kubernetes/bin/gib/configs/tuner_config_a4.txtpb\"" \
  "name: LD_LIBRARY_PATH, value: \"/host/home/kubernetes/bin/gib/lib64:/usr/local/nvidia/lib64\"" \
  "ep_packages build-essential cmake ninja-build git" "ep_toolkit 12.9"; do
  out_has "$line"
done
out_lacks "epready env -"
if python3 -c 'import yaml' 2>/dev/null; then
  python3 - pod.yaml <<'PY' || die "the manifest is no YAML of a pod"
import sys, yaml
cm, pod = yaml.safe_load_all(open(sys.argv[1]))
c = pod["spec"]["containers"][0]
env = {e["name"]: e["value"] for e in c["env"]}
assert env["NCCL_IB_TC"] == "52" and env["NCCL_CROSS_NIC"] == "0", env
assert c["securityContext"]["privileged"] is True and pod["spec"]["hostNetwork"] is True
assert cm["data"]["setup.sh"].startswith("#!/bin/sh")
open("setup.sh", "w").write(cm["data"]["setup.sh"])
PY
  sh -n setup.sh || die "setup.sh is no shell"
fi

# The same platform planned from elsewhere: gIB's place is known from the platform's data.
run 0 plan --as k8s --from sample/gcp-a4-fresh
out_has "/host/home/kubernetes/bin/gib/lib64:/usr/local/nvidia/lib64"
out_lacks "ep_packages doca-ofed"

run 0 plan --as dockerfile --from sample/gcp-a4-fresh
out_has "nvidia"
grep -q '^ARG BASE=.*\(devel\|pytorch\)' out || die "the base image has no compiler"
out_lacks "doca-ofed-repository'"
run 0 plan --as dockerfile --image registry.example/ours:1 --from sample/h100-ib
out_has "ARG BASE=registry.example/ours:1"
# The pod's own toolkit says nothing about the image: another lane gets the image of its toolkit.
run 0 plan --as k8s --lane v2 --from sample/gke-a4-pod
out_has "image: nvidia/cuda:13.1"
run 2 plan --as script --image x --from sample/h100-ib
err_has "--as k8s"

for form in script ansible cloud-init image; do
  for host in gcp-a4-fresh h100-ib; do
    run 0 plan --as $form --from sample/$host
    out_lacks "epready env -"
    out_has "ep_nic 0000:"
    case $form in
      script | image)
        cp out form.sh
        sh -n form.sh || die "$form of $host is no shell"
        ;;
    esac
    if [ $form = script ] && command -v shellcheck >/dev/null 2>&1; then shellcheck -s sh -S warning form.sh || die "shellcheck"; fi
  done
done
run 0 plan --as image --from sample/gcp-a4-fresh
out_has "gcloud compute images create"
out_has "epready-first-boot"

# A key that nothing pins: refused in every form, with the option that mends it and no file left behind.
mkdir -p data/components
sed '/^key_fingerprint/d' "$EP_SOURCE_DIR/data/components/doca-ofed.toml" >data/components/doca-ofed.toml
for form in script dockerfile ansible cloud-init k8s image; do
  case $form in dockerfile | k8s) continue ;; esac # DOCA is the host's there
  run 3 plan --as $form --data-dir data -o form.out --from sample/gcp-a4-fresh
  err_has "--with doca-ofed-key=FINGERPRINT"
  [ ! -e form.out ] || die "$form was written"
done
run 0 plan --data-dir data --from sample/gcp-a4-fresh
out_has "--with doca-ofed-key=FINGERPRINT -o plan.json"

# What is inside an image is named by where it stands there, not by where the planning host has it.
for form in k8s dockerfile; do
  run 0 plan --as $form --from sample/h100-ib
  out_has "export CUDA_HOME=/usr/local/cuda"
  out_lacks "CUDA_HOME=/usr/local/cuda-"
  run 0 plan --as $form --lane v1 --from sample/gcp-a4-done
  out_has "export CUDA_HOME=/usr/local/cuda"
done
# Docker on a machine of Google: no folder that only pods see, no word about options of this moment's driver.
run 0 plan --as dockerfile --from sample/gcp-a4-fresh
out_lacks "/host/home/kubernetes"
out_lacks "the loaded driver lacks"
# A privileged container has every capability; the host's network with the cluster's names.
run 0 plan --as k8s --from sample/h100-ib
out_has "privileged: true"
out_lacks "IPC_LOCK"
out_has "hostNetwork: true"
out_has "dnsPolicy: ClusterFirstWithHostNet"
# Forms that would do harm or nothing.
for form in image cloud-init; do
  run 3 plan --as $form --from sample/gke-a4-pod
  err_has "this host is a container"
done
for form in image cloud-init k8s dockerfile; do
  run 3 plan --as $form --from sample/laptop
  err_has "no NVIDIA GPU"
done
run 0 plan --as script --from sample/laptop
