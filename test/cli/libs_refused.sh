#!/bin/sh
# Wheels that must not come in, and a disk that has no room for them: for another Python, with other bytes, too large. Each
# leaves the environment as it was and says what to do.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
without_uv
python3 -c 'import venv, ensurepip' 2>/dev/null || skip "no python3-venv here"
export PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=5
unset PIP_FIND_LINKS PIP_INDEX_URL VIRTUAL_ENV 2>/dev/null || :

run 0 libs --workspace ws --with deepep=2.1.0+sgl0.1.2 -o libs.json
# Only torch: the other parts of the call would fail alike.
python3 - libs.json <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
plan["steps"] = [s for s in plan["steps"] if s["id"] in ("python", "torch")]
pip = plan["steps"][1]["actions"][0]
pip["requirements"] = [r for r in pip["requirements"] if r.startswith("torch==")]
json.dump(plan, open(sys.argv[1], "w"))
PY
# An index of our own, made by hand: NAME-1-TAGS.whl whose only file is as large as asked.
cat >wheel.py <<'PY'
import base64, hashlib, pathlib, sys, zipfile
name, tags, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
version = sys.argv[4] if len(sys.argv) > 4 else "1"
folder = pathlib.Path("simple", name)
folder.mkdir(parents=True, exist_ok=True)
path = folder / f"{name}-{version}-{tags}.whl"
info = f"{name}-{version}.dist-info/"
files = {f"{name}.py": b"\0" * size, info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
         info + "WHEEL": f"Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: {tags}\n".encode()}
row = lambda n, b: f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b'=').decode()},{len(b)}\n"
files[info + "RECORD"] = ("".join(row(n, b) for n, b in files.items()) + info + "RECORD,,\n").encode()
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
    for n, b in files.items():
        z.writestr(n, b)
sha = hashlib.sha256(path.read_bytes()).hexdigest()
(folder / "index.html").write_text(f'<a href="{path.name}#sha256={sha}">{path.name}</a>')
print(sha)
PY
# A wheel for another Python is no wheel for this one.
python3 wheel.py torch cp27-cp27m-manylinux_2_17_x86_64 10 2.13.0 >/dev/null
run 1 apply libs.json --mirror "https://pypi.org/simple=file://$PWD/simple"
find ws/venv -type f | sort >files.a
out_has "has no torch==2.13.0 for this Python and machine"
out_has "index versions torch"
# Other bytes under the right name are refused.
rm -r simple/torch && python3 wheel.py torch py3-none-any 10 2.13.0 >/dev/null
run 1 apply libs.json --mirror "https://pypi.org/simple=file://$PWD/simple"
out_has "another SHA-256"
find ws/venv -type f | sort >files.b
cmp files.a files.b || die "a failed install changed the environment"

# A disk that fills up in the middle: a small one of our own, where this may be made.
if unshare -rm true 2>/dev/null; then
  sha=$(python3 wheel.py torch py3-none-any 300000000 2.13.0)
  mkdir small
  cat >full.sh <<'SH'
set -eu
mount -t tmpfs -o size=120m none small
sed "s#$PWD/ws#$PWD/small/ws#g; s#\"torch==2.13.0 --hash[^\"]*#\"torch==2.13.0 --hash=sha256:$1#" libs.json >small.json
code=0
"$EPREADY" apply small.json --mirror "https://pypi.org/simple=file://$PWD/simple" >out 2>err </dev/null || code=$?
[ "$code" = 1 ] || { echo "exit code $code"; exit 1; }
[ -x small/ws/venv/bin/python ] && small/ws/venv/bin/python -c 'import pip' || { echo "the environment is gone"; exit 1; }
find small/ws/venv -name 'torch*' | grep . && { echo "half of a wheel was left"; exit 1; }
[ ! -e small/ws/venv.before ] || { echo "a copy was left behind"; exit 1; }
SH
  unshare -rm sh full.sh "$sha" >full.out 2>&1 || die "full disk: $(cat full.out)"
  out_has "disk is full"
  out_has "df -h"
else
  echo "not run here: a full disk (no user namespaces)"
fi

