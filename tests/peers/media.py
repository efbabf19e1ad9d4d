#!/usr/bin/env python3
"""The same work on films in millrace, ffmpeg and GStreamer, in turns; what came out is written as JSON.

usage: media.py BUILD_FOLDER OUT_JSON [--rounds N] [--only BENCH…]

  decode     a 1080p film to nothing
  encode     the film encoded again; besides bytes, PSNR and SSIM against the film, at equal key frames
  transcode  decoded, resized to 720p, given a text, encoded
  wall       sixteen 1080p films, resized, in a grid of 1080p, encoded
  start      the first picture, to nothing

The rates of `decode` and `encode` are pictures a second over the time in which pictures come, as each program says it:
millrace's report and `ffmpeg -benchmark`; neither has the start of the process in it. All else is of the whole process,
as the kernel tells it: seconds of processors, and wall time. The order turns from round to round; a ratio is made
within each round, and its middle counts.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

from compare import priority, row, turned

SECONDS_MAX = 300
PICTURES = {"decode": 300, "encode": 120, "transcode": 300, "wall": 60}
TEXT = "millrace"
HAS_GSTREAMER = shutil.which("gst-launch-1.0") is not None
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


class Measured:
    """What a process took, once it is over."""

    def __init__(self, arguments):
        begun, before = time.monotonic(), processor_seconds()
        call(arguments)
        self.wall_s, self.cpu_s = time.monotonic() - begun, processor_seconds() - before


def processor_seconds():
    """Of all processes that have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def x264(threads):
    return ["-c:v", "libx264", "-preset", PRESET, "-crf", CRF, "-g", GOP, "-threads", threads]


FRAGMENTS = ["-movflags", "+frag_keyframe+empty_moov+default_base_moof"]
FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]


def writer(target, threads):
    return f"video.writer path={target} codec=h264 preset={PRESET} quality={QUALITY} threads={threads}"


def transcodes(build, film, target, threads):
    """(program, arguments) for each; None: the program is not there."""
    line = (f"video.file path={film} threads={threads} ! image.resize width=1280 height=720 ! draw.text text={TEXT} x=20 y=20 size=24 ! "
            + writer(target, threads))
    yield "millrace", [build / "millrace", "run", line, "--quiet", "--ticks", PICTURES["transcode"]]
    yield "ffmpeg", [*FFMPEG, "-threads", threads, "-i", film, "-frames:v", PICTURES["transcode"], "-filter_threads", threads, "-vf",
                     f"scale=1280:720:flags=bilinear,drawtext=text={TEXT}:x=20:y=20:fontsize=24:fontcolor=white", *x264(threads), *FRAGMENTS, target]
    yield "GStreamer", gst(f"{decoded(film, threads, PICTURES['transcode'])} ! videoscale method=bilinear n-threads={threads} ! video/x-raw,width=1280,height=720 ! "
                           f"textoverlay text={TEXT} ! {gst_writer(target, threads)}")


def walls(build, film, target, threads):
    count, side = PICTURES["wall"], 4
    films = [f"f{n}" for n in range(side * side)]
    line = " ; ".join([*(f"video.file name={name} path={film} threads=1 ! image.resize name={name}s width=480 height=270" for name in films),
                       f"image.composite name=wall width=1920 height=1080 columns={side} ! {writer(target, threads)}",
                       *(f"{name}s. ! wall.layers" for name in films)])
    yield "millrace", [build / "millrace", "run", line, "--quiet", "--ticks", count]
    places = "|".join(f"{480 * (n % side)}_{270 * (n // side)}" for n in range(side * side))
    graph = ";".join([*(f"[{n}:v]scale=480:270:flags=bilinear[s{n}]" for n in range(side * side)),
                      "".join(f"[s{n}]" for n in range(side * side)) + f"xstack=inputs={side * side}:layout={places}[out]"])
    inputs = [word for _ in films for word in ("-threads", 1, "-i", film)]
    yield "ffmpeg", [*FFMPEG, *inputs, "-filter_complex", graph, "-filter_complex_threads", threads, "-map", "[out]", "-frames:v", count,
                     *x264(threads), *FRAGMENTS, target]
    pads = " ".join(f"sink_{n}::xpos={480 * (n % side)} sink_{n}::ypos={270 * (n // side)}" for n in range(side * side))
    sources = " ".join(f"{decoded(film, 1, count)} ! videoscale method=bilinear ! video/x-raw,width=480,height=270 ! queue ! c.sink_{n}" for n in range(side * side))
    yield "GStreamer", gst(f"compositor name=c {pads} ! video/x-raw,width=1920,height=1080 ! {gst_writer(target, threads)} {sources}")


def starts(build, film, _target, threads):
    yield "millrace", [build / "millrace", "run", f"video.file path={film} threads={threads} ! null.sink", "--quiet", "--ticks", 1]
    yield "ffmpeg", [*FFMPEG, "-threads", threads, "-i", film, "-frames:v", 1, "-f", "null", "-"]
    yield "GStreamer", gst(f"{decoded(film, threads, 1)} ! fakesink")


def decoded(film, threads, count):
    return (f"filesrc location={film} ! qtdemux ! h264parse ! avdec_h264 max-threads={threads} ! identity eos-after={count}")


def gst_writer(target, threads):
    return (f"x264enc speed-preset={PRESET} pass=qual quantizer={CRF} key-int-max={GOP} threads={threads} ! h264parse ! "
            f"mp4mux fragment-duration=500 ! filesink location={target}")


def gst(graph):
    return ["gst-launch-1.0", "-q", *graph.split()] if HAS_GSTREAMER else None


PROCESSES = {"transcode": transcodes, "wall": walls, "start": starts}


def measure_rates(build, rounds):
    """Pictures a second of decoding and encoding, and copies a picture."""
    film, threads = film_of(build), len(os.sched_getaffinity(0))
    count, copied = PICTURES["encode"], []

    def decode_ours():
        rate, counted = ours(build, f"video.file name=in path={film} threads={threads} ! null.sink", PICTURES["decode"])
        copied.append(counted.get("pictures_copied", 0) / PICTURES["decode"])
        return rate

    jobs = {
        "decode": [("millrace", decode_ours),
                   ("ffmpeg", lambda: theirs(["-threads", threads, "-i", film, "-f", "null", "-"], PICTURES["decode"]))],
        "encode": [("millrace", lambda: ours(build, f"video.file name=in path={film} threads={threads} ! "
                                             + writer(encoded(build, "millrace"), threads), count)[0]),
                   ("ffmpeg", lambda: theirs(["-threads", threads, "-i", film, "-frames:v", count, *x264(threads), *FRAGMENTS,
                                              encoded(build, "ffmpeg")], count))],
    }
    figures = {(bench, name): [] for bench, pair in jobs.items() for name, _ in pair}
    for number in range(rounds):
        print(f"rates: round {number + 1} of {rounds}", file=sys.stderr)
        for bench, pair in jobs.items():
            for name, job in turned(pair, number):
                figures[bench, name].append(job())
    cases = {"decode": f"1080p H.264, {threads} threads", "encode": f"1080p, libx264 {PRESET}, {threads} threads"}
    rows = []
    for bench, case in cases.items():
        mine, other = figures[bench, "millrace"], figures[bench, "ffmpeg"]
        rows.append(row(bench, case, "millrace", "rate", "1/s", mine))
        rows.append(row(bench, case, "ffmpeg", "rate", "1/s", other))
        rows.append(row(bench, case, "millrace", "of_ffmpegs", "ratio", [a / b for a, b in zip(mine, other)]))
    rows.append(row("decode", cases["decode"], "millrace", "copies", "1/picture", copied))
    return rows + quality_rows(build, film, cases["encode"])


def encoded(build, name):
    return build / f"peers_media_{name}.mp4"


def quality_rows(build, film, case):
    """Bytes of the pictures and how near they are to the film, of what was encoded last."""
    size, near, rows = {}, {}, []
    for name in ("millrace", "ffmpeg"):
        path = encoded(build, name)
        packets = call(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=size", "-of", "csv=p=0", path]).stdout
        size[name] = sum(int(line.strip(",")) for line in packets.split())
        said = call(["ffmpeg", "-nostdin", "-i", path, "-i", film, "-frames:v", PICTURES["encode"], "-lavfi",
                     "[0:v]settb=1/30,setpts=N,split[a][b];[1:v]settb=1/30,setpts=N,split[c][d];[a][c]psnr;[b][d]ssim", "-f", "null", "-"]).stderr
        near[name] = float(re.search(r"average:([\d.]+)", said).group(1)), float(re.search(r"SSIM.*All:([\d.]+)", said).group(1))
        rows += [row("encode", case, name, "bytes", "MB", [size[name] / 1e6]), row("encode", case, name, "psnr", "dB", [near[name][0]]),
                 row("encode", case, name, "ssim", "", [near[name][1]])]
        path.unlink()
    rows.append(row("encode", case, "millrace", "bytes_of_ffmpegs", "ratio", [size["millrace"] / size["ffmpeg"]]))
    rows.append(row("encode", case, "millrace", "psnr_below_ffmpegs", "dB", [near["ffmpeg"][0] - near["millrace"][0]]))
    return rows


def measure_processes(build, rounds, only):
    """Rows of what whole processes take, with one thread and with two."""
    film, target, rows = film_of(build), build / "peers_media_out.mp4", []
    for bench, jobs_of in PROCESSES.items():
        for threads in (1, 2) if bench in only else ():
            jobs = [(name, arguments) for name, arguments in jobs_of(build, film, target, threads) if arguments]
            took = {name: [] for name, _ in jobs}
            for number in range(rounds):
                print(f"{bench}, {threads} threads: round {number + 1} of {rounds}", file=sys.stderr)
                for name, arguments in turned(jobs, number):
                    took[name].append(Measured(arguments))
            rows += process_rows(bench, f"{threads} thread{'s' * (threads > 1)}", took)
    target.unlink(missing_ok=True)
    return rows


def process_rows(bench, case, took):
    rows = []
    for name, all_of_it in took.items():
        rows.append(row(bench, case, name, "processors", "s", [one.cpu_s for one in all_of_it]))
        rows.append(row(bench, case, name, "wall", "s", [one.wall_s for one in all_of_it]))
    for other in (name for name in took if name != "millrace"):
        for metric, field in (("processors", "cpu_s"), ("wall", "wall_s")):
            ratios = [getattr(a, field) / getattr(b, field) for a, b in zip(took["millrace"], took[other])]
            rows.append(row(bench, case, "millrace", f"{metric}_of_{other.lower()}s", "ratio", ratios))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", default=["rates", *PROCESSES], choices=["rates", *PROCESSES])
    arguments = parser.parse_args()
    rows = measure_rates(arguments.build, arguments.rounds) if "rates" in arguments.only else []
    rows += measure_processes(arguments.build, arguments.rounds, arguments.only)
    version = call(["ffmpeg", "-version"]).stdout.split()[2]
    missing = [] if HAS_GSTREAMER else ["GStreamer is not measured: gst-launch-1.0 is not there; install gstreamer1.0-tools"]
    arguments.out.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "ffmpeg": version,
                                         "load": os.getloadavg()[0], "priority": priority(), "rows": rows, "missing": missing},
                                        indent=1, ensure_ascii=False) + "\n")
    for line in rows:
        print(f"{line['bench']:9} {line['case']:34} {line['program']:10} {line['metric']:24} "
              f"{line['p50']:12.3f} {line['p99']:12.3f} {line['unit']}")


if __name__ == "__main__":
    main()
