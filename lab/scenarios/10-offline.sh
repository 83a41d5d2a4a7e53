#!/bin/bash
# fetch gathers what a plan needs; then the network is gone, and apply --offline does the plan from the folder alone.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
vm 'lab-plan no-reboot >/root/plan.json'
say "gather: packages, keys, repositories and wheels, each proven"
expect 0 epready-lab fetch /root/plan.json -o /root/pack
sed 's/^/    | /' "$WORK/out"
say "the network is gone: the mirror is down, its files are moved away"
vm 'systemctl stop lab-mirror; mv /srv /srv.gone; mkdir /srv; cp -r /srv.gone/keys /srv/'
expect 7 curl -s http://127.0.0.1:8000/
expect 0 epready apply /root/pack/plan.json --offline /root/pack --yes=all
sed 's/^/    | /' "$WORK/out"
expect 0 /opt/epready/venv/bin/python -c "'import deep_ep, torch; print(deep_ep.STAND_IN, torch.__version__)'"; says "True 2.9.1"
expect 0 dpkg-query -W cuda-nvcc-12-9 doca-ofed
say "a second apply from the folder finds nothing to do"
expect 0 "epready apply /root/pack/plan.json --offline /root/pack --yes=all --json | grep -c '\"state\": \"satisfied\"'"; says 11
expect 0 epready undo --yes=all
expect 1 test -e /opt/epready

say "a changed wheel, a cut package, a folder that fetch has not finished: refused with the reason"
vm 'cd /root/pack/wheels && w=$(ls torch-*) && cp $w /root/keep && printf X | dd of=$w bs=1 seek=40 conv=notrunc 2>/dev/null'
expect 1 epready apply /root/pack/plan.json --offline /root/pack --yes=all
says "another SHA-256"
expect 1 test -e /opt/epready/venv/lib/python3.11/site-packages/torch
expect 0 epready undo --yes=all
vm 'cd /root/pack/wheels && mv /root/keep $(ls torch-*); truncate -s -1 /root/pack/debs/cuda-nvcc*.deb'
expect 3 epready apply /root/pack/plan.json --offline /root/pack --yes=all
says "nothing was begun"
expect 1 test -e /opt/epready
vm 'rm /root/pack/manifest.json'
expect 3 epready apply /root/pack/plan.json --offline /root/pack --yes=all
says "not a folder that epready fetch has finished"

say "without network fetch names what it could not get, and the folder stays unfinished"
expect 1 epready-lab fetch /root/plan.json -o /root/pack2
says "Not whole"
expect 1 test -e /root/pack2/manifest.json
