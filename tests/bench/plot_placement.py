#!/usr/bin/env python3
"""Draws the crossover of `millrace bench placement`: ms a tick by the size of the values, with logarithmic axes.

usage: plot_placement.py BENCH_JSON [SVG]      (default: docs/pictures/placement.svg)
"""
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 800, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 30, 60
# metric → (what the legend calls it, colour, dashes). All colours stand out on white and on black.
LINES = {"host_first": ("all on the host", "#2f81d6", ""), "device_first": ("all on the device", "#d9730d", ""),
         "best": ("best of the 16", "#8a8f98", "2 5"), "chosen": ("as planned", "#23a055", "9 4")}
STYLE = """<style>
  text { font: 13px sans-serif; fill: #7d8590 }
  .axis { stroke: #8a8f98; stroke-width: 1 }
  .grid { stroke: #8a8f98; stroke-width: 1; opacity: 0.25 }
  .line { fill: none; stroke-width: 2.5 }
  @media (prefers-color-scheme: dark) { text { fill: #adb5bd } }
</style>"""


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


class Axes:
    def __init__(self, lines):
        points = [point for line in lines.values() for point in line]
        self.sizes = sorted({kib for kib, _ in points})
        self.low = math.floor(math.log10(min(ms for _, ms in points)))
        self.high = math.ceil(math.log10(max(ms for _, ms in points)))

    def x(self, kib):
        low, high = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return LEFT + (math.log2(kib) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, ms):
        return HEIGHT - BOTTOM - (math.log10(ms) - self.low) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def drawn(self):
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        for power in range(self.low, self.high + 1):
            for times in range(1, 10) if power < self.high else (1,):
                y = self.y(times * 10.0 ** power)
                if times in (1, 2, 5):
                    yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
                    yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{times * 10.0 ** power:g}</text>'
        for kib in self.sizes[::2]:
            x = self.x(kib)
            yield f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{size_words(kib)}</text>'
        yield f'<path class="axis" fill="none" d="M{LEFT} {TOP} V{bottom} H{right}"/>'
        yield f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 14}" text-anchor="middle">size of each value</text>'
        middle = (TOP + bottom) / 2
        yield f'<text transform="translate(18 {middle:.0f}) rotate(-90)" text-anchor="middle">ms a tick</text>'


def svg(lines):
    axes = Axes(lines)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             "<title>ms a tick by the size of the values: all on the host, all on the device, as planned, best</title>",
             STYLE, *axes.drawn()]
    for place, (metric, (name, colour, dashes)) in enumerate(LINES.items()):
        points = " ".join(f"{axes.x(kib):.1f},{axes.y(ms):.1f}" for kib, ms in lines[metric])
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        width = ' style="stroke-width: 6"' if metric == "best" else ""
        parts.append(f'<polyline class="line" stroke="{colour}"{dashed}{width} points="{points}"/>')
        y = TOP + 20 + 24 * place
        x = WIDTH - RIGHT + 14
        parts.append(f'<line class="line" stroke="{colour}"{dashed}{width} x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}"/>')
        parts.append(f'<text x="{x + 32}" y="{y + 4}">{name}</text>')
    return "\n".join(parts + ["</svg>", ""])


def write(rows, path=ROOT / "docs" / "pictures" / "placement.svg"):
    """False where the rows have no such cases."""
    lines = series(rows)
    if not all(len(points) > 1 for points in lines.values()):
        return False
    path.write_text(svg(lines), encoding="utf-8")
    return True


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if not write(json.loads(pathlib.Path(sys.argv[1]).read_text()), *map(pathlib.Path, sys.argv[2:])):
        sys.exit(f"{sys.argv[1]} has no rows of `placement` with a size")
