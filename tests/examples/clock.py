#!/usr/bin/env python3
"""Builds examples/plugin_clock as a project of its own, tests it, and looks at the pictures that its pipeline leaves.

usage: clock.py MILLRACE BUILD_FOLDER COMPILER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 300
TICKS, PICTURE_BYTES = 60, 640 * 360 * 3


def main():
    millrace, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="millrace-clock-") as name:
        project = pathlib.Path(name) / "clock"
        shutil.copytree(ROOT / "examples" / "plugin_clock", project)
        for command in (["cmake", "-B", "build", f"-Dmillrace_DIR={build}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"],
                        ["cmake", "--build", "build"],
                        ["ctest", "--test-dir", "build", "--no-tests=error", "--output-on-failure"],
                        [millrace, "run", "pipeline.yaml", "--plugin-path", "build/plugins", "--quiet"]):
            done = subprocess.run(command, cwd=project, env={**os.environ, "CXX": sys.argv[3]}, capture_output=True, text=True,
                                  timeout=SECONDS_MAX)
            if done.returncode:
                print(f"{command}\n{done.stdout}{done.stderr}", file=sys.stderr)
                return 1
        film = (project / "build" / "clocks.rgb").read_bytes()
    pictures = {film[at:at + PICTURE_BYTES] for at in range(0, len(film), PICTURE_BYTES)}
    if len(film) != TICKS * PICTURE_BYTES or len(pictures) != TICKS:
        print(f"{len(film)} bytes, {len(pictures)} different pictures, {TICKS} expected", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
