#!/bin/sh
# snapshot: facts from it are the facts it was taken with; never overwrites; all three forms; private.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
export NCCL_DEBUG=INFO NCCL_TOKEN=hidden
for form in folder packed.tar.gz one.snap; do
  run 0 snapshot -o "$form"
  out_has "$form"
  run 0 facts --from "$form" --json
  json 'd["host"]["kind"] == "snapshot" and d["environment"] == {"NCCL_DEBUG": "INFO"} or "NCCL_DEBUG" in d["environment"]'
  out_lacks "hidden"
  run 2 snapshot -o "$form"
  err_has "taken"
done
[ "$(stat -c %a folder)" = 700 ] || die "the folder is not private"
[ "$(stat -c %a one.snap)" = 600 ] || die "the file is not private"
! grep -rq hidden folder one.snap || die "a secret was captured"
# Facts that cannot change between two readings are the same as on the machine.
run 0 facts --json; cp out live.json
run 0 facts --from folder --json
python3 - live.json out <<'PY' || die "facts of the snapshot differ"
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
changing = {"memory_available_bytes", "shm_free_bytes", "free_bytes"}
def same(x, y, at=""):
    if isinstance(x, dict):
        return isinstance(y, dict) and x.keys() == y.keys() and all(k in changing or same(x[k], y[k], at + "/" + k) for k in x) or print(at)
    if isinstance(x, list):
        return len(x) == len(y) and all(same(p, q, at) for p, q in zip(x, y)) or print(at)
    return x == y or print(at, x, y)
a.pop("host"); b.pop("host")
sys.exit(0 if same(a, b) else 1)
PY
run 0 snapshot --from sample/gcp-a4-done -o copy.snap
run 0 facts --from sample/gcp-a4-done --against copy.snap --volatile
run 0 snapshot --json -o again.snap
json 'd["files"] > 10 and d["bytes"] > 1000'
run 3 snapshot -o "$scratch/no/such/place"
if [ -e /dev/full ] && mkdir "$scratch/ro" && chmod 500 "$scratch/ro" && [ "$(id -u)" != 0 ]; then
  run 1 snapshot -o "$scratch/ro/x"
fi
[ -z "$(find "$scratch" -maxdepth 1 -name '.*.snap.*' -o -maxdepth 1 -name '.folder.*')" ] || die "scratch left behind"
