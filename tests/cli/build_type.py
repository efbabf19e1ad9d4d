#!/usr/bin/env python3
"""Builds plugins as a newcomer does, and looks at the flags: without optimisation a handler takes many times as long.

usage: build_type.py MILLRACE BUILD_FOLDER

The README's plugin is built by the README's own command. Others are only configured: their flags are known then.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import readme_test  # noqa: E402

SECONDS_MAX = 240
PLAIN = "cmake_minimum_required(VERSION 3.22)\nproject(acme CXX)\nfind_package(millrace REQUIRED)\n" \
        "millrace_add_plugin(acme SOURCES acme.cpp)\n"


def call(command, folder, **environment):
    """Without what this machine or a surrounding build chooses by the environment."""
    own = {name: text for name, text in os.environ.items() if name not in ("CMAKE_BUILD_TYPE", "CXXFLAGS", "CMAKE_GENERATOR")}
    result = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX,
                            stdin=subprocess.DEVNULL, env={**own, "CMAKE_EXPORT_COMPILE_COMMANDS": "ON", **environment})
    if result.returncode:
        sys.exit(f"{command}\nends with {result.returncode}\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
    return result.stdout


def level(build):
    """The optimisation level that counts, the last one, of the plugin's file; "" if there is none."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    line = next(one["command"] for one in commands if "test" not in one["file"])
    return ([""] + re.findall(r" -O(\S*)", line))[-1]


def main():
    millrace, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = next(line for block in readme_test.blocks(page, "sh") for line in block.splitlines() if line.startswith("cmake -S acme"))
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "build").symlink_to(build)
        (folder / "acme").mkdir()
        (folder / "acme" / "acme.cpp").write_text(readme_test.blocks(page, "cpp")[0], encoding="utf-8")
        (folder / "acme" / "CMakeLists.txt").write_text(readme_test.blocks(page, "cmake")[0], encoding="utf-8")
        call(shown.partition("#")[0], folder)
        found.append(("the README's plugin", level(folder / "out" / "acme"), "3"))
        call(f"{millrace} run 'test.pattern count=3 ! acme.invert ! null.sink' --plugin-path out/acme/plugins", folder)

        (folder / "plain").mkdir()
        (folder / "plain" / "acme.cpp").write_text("")
        (folder / "plain" / "CMakeLists.txt").write_text(PLAIN)
        call(f"{millrace} new mine --name acme.other", folder)
        for name, project, options, environment, expected in (
                ("a plain plugin", "plain", "", {}, "3"),
                ("a Debug build", "plain", "-DCMAKE_BUILD_TYPE=Debug", {}, ""),
                ("a build with flags of its own", "plain", "", {"CXXFLAGS": "-O1 -g"}, "1"),
                ("a build type of its own", "plain", "-DCMAKE_BUILD_TYPE=MinSizeRel", {}, "s"),
                ("a project of `millrace new`", "mine", "", {}, "3")):
            call(f"cmake -S {project} -B 'out/{name}' -Dmillrace_DIR={build} {options}", folder, **environment)
            found.append((name, level(folder / "out" / name), expected))
    wrong = [f"{name} is compiled with -O{seen or ' nothing'}, expected -O{expected or ' nothing'}" for name, seen, expected in found
             if seen != expected]
    print("\n".join(wrong) if wrong else f"{len(found)} plugins are built as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
