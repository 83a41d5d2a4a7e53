#!/bin/sh
# The table of docs/stacks.md says of each stack what the data say: lane, consumers, platforms, pins, how far it was run,
# and every source with its date; no stack is missing and none is invented.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 0 stacks --json
python3 - "$scratch/out" "$EP_SOURCE_DIR/docs/stacks.md" <<'PY' || die "docs/stacks.md differs from data/stacks"
import json, sys
rows = {}
for line in open(sys.argv[2], encoding="utf-8"):
    cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
    if line.startswith("| `") and len(cells) == 7:
        rows[cells[0].strip("`")] = cells[1:]
bad = []
stacks = json.load(open(sys.argv[1]))["stacks"]
for s in stacks:
    row = rows.pop(s["id"], None)
    if row is None:
        bad.append(f"{s['id']}: no row")
        continue
    pins = ", ".join(f"{k} {v}" for k, v in s["pins"].items()) or "-"
    wanted = [s["lane"], ", ".join(s["consumers"]), ", ".join(s["platforms"]), pins, s["proven"]]
    for want, have in zip(wanted, row):
        if want != have:
            bad.append(f"{s['id']}: the page says \"{have}\", the data \"{want}\"")
    for source in s["sources"]:
        if source["url"] not in row[5] or f"({source['date']})" not in row[5] or source["says"] not in row[5]:
            bad.append(f"{s['id']}: source {source['url']} ({source['date']}) is not on the page")
bad += [f"{id}: on the page, not in the data" for id in rows]
print("\n".join(bad))
sys.exit(bool(bad) or len(stacks) < 8)
PY
