#!/usr/bin/env python3
"""Runs the same work in millrace and in its rivals, in turns, and writes what came out as JSON.

usage: compare.py BUILD_FOLDER OUT_JSON [--rounds N]

Every round runs each program once, in an order that turns by one from round to round, so that what else the machine
does falls on all alike. A figure is the middle of its rounds; a ratio is made within each round, and its middle counts.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import write_performance  # noqa: E402: found by the line above

# Handlers in the chain, and messages that take each program well under a second.
CHAINS = {10: 100_000, 64: 30_000, 100: 20_000, 400: 5_000}
# Source format, format that it is converted to.
PICTURES = [("rgb8", "bgra8"), ("i420", "rgb8"), ("rgb8", "rgb8")]
FRAMES = 200
MISSING = 3  # a program's exit code
# name: (program, form of the chain, forms of the picture chain, what makes the program)
PROGRAMS = {
    "millrace": ("peer_millrace", "", [""], "the build"),
    "oneTBB lightweight": ("peer_tbb", "", [], "libtbb-dev"),
    "oneTBB, bare pointers": ("peer_tbb", "pointer", [], "libtbb-dev"),
    "GStreamer": ("peer_gstreamer", "", ["plain", "threads"], "libgstreamer1.0-dev gstreamer1.0-plugins-base gstreamer1.0-x"),
    "libavfilter": ("peer_avfilter", "", ["testsrc", "smptebars"], "libavfilter-dev"),
}


def call(program, form, arguments, missing):
    environment = dict(os.environ, PEER_FORM=form) if form else dict(os.environ)
    done = subprocess.run([program, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode == MISSING:
        missing.add(done.stderr.strip())
        return None
    if done.returncode:
        sys.exit(f"{program} {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return float(done.stdout)


def turned(jobs, by):
    by %= max(len(jobs), 1)
    return jobs[by:] + jobs[:by]


def measure(build, rounds):
    present, missing = [], set()
    for name, (program, chain_form, forms, package) in PROGRAMS.items():
        if (build / program).exists():
            present.append((name, str(build / program), chain_form, forms))
        else:
            missing.add(f"{name} is not measured: {program} is not built; install {package}")
    jobs = []
    for name, program, chain_form, forms in present:
        for handlers, messages in CHAINS.items():
            jobs.append((("chain", handlers, name, chain_form), program, ["chain", handlers, messages]))
        for source, target in PICTURES:
            for form in forms:
                jobs.append((("picture", f"{source} → {target}", name, form), program, ["picture", source, target, FRAMES]))
    # By kind of work and case, so that rivals stand side by side in time.
    jobs.sort(key=lambda job: (job[0][0], str(job[0][1])))
    figures = {key: [] for key, _, _ in jobs}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for case in dict.fromkeys(key[:2] for key in figures):
            for key, program, arguments in turned([job for job in jobs if job[0][:2] == case], number):
                figures[key].append(call(program, key[3], arguments, missing))
    return {key: values for key, values in figures.items() if None not in values}, sorted(missing)


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def row(bench, case, name, metric, unit, values):
    return {"bench": bench, "case": case, "program": name, "metric": metric, "unit": unit,
            "p50": statistics.median(values), "p99": quantile(values, 0.99), "n": len(values)}


def slopes(figures, name, short, long):
    form = PROGRAMS[name][1]
    pairs = zip(figures.get(("chain", short, name, form), []), figures.get(("chain", long, name, form), []))
    return [(b - a) / (long - short) for a, b in pairs]


def chain_rows(figures, names):
    rows = []
    ours = slopes(figures, "millrace", 10, 100)
    for name in names:
        for handlers in CHAINS:
            values = figures.get(("chain", handlers, name, PROGRAMS[name][1]))
            if values:
                rows.append(row("chain", str(handlers), name, "message", "ns", values))
        theirs = slopes(figures, name, 10, 100)
        if not theirs:
            continue
        rows.append(row("chain", "10..100", name, "handler", "ns", theirs))
        rows.append(row("chain", "64..400", name, "handler", "ns", slopes(figures, name, 64, 400)))
        rows.append(row("chain", "64..400 ÷ 10..100", name, "linearity", "ratio",
                        [b / a for a, b in zip(theirs, slopes(figures, name, 64, 400))]))
        if name != "millrace":
            rows.append(row("chain", "10..100", name, "times_ours", "ratio", [b / a for a, b in zip(ours, theirs)]))
    return rows


def picture_rows(figures):
    rows = []
    for case in dict.fromkeys(key[1] for key in figures if key[0] == "picture"):
        rivals = {key[2:]: values for key, values in figures.items() if key[:2] == ("picture", case)}
        for (name, form), values in rivals.items():
            rows.append(row("picture", case, f"{name}, {form}" if form else name, "rate", "1/s", values))
        ours = rivals.pop(("millrace", ""), [])
        if rivals:
            best = [max(values) for values in zip(*rivals.values())]
            rows.append(row("picture", case, "millrace", "times_the_best", "ratio", [a / b for a, b in zip(ours, best)]))
    return rows


def priority():
    """The niceness of the kernel's scheduling group that all programs share; 0 where the kernel has no such groups.

    Such a kernel has no file /proc/self/autogroup, or an empty one.
    """
    try:
        fields = pathlib.Path("/proc/self/autogroup").read_text().split()
    except OSError:
        return 0
    return int(fields[-1]) if fields else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    figures, missing = measure(arguments.build, arguments.rounds)
    rows = chain_rows(figures, PROGRAMS) + picture_rows(figures)
    result = {"date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "load": os.getloadavg()[0],
              "priority": priority(), "machine": write_performance.machine(),
              "rows": rows, "missing": missing}
    arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for line in rows:
        print(f"{line['bench']:8} {line['case']:18} {line['program']:24} {line['metric']:14} "
              f"{line['p50']:12.2f} {line['p99']:12.2f} {line['unit']}")
    for line in missing:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
