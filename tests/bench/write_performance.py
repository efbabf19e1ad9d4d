#!/usr/bin/env python3
"""Writes docs/performance.md, and its picture, from runs of `millrace bench --json` and of tests/peers/compare.py.

usage: write_performance.py FOLDER      (which has bench.json, peers.json, or both)
       write_performance.py --media FILE      (what tests/peers/media.py wrote; the other tables stay)
       write_performance.py --marks FILE      (what tests/peers/marks.py wrote; the other tables stay)
       write_performance.py --codebook FILE      (what tests/peers/codebook.py wrote; the other tables stay)
       write_performance.py --net FILE      (what tests/peers/net.py wrote; the other tables stay)
       write_performance.py --viewer FILE      (what tests/viewer/browser/view_times.py wrote; the other tables stay)
       write_performance.py --gpu FILE COMMAND      (what gpu_bench printed; the other tables stay)
       write_performance.py --machine      (only prints on what the figures would be measured)

Each table names its machine and its day. MILLRACE_PERFORMANCE_PAGE is another page to write.
"""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import plot_behind
import plot_crossover
import plot_placement

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import prose  # noqa: E402: found by the line above

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a figure's p50 is held to, from the design: (bench, case, metric) → the goal, at most.
GOALS = {
    ("chain", "10..100", "handler_message"): 25,
    ("chain", "16", "tick_16"): 400,
    ("handover", "handler", "entered"): 200,
    ("crossing", "sends", "tick"): 2000,
    ("crossing", "takes", "tick"): 2000,
    ("plan", "chain 64", "total"): 1,
    ("plan", "chain 1000", "total"): 50,
    ("plan", "mesh 1000", "total"): 50,
    ("plan", "64 streams × 8", "beside"): 1.5,
    ("streams", "64 x 30 Hz, in phase, 1 worker", "ratio"): 1.5,
    ("streams", "64 x 30 Hz, in phase, 2 workers", "ratio"): 1.5,
    ("streams", "64 x 30 Hz, any phase, 1 worker", "ratio"): 1.5,
    ("streams", "64 x 30 Hz, any phase, 2 workers", "ratio"): 1.5,
    ("streams", "64 x free, 1 worker", "ratio"): 1.1,
    ("streams", "64 x free, 2 workers", "ratio"): 1.1,
    ("trace", "16 empty", "ratio"): 1.5,
    ("trace", "100 empty", "ratio"): 1.5,
    ("trace", "16 × 10 µs", "ratio"): 1.02,
}
AGAIN = "Measured again on 2026-11-23 on an AMD EPYC with 2 cores, load average 13 to 19, three runs of " \
        "`build/millrace bench plan trace`: "
# What is known of a goal where it is missed: it stays in sight.
WHY_MISSED = {
    ("plan", "chain 64", "total"): "four fifths of the time is reading the text, most of that in libyaml-cpp's scanner; the plan "
                                   "itself takes one. " + AGAIN + "0.5, 0.9 and 1.0 ms, which keeps the goal.",
    ("trace", "100 empty", "ratio"): "100 calls of 25 ns write 1.6 KB a tick, through all of a ring of 16 MiB: what that costs is the memory's "
                                     "matter, and the goal is kept in quiet minutes (decision 0008). From 10 µs a handler on nothing can be measured. " + AGAIN + "1.2 in each, which keeps the goal.",
    ("placement", "wrong", "within_10"):
        "the sweep makes each price wrong by up to 20 % for good and draws the errors of host, device and hop apart, which no plan "
        "made beforehand can know; the worst case is 1.34 times the best. Where calls vary at random, 98.3 % are within 10 %. In "
        "virtual time, so the same on every machine; `build/millrace bench placement` on 2026-11-23: 89.6 %, as before. Running "
        "placements beside each other at the start would find the others; it is not done.",
}
# The same, at least.
GOALS_AT_LEAST = {
    ("overlap", "in_flight 3", "rate"): 95,
    ("placement", "wrong", "within_10"): 95,
    ("slices", "whole, level 0, nearest", "rate to plain"): 0.7,
    ("volume", "translucent, moving", "rate to plain"): 0.7,
    ("volume", "maximum, moving", "rate to plain"): 0.7,
}
# At most so many times another figure of the same run.
RELATIVE_GOALS = {
    ("clock", "60 Hz, asleep", "lateness"): (1.1, "60 Hz, nanosleep"),
    ("clock", "1000 Hz, asleep", "lateness"): (1.1, "1000 Hz, nanosleep"),
}
# Figures of one program beside another's: (bench, program, metric) → (least, most).
PEER_GOALS = {
    ("chain", "millrace", "linearity"): (0.85, 1.15),
    ("chain", "oneTBB lightweight", "times_ours"): (2, None),
    ("chain", "oneTBB, bare pointers", "times_ours"): (2, None),
    ("chain", "GStreamer", "times_ours"): (5, None),
    ("picture", "millrace", "times_the_best"): (1, None),
    ("decode", "millrace", "of_ffmpegs"): (0.97, None),
    ("decode", "millrace", "copies"): (None, 0),
    ("encode", "millrace", "of_ffmpegs"): (0.97, None),
    ("encode", "millrace", "bytes_of_ffmpegs"): (None, 1.03),
    ("encode", "millrace", "psnr_below_ffmpegs"): (None, 0.05),
    ("transcode", "millrace", "processors_of_ffmpegs"): (None, 1),
    ("wall", "millrace", "processors_of_ffmpegs"): (None, 0.9),
    ("wall", "millrace", "processors_of_gstreamers"): (None, 0.9),
    ("start", "millrace", "wall_of_ffmpegs"): (None, 1),
    ("boxes", "millrace", "times_the_faster"): (1.5, None),
    ("lines", "millrace", "times_the_faster"): (1.5, None),
    ("points", "millrace", "times_the_faster"): (1, None),
    ("fit", "millrace", "of_one_thread"): (None, 0.65),
    ("fit", "millrace", "of_faiss"): (None, 1.2),
    ("viewer", "page", "of_bare"): (None, 1.3),
    ("viewer", "two credits", "most under way"): (None, 2),
    ("transfer", "millrace, plain", "of_socket_crc"): (0.85, None),
    ("transfer", "millrace, tls", "of_openssl"): (0.85, None),
    ("transfer", "millrace, plain", "of_zeromq"): (0.7, None),
    ("one_way", "millrace, plain", "over_socket"): (None, 20),
    ("one_way", "millrace, plain", "of_socket"): (None, 1.5),
}

EXPLANATION = """\
# Performance

Generated by `./dev bench --write`, `./dev bench --peers`, `./dev bench --peers media`,
`./dev bench --peers marks`, `./dev bench --peers codebook`, `./dev bench --peers net`, `./dev bench --viewer` and
`./dev gpu-bench`; do not edit.
"""
PLACEMENT_EXPLANATION = """\

![ms a tick by the size of the values](pictures/placement.svg)

The cases `placement, size …`: four handlers in a chain on the host, on a simulated device, where the plan puts them,
and in the best of the 16 placements, in virtual time. What the plan cannot know, such as a hop that is up to 20 % slower
than it was told, is in there: `runtime/bench/placement.cpp` says all of it.
"""
BATCH_EXPLANATION = """\

## Batches of many streams

`build/millrace bench batch` simulates 64 streams that give items to one device, in virtual time and from one seed, so
its figures are the same on every machine. All rules drive the runtime's own collector; "ours" is
`runtime/batch/controller.h` ([0071](decisions/0071-a-batch-waits-for-the-size-that-the-load-needs.md)). The device is
an H200 with a detector of 27 GFLOP an item, which does 8,300 items/s at most; `runtime/batch/sim/device.h` says how it
is simulated. The load is in parts of that. A cell has p99 in ms from give to done, the part of the time in which the
device works, and, where that is below 0.995, the part of all items that were done in time. The command prints this for
periodic arrivals (in any phase, and in phase), Poisson and bursts, with budgets of 15, 50 and 100 ms. Here is Poisson
with 50 ms:
"""
PEERS_EXPLANATION = """\
## Beside others

The same work in each program, one run of each in turns, so that what else the machine did falls on all alike; p50 and
p99 are over the rounds, ratios are made within a round. Compare within this table only.

- `chain`: a message through so many handlers that do nothing, on one thread: `flow.pass`; oneTBB's `function_node` with
  the lightweight policy, bodies that cannot throw, and a shared pointer as message, or a bare one, which nobody owns;
  GStreamer's `identity` in its test
  harness; libavfilter's `null`. `handler` is the slope between two lengths, `linearity` the slope of the long chains
  over that of the short ones, `times_ours` the rival's slope over ours.
- `picture`: 1920×1080 test bars, converted from one format to another, resized to 1280×720 (bilinear), a line of text
  drawn, dropped: `test.pattern ! image.convert ! image.resize ! draw.text ! null.sink`;
  `videotestsrc ! videoconvert ! videoscale ! textoverlay ! fakesink`, plain, and with queues between and two threads
  each for conversion and scaling; `scale,drawtext` after `testsrc`, and after `smptebars`, which draws once and hands
  out references. `times_the_best` is our rate over the best rival's. Where nothing is to be converted, `videoconvert`,
  `scale` and `image.convert` pass the picture on.
"""


# What is measured by itself, between two lines: kept when the rest is written anew.
MEDIA_BEGIN, MEDIA_END = "<!-- media begin -->", "<!-- media end -->"
MEDIA_EXPLANATION = """\
## Video beside ffmpeg and GStreamer

The same film, 1920×1080 in H.264 of about 20 Mbit/s, by the same libraries of codecs with the same settings; all
write fragmented MP4. `decode` is `video.file ! null.sink` beside `ffmpeg -i FILM -f null -`, `encode` is `video.file
! video.writer`: rates are pictures a second while pictures come, without the start of the process. `bytes`, `psnr`
and `ssim` are those of the encoded film, at equal key frames. The other rows measure whole processes: `transcode`
decodes, resizes to 720p, writes a text and encodes, `wall` puts sixteen films into a grid of 1080p and encodes,
`start` is the first picture. All scale by two samples each way (`flags=bilinear` of ffmpeg, which widens its filter
where it makes smaller). `processors` is their time in all. In turns; a ratio is made within each round.
"""
# Marks, likewise.
MARKS_BEGIN, MARKS_END = "<!-- marks begin -->", "<!-- marks end -->"
MARKS_EXPLANATION = """\
## Marks and links of points beside OpenCV, Cairo and nanoflann

The painter of `draw.marks`, OpenCV (`rectangle` and `line` with `LINE_AA`) and Cairo (`stroke` of a path) paint the
same places onto one picture of 3840×2160, 32 bits a pixel, in one process, one thread each, in turns. Boxes are about
200×150; OpenCV's have square corners, since it has no others. `times_the_faster` is the faster rival's time over ours,
made within each round. `tests/peers/marks.cpp` says the rest.

`points.links` joins points of such a picture to their five nearest, in turns with nanoflann, which builds its k-d tree
and finds the nearest of each point. Ours also makes the list of links (`tests/peers/links.cpp`).
"""
# The viewer, likewise.
VIEWER_BEGIN, VIEWER_END = "<!-- viewer begin -->", "<!-- viewer end -->"
VIEWER_EXPLANATION = """\
## Pictures in a browser beside the least page that shows them

`test.pattern ! view.remote` and headless Chromium on one machine without a GPU. The page of the viewer and a bare page
with the same stream and the same credits (`tests/viewer/browser/bare_page.js`) show the same run in turns. `done to
drawn` is from the moment when the picture comes to `view.remote` until it is on the canvas; its stages are those of the
page's own figures. `event to picture` is from a move of the pointer until the picture that answers it is on the canvas,
with [remote_draw.yaml](../examples/pipelines/remote_draw.yaml). `of_bare` is the page's median over that of the bare
page.

For the last rows two programs keep both cores busy, and pictures are made faster than the page can draw them. `under
way` counts those that have come and are not drawn yet, the most of each second. Without credits the page acknowledges a
picture before it decodes it.

![a chart of the pictures that are under way: two with credits, hundreds without](pictures/view_behind.svg)
"""
# Codebooks, likewise.
CODEBOOK_BEGIN, CODEBOOK_END = "<!-- codebook begin -->", "<!-- codebook end -->"
CODEBOOK_EXPLANATION = """\
## Codebooks beside FAISS and scikit-learn

256 anchors are fitted to the same 10,000 vectors of 128 numbers (`test.vectors n=10000 d=128`) in 31 iterations, in
turns, each time in a new process. `time` of `codebook.fit` is that of its one tick, cold: conversion of half precision,
first anchors, and the published annealing with trimmed means. FAISS's `Kmeans.train` and scikit-learn's `KMeans.fit`
(Lloyd) are timed after a short fit before. They have vectors of single precision, and the first 256 vectors as first
centroids.

The methods differ, and so does `energy`, the mean squared distance between vectors and anchors at the end: annealed
steps shrink before the means are reached. The OpenBLAS in FAISS's wheel does not know newer processors. `FAISS` has the
newest kernels that this processor can run, named by `OPENBLAS_CORETYPE`, and its threads sleep while they wait
(`OMP_WAIT_POLICY`); `FAISS, as installed` has the kernels that it falls back to. `of_faiss` is our time over that of
`FAISS`, `of_one_thread` our time with two threads over that with one.
"""
# The links, likewise.
NET_BEGIN, NET_END = "<!-- net begin -->", "<!-- net end -->"
NET_EXPLANATION = """\
## Links beside others

The same messages from one thread to another over the loopback, in each program in turns; p50 and p99 are over the
rounds, ratios and differences are made within a round. A connection and 20 messages come before the clock starts.

- `transfer`: from the giving of the first message to the arrival of the last one in memory of its receiver; `rate`
  counts the messages' bytes alone. Ours is a crossing of a link, with heads, credit and acknowledgements: `plain` is
  TCP with a CRC-32C of each record at both ends, `tls` is TLS 1.3 with AES-128-GCM, `local` a Unix socket. A bare
  socket has the options of a link's, sends and receives 1 MiB a call, and has 8 MiB of blocks at each end; `crc` is with
  the same checksum at both ends. Bare OpenSSL does so through `SSL_write_ex` and `SSL_read_ex`, also with
  `SSL_CTX_set_read_ahead`; `of_openssl` is over the better of both. ZeroMQ: PUSH and PULL, large messages given in place, one thread of input and output at each end. gRPC: a
  client's stream of `bytes`, without TLS. GStreamer: `tcpserversink ! tcpclientsrc`, which reads 4 KiB at most into a
  buffer and knows no messages, so large ones alone are measured.
- `one_way`: from the giving of a message of 1 KiB to its arrival, directly after the one before (`warm`) or 1 ms
  later, when all threads sleep (`idle`); `time` is the median and `time_p99` the 99th percentile of one round. A bare
  socket is written to by the thread that gives; so is a link whose own thread sleeps. `handed` is a bare socket with a
  thread of its own, which has to wake up first.
"""
# What another machine measured, likewise.
GPU_BEGIN, GPU_END = "<!-- gpu begin -->", "<!-- gpu end -->"
GPU_EXPLANATION = """\
## On a GPU

What each table is stands in `tests/cuda/bench.cpp`, for `viewer` in `tests/viewer/gpu_view.py`; under each title is how
it was measured. `./dev gpu-bench` writes all of them, `./dev gpu-bench NAME…` some, and on a machine with several GPUs
also `peers`.
"""
CROSSOVER_PICTURE = "\n\n![frames a second by the size of the pictures](pictures/crossover.svg)"
PAGE = pathlib.Path(os.environ.get("MILLRACE_PERFORMANCE_PAGE", ROOT / "docs" / "performance.md"))


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    return f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}"


def stolen_percent():
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return 100 * fields[7] / sum(fields)


def figure(value, row):
    return f"{value:.3f}" if row["metric"] == "ratio" else f"{value:.1f}"


def verdict(met):
    return "met" if met else "**missed**"


def goal_of(row, rows):
    """The goal as text, and whether it is met; None where there is none."""
    key = (row["bench"], row["case"], row["metric"])
    if key in GOALS:
        return f"≤ {GOALS[key]}", row["p50"] <= GOALS[key]
    if key in GOALS_AT_LEAST:
        return f"≥ {GOALS_AT_LEAST[key]}", row["p50"] >= GOALS_AT_LEAST[key]
    if key in RELATIVE_GOALS:
        factor, other = RELATIVE_GOALS[key]
        for rival in rows:
            if (rival["bench"], rival["case"], rival["metric"]) == (key[0], other, key[2]):
                return f"≤ {factor} × {other.split(', ')[1]}", row["p50"] <= factor * rival["p50"]
    return None


def own_lines(path):
    rows = json.loads(path.read_text())
    date = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
    lines = ["## The runtime itself\n",
             f"Command: `build/millrace bench`, {date}, release build, on {machine()}; {stolen_percent():.1f} % of its time stolen "
             f"since it started; load average when this was written {os.getloadavg()[0]:.1f}: above 0, others had work too, and "
             "the p99 are theirs as well. What each row is stands at the head of `runtime/bench/bench.cpp` and of the "
             "files beside it.\n",
             "| bench | case | metric | p50 | p99 | unit | n | goal (p50) | |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if row["bench"] == "batch":
            continue  # in a table of its own
        text, met = goal_of(row, rows) or ("", None)
        lines.append(f"| {row['bench']} | {row['case']} | {row['metric']} | {figure(row['p50'], row)} | {figure(row['p99'], row)} | "
                     f"{row['unit']} | {row['n']} | {text} | {'' if met is None else verdict(met)} |")
    lines += missed_lines(rows)
    if plot_placement.write(rows):
        lines.append(PLACEMENT_EXPLANATION)
    return lines + batch_lines(rows) + [""]


def batch_lines(rows):
    """The table of rules for batches in one pattern of arrivals, and the goals over all of them; [] where it was not run."""
    cells, goals = {}, []
    for row in (row for row in rows if row["bench"] == "batch"):
        if row["metric"] == "missed_cells":
            goals.append(f"- {verdict(row['p50'] == 0)}: {row['case']} ({row['n'] - row['p50']:.0f} of {row['n']} cells)")
            continue
        pattern, budget, load, rule = row["case"].split(", ", 3)
        if (pattern, budget) == ("Poisson", "50 ms"):
            cells.setdefault(rule, {}).setdefault(load, {})[row["metric"]] = row
    if not cells:
        return []
    loads = list(next(iter(cells.values())))
    lines = [BATCH_EXPLANATION, f"| load | {' | '.join(loads)} |", "|---" * (len(loads) + 1) + "|"]
    for rule, by_load in cells.items():
        lines.append(f"| {rule} | {' | '.join(batch_cell(by_load[load]) for load in loads)} |")
    return lines + ["", "Goals of ours, over all patterns, budgets and loads:", "", *goals]


def batch_cell(metrics):
    share = metrics["in_time"]["p50"]
    return f"{metrics['wait']['p99']:.1f}/{metrics['device_use']['p50']:.2f}" + (f", {share:.2f}" if share < 0.995 else "")


def missed_lines(rows):
    """Why, for each goal that is missed and of which that is known."""
    missed = [row for row in rows if (goal_of(row, rows) or ("", True))[1] is False]
    keys = [(row["bench"], row["case"], row["metric"]) for row in missed]
    return ["", *(f"- Missed: {' '.join(key)}: {WHY_MISSED[key]}" for key in keys if key in WHY_MISSED)] if keys else []


def priority_words(result):
    return f", all programs alike scheduled before other work (niceness {result['priority']})" if result["priority"] else ""


def peer_lines(path):
    result = json.loads(path.read_text())
    lines = [PEERS_EXPLANATION,
             f"Command: `./dev bench --peers`, {result['date']}, {result['rounds']} rounds, release build, on "
             f"{result['machine']}; load average at the end {result['load']:.1f}{priority_words(result)}.\n", *TABLE_HEAD]
    return lines + [peer_line(row) for row in result["rows"]] + [""] + [f"- {line}" for line in result["missing"]]


def peer_line(row):
    least, most = PEER_GOALS.get((row["bench"], row["program"], row["metric"]), (None, None))
    text = f"{least} to {most}" if least is not None and most is not None else (
        f"≥ {least}" if least is not None else f"≤ {most}" if most is not None else "")
    met = (least is None or row["p50"] >= least) and (most is None or row["p50"] <= most)
    return (f"| {row['bench']} | {row['case']} | {row['program']} | {row['metric']} | {row['p50']:.2f} | "
            f"{row['p99']:.2f} | {row['unit']} | {text} | {verdict(met) if text else ''} |")


TABLE_HEAD = ("| bench | case | program | metric | p50 | p99 | unit | goal (p50) | |", "|---|---|---|---|---|---|---|---|---|")


def with_section(page, begin, end, lines):
    """The page with the lines in the place of what stood between the two markers; else before those of a GPU, or at the end."""
    section = "\n".join([begin, *lines, end])
    if begin in page:
        before, rest = page.split(begin, 1)
        return before + section + rest.split(end, 1)[1]
    before, found, behind = page.partition(GPU_BEGIN)
    return before.rstrip() + "\n\n" + section + "\n" + ("\n" + found + behind if found else "")


def with_media_table(page, result, measured):
    return with_rivals_table(page, MEDIA_BEGIN, MEDIA_END, MEDIA_EXPLANATION, result, measured)


def with_rivals_table(page, begin, end, explanation, result, measured):
    missing = ["", *(f"- {line}" for line in result["missing"])] if result["missing"] else []
    return with_section(page, begin, end,
                        [explanation, measured + "\n", *TABLE_HEAD, *(peer_line(row) for row in result["rows"]), *missing])


def with_codebook_table(page, result, measured):
    return with_rivals_table(page, CODEBOOK_BEGIN, CODEBOOK_END, CODEBOOK_EXPLANATION, result, measured)


def with_net_table(page, result, measured):
    return with_rivals_table(page, NET_BEGIN, NET_END, NET_EXPLANATION, result, measured)


def write_media(path):
    result = json.loads(path.read_text())
    measured = (f"{machine()}; `./dev bench --peers media`, {result['date']}, "
                f"{result['rounds']} rounds, ffmpeg {result['ffmpeg']}; load average at the end {result['load']:.1f}.")
    PAGE.write_text(prose.wrapped(with_media_table(PAGE.read_text(), result, measured)))


def write_marks(path):
    result = json.loads(path.read_text())
    measured = (f"{result['machine']}; `./dev bench --peers marks`, {result['date']}, {result['rounds']} rounds, release build; "
                f"load average at the end {result['load']:.1f}.")
    page = with_rivals_table(PAGE.read_text(), MARKS_BEGIN, MARKS_END, MARKS_EXPLANATION, result, measured)
    PAGE.write_text(prose.wrapped(page))


def write_codebook(path):
    result = json.loads(path.read_text())
    measured = (f"{result['machine']}; `./dev bench --peers codebook`, {result['date']}, {result['rounds']} rounds, release build; "
                f"load average at the end {result['load']:.1f}." + "".join(f" {words}." for words in result["programs"]))
    PAGE.write_text(prose.wrapped(with_codebook_table(PAGE.read_text(), result, measured)))


def write_viewer(path):
    result = json.loads(path.read_text())
    result["missing"] = []
    plot_behind.write(result["lines"], PAGE.parent / "pictures" / "view_behind.svg")
    measured = (f"{result['machine']}; `./dev bench --viewer`, {result['date']}, {result['turns']} turns of {result['seconds']:g} s each, release build; "
                f"load average at the end {result['load']:.1f}.")
    page = with_rivals_table(PAGE.read_text(), VIEWER_BEGIN, VIEWER_END, VIEWER_EXPLANATION, result, measured)
    PAGE.write_text(prose.wrapped(page))


def write_net(path):
    result = json.loads(path.read_text())
    measured = (f"{result['machine']}; `./dev bench --peers net`, {result['date']}, {result['rounds']} rounds, release build; "
                f"load average at the end {result['load']:.1f}{priority_words(result)}.")
    PAGE.write_text(prose.wrapped(with_net_table(PAGE.read_text(), result, measured)))


def kept_parts():
    """The lines between each two markers as they stand, with them."""
    page = PAGE.read_text() if PAGE.exists() else ""
    return [begin + page.split(begin, 1)[1].split(end, 1)[0] + end
            for begin, end in ((MEDIA_BEGIN, MEDIA_END), (MARKS_BEGIN, MARKS_END), (CODEBOOK_BEGIN, CODEBOOK_END),
                               (NET_BEGIN, NET_END), (VIEWER_BEGIN, VIEWER_END), (GPU_BEGIN, GPU_END)) if begin in page]


def asked_nvidia_smi():
    """The names of the devices and their driver, in words."""
    result = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True,
                            capture_output=True, check=True)
    rows = [line.split(", ") for line in result.stdout.splitlines() if line]
    count = f"{len(rows)} × " if len(rows) > 1 else ""
    return f"{count}{rows[0][0]}, driver {rows[0][1]}"


def gpu_tables(text):
    """What gpu_bench printed, or what stands on the page, by the names of its tables, in order."""
    parts = re.split(r"^### (\w+):", text, flags=re.MULTILINE)[1:]
    return {name: f"### {name}:{body.rstrip()}" for name, body in zip(parts[::2], parts[1::2])}


def with_gpu_tables(page, printed, measured):
    """The page with the printed tables in the places of those of the same name, each with the line that says how it was
    measured; the others stay as they are."""
    before, behind, known = page.rstrip() + "\n\n", "\n", {}
    if GPU_BEGIN in page:
        before, rest = page.split(GPU_BEGIN, 1)
        old, behind = rest.split(GPU_END, 1)
        known = gpu_tables(old)
    for name, table in gpu_tables(printed).items():
        title, rows = table.split("\n", 1)
        known[name] = f"{title}\n\n{measured}\n\n{rows.strip()}" + (CROSSOVER_PICTURE if name == "crossover" else "")
    return f"{before}{GPU_BEGIN}\n{GPU_EXPLANATION}\n" + "\n\n".join(known.values()) + f"\n{GPU_END}{behind}"


def write_gpu(printed, command):
    table = printed.read_text()
    plot_crossover.write(table)
    measured = (f"{asked_nvidia_smi()}; {machine()}; "
                f"`{command.strip()}`, {datetime.date.today().isoformat()}.")
    PAGE.write_text(prose.wrapped(with_gpu_tables(PAGE.read_text(), table, measured)))


def main(folder):
    lines = [EXPLANATION]
    if (folder / "bench.json").exists():
        lines += own_lines(folder / "bench.json")
    if (folder / "peers.json").exists():
        lines += peer_lines(folder / "peers.json")
    page = "\n".join(lines).rstrip() + "\n"
    PAGE.write_text(prose.wrapped(page + "".join("\n" + part + "\n" for part in kept_parts())))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--gpu":
        sys.exit(write_gpu(pathlib.Path(sys.argv[2]), sys.argv[3]))
    if len(sys.argv) == 3 and sys.argv[1] == "--media":
        sys.exit(write_media(pathlib.Path(sys.argv[2])))
    if len(sys.argv) == 3 and sys.argv[1] == "--marks":
        sys.exit(write_marks(pathlib.Path(sys.argv[2])))
    if len(sys.argv) == 3 and sys.argv[1] == "--codebook":
        sys.exit(write_codebook(pathlib.Path(sys.argv[2])))
    if len(sys.argv) == 3 and sys.argv[1] == "--viewer":
        sys.exit(write_viewer(pathlib.Path(sys.argv[2])))
    if len(sys.argv) == 3 and sys.argv[1] == "--net":
        sys.exit(write_net(pathlib.Path(sys.argv[2])))
    if sys.argv[1:] == ["--machine"]:
        sys.exit(print(f"machine: {machine()}; {datetime.date.today().isoformat()}, load average {os.getloadavg()[0]:.1f}"))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
