#!/bin/sh
# Makes a plugin project outside the tree, builds it, runs its test and loads its library; and compares what is made of
# "acme.invert" with examples/plugin. Usage: run.sh TOOL SOURCE_FOLDER BUILD_FOLDER COMPILER
set -eu
tool=$(realpath "$1")
source=$(realpath "$2")
build=$(realpath "$3")
export CXX="$4"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

fail() {
  echo "$*"
  exit 1
}

"$tool" new "$place/acme" acme.invert
diff -r "$source/examples/plugin" "$place/acme" || fail "examples/plugin is not what a new project is"

"$tool" new "$place/camera" camera.remove_noise
quietly() {
  "$@" >"$place/log" 2>&1 || { cat "$place/log"; fail "failed: $*"; }
}
quietly cmake -S "$place/camera" -B "$place/camera/build" -Dmillrace_DIR="$build" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
quietly cmake --build "$place/camera/build"
quietly ctest --test-dir "$place/camera/build" --no-tests=error

library=$place/camera/build/plugins/camera_plugin.so
types=$("$tool" types "$library") || fail "$types"
[ "$types" = camera.remove_noise ] || fail "the plugin has other types: $types"
symbols=$(nm -D --defined-only "$library" | sed 's/.* //')
[ "$symbols" = millrace_plugin ] || fail "the plugin exports more than its entry: $symbols"

"$tool" new "$place/camera" camera.remove_noise >"$place/log" && fail "a folder that is in use was written over"
grep -q MR0120 "$place/log" || fail "a folder in use is another error"
for name in camera "" camera. .noise Camera.noise camera.no.ise "camera.n oise" ../x.y; do
  "$tool" new "$place/none" "$name" >"$place/log" && fail "'$name' was taken for a type name"
  grep -q MR0105 "$place/log" || fail "'$name' is another error"
  [ ! -e "$place/none" ] || fail "'$name' left files behind"
done
