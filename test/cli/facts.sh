#!/bin/sh
# facts: text, JSON and one area of a sample; differences; wrong names; facts of this machine always come.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 0 facts
out_has "kernel_release"
out_has "next: epready"
run 0 facts --json
json 'd["schema"] == "epready-facts-1" and d["os"]["kernel_release"]["state"] == "known" and d["os"]["kernel_release"]["where"] == "/proc/sys/kernel/osrelease"'
run 0 facts --from sample/gcp-a4-fresh
out_has "NVIDIA B200"
out_has "rocep145s0"
out_lacks "absent"
run 0 facts --from sample/gcp-a4-fresh --json
json 'len(d["gpus"]) == 8 and len(d["rdma"]) == 8 and d["host"]["kind"] == "snapshot"'
json 'd["cuda_home"]["link"]["state"] == "absent" and d["cuda_home"]["link"]["why"] and "value" not in d["cuda_home"]["link"]'
run 0 facts --from sample/gcp-a4-fresh --area driver
out_has "/proc/driver/nvidia/params"
out_lacks "rocep145s0"
run 2 facts --area gpu
err_has "gpus"
run 2 facts --from sample/gcp-a4-frish
err_has "gcp-a4-fresh"
run 3 facts --from "$scratch/no-such"
run 1 facts --from sample/gcp-a4-fresh --against sample/gcp-a4-done
out_has "driver/registry_dwords/PeerMappingOverride"
run 0 facts --from sample/laptop --against sample/laptop
out_has "no difference"
printf 'epready-snapshot 1\nmanifest 5\n' >cut.snap
run 1 facts --from cut.snap
err_has "cut.snap:2"
