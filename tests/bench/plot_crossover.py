"""Draws the table `crossover` of gpu_bench: frames a second by the size of the pictures, on the host, on the GPU, and as
the plan has it."""
import pathlib
import re

import plot

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "crossover.svg"
# Columns behind the size: what the legend calls them, colour, dashes.
COLUMNS = (("all on the host", plot.BLUE, ""), ("on the GPU", plot.ORANGE, ""), ("as planned", plot.GREEN, "9 4"))


def series(printed):
    """(pixels → size as written, for each column its [(pixels, frames a second)]) of what gpu_bench printed."""
    words, columns = {}, [[] for _ in COLUMNS]
    part = printed.split("### crossover", 1)[1].split("###", 1)[0] if "### crossover" in printed else ""
    for row in re.findall(r"^\| (\d+)x(\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", part, re.MULTILINE):
        pixels = int(row[0]) * int(row[1])
        words[pixels] = f"{row[0]}×{row[1]}"
        for column, value in zip(columns, row[2:]):
            column.append((pixels, float(value)))
    return words, columns


def write(printed, path=PICTURE):
    """False where there is no such table."""
    words, columns = series(printed)
    if len(words) < 2:
        return False
    lines = [plot.Line(name, colour, points, dashes) for (name, colour, dashes), points in zip(COLUMNS, columns)]
    path.write_text(plot.svg(plot.Plot("frames a second by the size of the pictures: on the host, on the GPU, as planned",
                                       "size of the pictures", "frames a second", lines, words, every=2)),
                    encoding="utf-8")
    return True
