#!/usr/bin/env python3
"""Runs the line that each handler's manual ends with, as a person would who pasted it.

usage: snippets.py MILLRACE

Manuals are read from docs/reference/handlers.md, which another test holds to what the handlers declare: to ask the command
for each would load every plugin forty times.
"""
import json
import re
import shlex
import sys

from place import Place, ROOT, missing_media

# What cannot run on every machine: refused, with the code that a person would see there, or run.
ALONE = {"video.camera": ("MR0604", "needs a camera")}
PLUGINS = {"media": "video.file", "opencv": "image.file", "model": "model.run"}  # and a type that each brings
TICKS = "3"


def manuals():
    page = (ROOT / "docs" / "reference" / "handlers.md").read_text(encoding="utf-8")
    return {part.split("\n", 1)[0]: part for part in re.split(r"(?m)^## ", page)[1:]}


def snippet_of(manual):
    """The last paragraph, when it is indented: the runtime's manuals are plain text."""
    paragraph = manual.rstrip("\n").rsplit("\n\n", 1)[-1]
    return paragraph.strip() if paragraph.startswith("    ") and "\n" not in paragraph else ""


def complaint(place, kind, snippet):
    """What is wrong with the snippet of this type, or nothing."""
    if not snippet:
        return "its manual does not end with a pipeline in one line"
    if kind not in snippet:
        return f"its snippet does not use it: {snippet}"
    result = place.run("run", snippet, "--ticks", TICKS, "--json", "report.json", "--quiet")
    code, _ = ALONE.get(kind, ("", ""))
    if result.returncode == 0:
        ticks = json.loads((place.path / "report.json").read_text())["ticks"]["run"]
        return "" if ticks > 0 else f"its snippet runs for no tick: {snippet}"
    if code and code in result.stderr:
        return ""
    return f"millrace run {shlex.quote(snippet)}\n  ends with {result.returncode}\n{result.stderr}"


def main():
    place = Place(sys.argv[1])
    types = [handler["type"] for handler in json.loads(place.run("handlers", "--json").stdout)["handlers"]]
    absent = [f"the plugin {plugin} is not built" for plugin, one in PLUGINS.items() if one not in types]
    pages, found, left_out = manuals(), [], []
    for kind in types:
        snippet = snippet_of(pages.get(kind, ""))
        missing = missing_media(snippet)
        if missing:
            left_out.append(f"{kind}: {', '.join(missing)}")
            continue
        strange = [word for word in snippet.split() if word in pages and word not in types]
        if absent and strange:
            left_out.append(f"{kind}: {', '.join(strange)}: {', '.join(absent)}")
            continue
        wrong = complaint(place, kind, snippet)
        if wrong:
            found.append(f"{kind}: {wrong}")
    place.close()
    for line in left_out:
        print(f"left out: {line}")
    print("\n".join(found) if found else f"{len(types) - len(left_out)} snippets run")
    return 1 if found or not types else 0


if __name__ == "__main__":
    sys.exit(main())
