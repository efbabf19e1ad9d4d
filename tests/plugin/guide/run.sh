#!/bin/sh
# Compiles the code of docs/guide/write_a_handler.md and runs its handlers. Usage: run.sh SOURCE_FOLDER COMPILER
set -eu
source=$1
compiler=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
awk '/^```cpp$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/guide/write_a_handler.md" >"$place/guide.h"
grep -q MILLRACE_HANDLER "$place/guide.h"
"$compiler" -std=c++20 -Wall -Wextra -Werror -fvisibility=hidden -I"$place" -I"$source/runtime/include" \
  "$source/tests/plugin/guide/main.cpp" -o "$place/guide"
"$place/guide"
