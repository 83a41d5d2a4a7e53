#!/bin/sh
# A plan in a folder of our own: applied, shown, applied again without a change, taken back to nothing.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
host=$(uname -n)
mkdir etc; printf 'old' >etc/kept; chmod 600 etc/kept
cat >plan.json <<JSON
{"schema": "epready-plan-1", "host_name": "$host", "lane": "local", "stack": "", "platform": "", "consumer": "",
 "prefix": "$scratch/prefix", "skipped": [], "notes": [], "facts_used": {},
 "steps": [
  {"id": "files", "component": "", "mark": "add", "title": "Write two files", "why": "", "needs_steps": [], "risk": "user_files",
   "needs_root": false, "needs_network": false, "before": [], "after": [], "undo": [], "estimate_s": 0, "runbook_phase": "",
   "actions": [{"do": "write-file", "path": "$scratch/etc/kept", "content": "new", "mode": 420},
               {"do": "write-file", "path": "sub/x", "content": "x", "mode": 420}]},
  {"id": "consent", "component": "", "mark": "change", "title": "Needs consent", "why": "", "needs_steps": [], "risk": "packages",
   "needs_root": false, "needs_network": false, "before": [], "after": [], "undo": [], "estimate_s": 0, "runbook_phase": "",
   "actions": [{"do": "write-file", "path": "$scratch/etc/k", "content": "k", "mode": 420}]}]}
JSON
run 3 apply plan.json                       # nobody to ask: the step that needs consent stays undone
out_has "no consent"; out_has "next: epready apply --resume --prefix"; out_has "--yes=packages"
[ "$(cat etc/kept)" = new ] || die "file was not written"
[ ! -e etc/k ] || die "a step without consent ran"
run 3 status --prefix "$scratch/prefix"; out_has "not agreed to"
run 0 apply plan.json --yes=packages --json
json 'd["schema"] == "epready-apply-1" and d["exit_code"] == 0 and [s["state"] for s in d["steps"]] == ["done", "done"]'
# Cut off in the middle of a step, as a kill leaves it: said, with the exit code and the command that goes on.
cp prefix/state/journal.jsonl whole.jsonl
printf '{"e":"act","i":0,"kind":"write-file","n":999,"s":"started","step":"files","t":"2026-01-01T00:00:00Z"}\n' >>prefix/state/journal.jsonl
run 5 status --prefix "$scratch/prefix"; out_has "in action 1 (write-file)"; out_has "next: epready apply --resume --prefix $scratch/prefix"
cp whole.jsonl prefix/state/journal.jsonl
run 0 undo --dry-run --prefix "$scratch/prefix"; out_has "restore $scratch/etc/kept"
[ "$(cat etc/kept)" = new ] || die "dry run changed a file"
run 0 undo --prefix "$scratch/prefix" --json
json 'all(i["state"] == "done" for i in d["items"])'
[ "$(cat etc/kept)" = old ] || die "file was not restored"
[ "$(stat -c %a etc/kept)" = 600 ] || die "mode was not restored"
if [ -e etc/k ] || [ -e prefix ]; then die "something was left behind"; fi
run 3 undo --prefix "$scratch/prefix"; err_has "nothing was applied here"
run 0 status --prefix "$scratch/prefix"; out_has "was ever applied"
run 2 apply --lane nowhere; err_has "nowhere"
run 0 apply --lane local --prefix "$scratch/empty"
run 2 apply plan.json --yes=kernle; err_has "kernle"
run 3 apply no-such.json; err_has "no such plan file"
sed "s/\"$host\"/\"other-host\"/" plan.json >other.json; run 2 apply other.json; err_has "another host"
sed 's/epready-plan-1/epready-plan-9/' plan.json >v9.json; run 2 apply v9.json; err_has "epready-plan-9"
head -c 700 plan.json >half.json; run 2 apply half.json; err_has "not JSON"; err_has "next: epready plan -o FILE"
[ ! -e prefix ] || die "a refused plan left something behind"
run 2 apply "$scratch"; err_has "is a folder"
