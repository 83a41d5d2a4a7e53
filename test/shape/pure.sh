#!/bin/sh
# Pure folders take values and give values: their archives must not reach for the machine, the clock or the environment.
set -eu
bad=0
# recipe is not in the list: it reads a data folder when the user names one (--data-dir).
for folder in facts check plan doctor render report; do
  lib=$1/$folder/libep_$folder.a
  [ -e "$lib" ] || {
    ls "$2/$folder"/*.cpp >/dev/null 2>&1 || continue # nothing in it yet
    echo "no library $lib"
    exit 1
  }
  found=$(nm -u "$lib" 2>/dev/null | awk '{print $NF}' | sort -u |
    grep -xE 'open|open64|openat|fopen|fopen64|stat|stat64|lstat|access|opendir|readlink|getenv|secure_getenv|setenv|execv|execve|fork|posix_spawn|posix_spawnp|system|popen|time|clock_gettime|gettimeofday|socket|unlink|rename|_ZNSt10filesystem.*|_ZNSt6chrono3_V212system_clock3nowEv|_ZNSt14basic_[io]*fstream.*' || :)
  [ -z "$found" ] || { echo "src/$folder is not pure: $found"; bad=1; }
done
[ $bad = 0 ] && echo "pure folders are pure"
exit $bad
