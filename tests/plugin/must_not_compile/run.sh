#!/bin/sh
# Compiles every file beside it twice: as it is, which has to fail with the words that its first line expects, and with
# CORRECTED, which has to succeed, so that it fails for that one reason. Usage: run.sh COMPILER INCLUDE_FOLDER
set -u
compiler=$1
include=$2
folder=$(dirname "$0")
failures=0
count=0
for file in "$folder"/*.cpp; do
  count=$((count + 1))
  expected=$(sed -n '1s/.*expected: //p' "$file")
  if [ -z "$expected" ]; then
    echo "$file: the first line does not say what is expected"
    failures=$((failures + 1))
    continue
  fi
  if words=$("$compiler" -std=c++20 -fsyntax-only -fvisibility=hidden -I"$include" "$file" 2>&1); then
    echo "$file: compiles, but must not"
    failures=$((failures + 1))
  elif ! printf '%s' "$words" | grep -qF "$expected"; then
    echo "$file: fails for another reason than: $expected"
    printf '%s\n' "$words" | head -20
    failures=$((failures + 1))
  fi
  if ! "$compiler" -std=c++20 -fsyntax-only -fvisibility=hidden -DCORRECTED -I"$include" "$file"; then
    echo "$file: does not compile even when corrected"
    failures=$((failures + 1))
  fi
done
echo "$count files, $failures failures"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
