// Actions as POSIX shell. Every value of the plan goes through shell_quote; file contents through quoted
// here-documents.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "render/render.h"

namespace ep {
namespace {

std::string q(std::string_view s) {
  return shell_quote(s);
}

std::string words(const std::map<std::string, std::string>& env) {
  std::string out;
  for (const auto& [name, value] : env) out += fmt::format("{}={} ", name, q(value));
  return out.empty() ? out : "env " + out;
}

/// A delimiter that no line of the text is.
std::string here_document(std::string_view text) {
  std::string mark = "EPREADY_END";
  while (contains("\n" + std::string(text) + "\n", "\n" + mark + "\n")) mark += "_";
  std::string body(text);
  if (!body.empty() && body.back() != '\n') body += '\n';
  return "<<'" + mark + "'\n" + body + mark + "\n";
}

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

std::string write_file(const std::string& path, std::string_view content, uint32_t mode) {
  return fmt::format("install -d {}\ncat > {} {}chmod {:04o} {}\nmv -f {} {}\n", q(parent(path)),
                     q(path + ".new"), here_document(content), mode, q(path + ".new"), q(path + ".new"),
                     q(path));
}

struct ToShell {
  const Plan& plan;
  const EnvAhead* env = nullptr;
  std::string place(const std::string& path) const {
    return !path.empty() && path[0] != '/' ? plan.prefix + "/" + path : path;
  }

  std::string operator()(const RunArgv& a) const {
    std::string command = words(a.env) + shell_join(a.argv);
    return a.cwd.empty() ? command + "\n" : fmt::format("(cd {} && {})\n", q(place(a.cwd)), command);
  }
  std::string operator()(const WriteFile& a) const { return write_file(place(a.path), a.content, a.mode); }
  std::string operator()(const RemoveFile& a) const { return fmt::format("rm -f -- {}\n", q(place(a.path))); }
  std::string operator()(const MakeLink& a) const {
    return fmt::format("install -d {}\nln -sfn {} {}\n", q(parent(place(a.path))), q(a.target),
                       q(place(a.path)));
  }
  std::string operator()(const MakeDir& a) const {
    return fmt::format("install -d -m {:04o} {}\n", a.mode, q(place(a.path)));
  }
  std::string operator()(const InstallPackages& a) const {
    return "ep_packages " + shell_join(a.names) + "\n";
  }
  std::string operator()(const AddAptSource& a) const {
    const std::string keyring = "/etc/apt/keyrings/" + a.name + ".gpg";
    const std::string body =
        fmt::format("Types: deb\nURIs: {}\nSuites: {}\n{}Signed-By: {}\n", a.uri, a.suite,
                    a.components.empty() ? "" : "Components: " + a.components + "\n", keyring);
    return fmt::format("ep_key {} {} {}\n", q(a.key_url), q(a.key_fingerprint), q(keyring)) +
           write_file("/etc/apt/sources.list.d/" + a.name + ".sources", body, 0644);
  }
  std::string operator()(const Fetch& a) const {
    return fmt::format("ep_fetch {} {} {}\n", q(a.url), q(a.sha256), q(place(a.to)));
  }
  std::string operator()(const Unpack& a) const {
    return fmt::format("ep_unpack {} {}\n", q(place(a.archive)), q(place(a.to)));
  }
  std::string operator()(const GitCheckout& a) const {
    return fmt::format("ep_checkout {} {} {} {}\n", q(a.url), q(a.commit), q(place(a.to)),
                       a.submodules ? "submodules" : "plain");
  }
  std::string operator()(const ApplyPatch& a) const {
    return fmt::format("ep_patch {} {}\n", q(place(a.patch_path)), q(place(a.dir)));
  }
  std::string operator()(const CMakeBuild& a) const {
    std::vector<std::string> configure = {"cmake",
                                          "-S",
                                          place(a.source),
                                          "-B",
                                          place(a.build),
                                          "-DCMAKE_INSTALL_PREFIX=" + place(a.install_prefix),
                                          "-DCMAKE_BUILD_TYPE=Release"};
    configure.insert(configure.end(), a.options.begin(), a.options.end());
    return fmt::format("{}{}\n{}cmake --build {} --parallel --target install\n", words(a.env),
                       shell_join(configure), words(a.env), q(place(a.build)));
  }
  std::string operator()(const PythonVenv& a) const {
    return fmt::format("[ -x {}/bin/python ] || {} -m venv {}\n", q(place(a.root)), q(a.python),
                       q(place(a.root)));
  }
  std::string operator()(const PipInstall& a) const {
    const auto hashed = [](const std::string& r) { return contains(r, " --hash="); };
    const auto plain = [](const std::string& r) { return r.substr(0, r.find(" --hash=")); };
    std::vector<std::string> options;
    if (a.no_build_isolation) options.push_back("--no-build-isolation");
    if (!a.index_url.empty()) options.insert(options.end(), {"--index-url", a.index_url});
    options.insert(options.end(), a.extra_args.begin(), a.extra_args.end());
    std::string out;
    const auto install = [&](std::vector<std::string> args) {
      args.insert(args.begin(), options.begin(), options.end());
      out += fmt::format("{}{}/bin/python -m pip install {}\n", words(a.env), q(place(a.venv)),
                         shell_join(args));
    };
    // pip takes hashes from a file only, and for all of an install: first by hash alone, then what it depends
    // on.
    const auto by_hash = [&](const std::vector<std::string>& what) {
      const std::string list =
          fmt::format("{}/wheels-{}.txt", plan.prefix, what[0].substr(0, what[0].find_first_of("=<>!~ ")));
      out += write_file(list, join(what, "\n") + "\n", 0644);
      install({"--no-deps", "--require-hashes", "-r", list});
    };
    std::vector<std::string> names, overrides;
    for (const auto& r : a.requirements) names.push_back(plain(r));
    for (const auto& r : a.overrides) overrides.push_back(plain(r));
    if (!overrides.empty())
      out += write_file(plan.prefix + "/overrides.txt", join(overrides, "\n") + "\n", 0644);
    const bool all_hashed = std::all_of(a.requirements.begin(), a.requirements.end(), hashed);
    if (!a.requirements.empty() && all_hashed) by_hash(a.requirements);
    if (a.no_deps && !all_hashed) names.insert(names.begin(), "--no-deps");
    if (!a.no_deps || !all_hashed) install(names);
    // pip has no overrides: what its dependencies brought is replaced afterwards.
    if (overrides.empty() || a.no_deps) return out;
    if (std::all_of(a.overrides.begin(), a.overrides.end(), hashed)) {
      by_hash(a.overrides);
    } else {
      overrides.insert(overrides.begin(), "--no-deps");
      install(overrides);
    }
    return out;
  }
  std::string operator()(const MergeModuleOptions& a) const {
    std::string line = "options " + a.module;
    for (const auto& [name, value] : a.options)
      line +=
          " " + name + "=" + (value.find_first_of("; ") != std::string::npos ? "\"" + value + "\"" : value);
    std::string out;
    for (const auto& [name, value] : a.options)
      out += fmt::format("ep_other_options {} {} {}\n", q(a.module), q(name), q(a.owned_path));
    return out + write_file(a.owned_path,
                            "# Written by epready: merged with what was set before.\n" + line + "\n", 0644);
  }
  std::string operator()(const RefreshInitramfs&) const { return "ep_initramfs\n"; }
  std::string operator()(const SetLimits& a) const {
    std::string text = "# Written by epready.\n", shm;
    bool any = false;
    for (const auto& [name, value] : a.limits) {
      if (name == "shm") {
        shm = fmt::format(
            "grep -q '^[^#]*[[:space:]]/dev/shm[[:space:]]' /etc/fstab || "
            "printf 'tmpfs /dev/shm tmpfs nosuid,nodev,size=%s 0 0\\n' {0} >> /etc/fstab\n"
            "mount -o remount,size={0} /dev/shm\n",
            q(value));
        continue;
      }
      any = true;
      text +=
          fmt::format("* soft {0} {1}\n* hard {0} {1}\nroot soft {0} {1}\nroot hard {0} {1}\n", name, value);
    }
    return shm + (any ? write_file("/etc/security/limits.d/90-epready.conf", text, 0644) : "");
  }
  std::string operator()(const Reboot&) const { return "ep_reboot\n"; }
  std::string operator()(const RunSelf& a) const {
    const auto output = std::find(a.args.begin(), a.args.end(), "--output");
    if (env && !a.args.empty() && a.args[0] == "env" && output != a.args.end() && output + 1 != a.args.end())
      return shell_of_env(*env, *(output + 1));
    std::vector<std::string> argv = {"epready"};
    argv.insert(argv.end(), a.args.begin(), a.args.end());
    return shell_join(argv) + "\n";
  }
};

}  // namespace

std::string shell_of(const Action& action, const Plan& plan, const EnvAhead* env) {
  return std::visit(ToShell{plan, env}, action);
}

std::string shell_of_env(const EnvAhead& env, const std::string& path) {
  std::string out = fmt::format("install -d {}\n", q(parent(path))), marks;
  for (const auto& [mark, address] : env.nics) {
    const std::string variable = "ep_" + lower(replace_all(mark, "@", ""));
    out += fmt::format("{}=$(ep_nic {}) || exit 1\n", variable, q(address));
    marks += fmt::format(" -e \"s|{}|${}|g\"", mark, variable);
  }
  return out + fmt::format("{}{} > {} {}chmod 0644 {}\nmv -f {} {}\n", marks.empty() ? "cat" : "sed", marks,
                           q(path + ".new"), here_document(env.text), q(path + ".new"), q(path + ".new"),
                           q(path));
}

std::string_view shell_prelude() {
  return R"sh(ep_say() { printf '== %s\n' "$*" >&2; }
ep_die() { printf 'epready script: %s\n' "$*" >&2; exit 1; }
# packages: only those that are missing
ep_packages() {
  missing=
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing="$missing $name"
  done
  [ -z "$missing" ] && return 0
  apt-get update -qq
  # shellcheck disable=SC2086 # package names have no spaces
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}
# key: address, fingerprint, keyring. A key without the right fingerprint is not used.
ep_key() {
  [ -n "$2" ] || ep_die "no fingerprint for $1: plan again with --with NAME-key=FINGERPRINT"
  scratch=$(mktemp -d)
  curl -fsSL -o "$scratch/key" "$1" || ep_die "cannot fetch $1"
  seen=$(gpg --homedir "$scratch" --batch --with-colons --show-keys "$scratch/key" 2>/dev/null | awk -F: '$1 == "fpr" { print $10 }')
  case " $(printf '%s' "$seen" | tr '\n' ' ') " in
    *" $2 "*) ;;
    *) rm -rf "$scratch"; ep_die "the key at $1 has another fingerprint" ;;
  esac
  # The file may hold other keys: the pinned one alone becomes the keyring.
  gpg --homedir "$scratch" --batch --quiet --import "$scratch/key" 2>/dev/null || ep_die "gpg cannot read the key at $1"
  install -d "$(dirname "$3")"
  gpg --homedir "$scratch" --batch --yes --output "$3.new" --export "$2"
  chmod 0644 "$3.new"; mv -f "$3.new" "$3"; rm -rf "$scratch"
}
# PCI address: the name that its RDMA device has now (EP_SYS stands in for /sys)
ep_nic() {
  for d in "${EP_SYS:-/sys}/bus/pci/devices/$1/infiniband/"*; do
    if [ -e "$d" ]; then basename "$d"; return 0; fi
  done
  ep_die "no RDMA device at PCI address $1: this host differs from the one that was planned for; plan again there"
}
# version, example: the compiler must be in this image
ep_toolkit() {
  for n in nvcc /usr/local/cuda/bin/nvcc; do
    seen=$("$n" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p') || seen=
    [ -z "$seen" ] || break
  done
  [ "$seen" = "$1" ] || ep_die "DeepEP is built with nvcc $1, this image has ${seen:-none}: choose another image, such as $2"
}
ep_fetch() { # address, sha256, file
  [ -n "$2" ] || ep_die "no hash for $1"
  install -d "$(dirname "$3")"
  curl -fL --retry 3 -o "$3.new" "$1"
  printf '%s  %s\n' "$2" "$3.new" | sha256sum -c - >/dev/null || { rm -f "$3.new"; ep_die "wrong hash: $1"; }
  mv -f "$3.new" "$3"
}
ep_unpack() { # archive, folder
  rm -rf "$2.new"; install -d "$2.new"
  tar -xf "$1" -C "$2.new" --strip-components=1
  rm -rf "$2"; mv "$2.new" "$2"
}
ep_checkout() { # address, commit, folder, submodules|plain
  if [ "$(git -C "$3" rev-parse HEAD 2>/dev/null)" != "$2" ]; then
    rm -rf "$3.new"; install -d "$3.new"
    git -C "$3.new" init -q
    git -C "$3.new" fetch -q --depth 1 "$1" "$2"
    git -C "$3.new" -c advice.detachedHead=false checkout -q "$2"
    [ "$(git -C "$3.new" rev-parse HEAD)" = "$2" ] || ep_die "checkout of $2 gave another commit"
    if [ "$4" = submodules ]; then git -C "$3.new" submodule update -q --init --recursive --depth 1; fi
    rm -rf "$3"; mv "$3.new" "$3"
  fi
  git -C "$3" checkout -q -- .
}
ep_patch() { # patch, folder: wholly or not at all
  patch -p1 --forward --dry-run -d "$2" -i "$1" >/dev/null || ep_die "patch does not apply: $1"
  patch -p1 --forward -d "$2" -i "$1" >/dev/null
}
ep_other_options() { # module, option, our file: others that set it would win or lose by file name
  others=$(grep -lE "^[[:space:]]*options[[:space:]]+$1[[:space:]].*$2=" /etc/modprobe.d/*.conf /run/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf 2>/dev/null | grep -vxF "$3" || true)
  [ -z "$others" ] || ep_die "$2 is also set in: $others. Its keys are merged into $3; move those lines away first"
}
ep_initramfs() {
  if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -u
  elif command -v dracut >/dev/null 2>&1; then dracut --force
  else ep_die "neither update-initramfs nor dracut is here: the option would not reach the driver at boot"
  fi
}
)sh";
}

}  // namespace ep
