#!/usr/bin/env python3
"""Runs every command that `./dev help` names, in a short form, so that none of them stops working unnoticed.

usage: dev_commands.py [COMMAND…]      (such as "bench --peers"; left out: all)

Figures go to a page under build/, not into docs/performance.md. What is not run stands in the same list, with its reason.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 1200
PAGE = ROOT / "build" / "performance.md"

# As the help names them: the short form, and a word that it must print; or why it is not run.
SHORT = {
    "setup": (["setup"], ""),
    "build": (["build"], "building build/millrace"),
    "demo": (["demo", "--ticks", "20"], "out/demo.mp4 and out/demo.png"),
    "test": "is what runs this",
    "test --fast": "the same tests as `test`, fewer",
    "test --changed": "the same tests; changed_test.py shows which of them it takes",
    "bench": (["bench", "plan"], "chain 64"),
    "bench --write": (["bench", "--write", "plan"], "written: "),
    "bench --peers": (["bench", "--peers", "--rounds", "1"], "times_ours"),
    "bench --peers marks": (["bench", "--peers", "marks", "--rounds", "1"], "times_the_faster"),
    "bench --peers codebook": (["bench", "--peers", "codebook", "--installed", "--rounds", "1"], "of_one_thread"),
    "bench --peers media": (["bench", "--peers", "media", "--rounds", "1", "--only", "rates", "start"], "of_ffmpegs"),
    "bench --peers net": (["bench", "--peers", "net", "--installed", "--rounds", "1"], "of_socket_crc"),
    "bench --viewer": (["bench", "--viewer", "--turns", "1", "--seconds", "1", "--minutes", "0.1"], "of_bare"),
    "stress": "the test of this name runs a short form of it",
    "faults": "the test cli_faults runs cells of each class",
    "gpu-test": "needs a GPU",
    "gpu-bench": "needs a GPU",
    "models": (["models", "--list"], "ch_PP-OCRv4_det_infer"),
    "package": (["package"], "packages hold what they should"),
    "package --try": "needs root, an archive, and three minutes",
    "package --try-container": "needs root, an archive, and half an hour",
    "format": (["format", "--check"], ""),
}
NAMES_MACHINE = ("bench",)  # whose tables say on which machine they were measured


def commands():
    """What the help names: the words of each line before its explanation, without what is only an example."""
    told = subprocess.run(["./dev", "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    for line in told.splitlines():
        if match := re.match(r"  (\S.*?)  +\S", line):
            yield re.sub(r" \[.*?\]", "", match[1])


def complaint(name):
    if name not in SHORT:
        return f"./dev {name} is documented, and nothing here runs it"
    if isinstance(SHORT[name], str):
        print(f"left out: ./dev {name}: {SHORT[name]}")
        return "" if SHORT[name] else f"./dev {name} is not run, and no reason is given"
    arguments, word = SHORT[name]
    print(f"./dev {' '.join(arguments)}", flush=True)
    done = subprocess.run(["./dev", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
                          env={**os.environ, "MILLRACE_PERFORMANCE_PAGE": str(PAGE)})
    if done.returncode or word not in done.stdout:
        return f"./dev {' '.join(arguments)}: exit code {done.returncode}, expected 0 and {word!r}\n{done.stdout[-4000:]}"
    if name.split()[0] in NAMES_MACHINE and not re.search(r"^machine: .+ cores, Linux", done.stdout, re.MULTILINE):
        return f"./dev {' '.join(arguments)} does not say on which machine it measured"
    return ""


def main():
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8")
    documented = list(commands())
    found = [f"./dev help no longer names {name}" for name in SHORT if name not in documented]
    found += [said for name in documented if not sys.argv[1:] or name in sys.argv[1:] if (said := complaint(name))]
    print("\n".join(found) if found else f"{len(documented)} commands of ./dev work, or are known not to be run")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
