#!/bin/sh
# Makes a plugin with `millrace new --cuda`, builds it, runs its test on the GPU, and its pipeline there and on the CPU.
# Usage: new_plugin.sh MILLRACE PACKAGE_FOLDER
set -eu
millrace=$(realpath "$1")
package=$(realpath "$2")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

fail() {
  echo "$*"
  exit 1
}

"$millrace" new mine --name mine.invert --cuda
cmake -S mine -B build -Dmillrace_DIR="$package"
cmake --build build
ctest --test-dir build --no-tests=error --verbose | tee tested
grep -q 'the kernel runs' tested || fail "the test did not run the kernel"

# At this strength every product is exact, so that both make the same bytes.
pipeline='test.pattern name=picture width=322 height=241 count=50 ! mine.invert name=handler strength=0.5 ! file.raw_writer path='
for devices in cpu cuda:0,cpu; do
  "$millrace" run "$pipeline$devices.rgb" --devices $devices --plugin-path build/plugins
done
cmp cpu.rgb cuda:0,cpu.rgb || fail "the GPU makes another picture than the CPU"
"$millrace" plan "$pipeline"out.rgb --devices cuda:0,cpu --plugin-path build/plugins >plan
grep -q 'mine.invert.*captured in region' plan || { cat plan; fail "the handler is not captured on the GPU"; }
