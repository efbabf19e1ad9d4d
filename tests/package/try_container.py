#!/usr/bin/env python3
"""Carries out the Containerfile in bare systems that mmdebstrap makes, and runs the street film in what comes of it.

usage: try_container.py [--packages FOLDER] [NAME=VALUE…]

NAME=VALUE are the Containerfile's arguments (ARG). With --packages its stage `build` is left out: FOLDER holds what it
would make. Must be root, for chroot; an archive of Debian or Ubuntu must be within reach.
"""
import argparse
import glob
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD_STAGE, PACKAGES_MADE = "build", "/src/build/packages"
PICTURES = 795  # of the street film
SECONDS_MAX = 3600
NOT_COPIED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
UBUNTU_KEYS = ("http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
               "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8")
# The archive of an image's system; other images hold more than a system, and only a container tool has them.
ARCHIVES = {
    "docker.io/library/debian:12": ("bookworm", "deb http://deb.debian.org/debian bookworm main"),
    "docker.io/library/ubuntu:24.04": ("noble", "deb http://archive.ubuntu.com/ubuntu noble main universe"),
}


def run(command, **options):
    subprocess.run(command, check=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL, **options)


def steps(text):
    """(word, rest) of each instruction."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", text))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def keyring_of_ubuntu(folder):
    """Ubuntu's keys, which Debian does not have: the package, known by its hash."""
    address, expected = UBUNTU_KEYS
    package = folder / "ubuntu-keyring.deb"
    with urllib.request.urlopen(address, timeout=60) as answer:
        package.write_bytes(answer.read())
    if hashlib.sha256(package.read_bytes()).hexdigest() != expected:
        sys.exit(f"{address} is not the package that was expected")
    run(["dpkg-deb", "-x", str(package), str(folder / "keys")])
    return folder / "keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"


def not_copied(folder, names):
    """What .dockerignore leaves out: paths from the root of the tree, or anywhere where they begin with **/."""
    place = pathlib.Path(folder).relative_to(ROOT)
    return [name for name in names if str(place / name) in NOT_COPIED or f"**/{name}" in NOT_COPIED]


class System:
    """A bare system in a folder, and what the instructions of one stage do in it."""

    def __init__(self, image, folder):
        if image not in ARCHIVES:
            sys.exit(f"no archive makes the image {image}; expected one of {', '.join(ARCHIVES)}")
        suite, archive = ARCHIVES[image]
        self.root, self.folder, self.variables, self.entry = folder / "root", "/", {}, []
        options = ["--variant=apt", '--aptopt=Acquire::Languages "none"']
        if suite == "noble":
            options.append(f"--keyring={keyring_of_ubuntu(folder)}")
        run(["mmdebstrap", "--quiet", *options, suite, str(self.root), archive])
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")

    def inside(self, path):
        return self.root / os.path.join(self.folder, path).lstrip("/")

    def call(self, command):
        """Runs it in the system, with /proc and nothing else of the host."""
        proc = self.root / "proc"
        run(["mount", "-t", "proc", "proc", str(proc)])
        try:
            environment = ["HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                           *(f"{name}={value}" for name, value in self.variables.items())]
            run(["env", "-i", *environment, "chroot", str(self.root), "/bin/sh", "-ec", f"cd {self.folder}; {command}"])
        finally:
            run(["umount", str(proc)])


    def do(self, word, rest, stages):
        if word == "WORKDIR":
            self.folder = rest
            self.inside(".").mkdir(parents=True, exist_ok=True)
        elif word == "COPY" and rest.startswith("--from="):
            source, path, target = rest.removeprefix("--from=").split()
            shutil.copytree(stages[source].inside(path), self.inside(target))
        elif word == "COPY":
            source, target = rest.split()
            shutil.copytree(ROOT / source, self.inside(target), symlinks=True, dirs_exist_ok=True, ignore=not_copied)
        elif word == "RUN":
            self.call(rest)
        elif word == "ENV":
            self.variables |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)
        else:
            sys.exit(f"Containerfile: {word} is not carried out here")


class Packages:
    """The stage that makes the packages, where they were made before."""

    def __init__(self, folder):
        self.folder = folder

    def inside(self, path):
        assert path == PACKAGES_MADE
        return self.folder


def last_stage(arguments, packages, scratch):
    """The system that the Containerfile ends with."""
    stages, system, name = {}, None, ""
    for word, rest in steps((ROOT / "Containerfile").read_text(encoding="utf-8")):
        if word == "ARG":
            key, value = rest.split("=", 1)
            arguments.setdefault(key, value)
        elif word == "FROM":
            match = re.fullmatch(r"\$\{(\w+)\}(?: AS (\w+))?", rest)
            name = match[2] or "last"
            folder = scratch / name
            folder.mkdir()
            given = packages and name == BUILD_STAGE
            system = Packages(packages) if given else System(arguments[match[1]], folder)
            stages[name] = system
        elif isinstance(system, System):
            print(f"{name}: {word} {rest}", flush=True)
            system.do(word, rest, stages)
    return stages["last"]


def show_the_street(system):
    """Runs the demo in the system as somebody would who mounts a folder, and plays what it leaves."""
    for folder in ("examples", "media"):
        shutil.copytree(ROOT / folder, system.root / "data" / folder)
    system.folder = "/data"
    entry = " ".join(system.entry)
    system.call(f"{entry} doctor")
    system.call("mkdir out")
    system.call(f"{entry} run examples/pipelines/street.yaml --progress none")
    system.call(f"{entry} run 'video.file path=out/demo.mp4 ! null.sink' --quiet --json out/report.json")
    report = json.loads((system.root / "data/out/report.json").read_text(encoding="utf-8"))
    if report["ticks"]["run"] != PICTURES:
        sys.exit(f"the film has {report['ticks']['run']} pictures, not {PICTURES}")
    if not (system.root / "data/out/demo.png").stat().st_size:
        sys.exit("the contact sheet is empty")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("arguments", nargs="*")
    given = parser.parse_args()
    if given.packages and not glob.glob(str(given.packages / "millrace_*.deb")):
        sys.exit(f"{given.packages} holds no package of millrace: ./dev package makes it")
    with tempfile.TemporaryDirectory() as scratch:
        system = last_stage(dict(pair.split("=", 1) for pair in given.arguments), given.packages, pathlib.Path(scratch))
        show_the_street(system)
    print(f"installed on a bare system, the street film has {PICTURES} pictures there")


if __name__ == "__main__":
    main()
