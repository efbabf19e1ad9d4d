#!/usr/bin/env python3
"""Runs examples/pipelines/plexus.yaml with 1, 2 and 8 threads, and counts how its links flicker.

usage: plexus.py MILLRACE

Without the plugin media or the film nothing is tested, and a line says so.
"""
import hashlib
import json
import pathlib
import sys

from place import Place, ROOT, missing_media

EXAMPLE = ROOT / "examples" / "pipelines" / "plexus.yaml"
TICKS, FLICKER_TICKS = 50, 300
REMEMBERS = "hysteresis: 0.3, gain: 0.2, fade: 0.8"
LEFT = {"pictures.rgb": "  save:   { type: file.raw_writer, input: paint, path: pictures.rgb }\n",
        "links.jsonl": "  save:   { type: record.to_json, input: links, path: links.jsonl }\n"}


def run(place, left, ticks, rule=REMEMBERS, threads=2):
    """The file that the example leaves if it saves `left` in place of its film and its sheet."""
    text = EXAMPLE.read_text(encoding="utf-8")
    assert REMEMBERS in text and "  save:" in text
    text = text[:text.index("  save:")].replace(REMEMBERS, rule).replace("../../media", "media") + LEFT[left]
    (place.path / "plexus.yaml").write_text(text)
    done = place.run("run", "plexus.yaml", "--ticks", str(ticks), "--threads", str(threads), "--quiet")
    if done.returncode:
        raise SystemExit(f"plexus.yaml ends with {done.returncode}\n{done.stderr}")
    return place.path / left


def flicker(links_file):
    """(links, those that come or go, the opacity that they bring or take at once), of a tick in the mean."""
    links = comes_or_goes = jumps = ticks = 0
    before = None
    for line in links_file.read_text().splitlines():
        # By ids: a list has no order that lasts.
        now = {tuple(sorted((link["id_a"], link["id_b"]))): link["life"] for link in json.loads(line)["records"]}
        if before is not None:
            changed = now.keys() ^ before.keys()
            ticks += 1
            links += len(now)
            comes_or_goes += len(changed)
            jumps += sum(now.get(link, before.get(link)) for link in changed)
        before = now
    return links / ticks, comes_or_goes / ticks, jumps / ticks


def complaints(place):
    pictures = {threads: hashlib.sha256(run(place, "pictures.rgb", TICKS, threads=threads).read_bytes()).hexdigest()
                for threads in (1, 2, 8)}
    if len(set(pictures.values())) != 1:
        yield f"the pictures depend on the number of threads: {pictures}"
    plain = flicker(run(place, "links.jsonl", FLICKER_TICKS, "hysteresis: 0"))
    calm = flicker(run(place, "links.jsonl", FLICKER_TICKS))
    for name, (links, changes, jumps) in ("without a memory", plain), (REMEMBERS, calm):
        print(f"{name}: {links:.2f} links a tick, {changes:.2f} come or go, with {jumps:.3f} of a link's opacity")
    if plain[1] < 0.1:
        yield "nothing flickers, so nothing is shown"
    if not (calm[1] < 0.9 * plain[1] and calm[2] < 0.5 * plain[2]):
        yield "the memory of links makes them flicker no less"


def main():
    place = Place(sys.argv[1])
    try:
        missing = missing_media(EXAMPLE.read_text(encoding="utf-8"))
        if "video.file" not in place.run("handlers").stdout.split():
            missing.append("the plugin media")
        if missing:
            print(f"plexus.yaml is left out: {', '.join(missing)}")
            return 0
        found = list(complaints(place))
    finally:
        place.close()
    for complaint in found:
        print(f"plexus.yaml: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
