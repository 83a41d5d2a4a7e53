#!/bin/bash
# A plan of another host or version, half a plan, drifted facts, no root and no sudo, a container, no systemd: a clear error, nothing half done.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
vm 'lab-plan options >/root/plan.json; lab-plan small >/srv/small.json; touch /root/stamp; sleep 1.1'
untouched() { expect 1 test -e /opt/epready; expect 0 'find /etc -newer /root/stamp'; [ ! -s "$WORK/out" ] || { cat "$WORK/out"; fail "a refused plan changed /etc"; }; }

say "a plan of another host, of another version, half a plan, none: refused before anything is touched"
vm 'sed s/gpu-lab/gpu-07/ /root/plan.json >/root/other.json; sed s/epready-plan-1/epready-plan-9/ /root/plan.json >/root/v9.json; head -c 900 /root/plan.json >/root/half.json'
expect 2 epready apply /root/other.json --yes=all; says "made for another host: gpu-07: this one is gpu-lab"; says "next: make one here: epready plan -o FILE"
expect 2 epready apply /root/v9.json --yes=all; says 'another version wrote it'; says "next: epready plan -o FILE"
expect 2 epready apply /root/half.json --yes=all; says "is not JSON"; says "next: epready plan -o FILE"
expect 3 epready apply /root/none.json --yes=all; says "no such plan file"
say "facts that have changed since the plan was made are named"
vm "sed 's/\"facts_used\": {}/\"facts_used\": {\"kernel.version\": \"5.15.0\"}/' /root/plan.json >/root/drift.json"
expect 1 epready apply /root/drift.json --yes=all; says "the host has changed since this plan was made"; says "kernel.version: was '5.15.0', is '6.1"
untouched

say "not root, and no sudo on this host: the steps say so, and the next command is one that can be given"
expect 3 'cd / && setpriv --reuid=65534 --regid=65534 --clear-groups epready apply /srv/small.json --yes=all'
says "run it as root (there is no sudo here)"; says_not "run it with sudo"
vm 'sed s,/opt/epready,/tmp/own, /srv/small.json >/srv/own.json'
expect 3 'cd / && setpriv --reuid=65534 --regid=65534 --clear-groups epready apply /srv/own.json --yes=all'
says "needs root"; says "next: as root: epready apply --resume --prefix /tmp/own"
vm 'rm -r /tmp/own'
untouched

say "in a container the steps of the kernel are the host's, and it says so"
expect 3 'unshare -m sh -c "touch /run/.containerenv; epready apply /root/plan.json --yes=all; rc=\$?; rm /run/.containerenv; exit \$rc"'
says "this is a container (podman): the kernel is the host's"; says "next: on the host: epready apply"
expect 0 epready undo --yes=all
untouched

say "no systemd: everything is done, no unit is written, and the way on is told"
expect 4 'unshare -m sh -c "mount -t tmpfs none /run/systemd; epready apply /root/plan.json --yes=kernel"'
says "next: reboot when it suits, then: epready apply --resume"
expect 1 test -e /etc/systemd/system/epready-resume.service
expect 0 epready undo --yes=all
expect 1 test -e /opt/epready
