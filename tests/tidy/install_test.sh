#!/usr/bin/env bash
# Builds a small plugin against an installed millrace and against the build folder, and lets millrace load both.
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

mkdir "$scratch/plugin"
cat >"$scratch/plugin/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.22)
project(acme CXX)
find_package(millrace REQUIRED)
millrace_add_plugin(acme SOURCES acme.cpp)
TEXT
cat >"$scratch/plugin/acme.cpp" <<'TEXT'
#include <millrace/handler.h>
namespace mr = millrace;

struct Pass final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in"};
  mr::Output<mr::Image> out{*this, "out", mr::forward(in)};
  void process(mr::Tick& tick, mr::Cpu&) { out.forward(tick, in); }
};
MILLRACE_HANDLER(Pass, "acme.pass", "Hands its input on")
MILLRACE_PLUGIN("acme", "1.0")
TEXT

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

# The installed command loads both.
  "$scratch/prefix/bin/millrace" inspect acme.pass --plugin-path "$scratch/$name/plugins" | grep -q 'acme\.pass' || {
    printf 'the installed millrace does not know the plugin built against the %s\n' "$name"
    exit 1
  }
done
echo "a plugin builds against the installed package and against the build folder, and both load"
