#!/usr/bin/env python3
"""Hands wrong pipelines to `millrace check`, and compares what it says with the .txt beside each, to the letter.

usage: wrong.py MILLRACE [--update]

wrong/ has those that need the real handlers or the plan to be found out; those of tests/graph/wrong are compared by the
parser's own test, and here only for what scripts see. A line `# options: …` in a pipeline gives the command's options.
"""
import difflib
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
WRONG, TEXTS = TESTS / "cli" / "wrong", TESTS / "graph" / "wrong"
INVALID_PIPELINE = 3
PIPELINES_MIN = 85  # distinct ones, as the contract of the error messages asks
PLACE = re.compile(r"(?m)^  at (.+):(\d+):(\d+)$")


def pipelines_in(folder):
    return sorted(path for path in folder.iterdir() if path.suffix != ".txt")


def check(millrace, pipeline):
    raw = pipeline.read_bytes()
    options = re.search(rb"(?m)^# options: (.*)$", raw)
    # A line is given as a script would, without the line break that ends its file.
    given = raw[:-1] if pipeline.suffix == ".line" else pipeline.name
    command = [millrace, "check", given, *(options.group(1).decode().split() if options else [])]
    result = subprocess.run(command, cwd=pipeline.parent, capture_output=True, text=True, timeout=60)
    # Where plugins are looked for is another folder on each machine, and none where no plugin is built.
    result.stderr = re.sub(r"(looked among the built-in ones)(, in \S+/plugins)?", r"\1, in PLUGINS", result.stderr)
    return result


def complaints(pipeline, result):
    """What every refusal keeps to, whatever its words are."""
    name, said = pipeline.name, result.stderr
    if result.returncode != INVALID_PIPELINE:
        yield f"{name}: the exit code is {result.returncode}, expected {INVALID_PIPELINE}\n{said}"
        return
    if result.stdout or not said.startswith("error MR") or said.count("error MR") != 1:
        yield f"{name}: expected one error on stderr and nothing else\n{result.stdout}{said}"
    place = PLACE.search(said)
    if not place and said.startswith("error MR0404"):
        return  # a sum has no place
    if not place:
        yield f"{name}: the error has no line and column\n{said}"
        return
    lines = pipeline.read_bytes().decode("utf-8", "replace").split("\n")
    line, column = int(place.group(2)), int(place.group(3))
    if line > len(lines) or column > len(lines[line - 1]) + 1:
        yield f"{name}: {place.group(0).strip()} is outside the text"


def main():
    millrace, update = str(pathlib.Path(sys.argv[1]).resolve()), "--update" in sys.argv[2:]
    found, told = [], set()
    for pipeline in pipelines_in(TEXTS) + pipelines_in(WRONG):
        result = check(millrace, pipeline)
        found += complaints(pipeline, result)
        told.add(re.sub(PLACE, "", result.stderr))
        if pipeline.parent == TEXTS:
            continue
        golden = pipeline.with_suffix(".txt")
        if update:
            golden.write_text(result.stderr, encoding="utf-8")
        expected = golden.read_text(encoding="utf-8") if golden.exists() else ""
        if result.stderr != expected:
            found.append("".join(difflib.unified_diff(expected.splitlines(True), result.stderr.splitlines(True),
                                                      golden.name, "what was said")))
    if len(told) < PIPELINES_MIN:
        found.append(f"{len(told)} different refusals, expected at least {PIPELINES_MIN}")
    print("\n".join(found) if found else f"{len(told)} different wrong pipelines are refused in the right words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
