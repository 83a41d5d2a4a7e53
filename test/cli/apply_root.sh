#!/bin/sh
# apply --root: a mounted image, with real chroot, in a mount namespace in which /opt/epready of this machine holds a file that
# must not change. Packages of the image are read from its own database.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
[ "$(id -u)" = 0 ] || skip "chroot and mount namespaces want root"
unshare -m true 2>/dev/null || skip "no mount namespaces here"

image=$scratch/image
mkdir -p "$image" inside
for d in usr etc/apt/sources.list.d etc/modprobe.d var/lib/dpkg opt proc dev tmp; do mkdir -p "$image/$d"; done
for d in bin sbin lib lib64; do [ -L "/$d" ] && ln -s "usr/$d" "$image/$d"; done
[ -L /bin ] || skip "this machine has no merged /usr to lend to the image"
printf 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n' >"$image/etc/os-release"
# An apt that adds rows to the image's database, in the image alone.
cat >"$scratch/inside/apt-get" <<'END'
#!/bin/sh
sim=
for a; do case $a in -s) sim=yes ;; esac; done
[ -z "$sim" ] || exit 0
end=
for a; do
  [ -z "$end" ] || printf 'Package: %s\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n\n' "$a" >>/var/lib/dpkg/status
  [ "$a" != -- ] || end=yes
done
END
chmod +x "$scratch/inside/apt-get"
: >"$image/var/lib/dpkg/status"
cat >story.sh <<'END'
set -eu
mkdir -p /opt
mount -t tmpfs none /opt
mkdir -p /opt/epready/env
echo "# HOST ENV" >/opt/epready/env/env.sh
mount --bind /usr "$image/usr"
mount --bind "$scratch/inside/apt-get" "$image/usr/bin/apt-get" 2>/dev/null || { : >"$scratch/no-apt"; exit 0; }
mount --bind /dev "$image/dev"
find /opt | sort >"$scratch/before"
code=0
"$EPREADY" apply plan.json --root "$image" --yes=packages >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
echo "$code" >"$scratch/code"
find /opt | sort >"$scratch/after"
cat /opt/epready/env/env.sh >"$scratch/host-env"
"$EPREADY" apply --resume --root "$image" >"$scratch/out2" 2>&1 </dev/null || true
"$EPREADY" status --root "$image" >"$scratch/status" 2>&1 || true
cp "$image/opt/epready/env/env.sh" "$scratch/image-env" || true
mkdir "$scratch/parts" && cp -r "$image/opt/epready/." "$scratch/parts"
cp "$image/etc/modprobe.d/epready-nvidia.conf" "$scratch/options" && cp "$image"/etc/security/limits.d/* "$scratch/limits" || true
"$EPREADY" undo --root "$image" --dry-run >"$scratch/dry" 2>&1 || true
"$EPREADY" undo --root "$image" --yes=none >"$scratch/undo" 2>&1 </dev/null || true
find /opt | sort >"$scratch/after-undo"
END
mkdir -p pack/top && echo x >pack/top/f && tar -C pack -czf t.tgz top
hash=$(sha256sum t.tgz | awk '{ print $1 }')
command -v git >/dev/null || skip "git is not here"
git init -q repo
git -C repo config uploadpack.allowAnySHA1InWant true
echo 1 >repo/a
git -C repo add a
git -C repo -c user.name=t -c user.email=t@example.org commit -qm one
commit=$(git -C repo rev-parse HEAD)
mkdir -p "$image$scratch" && cp -r repo "$image$scratch/repo" && chown -R root: "$image$scratch/repo"
echo 'options nvidia NVreg_RegistryDwords="Other=5"' >"$image/etc/modprobe.d/site.conf"
cat >plan.json <<END
{"schema": "epready-plan-1", "host_name": "", "lane": "local", "stack": "local", "platform": "bare-metal", "consumer": "plain",
 "prefix": "/opt/epready", "facts_used": {"os.id": "debian", "gpu.count": "8"}, "skipped": [], "notes": [],
 "steps": [
  {"id": "build-tools", "component": "build-tools", "mark": "add", "title": "Install tools", "why": "x", "needs_steps": [], "risk": "packages",
   "needs_root": true, "needs_network": true, "before": [{"name": "package", "args": ["devscripts"]}],
   "after": [{"name": "package", "args": ["devscripts"]}], "undo": [], "estimate_s": 1, "runbook_phase": "",
   "actions": [{"do": "install-packages", "names": ["devscripts"]}]},
  {"id": "files", "component": "", "mark": "add", "title": "Files", "why": "x", "needs_steps": [], "risk": "user_files",
   "needs_root": false, "needs_network": false, "before": [], "after": [], "undo": [], "estimate_s": 1, "runbook_phase": "",
   "actions": [{"do": "make-dir", "path": "made", "mode": 493}, {"do": "run", "argv": ["sh", "-c", "echo ran >here"], "cwd": "made", "env": {}, "limit_s": 20},
    {"do": "fetch", "url": "file://$scratch/t.tgz", "sha256": "$hash", "to": "dl/t.tgz"}, {"do": "unpack", "archive": "dl/t.tgz", "to": "unpacked"},
    {"do": "git", "url": "$scratch/repo", "commit": "$commit", "to": "src", "submodules": false},
    {"do": "set-limits", "limits": {"memlock": "unlimited"}},
    {"do": "module-options", "module": "nvidia", "options": {"NVreg_RegistryDwords": "PeerMappingOverride=1"}, "owned_path": "/etc/modprobe.d/epready-nvidia.conf"}]},
  {"id": "env", "component": "env", "mark": "add", "title": "Write the environment file", "why": "x", "needs_steps": ["build-tools"], "risk": "user_files",
   "needs_root": false, "needs_network": false, "before": [], "after": [], "undo": [], "estimate_s": 1, "runbook_phase": "",
   "actions": [{"do": "make-dir", "path": "/opt/epready/env", "mode": 493},
    {"do": "run-self", "args": ["env", "--shell", "--lane", "local", "--prefix", "/opt/epready", "--output", "/opt/epready/env/env.sh"], "limit_s": 60}]}
 ]}
END
export image scratch EPREADY
unshare -m sh ./story.sh || die "the story broke off"
[ ! -e no-apt ] || skip "nothing can be mounted over apt-get here"
[ "$(cat code)" = 0 ] || die "apply --root ended with $(cat code)"
for f in made/here unpacked/f src/a; do [ -s "parts/$f" ] || die "the image lacks $f"; done
grep -q "Other=5;PeerMappingOverride=1" options || die "the image's module options were not merged"
grep -q memlock limits || die "the image has no limits"
[ ! -e /etc/modprobe.d/epready-nvidia.conf ] || die "module options of the host were written"
[ "$(cat host-env)" = "# HOST ENV" ] || die "the host's environment file was written"
cmp before after || die "something was made in /opt of the host"
cmp before after-undo || die "undo touched /opt of the host"
grep -q "lane local" image-env || die "no environment file in the image"
[ ! -e "$image/opt/epready/env/env.sh" ] || die "undo left the image's environment file"
grep -q -- "--root $image" dry || die "undo --dry-run: its next command lost --root"
