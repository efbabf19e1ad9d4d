#!/usr/bin/env python3
"""Compiles by itself each C++ source that one of the last commits changed.

usage: alone.py BUILD_FOLDER [--commits N | --all]

The builds of `./dev` compile files together (decision 0056). There a file that lacks an include still compiles if a file
before it has that include. A build without presets compiles file by file, and fails. To look at all files takes as long as a build;
a mistake comes with a change, so those of the last commits are looked at. --all looks at every file.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMITS = 5
SECONDS_MAX = 300  # for one file


def commands(build):
    """source → the words that compile it; those of files that are compiled together come from their common file."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file, words = pathlib.Path(entry["directory"], entry["file"]), shlex.split(entry["command"])
        sources = [file]
        if "Unity" in file.parts:
            sources = [pathlib.Path(path) for path in re.findall(r'(?m)^#include "(.*)"', file.read_text())]
        for source in sources:
            found.setdefault(source.resolve(), (entry["directory"], words, entry["file"]))
    return found


def changed(commits):
    """The files that the last commits changed and that are there; none if this is no clone."""
    listed = subprocess.run(["git", "log", f"-{commits}", "--format=", "--name-only"], cwd=ROOT, capture_output=True, text=True)
    return {ROOT / name for name in listed.stdout.split("\n") if name.endswith(".cpp") and (ROOT / name).exists()}


def complaint(source, command):
    directory, words, together = command
    words = [word for word in words if word not in (together, "-c") and "ccache" not in word]
    output = words.index("-o")
    del words[output:output + 2]
    done = subprocess.run([*words, "-fsyntax-only", source], cwd=directory, capture_output=True, text=True, timeout=SECONDS_MAX)
    return "" if done.returncode == 0 else f"{source.relative_to(ROOT)} does not compile by itself:\n{done.stderr[:1500]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--commits", type=int, default=COMMITS)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    known = commands(arguments.build)
    wanted = set(known) if arguments.all else changed(arguments.commits)
    sources = sorted(source for source in wanted & set(known) if source.suffix == ".cpp" and ROOT in source.parents
                     and (ROOT / "build") not in source.parents)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda source: complaint(source, known[source]), sources) if text]
    print(f"{len(sources)} files were compiled by themselves")
    sys.exit("\n".join(complaints) or 0)


if __name__ == "__main__":
    main()
