#!/usr/bin/env python3
"""Looks into the packages that ./dev package made: what each needs and holds, and that the command works without plugins.

usage: contents.py FOLDER
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# Libraries that only the packages of these names may ask for.
LIBRARIES = {"libopencv-": {"millrace-plugin-opencv"}, "libav": {"millrace-plugin-codec", "millrace-plugin-media", "millrace-plugin-viewer"},
             "libturbojpeg": {"millrace-plugin-codec", "millrace-plugin-viewer"}, "libtorch": {"millrace-plugin-model-torch"},
             "libtiff": {"millrace-plugin-volume"}, "libblosc": {"millrace-plugin-volume"}, "libzstd": {"millrace-plugin-volume"}}
REQUIRED = ("millrace", "millrace-dev")
# A type of handler that each plugin brings.
TYPES = {"millrace-plugin-opencv": "image.file", "millrace-plugin-media": "video.file",
         "millrace-plugin-model": "model.run", "millrace-plugin-codebook": "codebook.fit", "millrace-plugin-codec": "encode.jpeg",
         "millrace-plugin-viewer": "view.remote", "millrace-plugin-volume": "volume.render"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def complaints_of_needs(package, path):
    needs = output("dpkg-deb", "-f", str(path), "Depends")
    version = output("dpkg-deb", "-f", str(path), "Version").strip()
    for library, owners in LIBRARIES.items():
        if (library in needs) != (package in owners):
            yield f"{package} {'does not need' if package in owners else 'needs'} {library}: {needs}"
    if package != "millrace" and f"millrace (= {version})" not in needs:
        yield f"{package} does not need the millrace of its own build: {needs}"
    if "libc6" not in needs:
        yield f"{package} names no library that it is linked with: {needs}"


def expected_files():
    """(path in the package, file of the tree that it must be equal to)"""
    yield "share/doc/millrace/LICENSE", ROOT / "LICENSE"
    yield "share/millrace/pipeline.schema.json", ROOT / "docs" / "reference" / "pipeline.schema.json"
    for path in EXAMPLES.rglob("*"):
        if path.is_file() and "build" not in path.relative_to(EXAMPLES).parts:
            yield f"share/millrace/examples/{path.relative_to(EXAMPLES)}", path
    for path in (ROOT / "runtime" / "include").rglob("*.*"):
        yield f"include/{path.relative_to(ROOT / 'runtime' / 'include')}", path


def complaints_of_manual(page, millrace):
    own = output(millrace, "--help").partition("Subcommands:")[2].partition("\n\n")[0]  # those of plugins come after
    commands = re.findall(r"(?m)^  ([a-z][\w-]+) {2,}", own)
    if len(commands) < 2:
        yield "no command was found in --help"
    for command in commands:
        if f".SS millrace {command} ".replace("-", "\\-") not in page:
            yield f"the manual page does not have {command}"
    if "\\-\\-plugin\\-path" not in page:
        yield "the manual page does not have the options"


def complaints_of_benchmarks(millrace):
    if re.search(r"(?m)^overlap ", output(millrace, "bench", "overlap")) is None:
        yield "the command does not find its benchmarks with millrace-dev"


def complaints_of_use(packages, usr):
    """Unpacks one after the other and asks the command for its types."""
    millrace = str(usr / "bin" / "millrace")
    unpack = lambda package: output("dpkg-deb", "-x", str(packages[package]), str(usr.parent))
    unpack("millrace")
    types = output(millrace, "handlers")
    if "image.blur" not in types:
        yield "the command alone does not have its built-in handlers"
    for package, name in TYPES.items():
        if package in packages:
            if name in types:
                yield f"{name} is there without {package}"
            unpack(package)
            if name not in output(millrace, "handlers"):
                yield f"{name} is not there with {package}"
    if (usr / "bin" / "millrace-bench").exists():
        yield "millrace-bench is there without millrace-dev"
    unpack("millrace-dev")
    yield from complaints_of_benchmarks(millrace)
    for name, original in expected_files():
        file = usr / name
        if not file.is_file():
            yield f"/usr/{name} is in no package"
        elif file.read_bytes() != original.read_bytes():
            yield f"/usr/{name} is another file than {original.relative_to(ROOT)}"
    yield from complaints_of_manual((usr / "share/man/man1/millrace.1").read_text(encoding="utf-8"), millrace)


def main():
    folder = pathlib.Path(sys.argv[1])
    packages = {path.name.partition("_")[0]: path for path in folder.glob("*.deb")}
    found = [f"{name} was not made" for name in REQUIRED if name not in packages]
    for package, path in packages.items():
        found += complaints_of_needs(package, path)
    if not found:
        with tempfile.TemporaryDirectory() as scratch:
            found += complaints_of_use(packages, pathlib.Path(scratch) / "usr")
    print("\n".join(found) if found else f"{len(packages)} packages hold what they should")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
