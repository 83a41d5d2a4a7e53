#!/bin/sh
# A plan's download gathered into a folder, the source taken away, the plan done from the folder; bad folders refused.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
host=$(uname -n)
printf 'payload' >source
sha=$(sha256sum source | cut -d' ' -f1)
plan() { # hash
  cat <<JSON
{"schema": "epready-plan-1", "host_name": "$host", "lane": "local", "stack": "", "platform": "", "consumer": "",
 "prefix": "$scratch/prefix", "skipped": [], "notes": [], "facts_used": {},
 "steps": [
  {"id": "get", "component": "", "mark": "add", "title": "Download", "why": "", "needs_steps": [], "risk": "user_files",
   "needs_root": false, "needs_network": true, "before": [], "after": [], "undo": [], "estimate_s": 0, "runbook_phase": "",
   "actions": [{"do": "fetch", "url": "https://host.example/files/source", "sha256": "$1", "to": "got"}]}]}
JSON
}
plan "$sha" >plan.json
command -v curl >/dev/null || skip "curl is not installed"
run 2 fetch plan.json; err_has "output"
run 3 fetch no-such.json -o pack; err_has "no such plan file"
plan "$(printf other | sha256sum | cut -d' ' -f1)" >wrong.json
run 1 fetch wrong.json -o pack --mirror "https://host.example/files/=file://$scratch/"
out_has "another SHA-256"; out_has "Not whole"; out_has "next: epready fetch wrong.json -o pack"
run 3 apply plan.json --offline pack; err_has "manifest.json"
run 0 fetch plan.json -o pack --mirror "https://host.example/files/=file://$scratch/" --json
json 'd["schema"] == "epready-fetch-1" and d["whole"] and d["files"] == 1 and d["bytes"] == 7'
rm source
run 0 apply pack/plan.json --offline pack; out_has "done"
[ "$(cat prefix/got)" = payload ] || die "not the payload"
run 0 undo --prefix "$scratch/prefix"
printf 'payl0ad' >"pack/sha256/$sha"
run 1 apply plan.json --offline pack; out_has "another SHA-256"
[ ! -e prefix/got ] || die "changed bytes were used"
printf 'pay' >"pack/sha256/$sha"
run 3 apply plan.json --offline pack; err_has "3 of 7 bytes"; err_has "nothing was begun"
run 2 apply plan.json --offline no-such-folder; err_has "epready fetch"
