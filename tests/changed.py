#!/usr/bin/env python3
"""Finds the tests of a build folder whose inputs changed since they last passed there: `./dev test --changed` runs these.

usage: changed.py look FOLDER [--quiet]    prints their names as ctest's -R takes them, and on stderr the reasons
       changed.py passed FOLDER            notes those that results.xml says passed, with the inputs that `look` saw

The inputs of a test are files, compared by time and size:

- a program: the program; what its text names below the tree or the build folder (films, plugins, the command); and the
  files beside its sources and in tests/fuzz that are no code, such as expected plans;
- a script: the script, the modules of the tree that it imports, what its arguments name, the files beside it that are no
  code, and the examples. A script that is given the command depends on the plugins too;
- a script that is given the whole tree, the whole build folder or nothing that is built: all files of the tree, the
  command and the plugins.
"""
import ast
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
PASSED = "tests_passed.json"  # in the build folder: of each test that passed, the state of its inputs
SEEN = "tests_seen.json"  # the same of all tests, when `look` was called
CODE = {".c", ".cpp", ".cu", ".cuh", ".h", ".py", ".sh"}
NO_SOURCES = {"build", "out", "__pycache__"}  # folders of the tree that nobody edits


def files_below(folder):
    """All files of `folder`, without hidden ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in NO_SOURCES and not name.startswith("."))
        yield from (pathlib.Path(place) / name for name in sorted(names) if not name.startswith("."))


def data_below(folder):
    return [file for file in files_below(folder) if file.suffix not in CODE]


def libraries_and_programs(folder):
    """Those that are built in `folder`, among what tests write there."""
    programs = (file for file in folder.iterdir() if file.is_file() and os.access(file, os.X_OK))
    return sorted({*folder.rglob("*.so"), *programs})


def modules(script, folders):
    """The files of the modules that `script` imports from `folders`, and those that they import."""
    found, waiting = set(), [script]
    while waiting:
        tree = ast.parse(waiting.pop().read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        new = {folder / f"{name}.py" for name in names for folder in folders if (folder / f"{name}.py").is_file()} - found
        found |= new
        waiting += new
    return sorted(found)


class Inputs:
    """The inputs of tests, each a name and its files."""

    def __init__(self, root, build):
        self.root, self.build = root, build
        self.products = [build / "millrace", *sorted(build.glob("plugins/*.so"))]
        self.sources = list(files_below(root))
        self.script_folders = sorted({file.parent for file in files_below(root / "tests") if file.suffix == ".py"})

    def of(self, command):
        words = [pathlib.Path(word) for word in command if word.startswith("/")]
        script = next((word for word in words if word.suffix in (".py", ".sh") and self.root in word.parents), None)
        return self.of_script(script, words) if script else self.of_program(words[0])

    def of_program(self, program):
        inputs = {self.name(program): [program]}
        if not program.is_file():
            return inputs
        text = program.read_bytes()
        for place in (self.root, self.build):
            for word in re.findall(re.escape(os.fsencode(f"{place}/")) + rb"[\w./+-]+", text):
                path = pathlib.Path(os.fsdecode(word).rstrip("/"))
                if path in (self.root, self.build, program):
                    continue
                if path.is_dir() and self.build not in path.parents:
                    inputs[self.name(path)] = list(files_below(path))
                elif path.is_dir():  # a test writes into some, so only what is built counts
                    inputs[self.name(path)] = sorted(path.glob("*.so"))
                elif path.is_file() and path.suffix not in CODE:  # sources are named by assertions
                    if self.build not in path.parents or path in self.products or path.suffix == ".so":
                        inputs[self.name(path)] = [path]
        if program == self.products[0]:
            inputs["plugins"] = self.products[1:]
        return inputs | self.data(self.root / "tests" / program.name.removeprefix("test_")) | self.data(self.root / "tests/fuzz")

    def of_script(self, script, words):
        inputs = {self.name(script): [script]}
        built = [word for word in words if self.build in word.parents]
        if not built or self.build in words or self.root in words:
            return inputs | {"the tree": self.sources, "the command and its plugins": self.products}
        if script.suffix == ".py":
            inputs |= {self.name(module): [module] for module in modules(script, self.script_folders)}
        for word in built:
            inputs[self.name(word)] = libraries_and_programs(word) if word.is_dir() else [word]
        if self.build / "millrace" in words:
            inputs["plugins"] = self.products[1:]
        return inputs | self.data(script.parent) | self.data(self.root / "examples")

    def data(self, folder):
        return {f"data of {self.name(folder)}": data_below(folder)} if folder.is_dir() else {}

    def name(self, path):
        return str(path.relative_to(self.root)) if self.root in path.parents else str(path)


def state(files):
    """A word that differs once one of `files` is another one: written anew, added or taken away."""
    said = hashlib.sha256()
    for file in files:
        try:
            about = file.stat()
            said.update(f"{file} {about.st_mtime_ns} {about.st_size}\n".encode())
        except OSError:
            said.update(f"{file} is not there\n".encode())
    return said.hexdigest()[:16]


def look(root, build, commands):
    """{test: {input: state}} for `commands`, which is {test: its command, or none where its program is not built}."""
    inputs, known = Inputs(root, build), {}
    seen = {}
    for test, command in commands.items():
        seen[test] = {}
        for name, files in (inputs.of(command) if command else {"its program": []}).items():
            key = (name, len(files))  # many tests share the tree and the plugins
            if key not in known:
                known[key] = state(files)
            seen[test][name] = known[key]
    return seen


def changed(seen, passed):
    """{test: the inputs that are not as they were when it passed} for the tests to run."""
    reasons = {}
    for test, inputs in seen.items():
        if test not in passed:
            reasons[test] = ["it has not passed here yet"]
        elif different := sorted({*inputs.items()} ^ {*passed[test].items()}):
            reasons[test] = list(dict.fromkeys(name for name, _ in different))
    return reasons


def passed_tests(results):
    """The tests that passed, by ctest's JUnit file."""
    return [case.get("name") for case in xml.parse(results).getroot().iter("testcase")
            if case.get("status") == "run" and case.find("failure") is None]


def read(file):
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def main():
    what, build, quiet = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), "--quiet" in sys.argv
    passed = read(build / PASSED)
    if what == "look":
        told = json.loads(subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True,
                                         text=True, check=True).stdout)
        seen = look(ROOT, build, {test["name"]: test.get("command") for test in told["tests"]})
        (build / SEEN).write_text(json.dumps(seen), encoding="utf-8")
        reasons = changed(seen, passed)
        for test, inputs in reasons.items() if not quiet else ():
            more = f" and {len(inputs) - 3} more" if len(inputs) > 3 else ""
            print(f"{test}: {', '.join(inputs[:3])}{more}", file=sys.stderr)
        if not quiet:
            print(f"{len(reasons)} of {len(seen)} tests have changed since they passed in {build.name}; "
                  f"left out: {len(seen) - len(reasons)}", file=sys.stderr)
        print("|".join(f"^{test}$" for test in reasons))
    elif what == "passed":
        seen, results = read(build / SEEN), build / "results.xml"  # which ctest does not write where it has no test
        passed |= {test: seen[test] for test in (passed_tests(results) if results.is_file() else ()) if test in seen}
        (build / PASSED).write_text(json.dumps({test: passed[test] for test in passed if test in seen}), encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
