#!/usr/bin/env bash
# Builds the README's plugin against an installed millrace and against the build folder, and runs both; looks whether the
# installed millrace finds its plugins, its benchmarks and its CUDA module, and whether each thing that the guide names is there.
#
# usage: install_test.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log" || {
  cat "$scratch/install.log"
  exit 1
}

# What docs/guide/install.md says is below the prefix: the words of its table that are paths.
root=$(dirname "${BASH_SOURCE[0]}")/../..
promised=$(awk '/^\| below the prefix/ { inside = 1; next } !/^\|/ { inside = 0 } inside' "$root/docs/guide/install.md" |
  cut -d'|' -f2 | grep -o '`[^`]*`' | tr -d '`')
[[ $(wc -w <<<"$promised") -ge 8 ]] || {
  echo "docs/guide/install.md does not say what an installation holds"
  exit 1
}
for path in $promised; do
  [[ $path != *cuda* || -f $build/millrace_cuda.so ]] || continue
  [[ $path != *plugins || -d $build/plugins ]] || continue
  compgen -G "$scratch/prefix/$path" >/dev/null || {
    echo "docs/guide/install.md names $path, which cmake --install does not leave"
    exit 1
  }
done

# The README's own handler: what a person would paste.
block() { awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { inside = 0 } inside' "$root/README.md"; }
mkdir "$scratch/plugin"
block cpp >"$scratch/plugin/acme.cpp"
block cmake >"$scratch/plugin/CMakeLists.txt"

# Builds the plugin against the package that OPTION points cmake to, and looks at what came of it.
build_against() {
  local name=$1 option=$2 exported
  cmake -S "$scratch/plugin" -B "$scratch/$name" "$option" >"$scratch/$name.log" 2>&1 &&
    cmake --build "$scratch/$name" >>"$scratch/$name.log" 2>&1 || {
    cat "$scratch/$name.log"
    exit 1
  }
  exported=$(nm -D --defined-only "$scratch/$name/plugins/acme.so" | awk '{print $NF}')
  [[ $exported == millrace_plugin ]] || {
    printf 'built against the %s, the plugin exports: %s\n' "$name" "$exported"
    exit 1
  }
}
build_against prefix "-DCMAKE_PREFIX_PATH=$scratch/prefix"
build_against build_folder "-Dmillrace_DIR=$build"

# The installed command runs a pipeline of it.
for name in prefix build_folder; do
  "$scratch/prefix/bin/millrace" run 'test.pattern width=64 height=48 ! acme.invert ! null.sink' --ticks 3 --quiet \
    --plugin-path "$scratch/$name/plugins" >"$scratch/run.log" 2>&1 || {
    printf 'the installed millrace does not run the plugin built against the %s:\n' "$name"
    cat "$scratch/run.log"
    exit 1
  }
done
for plugin in "$build"/plugins/*.so; do
  [[ ! -f $plugin || -f $scratch/prefix/lib/millrace/plugins/${plugin##*/} ]] || {
    echo "the plugin ${plugin##*/} is not installed"
    exit 1
  }
done
# It finds its benchmarks, which run in virtual time here.
"$scratch/prefix/bin/millrace" bench overlap >"$scratch/bench.log" 2>&1 && grep -q "^overlap " "$scratch/bench.log" || {
  echo "the installed millrace does not run its benchmarks:"
  cat "$scratch/bench.log"
  exit 1
}
# Where the CUDA module was built, the installed command finds it.
if [[ -f $build/millrace_cuda.so ]]; then
  "$scratch/prefix/bin/millrace" doctor --json >"$scratch/doctor.json"
  if grep -q "the CUDA module" "$scratch/doctor.json"; then
    echo "the installed millrace does not load the installed CUDA module:"
    grep "the CUDA module" "$scratch/doctor.json"
    exit 1
  fi
fi
echo "the README's plugin builds against the installed package and against the build folder, and both run"
