#!/usr/bin/env python3
"""Draws where a detector runs by the bandwidth of its link: the latency of a tick with the detector beside its camera,
on the other node, and where the plan has it.

usage: MILLRACE_SWEEP=rows.json build/test_exec -tc='7.3: where a handler runs*'
       plot_nodes.py rows.json [SVG]      (default: docs/pictures/nodes.svg)
"""
import json
import pathlib
import sys

import plot

ROOT = pathlib.Path(__file__).resolve().parents[2]


def svg(rows):
    live = [row for row in rows if row["clock"] == "realtime"]
    at_edge = [(row["megabits"], row["edge_ms"]) for row in live]
    at_gpu = [(row["megabits"], row["gpu_ms"]) for row in live]
    chosen = [(row["megabits"], row[row["chosen"] + "_ms"]) for row in live]
    lines = [plot.Line("beside the camera", plot.BLUE, at_edge, ""), plot.Line("on the other node", plot.ORANGE, at_gpu, ""),
             plot.Line("as planned", plot.GREEN, chosen, "9 4", wide=True)]
    marks = {x: f"{x:g}" for x, _ in at_edge}
    return plot.svg(plot.Plot("latency of a picture by the bandwidth of the link: detected beside the camera, on the other node, "
                              "as planned", "Mbit/s", "ms", lines, marks, every=2))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "docs" / "pictures" / "nodes.svg"
    path.write_text(svg(json.loads(pathlib.Path(sys.argv[1]).read_text())), encoding="utf-8")
