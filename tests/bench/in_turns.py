#!/usr/bin/env python3
"""Compares the benchmarks of two `millrace` binaries, run in turns on this machine.

Each binary has its millrace-bench beside it; one from before there was such a program has the benchmarks inside.

A single run of one binary and then of the other compares the machine's minutes, not the binaries. Here the two alternate,
and so does which of them begins a round. Each round moves the heap by another 16 bytes of a cache line (shift_heap.c):
two threads that share a line by chance make some rounds slow then, whatever the first layout was. For each figure the
medians over all rounds are compared; the spread told is half of what lies between the quartiles of each binary's rounds,
as a share of its median.

    tests/bench/in_turns.py BEFORE AFTER [--rounds 11] [NAME…]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile


def measure(binary, names, shifter, steps):
    """One run, its heap moved by this many times 16 bytes: {(bench, case, metric): p50}."""
    moved = dict(os.environ, LD_PRELOAD=shifter, SHIFT_HEAP=str(steps))
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([binary, "bench", *names, "--json", file.name], check=True, stdout=subprocess.DEVNULL,
                       env=moved)
        rows = json.load(open(file.name))
    return {(row["bench"], row["case"], row["metric"]): row["p50"] for row in rows}


def spread(values):
    quarters = statistics.quantiles(values, n=4)
    return (quarters[2] - quarters[0]) / 2 / statistics.median(values) if statistics.median(values) else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=11)
    given = parser.parse_args()
    rounds = {given.before: [], given.after: []}
    with tempfile.TemporaryDirectory() as folder:
        shifter = folder + "/shift_heap.so"
        source = pathlib.Path(__file__).with_name("shift_heap.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", shifter, source], check=True)
        for number in range(given.rounds):
            for binary in (given.before, given.after) if number % 2 == 0 else (given.after, given.before):
                rounds[binary].append(measure(binary, given.names, shifter, number // 2 % 4))
    print(f"{'bench':10}{'case':18}{'metric':18}{'before':>12}{'after':>12}{'change':>9}  spread before, after")
    for key in rounds[given.before][0]:
        before = [run[key] for run in rounds[given.before] if key in run]
        after = [run[key] for run in rounds[given.after] if key in run]
        if not before or not after:
            continue
        one, other = statistics.median(before), statistics.median(after)
        change = f"{(other / one - 1) * 100:+.1f} %" if one else ""
        print(f"{key[0]:10}{key[1]:18}{key[2]:18}{one:12.1f}{other:12.1f}{change:>9}"
              f"  ±{spread(before) * 100:.1f} %, ±{spread(after) * 100:.1f} %")


if __name__ == "__main__":
    main()
