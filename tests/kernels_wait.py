#!/usr/bin/env python3
"""Kernels that <millrace/launch.cuh> may launch wait for what they read.

A kernel that comes up early and does not call await_inputs() is a race that no checker on a device finds: all that
follows it relies on that wait. So in files that include launch.cuh each kernel calls it, but for those that are launched
with <<<…>>> there. Says where it is missing, and fails.
"""
import pathlib
import re
import sys

KERNEL = re.compile(r"__global__[^;{]*?\b(\w+)\s*\((?:[^(){}]|\([^(){}]*\))*\)\s*\{", re.S)
FOLDERS = ("handlers", "runtime", "tests", "examples")


def body_of(text, begin):
    depth = 1
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin:at]
    return text[begin:]


def look_at(path, text):
    """How many kernels of a file wait, and the lines that name those that do not."""
    text = re.sub(r"//[^\n]*", "", text)
    waiting, missing = 0, []
    for kernel in KERNEL.finditer(text):
        name = kernel.group(1)
        plainly = re.search(rf"\b{name}\s*(?:<[^;<>]*>)?\s*<<<", text)
        if plainly and not re.search(rf"\blaunch\([^;]*\b{name}\b", text):
            continue
        if "await_inputs();" in body_of(text, kernel.end()):
            waiting += 1
        else:
            missing.append(f"{path}:{text.count(chr(10), 0, kernel.start()) + 1}: {name} never calls await_inputs()")
    return waiting, missing


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    waiting, missing = 0, []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.cu")):
        text = path.read_text(encoding="utf-8")
        if "launch.cuh" in text:
            more, lines = look_at(path.relative_to(root), text)
            waiting, missing = waiting + more, missing + lines
    print("\n".join([*missing, f"{waiting} kernels wait for what they read, {len(missing)} do not"]))
    return 1 if missing or waiting == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
