#!/bin/sh
# Fails on an include that points upward. Each folder may include itself and what its row names.
set -eu
src=$1
bad=0
allow() { # folder, allowed folders
  folder=$1
  shift
  for f in "$src/$folder"/*.h "$src/$folder"/*.cpp; do
    [ -e "$f" ] || continue
    included=$(sed -n 's/^#include "\([a-z_]*\)\/.*/\1/p' "$f" | sort -u)
    for inc in $included; do
      ok=no
      for a in "$folder" "$@"; do [ "$inc" = "$a" ] && ok=yes; done
      [ $ok = yes ] || { echo "$f includes \"$inc/...\": $folder may use only: $*"; bad=1; }
    done
  done
}
allow base
allow host base
allow facts host base
allow recipe base
allow check facts recipe base
allow plan facts recipe base
allow doctor facts recipe base
allow apply plan facts recipe host base
allow verify bench check plan facts recipe host base
allow bench recipe host base
allow render plan recipe facts base
allow report verify bench doctor check plan render apply facts recipe base
[ $bad = 0 ] && echo "all includes point downward"
exit $bad
