#!/usr/bin/env python3
"""Holds pages to the commands that they show, by the rules that the README is held to.

usage: transcripts.py MILLRACE

What the page "Video" plays from http://films.example/ comes from a server on this machine that serves out/. The page is
left out, and named, where the plugin or the command ffmpeg is not there.
"""
import functools
import http.server
import pathlib
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import readme_test  # noqa: E402: found by the line above

PAGES = ("docs/guide/clocks_and_policies.md",
         "docs/guide/getting_started.md",
         "docs/guide/how_the_plan_decides.md",
         "docs/guide/troubleshooting.md",
         "docs/reference/machine_file.md",
         "tests/cli/peers.md")
VIDEO = "docs/guide/video.md"
FILMS = "http://films.example"  # a name that is nobody's (RFC 2606)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder):
    """A server of this folder's files on 127.0.0.1, with a port of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def has_video(millrace):
    types = subprocess.run([millrace, "handlers"], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    return "video.file" in types and all(shutil.which(tool) for tool in ("ffmpeg", "ffprobe"))


def main():
    (ROOT / "out").mkdir(exist_ok=True)  # where the commands of the guide write
    found, shown = [], 0
    server = serve(ROOT / "out")
    pages = PAGES + ((VIDEO,) if has_video(sys.argv[1]) else ())
    if VIDEO not in pages:
        print(f"left out: {VIDEO}: the media plugin is not built, or there is no ffmpeg")
    for name in pages:
        page = (ROOT / name).read_text(encoding="utf-8").replace(FILMS, f"http://127.0.0.1:{server.server_port}")
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
