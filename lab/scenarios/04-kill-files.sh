#!/bin/bash
# kill -9 of the program at every journal point, files, module options and a checkout: a second run converges, undo gives /etc back.
fresh_vm
kill_story no-packages 'test -e /opt/epready/gdrcopy/.epready-part && grep -qx a /etc/lab/a.conf && grep -q PeerMappingOverride=1 /etc/modprobe.d/epready-nvidia.conf'
