#!/usr/bin/env python3
"""Sends the same messages over a link of millrace and over its rivals' connections, in turns, and writes what came out as JSON.

usage: net.py BUILD_FOLDER OUT_JSON [--rounds N]

Every program measures itself over the loopback (tests/peers/net/meter.h). For each case the order turns by one from round
to round. A figure is the middle of its rounds; a ratio or a difference is made within each round, and its middle counts.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

from compare import MISSING, priority, row, turned

import write_performance  # found by compare's path

SECONDS_MAX = 120
# Bytes of a message and how many take some 0.2 s, as `millrace bench net`. The last one is 1920 × 1080 in RGB.
SIZES = {"1 KiB": (1024, 100_000), "64 KiB": (64 * 1024, 8_000), "1 MiB": (1024 * 1024, 600), "6.2 MB": (6_220_800, 100)}
SINGLES = {"warm": 2_000, "idle": 500}
LARGE = ("1 MiB", "6.2 MB")
# name: (program, form, what it is measured of, what makes the program)
PROGRAMS = {
    "millrace, plain": ("peer_net_millrace", "plain", (*SIZES, *SINGLES), "the build"),
    "millrace, tls": ("peer_net_millrace", "tls", (*SIZES, *SINGLES), "the build"),
    "millrace, local": ("peer_net_millrace", "local", (*SIZES, *SINGLES), "the build"),
    "bare socket": ("peer_net_socket", "plain", (*SIZES, *SINGLES), "the build"),
    "bare socket, crc": ("peer_net_socket", "crc", (*SIZES, *SINGLES), "the build"),
    "bare socket, handed": ("peer_net_socket", "handed", (*SINGLES,), "the build"),
    "bare OpenSSL": ("peer_net_openssl", "plain", (*SIZES, *SINGLES), "the build"),
    "bare OpenSSL, read ahead": ("peer_net_openssl", "ahead", (*SIZES, *SINGLES), "the build"),
    "ZeroMQ": ("peer_net_zeromq", "", (*SIZES, *SINGLES), "libzmq3-dev"),
    "gRPC": ("peer_net_grpc", "", (*SIZES, *SINGLES), "libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc"),
    "GStreamer": ("peer_net_gstreamer", "", LARGE, "libgstreamer1.0-dev gstreamer1.0-plugins-base"),
}
PLAIN, TLS = "millrace, plain", "millrace, tls"
# Ours over the best of the rivals: (case, ours, rivals, name of the ratio).
RATIOS = [
    ("6.2 MB", PLAIN, ["bare socket, crc"], "of_socket_crc"),
    ("6.2 MB", PLAIN, ["bare socket"], "of_socket"),
    ("6.2 MB", TLS, ["bare OpenSSL", "bare OpenSSL, read ahead"], "of_openssl"),
    ("1 KiB", PLAIN, ["ZeroMQ"], "of_zeromq"),
]


def call(program, form, arguments, missing):
    """The two numbers that a program prints; None if the machine lacks what it needs."""
    done = subprocess.run([program, *map(str, arguments)], env={**os.environ, "PEER_FORM": form}, capture_output=True, text=True,
                          timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
    if done.returncode == MISSING:
        missing.add(done.stderr.strip())
        return None
    if done.returncode:
        sys.exit(f"{program} {' '.join(map(str, arguments))}: exit code {done.returncode}: {done.stderr.strip()}")
    first, second = done.stdout.split()
    return float(first), float(second)


def arguments_of(case):
    return ["rate", *SIZES[case]] if case in SIZES else ["one_way", case, SINGLES[case]]


def measure(build, rounds):
    present, missing = [], set()
    for name, (program, form, cases, package) in PROGRAMS.items():
        if (build / program).exists():
            present.append((name, str(build / program), form, cases))
        else:
            missing.add(f"{name} is not measured: {program} is not built; install {package}")
    figures = {(case, name): [] for case in (*SIZES, *SINGLES) for name, _, _, cases in present if case in cases}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for case in (*SIZES, *SINGLES):
            for name, program, form, _ in turned([job for job in present if case in job[3]], number):
                figures[case, name].append(call(program, form, arguments_of(case), missing))
    return {key: values for key, values in figures.items() if None not in values}, sorted(missing)


def transfer_rows(figures):
    rows = []
    for case in SIZES:
        for name in PROGRAMS:
            if pairs := figures.get((case, name)):
                rows.append(row("transfer", case, name, "rate", "MB/s", [bytes_per_second / 1e6 for bytes_per_second, _ in pairs]))
                if case not in LARGE:
                    rows.append(row("transfer", case, name, "messages", "1/s", [messages for _, messages in pairs]))
        for where, ours, rivals, metric in RATIOS:
            theirs = [figures[case, rival] for rival in rivals if (case, rival) in figures]
            if where == case and theirs and (case, ours) in figures:
                best = [max(rate for rate, _ in round_) for round_ in zip(*theirs)]
                rows.append(row("transfer", case, ours, metric, "ratio", [mine[0] / rate for mine, rate in zip(figures[case, ours], best)]))
    return rows


def one_way_rows(figures):
    rows = []
    for case in SINGLES:
        for name in PROGRAMS:
            if pairs := figures.get((case, name)):
                rows.append(row("one_way", case, name, "time", "µs", [middle for middle, _ in pairs]))
                rows.append(row("one_way", case, name, "time_p99", "µs", [most for _, most in pairs]))
        pairs = list(zip(figures.get((case, PLAIN), []), figures.get((case, "bare socket"), [])))
        if pairs and case == "warm":
            rows.append(row("one_way", case, PLAIN, "over_socket", "µs", [mine[0] - bare[0] for mine, bare in pairs]))
        elif pairs:
            rows.append(row("one_way", case, PLAIN, "of_socket", "ratio", [mine[0] / bare[0] for mine, bare in pairs]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    figures, missing = measure(arguments.build, arguments.rounds)
    rows = transfer_rows(figures) + one_way_rows(figures)
    result = {"date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "load": os.getloadavg()[0],
              "priority": priority(), "machine": write_performance.machine(), "rows": rows, "missing": missing}
    arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for line in rows:
        print(f"{line['bench']:8} {line['case']:7} {line['program']:25} {line['metric']:13} "
              f"{line['p50']:12.2f} {line['p99']:12.2f} {line['unit']}")
    for line in missing:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
