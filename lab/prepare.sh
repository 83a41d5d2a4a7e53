#!/bin/bash
# Not a story: boots the machine once and keeps it for all of them.
keep_booted_vm
