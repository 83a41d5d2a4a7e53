#!/bin/sh
# No views of temporaries: split, lines, split_ws and trim hand out views, so that their argument must outlive them. In
# `for (auto part : split(f(), ','))` and `auto parts = split(f(), ',');` the string that f makes is gone before the first use.
# Told by the functions that are known to make strings. Usage: views.sh SOURCE_DIR
set -eu
src=$1
views='(split|lines|split_ws|trim)'
makers='(join|lower|upper|replace_all|strip_ansi|shell_quote|shell_join|redact|one_line|human_bytes|fmt::format|std::string|std::to_string|slurp|mirrored|without_login)\(|l\.get\(|[A-Za-z_]+->read\('
loop="for \\([^;]*[^:]: *(ep::)?$views\\((trim\\()?($makers)"
kept="(auto|string_view|std::vector<std::string_view>)&* [A-Za-z_]+ = (ep::)?$views\\((trim\\()?($makers)"
check() { grep -rnE "$loop|$kept" --include='*.cpp' --include='*.h' "$@" || true; }

# The test can fail: the shapes that it is for are found.
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
cat >"$probe/x.cpp" <<'END'
for (auto part : split(l.get("NAME"), ',')) use(part);
for (std::string_view w : split_ws(lower(text))) use(w);
auto parts = split(join(names, ","), ',');
std::string_view head = trim(std::string(text));
END
[ "$(check "$probe" | wc -l)" = 4 ] || { echo "FAILED: the shapes are not recognised"; check "$probe"; exit 1; }

found=$(check "$src")
[ -z "$found" ] || { echo "FAILED: views of strings that are gone:"; echo "$found"; exit 1; }
