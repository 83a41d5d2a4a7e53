#!/bin/sh
# The launcher: runs the program at once when nothing changed, builds again when a source did, and ends a failing build
# with the compiler's first error and a next step. Build tools are stand-ins here; the real build made the program under test.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
tree=$scratch/tree
mkdir -p "$tree/src" "$tree/engine" "$tree/data" "$tree/docs" "$tree/cmake" "$tree/build" "$scratch/bin"
cp "$EP_SOURCE_DIR/epready" "$tree/epready"
cp "$EP_SOURCE_DIR/cmake/build.sh" "$tree/cmake/build.sh"
: >"$tree/CMakeLists.txt"
echo 'int x;' >"$tree/src/a.cpp"
printf '#!/bin/sh\necho "program: $*"\n' >"$tree/build/epready"
chmod +x "$tree/build/epready"
# Stand-ins: dpkg-query says installed, cmake and ninja note that they ran.
printf '#!/bin/sh\nprintf installed\n' >"$scratch/bin/dpkg-query"
printf '#!/bin/sh\necho cmake >>"%s/ran"\n' "$scratch" >"$scratch/bin/cmake"
printf '#!/bin/sh\necho ninja >>"%s/ran"\n' "$scratch" >"$scratch/bin/ninja"
chmod +x "$scratch/bin"/*
PATH=$scratch/bin:$PATH
export PATH

touch -d '2020-01-01' "$tree/src/a.cpp" "$tree/src" "$tree/engine" "$tree/data" "$tree/docs" "$tree/cmake" "$tree/cmake/build.sh" "$tree/CMakeLists.txt"
: >"$tree/build/.built"
"$tree/epready" facts --json >out 2>err || die "launcher failed"
out_has "program: facts --json"
[ ! -e ran ] || die "it built although nothing had changed"

touch -d '2035-01-01' "$tree/src/a.cpp"
"$tree/epready" up >out 2>err || die "launcher failed after a build"
out_has "program: up"
grep -q ninja ran || die "it did not build although a source changed"
err_has "building"

printf '#!/bin/sh\necho "[3/9] CXX a.o"\necho "src/a.cpp:7:3: error: expected ;"\necho "src/a.cpp:9:1: error: second"\nexit 1\n' >"$scratch/bin/ninja"
code=0
"$tree/epready" up >out 2>err || code=$?
[ "$code" != 0 ] || die "a failing build ended well"
err_has "src/a.cpp:7:3: error: expected ;"
err_has "next:"

printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/dpkg-query" # nothing is installed
code=0
EPREADY_NO_INSTALL=1 "$tree/epready" up >out 2>err || code=$?
[ "$code" = 3 ] || die "exit code $code without the packages, expected 3"
err_has "apt-get install -y"
err_has "libre2-dev"
