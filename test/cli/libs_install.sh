#!/bin/sh
# Installs that cannot work say why and what to do, and leave the environment as it was: an index that does not answer, an
# offline folder without the wheel, an environment whose Python is gone, a version that does not exist.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
without_uv
python3 -c 'import venv, ensurepip' 2>/dev/null || skip "no python3-venv here"
export PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=5
unset PIP_FIND_LINKS PIP_INDEX_URL VIRTUAL_ENV 2>/dev/null || :

run 2 libs --with nccl=9.9.9
err_has "nccl has no release 9.9.9"
err_has "2.30.7"
run 0 libs --workspace ws --with deepep=2.1.0+sgl0.1.2 -o libs.json

# Nobody listens on port 9 of this machine.
run 1 apply libs.json --mirror https://pypi.org/simple=http://127.0.0.1:9/simple
out_has "cannot be reached"
out_has "--mirror"
[ -x ws/venv/bin/python ] || die "the environment itself is gone"
[ ! -e ws/venv.before ] || die "a copy was left behind"
find ws/venv -type f | sort >files.a

# A folder that fetch did not finish is refused before anything is touched.
mkdir -p off/wheels
run 3 apply libs.json --offline off
err_has "epready fetch"

# An index that lacks the wheel.
mkdir simple
run 1 apply libs.json --mirror "https://pypi.org/simple=file://$PWD/simple"
out_has "has no torch==2.13.0"
find ws/venv -type f | sort >files.b
cmp files.a files.b || die "a failed install changed the environment"

rm ws/venv/bin/python && ln -s /nowhere/python3 ws/venv/bin/python
run 1 apply libs.json --mirror "https://pypi.org/simple=file://$PWD/simple"
out_has "environment is broken"
out_has "mv "
