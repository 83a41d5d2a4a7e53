#!/bin/bash
# A host that others use too: two toolkits side by side, a package that somebody needs by now, a file changed by hand: undo takes only ours.
fresh_vm
vm 'dpkg -i /srv/cuda/cuda-nvcc-13-0_*.deb /srv/cuda/cuda-toolkit-13-0_*.deb >/dev/null 2>&1; lab-plan cuda >/root/cuda.json; lab-plan cuda-link >/root/link.json'
expect 0 readlink /usr/local/cuda; says /etc/alternatives/cuda
etc_picture >"$WORK/etc.before"

say "12.9 comes beside 13.0, which keeps the link; facts see both and where the link ends"
expect 0 epready-lab apply /root/cuda.json --yes=packages
expect 0 readlink -f /usr/local/cuda; says /usr/local/cuda-13.0
expect 0 'epready facts --json | python3 -c "import json, sys; f = json.load(sys.stdin); print(sorted(t[\"id\"] for t in f[\"cuda\"]), f[\"cuda_home\"][\"link\"][\"value\"])"'
says "['/usr/local/cuda-12.9', '/usr/local/cuda-13.0'] /usr/local/cuda-13.0"

say "a plan that was asked to point the link does, and its undo gives the link back as it was"
expect 0 epready-lab apply /root/link.json --yes=packages
expect 0 readlink -f /usr/local/cuda; says /usr/local/cuda-12.9
expect 0 epready undo --yes=all
expect 0 readlink /usr/local/cuda; says /etc/alternatives/cuda
expect 0 readlink -f /usr/local/cuda; says /usr/local/cuda-13.0
expect 1 test -e /usr/local/cuda-12.9
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after undo"

say "somebody installs a program that needs our compiler, and edits our package source"
expect 0 epready-lab apply /root/cuda.json --yes=packages
vm 'dpkg -i /srv/cuda/lab-needs-nvcc_*.deb >/dev/null 2>&1; echo "# mine" >>/etc/apt/sources.list.d/cuda-repo.sources'
say "a dry run says what would be done, and touches nothing"
etc_picture >"$WORK/etc.dry"
expect 3 epready undo --dry-run; says "would"; says "needed by lab-needs-nvcc"; says "changed by hand since"
etc_picture | diff "$WORK/etc.dry" - || fail "a dry run changed /etc"
expect 0 dpkg-query -W cuda-toolkit-12-9
say "undo leaves both alone with the reason, and takes the rest"
expect 3 epready undo --yes=all; says "needed by lab-needs-nvcc"; says "changed by hand since"
expect 0 /usr/local/cuda-12.9/bin/nvcc
expect 1 dpkg-query -W cuda-toolkit-12-9
expect 0 tail -1 /etc/apt/sources.list.d/cuda-repo.sources; says "# mine"
say "with their reasons gone, the same command takes the rest"
vm 'dpkg -P lab-needs-nvcc >/dev/null; sed -i "/^# mine/d" /etc/apt/sources.list.d/cuda-repo.sources'
expect 0 epready undo --yes=all
expect 1 test -e /usr/local/cuda-12.9 -o -e /opt/epready
etc_picture >"$WORK/etc.after"
diff "$WORK/etc.before" "$WORK/etc.after" || fail "/etc differs after the last undo"
