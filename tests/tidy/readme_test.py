#!/usr/bin/env python3
"""Holds the README to what it shows: its pipelines compile, and its commands print what stands below them.

usage: readme_test.py BUILD_FOLDER

Every ```yaml block must pass `millrace check`; one that begins with a comment `# out/NAME.yaml` is left there for the
commands after it. In a ```console block a line `$ COMMAND` is run from the root of the tree and its output compared line
by line: a number stands for any number, since those differ from run to run (but `p50` is a word), `…` for any text, and a
line of `…` alone for any lines.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 120  # a README that takes longer than this to follow is not followed


def blocks(text, language):
    return [block for _, block in all_blocks(text, language)]


def all_blocks(text, languages):
    """(language, block) of each, in the order of the page; `languages` is an expression."""
    return re.findall(rf"(?m)^```({languages})\n(.*?)^```$", text, re.DOTALL)


def commands(block):
    """(command, expected output) of each `$` line of a console block."""
    for part in re.split(r"(?m)^\$ ", block)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def pattern_of(expected):
    """The regular expression that an output must match to be the one shown."""
    lines = []
    for line in expected.strip("\n").splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
            continue
        words = re.escape(re.sub(r"\s+", " ", line.rstrip())).replace(r"\ ", r"\s+").replace("…", ".*")
        lines.append(re.sub(r"(?<!\w)\d+(?:\\\.\d+)?", lambda _: r"\d+(?:\.\d+)?", words) + r"\s*\n")
    return re.compile("".join(lines) + r"\s*")


def run(command, build):
    command = command.replace("build/millrace", str(build / "millrace"))
    return subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX,
                          stdin=subprocess.DEVNULL)


class Place:
    """Where a pipeline of a page lies: its relative paths mean the tree's own folders."""

    def __init__(self):
        (ROOT / "out").mkdir(exist_ok=True)
        self.folder = tempfile.TemporaryDirectory()
        for shared in ("media", "examples", "out"):
            (pathlib.Path(self.folder.name) / shared).symlink_to(ROOT / shared)

    def keep(self, pipeline):
        named = re.match(r"# (out/[\w-]+\.yaml)$", pipeline.partition("\n")[0])
        file = ROOT / named.group(1) if named else pathlib.Path(self.folder.name) / "pipeline.yaml"
        file.write_text(pipeline, encoding="utf-8")
        return file


def complaints(readme, build):
    place, pipelines = Place(), 0
    for language, block in all_blocks(readme, "yaml|console"):
        if language == "yaml":
            pipelines += 1
            result = run(f"build/millrace check {place.keep(block)}", build)
            if result.returncode:
                yield f"the README's pipeline {pipelines} does not compile:\n{result.stdout}{result.stderr}"
            continue
        for command, expected in commands(block):
            result = run(command, build)
            if result.returncode or not pattern_of(expected).fullmatch(result.stdout + "\n"):
                yield (f"`{command}` (exit code {result.returncode}) prints\n{result.stdout}{result.stderr}\n"
                       f"and the README shows\n{expected}")
    place.folder.cleanup()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    found = list(complaints((ROOT / "README.md").read_text(encoding="utf-8"), build))
    print("\n".join(found) if found else "the README shows what is")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
