#!/bin/bash
# Full disk, read-only /etc, apt locked, network gone in mid-download, corrupted download, torn journal: clear errors.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
vm 'lab-plan quick >/root/plan.json'

say "apt is locked by somebody else: it waits, says so, and goes on"
vm 'cat >/root/hold.py' <<'GUEST'
import fcntl, os, time
f = open("/var/lib/apt/lists/lock", "w")
fcntl.lockf(f, fcntl.LOCK_EX)
open("/root/held", "w").close()
while not os.path.exists("/root/release"):
    time.sleep(0.2)
GUEST
vm 'nohup python3 /root/hold.py >/dev/null 2>&1 </dev/null & for i in $(seq 100); do [ -e /root/held ] && exit 0; sleep 0.2; done; exit 1'
vm 'nohup sh -c "epready-lab apply /root/plan.json --yes=all >/root/apply.log 2>&1; echo \$? >/root/apply.rc" >/dev/null 2>&1 </dev/null &'
expect 0 'for i in $(seq 600); do grep -h "waiting: E: Could not get lock" /opt/epready/log/nvcc.log 2>/dev/null && exit 0; sleep 1; done; tail /root/apply.log; exit 1'
expect 1 test -e /root/apply.rc
vm 'touch /root/release'
expect 0 'for i in $(seq 600); do [ -s /root/apply.rc ] && exit $(cat /root/apply.rc); sleep 1; done; exit 99'
expect 0 epready-lab undo --yes=all

say "a read-only /etc: the step fails with the reason, nothing is half done"
vm 'mount --bind /etc /etc && mount -o remount,ro,bind /etc'
expect 1 epready-lab apply /root/plan.json --yes=all
says "Read-only file system"
vm 'umount /etc'
expect 0 epready-lab undo --yes=all

say "a full disk: the reason is named; with room made, the same command converges"
vm 'mount -t tmpfs -o size=64k tmpfs /opt'
expect 1 epready-lab apply /root/plan.json --yes=all
says "No space left on device"
vm 'mount -o remount,size=64m /opt'
expect 0 epready-lab apply /root/plan.json --yes=all
expect 0 epready-lab undo --yes=all
vm 'umount /opt'

say "downloads: cut in the middle, then gone on with; wrong bytes refused; nothing half used"
vm 'cat >/root/mirror.py' <<'GUEST'
# Serves 8 MB at /file: the first connection is cut in the middle, later ones honour Range. /bad has one wrong byte.
import http.server
body = bytes(range(256)) * 32768
cut = [True]
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = body if self.path == "/file" else b"X" + body[1:]
        begin = 0
        if "Range" in self.headers:
            begin = int(self.headers["Range"].split("=")[1].split("-")[0])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        if self.path == "/file" and cut[0]:
            cut[0] = False
            data = data[:begin + 1000000]
        self.wfile.write(data[begin:])
    def log_message(self, *a):
        with open("/root/mirror.log", "a") as f: f.write(self.path + " " + str(self.headers.get("Range")) + "\n")
import hashlib
open("/root/file.sha256", "w").write(hashlib.sha256(body).hexdigest())
http.server.HTTPServer(("127.0.0.1", 8001), H).serve_forever()
GUEST
vm 'nohup python3 /root/mirror.py >/dev/null 2>&1 & while [ ! -s /root/file.sha256 ]; do sleep 0.2; done; sleep 1'
vm 'cat >/root/fetch-plan.py' <<'GUEST'
import json, sys
sha = open("/root/file.sha256").read()
step = {"id": "get", "component": "", "mark": "add", "title": "Download", "why": "", "needs_steps": [], "risk": "user_files",
        "needs_root": False, "needs_network": True, "before": [], "after": [], "undo": [], "estimate_s": 0, "runbook_phase": "",
        "actions": [{"do": "fetch", "url": "http://127.0.0.1:8001/" + sys.argv[1], "sha256": sha, "to": "got"}]}
print(json.dumps({"schema": "epready-plan-1", "host_name": "gpu-lab", "lane": "v1", "stack": "", "platform": "", "consumer": "",
                  "prefix": "/opt/epready", "steps": [step], "skipped": [], "notes": [], "facts_used": {}}))
GUEST
vm 'python3 /root/fetch-plan.py file >/root/get.json; python3 /root/fetch-plan.py bad >/root/bad.json'
expect 1 epready apply /root/bad.json
says "another SHA-256"
expect 1 test -e /opt/epready/got
expect 1 epready apply /root/get.json
says "the download goes on where it stopped"
expect 0 'ls /opt/epready/cache/*.part'
expect 0 epready apply /root/get.json
expect 0 "grep '^/file bytes=1' /root/mirror.log"
expect 0 'echo "  /opt/epready/got" | cat /root/file.sha256 - | sha256sum -c'

say "a torn last line of the journal is skipped and said"
vm 'printf "{\"e\":\"act\",\"st" >>/opt/epready/state/journal.jsonl'
expect 0 epready status; says "is torn"
expect 0 epready apply /root/get.json; says "is torn"
