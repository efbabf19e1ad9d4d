#!/usr/bin/env python3
"""Decodes and encodes the same film in millrace and in ffmpeg, in turns, and writes what came out as JSON.

usage: media.py BUILD_FOLDER OUT_JSON [--rounds N]

Each figure is pictures a second over the time in which pictures come, as each program says it: millrace's report and
`ffmpeg -benchmark`; neither has the start of the process in it. The order turns from round to round; a ratio is made
within each round, and its middle counts.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

from compare import priority, row, turned

SECONDS_MAX = 300
PICTURES = {"decode": 300, "encode": 120}
PRESET, QUALITY, CRF, GOP = "veryfast", 70, 23, 60
# Noise keeps the encoder from finding nothing to do: about 20 Mbit/s, as a good camera has.
FILM = ["-f", "lavfi", "-i", "testsrc2=size=1920x1080:rate=30,noise=alls=8:allf=t", "-frames:v", PICTURES["decode"], "-pix_fmt",
        "yuv420p", "-c:v", "libx264", "-preset", "medium", "-crf", "23"]


def call(arguments):
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr.strip()[-2000:]}")
    return done


def film_of(build):
    """Made once: a cut of it would be decoded at another rate."""
    path = build / "peers_film.mp4"
    if not path.exists():
        part = build / "peers_film.part.mp4"
        call(["ffmpeg", "-v", "error", "-y", *FILM, part])
        part.rename(path)
    return path


def ours(build, line, pictures):
    """Pictures a second, and what the handlers counted."""
    report = build / "peers_media_report.json"
    call([build / "millrace", "run", line, "--quiet", "--ticks", pictures, "--json", report])
    told = json.loads(report.read_text())
    if told["ticks"]["run"] != pictures:
        sys.exit(f"{line}: {told['ticks']['run']} pictures instead of {pictures}")
    return pictures / told["duration_s"], told["handlers"]["in"].get("counts", {})


def theirs(arguments, pictures):
    said = call(["ffmpeg", "-hide_banner", "-nostdin", "-y", "-benchmark", *arguments]).stderr
    seconds = float(re.search(r"bench: .*rtime=([\d.]+)s", said).group(1))
    frames = int(re.findall(r"frame=\s*(\d+)", said)[-1])
    if frames != pictures:
        sys.exit(f"ffmpeg took {frames} pictures instead of {pictures}")
    return pictures / seconds


def measure(build, rounds):
    film, threads = film_of(build), len(os.sched_getaffinity(0))
    target = build / "peers_media_out.mp4"
    count = PICTURES["encode"]
    copied = []

    def decode_ours():
        rate, counted = ours(build, f"video.file name=in path={film} threads={threads} ! null.sink", PICTURES["decode"])
        copied.append(counted.get("pictures_copied", 0) / PICTURES["decode"])
        return rate

    jobs = {
        "decode": [("millrace", decode_ours),
                   ("ffmpeg", lambda: theirs(["-threads", threads, "-i", film, "-f", "null", "-"], PICTURES["decode"]))],
        "encode": [("millrace", lambda: ours(build, f"video.file name=in path={film} threads={threads} ! video.writer path={target} "
                                             f"codec=h264 preset={PRESET} quality={QUALITY} threads={threads}", count)[0]),
                   ("ffmpeg", lambda: theirs(["-threads", threads, "-i", film, "-frames:v", count, "-c:v", "libx264", "-preset", PRESET,
                                              "-crf", CRF, "-g", GOP, "-threads", threads, "-movflags",
                                              "+frag_keyframe+empty_moov+default_base_moof", target], count))],
    }
    figures = {(bench, name): [] for bench, pair in jobs.items() for name, _ in pair}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for bench, pair in jobs.items():
            for name, job in turned(pair, number):
                figures[bench, name].append(job())
    target.unlink(missing_ok=True)
    return figures, copied, threads


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    figures, copied, threads = measure(arguments.build, arguments.rounds)
    cases = {"decode": f"1080p H.264, {threads} threads", "encode": f"1080p, libx264 {PRESET}, {threads} threads"}
    rows = []
    for bench, case in cases.items():
        mine, other = figures[bench, "millrace"], figures[bench, "ffmpeg"]
        rows.append(row(bench, case, "millrace", "rate", "1/s", mine))
        rows.append(row(bench, case, "ffmpeg", "rate", "1/s", other))
        rows.append(row(bench, case, "millrace", "of_ffmpegs", "ratio", [a / b for a, b in zip(mine, other)]))
    rows.append(row("decode", cases["decode"], "millrace", "copies", "1/picture", copied))
    version = call(["ffmpeg", "-version"]).stdout.split()[2]
    arguments.out.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "ffmpeg": version,
                                         "load": os.getloadavg()[0], "priority": priority(), "rows": rows},
                                        indent=1, ensure_ascii=False) + "\n")
    for line in rows:
        print(f"{line['bench']:8} {line['case']:34} {line['program']:10} {line['metric']:12} "
              f"{line['p50']:10.3f} {line['p99']:10.3f} {line['unit']}")


if __name__ == "__main__":
    main()
