#!/usr/bin/env python3
"""Holds the latencies of a report to the trace of the same run, in pipelines of every length.

usage: latency.py MILLRACE
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SECONDS_MAX = 120
PART = 0.1  # they may differ by so much
CLOCK_US = 2  # and by what two looks at two clocks, one inside the other, take
ATTEMPTS = 3  # a machine may take the processor away between the two looks

WORK = "test.work cpu_us={} name=sink"
LIVE = "test.pattern name=source width=64 height=48 fps={} live=true count={} "
LINES = [  # pipeline, options
    *((f"test.pattern name=source width=64 height=48 count={count} ! " + WORK.format(us), ())
      for count, us in ((5, 3000), (20, 1000), (54, 400), (256, 200), (257, 100), (1000, 50), (5000, 20), (5000, 2))),
    *((f"test.pattern name=source width=320 height=240 count={count} ! image.blur sigma={sigma} ! null.sink name=sink", ())
      for count, sigma in ((5, 8), (100, 2), (1000, 1))),
    ("test.pattern name=source width=1280 height=720 count=40 ! null.sink name=sink", ()),
    ("test.pattern name=source width=64 height=48 count=300 ! test.work cpu_us=300 every=4 ! null.sink name=sink", ()),
    ("test.pattern name=source width=64 height=48 count=60 ! " + WORK.format(500), ("--threads", "1")),
    ("test.pattern name=source width=640 height=480 count=300 ! image.blur ! image.flip ! null.sink name=sink", ("--threads", "4")),
    ("test.pattern name=source width=64 height=48 count=2000 ! flow.pass ! null.sink name=sink", ()),
]
# A tick of these begins when it is due. How late its first call is then the trace does not know, so the report may only say more.
LATE = [
    ("test.pattern name=source width=64 height=48 count=60 ! " + WORK.format(500), ("--clock", "realtime", "--rate", "100")),
    (LIVE.format(100, 60) + "! " + WORK.format(2000), ()),
    (LIVE.format(30, 20) + "! " + WORK.format(20000), ()),
]
QUEUE = ("version: 1\nhandlers:\n"
         "  source: { type: test.pattern, width: 64, height: 48, fps: 100, live: true, count: COUNT }\n"
         "  sink: { type: test.work, cpu_us: 20000, input: { from: source, policy: queue, depth: 4, full: FULL } }\n")
FILES = [QUEUE.replace("COUNT", count).replace("FULL", full)
         for count, full in (("60", "drop_oldest"), ("60", "drop_newest"), ("15", "block"))]


def of_the_trace(path):
    """From a tick's first call until its sink's call is over, in µs; (p50, max, how many)."""
    begun, took = {}, []
    calls = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    for call in sorted(calls, key=lambda event: event["ts"]):
        tick = call["args"].get("tick")
        if call["name"] == "source":
            begun[tick] = call["ts"]
        if call["name"] == "sink" and tick in begun:
            took.append(call["ts"] + call["dur"] - begun[tick])
    took.sort()
    return took[len(took) // 2], took[-1], len(took)


def complaint(millrace, folder, pipeline, options, late):
    command = [millrace, "run", pipeline, "--quiet", "--json", "report.json", "--trace", "trace.json", *options]
    subprocess.run(command, cwd=folder, check=True, timeout=SECONDS_MAX)
    report = json.loads((folder / "report.json").read_text())
    path = next(path for path in report["paths"] if path["sink"] == "sink")
    p50, longest, count = of_the_trace(folder / "trace.json")
    if path["sampled"] != count:
        return f"{path['sampled']} measured, {count} in the trace"
    for name, told, traced in (("p50", path["p50"], p50), ("max", path["max"], longest)):
        difference = max(traced - told, 0) if late else abs(told - traced)
        if difference > PART * traced + CLOCK_US:
            return f"{name}: {told:.1f} µs in the report, {traced:.1f} µs in the trace, of {count} ticks"
    return ""


def main():
    millrace = str(pathlib.Path(sys.argv[1]).resolve())
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = [(*line, False) for line in LINES] + [(*line, True) for line in LATE]
        for i, text in enumerate(FILES):
            (folder / f"queue{i}.yaml").write_text(text)
            cases.append((f"queue{i}.yaml", (), False))
        for pipeline, options, late in cases:
            wrong = [complaint(millrace, folder, pipeline, options, late)]
            while wrong[-1] and len(wrong) < ATTEMPTS:
                wrong.append(complaint(millrace, folder, pipeline, options, late))
            if wrong[-1]:
                found.append(f"{pipeline} {' '.join(options)}\n  " + "\n  ".join(wrong))
    print("\n".join(found) if found else f"{len(cases)} reports agree with their traces")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
