#!/bin/sh
# rdma-names.sh DEVICE NAME ...: renames RDMA devices now; DEVICE is a PCI address, or today's name of a device that has none.
# A device that has its name already is left, so that this can be run again after a kill.
set -eu
classes=/sys/class/infiniband
while [ $# -ge 2 ]; do
  old=
  case $1 in
  *:*) for d in "$classes"/*; do [ "$(basename "$(readlink -f "$d/device")")" != "$1" ] || old=$(basename "$d"); done ;;
  *) [ ! -e "$classes/$1" ] || old=$1 ;;
  esac
  if [ -z "$old" ] && [ -e "$classes/$2" ]; then old=$2; fi
  if [ -z "$old" ]; then
    echo "rdma-names: no RDMA device $1" >&2
    exit 1
  fi
  if [ "$old" != "$2" ]; then
    rdma dev set "$old" name "$2"
    echo "$old is now $2"
  fi
  shift 2
done
