#!/usr/bin/env python3
"""Paints the same marks in draw.marks' painter, OpenCV and Cairo, and joins the same points in points.links and nanoflann.

Writes what came out as JSON.

usage: marks.py BUILD_FOLDER OUT_JSON [--rounds N]
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import write_performance  # noqa: E402: found by the line above

from compare import row  # noqa: E402: the same

OURS = "millrace"
RIVALS = {"OpenCV": "libopencv-dev", "Cairo": "libcairo2-dev", "nanoflann": "libnanoflann-dev"}


def rows_of(works):
    for work, programs in works.items():
        bench = next(bench for bench in ("boxes", "lines", "points") if bench in work)
        for program, ms in sorted(programs.items(), key=lambda item: item[0] != OURS):
            yield row(bench, work, program, "time", "ms", ms)
        rivals = [ms for program, ms in programs.items() if program != OURS]
        if rivals:
            yield row(bench, work, OURS, "times_the_faster", "ratio",
                      [min(theirs) / ours for ours, theirs in zip(programs[OURS], zip(*rivals))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=51)
    arguments = parser.parse_args()
    works = {}
    for program in "peer_marks", "peer_links":
        done = subprocess.run([arguments.build / program, str(arguments.rounds)], capture_output=True, text=True, timeout=600,
                              check=True)
        works |= json.loads(done.stdout)
    present = {program for programs in works.values() for program in programs}
    missing = [f"{rival} is not measured: install {package}" for rival, package in RIVALS.items() if rival not in present]
    result = {"date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "load": os.getloadavg()[0],
              "machine": write_performance.machine(), "rows": list(rows_of(works)), "missing": missing}
    arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for line in result["rows"]:
        print(f"{line['case']:28} {line['program']:10} {line['metric']:18} {line['p50']:9.3f} {line['p99']:9.3f} {line['unit']}")
    for line in missing:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
