#!/bin/bash
# kill -9 of the program at every journal point, a package source and a package: a second run converges, undo gives /etc back.
# shellcheck disable=SC2016 # what stands in single quotes is expanded in the machine
fresh_vm
kill_story packages 'test -x /usr/local/cuda-12.9/bin/nvcc && test -z "$(dpkg --audit)"'
