#!/bin/sh
# Builds examples/embed as a project of its own, against an installed millrace and against the build folder.
# Usage: project.sh SOURCE_FOLDER BUILD_FOLDER
set -eu
source=$(realpath "$1")
build=$(realpath "$2")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

quietly() {
  "$@" >"$place/log" 2>&1 || { cat "$place/log"; echo "failed: $*"; exit 1; }
}

quietly cmake --install "$build" --prefix "$place/prefix"
for package in "-DCMAKE_PREFIX_PATH=$place/prefix" "-Dmillrace_DIR=$build"; do
  rm -rf "$place/app"
  quietly cmake -S "$source/examples/embed" -B "$place/app" "$package"
  quietly cmake --build "$place/app"
  "$place/app/blur_pictures" >"$place/said"
  grep -q '^10 pictures in, 10 out$' "$place/said" || { cat "$place/said"; echo "with $package"; exit 1; }
  "$place/app/run_file" 'test.pattern count=3 ! null.sink' >"$place/said"
  grep -q '^3 ticks$' "$place/said" || { cat "$place/said"; echo "with $package"; exit 1; }
done
