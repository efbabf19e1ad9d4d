#!/usr/bin/env python3
"""Draws the crossover of `millrace bench placement`: ms a tick by the size of the values, with logarithmic axes.

usage: plot_placement.py BENCH_JSON [SVG]      (default: docs/pictures/placement.svg)
"""
import json
import pathlib
import re
import sys

import plot

ROOT = pathlib.Path(__file__).resolve().parents[2]
# metric → (what the legend calls it, colour, dashes).
LINES = {"host_first": ("all on the host", plot.BLUE, ""), "device_first": ("all on the device", plot.ORANGE, ""),
         "best": ("best of the 16", plot.GREY, "2 5"), "chosen": ("as planned", plot.GREEN, "9 4")}


def series(rows):
    """metric → [(KiB, ms)], by size."""
    found = {metric: [] for metric in LINES}
    for row in rows:
        size = re.fullmatch(r"size (\d+) KiB", row["case"])
        if row["bench"] == "placement" and size and row["metric"] in found:
            found[row["metric"]].append((int(size.group(1)), row["p50"]))
    return {metric: sorted(points) for metric, points in found.items()}


def size_words(kib):
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def svg(found):
    lines = [plot.Line(name, colour, found[metric], dashes, wide=metric == "best")
             for metric, (name, colour, dashes) in LINES.items()]
    sizes = {kib for points in found.values() for kib, _ in points}
    return plot.svg(plot.Plot("ms a tick by the size of the values: all on the host, all on the device, as planned, best",
                              "size of each value", "ms a tick", lines, {kib: size_words(kib) for kib in sizes}, every=2))


def write(rows, path=ROOT / "docs" / "pictures" / "placement.svg"):
    """False where the rows have no such cases."""
    found = series(rows)
    if not all(len(points) > 1 for points in found.values()):
        return False
    path.write_text(svg(found), encoding="utf-8")
    return True


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if not write(json.loads(pathlib.Path(sys.argv[1]).read_text()), *map(pathlib.Path, sys.argv[2:])):
        sys.exit(f"{sys.argv[1]} has no rows of `placement` with a size")
