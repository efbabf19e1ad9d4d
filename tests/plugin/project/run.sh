#!/bin/sh
# Makes plugin projects outside the tree, builds them, runs their tests and loads their libraries: one with a CPU body, one
# whose body takes items, one with a decoder, and one with a GPU body too, built with nvcc where that is and without it.
# Compares what is made of "acme.invert" and "acme.decode" with examples/plugin, plugin_cuda and plugin_model. Usage:
# run.sh TOOL SOURCE_FOLDER BUILD_FOLDER COMPILER
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
"$tool" new "$place/acme_cuda" acme.invert --cuda
diff -r "$source/examples/plugin_cuda" "$place/acme_cuda" || fail "examples/plugin_cuda is not what a new project is"

"$tool" new "$place/acme_model" acme.decode --model
diff -r "$source/examples/plugin_model" "$place/acme_model" || fail "examples/plugin_model is not what a new project is"

quietly() {
  "$@" >"$place/log" 2>&1 || { cat "$place/log"; fail "failed: $*"; }
}
# Builds the project PROJECT of camera.remove_noise in BUILD, with words for cmake, and looks at what came of it.
# Optimization is a third of a build's time: the project without nvcc, which has the sources of the other two, is built
# without it.
try_project() {
  project=$1
  folder=$2
  shift 2
  quietly cmake -S "$project" -B "$folder" -Dmillrace_DIR="$build" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" "$@"
  cp "$place/log" "$place/configured"
  quietly cmake --build "$folder"
  quietly ctest --test-dir "$folder" --no-tests=error --verbose
  cp "$place/log" "$place/tested"
  library=$folder/plugins/camera_plugin.so
  types=$("$tool" types "$library") || fail "$types"
  [ "$types" = camera.remove_noise ] || fail "the plugin has other types: $types"
  symbols=$(nm -D --defined-only "$library" | sed 's/.* //')
  [ "$symbols" = millrace_plugin ] || fail "the plugin exports more than its entry: $symbols"
}
"$tool" new "$place/camera" camera.remove_noise
try_project "$place/camera" "$place/camera/build"

"$tool" new "$place/camera_items" camera.remove_noise --items
try_project "$place/camera_items" "$place/camera_items/build" -DCMAKE_BUILD_TYPE=Debug
grep -q 'process(mr::Items& items' "$place/camera_items/src/remove_noise.cpp" || fail "the body does not take items"

"$tool" new "$place/camera_model" camera.remove_noise --model
try_project "$place/camera_model" "$place/camera_model/build" -DCMAKE_BUILD_TYPE=Debug

"$tool" new "$place/camera_cuda" camera.remove_noise --cuda
try_project "$place/camera_cuda" "$place/without_nvcc" -DCMAKE_CUDA_COMPILER=NOTFOUND -DCMAKE_BUILD_TYPE=Debug
grep -q 'nvcc not found: camera.remove_noise is built with its CPU body alone' "$place/configured" ||
  fail "without nvcc nobody says that the GPU body is left out"
grep -q 'built without nvcc: there is no kernel' "$place/tested" || fail "the test does not say that there is no kernel"
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc || true)
if [ -n "$nvcc" ]; then
  try_project "$place/camera_cuda" "$place/with_nvcc" -DCMAKE_CUDA_COMPILER="$nvcc"
  grep -q 'there is no kernel' "$place/tested" && fail "with nvcc the test has no kernel"
  grep -q 'the kernel' "$place/tested" || fail "the test does not say whether the kernel ran"
  nm -C "$library" | grep -q enqueue_remove_noise || fail "the plugin has no kernel"
fi

"$tool" new "$place/camera" camera.remove_noise >"$place/log" && fail "a folder that is in use was written over"
grep -q MR0120 "$place/log" || fail "a folder in use is another error"
for name in camera "" camera. .noise Camera.noise camera.no.ise "camera.n oise" ../x.y; do
  "$tool" new "$place/none" "$name" >"$place/log" && fail "'$name' was taken for a type name"
  grep -q MR0105 "$place/log" || fail "'$name' is another error"
  [ ! -e "$place/none" ] || fail "'$name' left files behind"
done
