#!/usr/bin/env python3
"""Runs each file of examples/pipelines for a few ticks, and looks at what it leaves.

usage: pipelines.py MILLRACE

A file that plays a sample video or computes a network is left out, and named, where nobody has fetched that. One that
takes a file of the user's is run by tests/model/run.py.
"""
import os
import pathlib
import re
import sys

from place import Place, ROOT, missing_media

PIPELINES = ROOT / "examples" / "pipelines"
PICTURES = ROOT / "docs" / "pictures"
PAGE = ROOT / "docs" / "examples.md"
FILES_MIN = 8
PICTURE_BYTES_MAX = 60 * 1024  # a repository keeps every version of a picture for good
PLUGINS = {"media": "video.file", "opencv": "image.file", "model": "model.run", "viewer": "view.remote"}  # and a type that each brings
TICKS = "4"  # enough that what works at every third tick has worked twice


def complaints_about(file, place):
    """What is wrong with one example, sentence by sentence."""
    text = file.read_text(encoding="utf-8")
    if not re.match(r"# .{20,}", text):
        yield "does not begin with what it shows"
    result = place.run("run", f"examples/pipelines/{file.name}", "--ticks", TICKS, "--quiet")
    if result.returncode:
        yield f"ends with {result.returncode}\n{result.stderr}"
        return
    if re.search(r"\bpath: (media|out|examples)/", text):
        yield "has a path that is relative to the tree's root, and not to its own folder"
    for left in re.findall(r"\bpath: ([\w./]*/out/[\w./]+)", text):
        made = pathlib.Path(os.path.normpath(place.path / "examples" / "pipelines" / left))
        if not made.exists() or made.stat().st_size == 0:
            yield f"leaves no {left}"


def complaints_about_page(names):
    """Every example stands on the page; one that leaves pictures is shown there."""
    page = PAGE.read_text(encoding="utf-8")
    for name in names:
        if f"examples/pipelines/{name}.yaml" not in page:
            yield f"docs/examples.md does not name {name}.yaml"
    for shown in re.findall(r"\]\((pictures/[^)]+)\)", page):
        if not (PAGE.parent / shown).exists():
            yield f"docs/examples.md shows {shown}, which is not there"
    for picture in sorted(PICTURES.glob("*.jpg")):
        if f"pictures/{picture.name}" not in page:
            yield f"docs/examples.md does not show {picture.name}"
        if picture.stat().st_size > PICTURE_BYTES_MAX:
            yield f"{picture.name} has {picture.stat().st_size} bytes, more than {PICTURE_BYTES_MAX}"


def main():
    place = Place(sys.argv[1])
    files = sorted(PIPELINES.glob("*.yaml"))
    found = [] if len(files) >= FILES_MIN else [f"{len(files)} examples, at least {FILES_MIN} are promised"]
    found += complaints_about_page([file.stem for file in files])
    known = place.run("handlers").stdout.split()
    ran = 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        types = set(re.findall(r"\btype: ([\w.]+)", text))
        absent = [plugin for plugin, one in PLUGINS.items() if one not in known]
        if absent and not types.issubset(known):
            print(f"left out: {file.name}: {', '.join(sorted(types.difference(known)))}: not built: {', '.join(absent)}")
            continue
        users = re.search(r"--set [\w.]+=FILE", text)
        missing = [f"{users.group()}: a file of the user's"] if users else missing_media(text)
        if "out/disc.pt" in text and not place.disc.exists():
            missing.append("libtorch: not built with it")
        if missing:
            print(f"left out: {file.name}: {', '.join(missing)}")
            continue
        found += [f"{file.name}: {complaint}" for complaint in complaints_about(file, place)]
        ran += 1
    place.close()
    print("\n".join(found) if found else f"{ran} examples run")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
