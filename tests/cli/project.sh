#!/bin/sh
# From nothing to a running plugin: `millrace new` outside the tree, built, found by --plugin-path, run.
# Usage: project.sh MILLRACE BUILD_FOLDER
set -eu
millrace=$(realpath "$1")
build=$(realpath "$2")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

fail() {
  echo "$*"
  exit 1
}
quietly() {
  "$@" >log 2>&1 || { cat log; fail "failed: $*"; }
}

quietly "$millrace" new mine --name acme.invert
quietly cmake -S mine -B mine/build -Dmillrace_DIR="$build" -DCMAKE_BUILD_TYPE=Debug # a third less time
quietly cmake --build mine/build

plugins=mine/build/plugins
"$millrace" handlers --plugin-path $plugins | grep -q '^acme.invert ' || fail "the new type is not listed"
"$millrace" inspect acme.invert --plugin-path $plugins | grep -q '^parameters' || fail "the new type is not described"
"$millrace" check 'test.pattern ! acme.invert ! null.sink' 2>log && fail "the new type is known without its plugin"
grep -q MR0304 log || fail "an unknown type is another error"

# Twice inverted is what it was.
run() {
  quietly "$millrace" run "test.pattern width=32 height=32 count=5 ! $1 file.raw_writer path=$2" --plugin-path $plugins
}
run "" plain.rgb
run "acme.invert !" once.rgb
run "acme.invert name=a ! acme.invert name=b !" twice.rgb
cmp -s plain.rgb twice.rgb || fail "twice inverted is another picture"
cmp -s plain.rgb once.rgb && fail "the handler of the plugin changes nothing"

quietly env MILLRACE_PLUGIN_PATH=$plugins "$millrace" check 'test.pattern ! acme.invert ! null.sink'
"$millrace" new mine --name acme.other 2>log && fail "a folder that is in use was written over"
grep -q MR0120 log || fail "a folder in use is another error"
