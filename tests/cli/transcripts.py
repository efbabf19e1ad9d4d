#!/usr/bin/env python3
"""Holds pages to the commands that they show, by the rules that the README is held to.

usage: transcripts.py MILLRACE

What the page "Video" plays from http://films.example/ comes from a server on this machine that serves out/. Pages are left
out, and named, where a plugin or the command ffmpeg is not there. On the page of newcomers' mistakes each suggested edit has
to be tried by the next command.
"""
import functools
import http.server
import pathlib
import re
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import readme_test  # noqa: E402: found by the line above

PAGES = ("docs/guide/batches.md",
         "docs/guide/clocks_and_policies.md",
         "docs/guide/control.md",
         "docs/guide/draw.md",
         "docs/guide/getting_started.md",
         "docs/guide/how_the_plan_decides.md",
         "docs/guide/insight.md",
         "docs/guide/nodes.md",
         "docs/guide/nodes_trouble.md",
         "docs/guide/streams.md",
         "docs/guide/troubleshooting.md",
         "docs/reference/machine_file.md",
         "tests/cli/peers.md")
VIDEO = "docs/guide/video.md"
ENCODE = "docs/guide/encode.md"
NEWCOMERS = "tests/cli/newcomers.md"  # needs the plugins of both
# Edits in words, of more than one place or of no command.
EDIT_IN_WORDS = re.compile(r"leave '|`;` in place of |test\.pattern or video\.file in its place|`millrace |millrace --help$")
FILMS = "http://films.example"  # a name that is nobody's (RFC 2606)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def page_of(name):
    """The page, or the section that is named after a '#'."""
    path, _, section = name.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.search(rf"(?ms)^## {section}$.*?(?=^## |\Z)", text).group(0) if section else text


def untried_edits(page):
    """Each edit that a message suggests stands in the command after it."""
    for block in readme_test.blocks(page, "console"):
        shown = list(readme_test.commands(block))
        for (command, output), (after, _) in zip(shown, [*shown[1:], ("", "")]):
            for edit in re.findall(r"(?m)^  try: (.*)$", output):
                if not EDIT_IN_WORDS.match(edit) and edit not in after:
                    yield f"`{command}` suggests `{edit}`, and the next command does not try it"


def serve(folder):
    """A server of this folder's files on 127.0.0.1, with a port of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def pages_to_show(millrace):
    types = subprocess.run([millrace, "handlers"], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    pages = (*PAGES, ENCODE) if {"encode.h264", "encode.jpeg"} <= set(types) else PAGES
    if "video.file" not in types or not all(shutil.which(tool) for tool in ("ffmpeg", "ffprobe")):
        return pages
    return (*pages, VIDEO, NEWCOMERS) if "image.file" in types else (*pages, VIDEO)


def main():
    (ROOT / "out").mkdir(exist_ok=True)  # where the commands of the guide write
    found, shown = [], 0
    server = serve(ROOT / "out")
    pages = pages_to_show(sys.argv[1])
    for page in (ENCODE, VIDEO, NEWCOMERS):
        if page not in pages:
            print(f"left out: {page}: a plugin is not built, or there is no ffmpeg")
    found += [f"{NEWCOMERS}: {complaint}" for complaint in untried_edits(page_of(NEWCOMERS))]
    for name in pages:
        page = page_of(name).replace(FILMS, f"http://127.0.0.1:{server.server_port}")
        found += [f"{name}: {complaint}"
                  for complaint in readme_test.complaints(page, pathlib.Path(sys.argv[1]).resolve().parent)]
        commands = sum(len(list(readme_test.commands(block))) for block in readme_test.blocks(page, "console"))
        if commands == 0:
            found.append(f"{name} shows no command")
        shown += commands
    server.shutdown()
    print("\n".join(found) if found else f"{shown} commands print what the pages show")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
