#!/usr/bin/env python3
"""Faults that people met, each as a short row: what is done, and what must be seen.

usage: trials.py MILLRACE [NAME…]

Each row runs in a folder of its own and stands for its kind; the tests of the part that it concerns have the siblings.
Rows run side by side. The exit code is 0 if all rows are right. Rows whose tools are missing are left out and named.
"""
import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 40  # a step that takes longer hangs
SIDE_BY_SIDE = 6  # most rows wait for something
ROWS = []


class Wrong(Exception):
    pass


def row(needs=""):
    def add(function):
        ROWS.append((function.__name__, needs.split(), function))
        return function
    return add


def must(condition, words):
    if not condition:
        raise Wrong(words)


class Seen:
    """What a command did."""

    def __init__(self, code, said, report):
        self.code, self.said, self.report = code, said, report

    def must_say(self, *words):
        """At least one of the words."""
        must(any(word.lower() in self.said.lower() for word in words), f"none of {words} is said: {self.said[:300]}")

    def must_be_done(self):
        must(self.code == 0, f"exit code {self.code}: {self.said[:300]}")
        return self


class Trial:
    def __init__(self, millrace, folder):
        self.millrace, self.folder = millrace, folder
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(runtime), "XDG_CONFIG_HOME": str(folder / "config"),
                                         "XDG_CACHE_HOME": str(folder / "cache")}
        self.started = []

    def tool(self, *arguments, seconds=SECONDS_MAX):
        result = subprocess.run(arguments, cwd=self.folder, capture_output=True, timeout=seconds,
                                stdin=subprocess.DEVNULL)
        must(result.returncode == 0, f"{arguments[0]} failed: {result.stderr.decode(errors='replace')[:300]}")
        return result.stdout

    def ffmpeg(self, *arguments):
        return self.tool("ffmpeg", "-v", "error", "-y", *arguments)

    def film(self, name, *codec, count=25, rate=25, filters=None):
        self.ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=64x48:rate={rate}", *(["-vf", filters] if filters else []),
                    "-frames:v", str(count), *codec, name)

    def duration_s(self, name):
        return float(self.tool("ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", name))

    def call(self, *arguments, **environment):
        result = subprocess.run([self.millrace, *arguments], cwd=self.folder, env=self.environment | environment,
                                capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        return Seen(result.returncode, result.stdout + result.stderr, None)

    def run(self, pipeline, *arguments, **environment):
        (self.folder / "report.json").unlink(missing_ok=True)
        seen = self.call("run", pipeline, "--json", "report.json", "--progress", "none", *arguments, **environment)
        if (self.folder / "report.json").exists():
            seen.report = json.loads((self.folder / "report.json").read_text())
            seen.said += json.dumps(seen.report.get("handlers", {}), ensure_ascii=False)
        return seen

    def write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def start(self, *arguments, **environment):
        """A run that goes on; `text()` is what it has said so far."""
        said = self.folder / f"said{len(self.started)}.txt"
        with open(said, "w") as file:
            process = subprocess.Popen([self.millrace, "run", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       env=self.environment | environment, stdout=file, stderr=file)
        process.text = said.read_text
        self.started.append(process)
        return process

    def until(self, condition, process=None):
        """Waits until the condition holds; returns what it gave."""
        pause = threading.Event()
        for _ in range(SECONDS_MAX * 20):
            if value := condition():
                return value
            must(process is None or process.poll() is None, f"the run has ended: {process and process.text()[-300:]}")
            pause.wait(0.05)
        raise Wrong("what was waited for has not come")

    def answers(self, process):
        return self.call("streams", "list", "-p", str(process.pid)).code == 0

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def served(answer):
    """An HTTP server whose GET is `answer(handler)`; its address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            with contextlib.suppress(OSError):
                answer(self)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


# ---- addresses and what is said of them ------------------------------------------------------------------------------


@row("media")
def a_password_is_hidden(t):
    seen = t.run("video.file path=rtsp://admin:s3cret@127.0.0.1:9/x timeout=1s ! null.sink", "--log-file", "log")
    seen.must_say("127.0.0.1:9")
    must("s3cret" not in seen.said + (t.folder / "log").read_text(), "the password is shown")


@row("media ffmpeg")
def a_loss_that_is_final_is_not_called_one_that_is_mended(t):
    t.film("f.jpg", count=1)
    picture = (t.folder / "f.jpg").read_bytes()

    def motion_jpeg(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "multipart/x-mixed-replace; boundary=b")
        handler.end_headers()
        for _ in range(30):
            handler.wfile.write(b"--b\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture) + picture +
                                b"\r\n")

    with served(motion_jpeg) as address:
        seen = t.run(f"video.file path=http://{address}/x timeout=1s reconnect=0 ! null.sink", "--log-file", "log")
    said = seen.said + (t.folder / "log").read_text()
    must("opened again" not in said, f"reconnect=0, and yet: {said[:300]}")


@row("media ffmpeg")
def a_film_with_its_index_at_the_end_is_read_or_the_cause_is_told(t):
    t.film("f.mp4", "-c:v", "mpeg4")
    film = (t.folder / "f.mp4").read_bytes()

    def without_ranges(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(film)))
        handler.end_headers()
        handler.wfile.write(film)

    with served(without_ranges) as address:
        seen = t.run(f"video.file path=http://{address}/f.mp4 timeout=5s ! null.sink")
    if seen.code != 0:
        seen.must_say("index", "moov", "range")


# ---- films -----------------------------------------------------------------------------------------------------------


@row("media ffmpeg")
def a_clock_of_the_films_rate_shows_each_picture_once(t):
    for rate in ("24", "30000/1001", "30", "60"):
        for kind in ("mkv", "mp4", "ts"):
            t.film(f"f.{kind}", "-c:v", "mpeg4", rate=rate, count=60)
            edge = t.run(f"video.file path=f.{kind} ! null.sink", "--clock", "free", "--rate",
                         rate).must_be_done().report["edges"][0]
            must(edge["delivered"] == 60 and not any(edge["dropped"].values()), f"{kind} of {rate}: {edge}")


@row("media ffmpeg")
def a_realtime_clock_of_the_films_rate_loses_none_but_for_beats_that_it_skips(t):
    t.film("f.mkv", "-c:v", "ffv1", rate=30, count=60)
    report = t.run("video.file path=f.mkv ! null.sink", "--clock", "realtime").must_be_done().report
    lost = 60 - report["edges"][0]["delivered"]
    must(lost <= report["ticks"]["skipped"] + report["ticks"]["late"], f"{lost} of 60 pictures are lost: {report['ticks']}")


def with_a_pause(t, seconds):
    t.film("in.mkv", "-fps_mode", "passthrough", "-c:v", "ffv1", count=50,
           filters=f"setpts='(N+gte(N,25)*25*{seconds})/25/TB'")


@row("media ffmpeg ffprobe")
def a_pause_of_two_hours_is_kept(t):
    with_a_pause(t, 7200)
    t.run("video.file path=in.mkv ! video.writer path=out.mkv codec=ffv1").must_be_done()
    must(abs(t.duration_s("out.mkv") - 7202) < 1, f"it lasts {t.duration_s('out.mkv')} s, not 7202")


@row("media ffmpeg ffprobe")
def a_pause_of_fifty_minutes_can_be_recorded(t):
    with_a_pause(t, 3000)
    for codec in ("", " codec=mpeg4"):
        for kind in ("mp4", "mov"):
            t.run(f"video.file path=in.mkv ! video.writer path=out.{kind}{codec}").must_be_done()
            must(abs(t.duration_s(f"out.{kind}") - 3002) < 1, f"{kind}{codec} lasts {t.duration_s(f'out.{kind}')} s")


@row("media ffmpeg libx264")
def a_film_that_its_stream_crops_at_the_left_is_read(t):
    t.film("in.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-bsf:v", "h264_metadata=crop_left=16", count=5)
    t.ffmpeg("-i", "in.mp4", "-f", "rawvideo", "-pix_fmt", "yuv420p", "want.raw")
    t.run("video.file path=in.mp4 ! file.raw_writer path=got.raw").must_be_done()
    must((t.folder / "want.raw").read_bytes() == (t.folder / "got.raw").read_bytes(), "the pictures are not FFmpeg's")


@row("media ffmpeg")
def transparency_is_kept_or_its_loss_is_told(t):
    t.film("in.mkv", "-c:v", "png", count=5, filters="format=rgba,colorchannelmixer=aa=0.5")
    for codec, kind in (("vp9", "webm"), ("prores", "mov")):
        seen = t.run(f"video.file path=in.mkv ! video.writer path=out.{kind} codec={codec}")
        if "alpha" in seen.said.lower() or "transparen" in seen.said.lower():
            continue
        seen.must_be_done()
        decoder = ["-c:v", "libvpx-vp9"] if codec == "vp9" else []
        t.ffmpeg(*decoder, "-i", f"out.{kind}", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgba", "a.raw")
        least = min((t.folder / "a.raw").read_bytes()[3::4])
        must(least < 200, f"{codec}: half transparent pictures are opaque without a word")


@row("media ffmpeg")
def a_shape_of_pixels_that_changes_is_told(t):
    for at, shape in enumerate(("1/1", "4/3")):
        t.film(f"{at}.ts", "-c:v", "mpeg2video", "-output_ts_offset", str(at), filters=f"setsar={shape}")
    t.write("in.ts", (t.folder / "0.ts").read_bytes() + (t.folder / "1.ts").read_bytes())
    t.run("video.file path=in.ts ! null.sink").must_say("shape", "aspect")


@row("media")
def a_private_film_is_replaced_by_a_private_one(t):
    t.write("a.mkv", "old")
    (t.folder / "a.mkv").chmod(0o600)
    t.run("test.pattern width=64 height=48 fps=25 count=5 ! video.writer path=a.mkv codec=ffv1").must_be_done()
    mode = (t.folder / "a.mkv").stat().st_mode & 0o777
    must(mode == 0o600, f"its mode is {mode:o}")


@row("media ffprobe")
def ffmpeg_reads_a_list_of_segments_with_colons_in_their_names(t):
    t.run("test.pattern width=64 height=48 fps=25 count=75 ! "
          "video.writer path='s/12:30 %d.mkv' segment=1s list=s/all.txt codec=ffv1").must_be_done()
    read = t.tool("ffprobe", "-v", "error", "-f", "concat", "-safe", "0", "-count_frames", "-show_entries",
                  "stream=nb_read_frames", "-of", "csv=p=0", "s/all.txt")
    must(read.strip() == b"75", f"ffprobe reads {read!r} pictures of 75")


@row("media ffmpeg")
def files_of_any_name_are_streams(t):
    (t.folder / "g").mkdir()
    for name in ("ü", "日本", "#"):
        t.film(f"g/{name}.y4m", "-pix_fmt", "yuv420p", count=5)
    t.write("p.yaml", "version: 1\nstreams: { c: { items: { glob: 'g/*' } } }\nhandlers:\n"
            "  v: { type: video.file, for_each: c, path: '{path}' }\n  s: { type: null.sink, for_each: c, input: v }\n")
    streams = t.run("p.yaml").must_be_done().report["streams"]["c"]
    must([one["ticks"] for one in streams.values()] == [5, 5, 5] and "" not in streams, f"the streams are {streams}")


# ---- pictures --------------------------------------------------------------------------------------------------------

# As they are to be seen: two rows of four.
SEEN = [[(250, 10, 20), (20, 240, 30), (40, 50, 230), (220, 210, 60)],
        [(0, 0, 0), (90, 90, 90), (180, 180, 180), (250, 250, 250)]]
# Stored on its side: orientation 6 turns it clockwise to be seen.
STORED = [[SEEN[x][3 - y] for x in range(2)] for y in range(4)]
EXIF_6 = b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x112, 3, 1, 6, 0, 0)


def bytes_of(rows, *alpha):
    return b"".join(bytes(pixel) + bytes(alpha) for line in rows for pixel in line)


def must_be_seen(t, name, alpha=None):
    t.run(f"image.file path={name}" + (" alpha=true" if alpha else "") + " ! file.raw_writer path=got.raw").must_be_done()
    got = (t.folder / "got.raw").read_bytes()
    want = bytes_of([[pixel[::-1] for pixel in line] for line in SEEN], *([alpha] if alpha else []))
    must(len(got) == len(want) and max(abs(a - b) for a, b in zip(got, want)) <= 2, f"{name} is turned or coloured: {got!r}")


@row("opencv")
def a_png_with_alpha_is_turned_upright(t):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + bytes_of([line], 255) for line in STORED)
    t.write("a.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 4, 8, 6, 0, 0, 0)) +
            chunk(b"eXIf", EXIF_6) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    must_be_seen(t, "a.png")
    must_be_seen(t, "a.png", 255)


@row("opencv ffmpeg libwebp")
def a_webp_is_turned_upright(t):
    t.write("a.rgb", bytes_of(STORED))
    t.ffmpeg("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "2x4", "-i", "a.rgb", "-c:v", "libwebp", "-lossless", "1",
             "-pix_fmt", "bgra", "plain.webp")
    plain = (t.folder / "plain.webp").read_bytes()
    image = plain[plain.index(b"VP8L"):]
    exif = b"EXIF" + struct.pack("<I", len(EXIF_6)) + EXIF_6
    head = b"VP8X" + struct.pack("<IB", 10, 8) + bytes([0, 0, 0, 1, 0, 0, 3, 0, 0])
    body = b"WEBP" + head + image[:8 + (struct.unpack("<I", image[4:8])[0] + 1) // 2 * 2] + exif
    t.write("a.webp", b"RIFF" + struct.pack("<I", len(body)) + body)
    must_be_seen(t, "a.webp")


@row("opencv")
def a_tiff_with_straight_alpha_keeps_its_colours(t):
    data = bytes_of(SEEN, 100)
    tags = {256: 4, 257: 2, 258: None, 259: 1, 262: 2, 273: None, 277: 4, 278: 2, 279: len(data), 284: 1, 338: 2}
    at = 8 + 2 + 12 * len(tags) + 4
    entries = b""
    for tag, value in tags.items():
        is_bits = tag == 258
        place = at if is_bits else at + 8
        entries += struct.pack("<HHII", tag, 3 if is_bits else 4, 4 if is_bits else 1, place if value is None else value)
    t.write("a.tif", b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + struct.pack("<4H", 8, 8, 8, 8) + data)
    must_be_seen(t, "a.tif", 100)


@row("opencv ffmpeg")
def an_animated_gif_is_read_or_the_cause_is_told(t):
    t.film("a.gif", count=5)
    seen = t.run("image.file path=a.gif ! null.sink")
    if seen.code != 0:
        seen.must_say("anim", "video.file", "gif is", "not supported")


@row("opencv ffmpeg")
def pictures_of_a_folder_with_brackets_are_found(t):
    (t.folder / "shots [1]").mkdir()
    t.film("shots [1]/f%d.png", count=3)
    t.write("shots [1]/p.yaml", "version: 1\nhandlers:\n  v: { type: image.file, path: '*.png' }\n"
            "  s: { type: null.sink, input: v }\n")
    must(t.run("shots [1]/p.yaml").must_be_done().report["ticks"]["run"] == 3, "not all three are read")


@row()
def letters_that_the_font_lacks_are_drawn_by_another_or_told(t):
    t.write("p.yaml", "version: 1\nhandlers:\n  a: { type: test.pattern, width: 64, height: 48, count: 1 }\n"
            "  t: { type: draw.text, input: a, text: '\U00013000\u30ab' }\n  s: { type: null.sink, input: t }\n")
    t.run("p.yaml").must_be_done().must_say("font", "glyph", "letter", "character")


# ---- values ----------------------------------------------------------------------------------------------------------


@row()
def a_whole_number_may_be_written_with_a_point(t):
    for text in ("5.0", "5e0", "0.5e1"):
        t.write("i.jsonl", '{"tick":0,"schema":"millrace.Box","records":'
                f'[{{"x":1,"y":2,"width":3,"height":4,"label":2.0,"id":{text}}}]}}\n')
        t.run("record.from_json path=i.jsonl ! record.to_json path=o.jsonl").must_be_done()
        must('"id":5' in (t.folder / "o.jsonl").read_text(), f"{text} is not 5")


@row("cc")
def numbers_have_a_point_under_a_locale_with_a_comma(t):
    # LC_NUMERIC as glibc keeps it: comma, point, groups of three, both again as wide characters, the code set.
    fields = [b",\0", b".\0", b"\3\3\0\0", struct.pack("<I", 44), struct.pack("<I", 46), b"UTF-8\0"]
    offsets, at = [], 8 + 4 * len(fields)
    for field in fields:
        offsets.append(at)
        at += len(field)
    t.write("locales/comma/LC_NUMERIC", struct.pack("<II6I", 0x20031114, len(fields), *offsets) + b"".join(fields))
    t.write("host.c", '#include <locale.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) {\n'
            '  if (!setlocale(LC_NUMERIC, "comma")) abort();\n}\n')
    t.tool("cc", "-shared", "-fPIC", "host.c", "-o", "host.so")
    t.run("test.pattern width=64 height=48 count=3 ! image.blur sigma=2.5 ! null.sink", LOCPATH=str(t.folder / "locales"),
          LD_PRELOAD=str(t.folder / "host.so")).must_be_done()


@row("media opencv ffmpeg")
def detections_into_a_window_are_told_to_be_drawn_first(t):
    t.film("f.mkv", "-c:v", "ffv1", count=5)
    seen = t.run("video.file path=f.mkv ! detect.people ! view.window")
    must(seen.code == 3, f"exit code {seen.code}")
    seen.must_say("draw.boxes")


# Input that people gave, and a word of the answer that helps: mostly the edit, which is tried too where it runs.
MISTYPED = (
    ("video.file path=f.mkv ! view.window", 1, "view.window without_display=discard"),
    ("video.file path=f.mkv ! video.writer path=x.mp5", 3, "path=x.mp4"),
    ("video.file path=f.mkv ! video.writer x.mp4", 3, "try: path=x.mp4"),
    ("video.file f.mkv ! null.sink", 3, "try: path=f.mkv"),
    ("video.file path=f.mkv ! image.resize 32x24 ! null.sink", 3, "try: width=32 height=24"),
    ("video.file path=f.mkv ! image.resize scale=0.5 ! null.sink", 3, "try: width="),
    ("video.file path=f.mkv ! detect.yolo ! null.sink", 3, "try: model.run"),
    ("video.file path=f.mkv ! onnx.infer model=yolo.onnx ! null.sink", 3, "try: model.run"),
    ("video.file path=f.mkv ! draw.boxes ! detect.people ! null.sink", 0, "is not connected"),
    ("video.file path=f.mkv ! detect.people ! view.window", 3, "people. ! boxes.boxes"),
    ("video.file path=f.mkv ! detect.people ! video.writer path=z.mp4", 3, "people. ! boxes.boxes"),
    ("test.pattern fps=30 count=30 ! video.writer path=rtsp://127.0.0.1:9/live", 1, "nothing takes connections there"),
    ("test.pattern fps=30 count=30 ! video.writer path=http://127.0.0.1:9/live", 1, "nothing takes connections there"))


@row("media opencv ffmpeg")
def what_people_mistype_is_answered_with_what_they_meant(t):
    t.film("f.mkv", "-c:v", "ffv1", count=3)
    for pipeline, code, words in MISTYPED:
        seen = t.run(pipeline, DISPLAY="", WAYLAND_DISPLAY="")
        must(seen.code == code, f"exit code {seen.code} of {pipeline}: {seen.said[:300]}")
        must(words in seen.said, f"{words} is not said of {pipeline}: {seen.said[:400]}")
        edits = [line[len("  try: '"):-1] for line in seen.said.splitlines() if line.startswith("  try: 'video.file")]
        for edit in edits:  # a whole pipeline
            must(t.call("check", edit).code == 0, f"the edit is refused: {edit}")
    t.call("run", "test.pattern ! null.sink", "--ticks", "ten").must_say("--ticks 100")
    t.call("new", "my", "plugin").must_say("try: millrace new my_plugin --name")


@row("media ffmpeg")
def an_error_at_the_end_of_a_run_comes_before_its_numbers(t):
    said = t.run(MISTYPED[-1][0]).said
    numbers = re.search(r"\d+ ticks? in ", said)  # one tick, if the machine is busy
    must(numbers and said.index("error MR0601") < numbers.start(), said[:300])


# A plugin whose items do what they are told to, and one handler that works on single ticks and on items.
ITEMS = r"""
#include <millrace/handler.h>
#include <stdexcept>
#include <string>
namespace mr = millrace;
namespace {
struct Bad final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in"};
  mr::Output<mr::Tensor> out{*this, "out", mr::dense};
  mr::Param<std::string> does{*this, "does", "nothing", "its mistake"};
  Bad() { items(8); }
  void configure(const mr::Formats& formats) override { formats.tensor(out, mr::dtype_of<int64_t>(), {4}); }
  void process(mr::Items& items, mr::Cpu&) {
    for (mr::Tick& item : items) {
      if (*does == "throw") throw std::runtime_error("told to fail");
      if (*does == "wait") item.not_yet();
      const int64_t shape[] = {*does == "shrink" ? -5 : 4};
      if (*does == "chatter") item.fail(std::string(100'000, 'x').c_str());
      else out.allocate(item, *does == "turn" ? mr::dtype_of<float>() : mr::dtype_of<int64_t>(), shape);
    }
  }
};
template <bool kItems> struct Marks final : mr::Handler {
  mr::Input<mr::Image> in{*this, "in"};
  mr::Output<mr::Image> out{*this, "out", mr::like(in)};
  Marks() { if constexpr (kItems) items(4); }
  void work(mr::Tick& tick) {
    if (tick.index() % 7 == 3) return; // silent
    if (tick.index() % 7 == 5) return tick.fail("told to fail");
    const mr::ImageView from = in(tick);
    const mr::ImageSpan to = out.allocate_like(tick, from);
    for (uint32_t y = 0; y < from.height(); ++y)
      for (uint32_t x = 0; x < from.width(); ++x) to.row(y)[x] = static_cast<uint8_t>(from.row(y)[x] + tick.index());
  }
  void process(mr::Tick& tick, mr::Cpu&) requires(!kItems) { work(tick); }
  void process(mr::Items& items, mr::Cpu&) requires kItems {
    for (mr::Tick& item : items) work(item);
  }
};
using Each = Marks<false>;
using Many = Marks<true>;
} // namespace
MILLRACE_HANDLER(Bad, "trial.bad", "Does what items should not")
MILLRACE_HANDLER(Each, "trial.each", "Marks pictures, one at a time")
MILLRACE_HANDLER(Many, "trial.many", "Marks pictures, several at a time")
MILLRACE_PLUGIN("trial", "1.0")
"""


def items_plugin(t):
    t.write("items.cpp", ITEMS)
    (t.folder / "plug").mkdir()
    t.tool("c++", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-I", str(ROOT / "runtime" / "include"),
           "items.cpp", "-o", "plug/trial.so", seconds=300)


def of_three_streams(t, worker):
    t.write("p.yaml", "version: 1\nclock: { mode: free }\nstreams: { cams: { items: { a: {}, b: {}, c: {} } } }\nhandlers:\n"
            "  video: { type: test.pattern, for_each: cams, width: 16, height: 16, format: gray8, count: 40 }\n"
            f"  work: {{ {worker} }}\n")
    return "p.yaml"


@row("c++")
def mistakes_of_item_bodies_are_found_and_named(t):
    items_plugin(t)
    for does, words in (("throw", "told to fail"), ("wait", "it has inputs and says that it has nothing"),
                        ("shrink", "the tensor's shape [-5] has a negative dimension"), ("chatter", "xxx"), ("turn", "is of float32, and int64 was planned")):
        pipeline = of_three_streams(t, f"type: trial.bad, input: video, does: {does} }}\n"
                                       "  end: { type: null.sink, for_each: cams, input: work")
        seen = t.run(pipeline, "--plugin-path", "plug")
        must((seen.code, seen.report["ok"]) == (1, False), f"{does}: exit code {seen.code}")
        error = seen.report["error"]["what"]
        must(words in error and "work (trial.bad) failed at tick 0" in error, f"{does}: {error[:300]}")
        must(len(error) < 5000, f"{does}: the error has {len(error)} letters")


@row("c++")
def items_give_what_single_ticks_give(t):
    items_plugin(t)
    written = []
    for worker in ("type: trial.each, for_each: cams", "type: trial.many"):
        pipeline = of_three_streams(t, f"{worker}, input: video, on_error: skip }}\n"
                                       "  save: { type: file.raw_writer, for_each: cams, input: work, path: '{stream}.raw'")
        seen = t.run(pipeline, "--plugin-path", "plug").must_be_done()
        must(seen.report["handlers"]["work"]["errors"] == 3 * 5, f"errors: {seen.report['handlers']['work']['errors']}")
        written.append([(t.folder / f"{stream}.raw").read_bytes() for stream in "abc"])
    must(written[0] == written[1], f"bytes: {[[len(one) for one in all_of_it] for all_of_it in written]}")
    must([len(one) for one in written[0]] == [29 * 256] * 3, "each stream has 29 pictures")


# ---- runs and how they end -------------------------------------------------------------------------------------------


@row()
def a_run_whose_streams_have_all_failed_has_failed(t):
    t.write("p.yaml", "version: 1\nclock: { mode: free }\n"
            "streams: { cams: { items: { a: { o: /dev/full }, b: { o: /dev/./full } } } }\nhandlers:\n"
            "  video: { type: test.pattern, for_each: cams, width: 64, height: 48, count: 400 }\n"
            "  blur: { type: image.blur, input: video }\n"
            "  save: { type: file.raw_writer, for_each: cams, input: blur, path: '{o}' }\n")
    seen = t.run("p.yaml")
    must((seen.code, seen.report["ok"]) == (1, False), f"exit code {seen.code}, ok {seen.report['ok']}")


TWIN = ("version: 1\nname: twin\nclock: { mode: realtime, rate: 20 }\nhandlers:\n"
        "  a: { type: test.pattern, width: 64, height: 48 }\n  z: { type: null.sink, input: a }\n")


def hold_places(t, process):
    """Sixteen clients that say nothing."""
    clients = []
    for _ in range(16):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(t.folder / "runtime" / "millrace" / f"{process.pid}.sock"))
        clients.append(client)
    return clients


@row()
def silent_clients_lock_nobody_out_and_a_name_that_is_not_clear_stops_nobody(t):
    t.write("twin.yaml", TWIN)
    first = t.start("twin.yaml", "--quiet")
    t.until(lambda: t.answers(first), first)
    second = t.start("twin.yaml", "--quiet")
    t.until(lambda: t.answers(second), second)
    clients = hold_places(t, first)
    stopped = t.call("stop", "-p", "twin")
    must(stopped.code != 0 and second.poll() is None and first.poll() is None, f"one of two was stopped: {stopped.said}")
    t.call("stop", "-p", str(first.pid)).must_be_done()
    must(first.wait(SECONDS_MAX) == 0, "the run that was stopped did not end well")
    for client in clients:
        client.close()


@row()
def a_stream_that_came_is_named_by_its_name(t):
    t.write("doors.yaml", "version: 1\nname: doors\nclock: { mode: realtime, rate: 20 }\n"
            "streams: { cameras: { max: 3, items: { gate: {} } } }\nhandlers:\n"
            "  video: { type: test.pattern, for_each: cameras, width: 64, height: 48 }\n"
            "  blur: { type: image.blur, for_each: cameras, input: video, sigma: 2 }\n"
            "  show: { type: null.sink, for_each: cameras, input: blur }\n")
    run = t.start("doors.yaml", "--quiet")
    t.until(lambda: t.answers(run), run)
    t.call("streams", "add", "-p", str(run.pid), "hall").must_be_done()
    ticks = json.loads(t.call("set", "-p", str(run.pid), "blur.sigma=3", "--json").must_be_done().said)["ticks"]
    must(sorted(ticks) == ["gate", "hall"], f"the clocks are called {sorted(ticks)}")


@row("media ffmpeg")
def a_wall_of_eight_cameras_says_little_before_its_first_picture(t):
    t.film("f.mkv", "-c:v", "ffv1", count=10)
    items = ", ".join(f"c{i}: {{ path: f.mkv }}" for i in range(8))
    t.write("wall.yaml", f"version: 1\nstreams: {{ cameras: {{ on_error: restart, items: {{ {items} }} }} }}\n"
            "clocks: { cameras: { mode: realtime }, wall: { mode: realtime, rate: 10 } }\nhandlers:\n"
            "  video: { type: video.file, for_each: cameras, path: '{path}', threads: 1 }\n"
            "  name: { type: draw.text, for_each: cameras, input: video, text: '{stream}' }\n"
            "  wall: { type: image.composite, clock: wall, input: { from: name, policy: latest }, layout: grid,"
            " width: 96, height: 72, missing: background }\n  show: { type: null.sink, input: wall }\n")
    notes = [line for line in t.run("wall.yaml", "--ticks", "5").said.splitlines() if line.startswith("note:")]
    must(len(notes) <= 3, f"{len(notes)} notes: {notes[:4]}")


# ---- nodes -----------------------------------------------------------------------------------------------------------


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Nodes:
    """The nodes of a pipeline on this machine, which know each other."""

    def __init__(self, t, names, pipeline):
        self.t, self.names, self.ports = t, names, free_ports(len(names))
        addresses = ", ".join(f'{name}: {{ address: "127.0.0.1:{port}" }}' for name, port in zip(names, self.ports))
        t.write("n.yaml", f"version: 1\nnodes: {{ {addresses} }}\nclock: {{ mode: realtime, rate: 50 }}\nhandlers:\n" +
                pipeline)
        ids = {name: t.call("identity", **self.home(name)).said.split()[0] for name in names}
        for name in names:
            for other in names:
                if other != name:
                    t.call("nodes", "add", other, ids[other], **self.home(name)).must_be_done()

    def home(self, name):
        return {"XDG_CONFIG_HOME": str(self.t.folder / name), "XDG_CACHE_HOME": str(self.t.folder / name)}

    def start(self, listen="127.0.0.1"):
        """The first one listens at this host."""
        hosts = [listen] + ["127.0.0.1"] * (len(self.names) - 1)
        return [self.t.start("n.yaml", "--node", name, "--listen", f"{host}:{port}", "--patience", "3s", **self.home(name))
                for name, host, port in zip(self.names, hosts, self.ports)]


@row()
def a_node_that_listens_at_all_addresses_is_reached_by_ipv4(t):
    if not pathlib.Path("/proc/net/if_inet6").exists():
        return
    nodes = Nodes(t, ("edge", "gpu"), "  v: { type: test.pattern, node: edge, width: 32, height: 32, count: 20 }\n"
                  "  s: { type: null.sink, node: gpu, input: v }\n")
    for process in nodes.start("[::]"):
        must(process.wait(SECONDS_MAX) == 0, process.text()[-300:])


ROW_OF_NODES = ("  camera: { type: test.pattern, node: edge, count: COUNT, width: 64, height: 48 }\n"
                "  blur: { type: image.blur, node: gpu, input: camera }\n"
                "  turn: { type: image.flip, node: cloud, input: blur }\n"
                "  save: { type: null.sink, node: edge, input: turn }\n")


def all_ready(process):
    return "all nodes are ready" in process.text()


@row()
def a_live_change_goes_to_the_node_of_its_handler(t):
    processes = Nodes(t, ("edge", "gpu", "cloud"), ROW_OF_NODES.replace("COUNT", "0")).start()
    t.until(lambda: all_ready(processes[0]), processes[0])
    for sigma, process in enumerate(processes, 3):
        t.until(lambda asked=process: t.answers(asked), process)
        t.call("set", "-p", str(process.pid), f"blur.sigma={sigma}").must_be_done().must_say("from tick")


@row()
def nodes_go_on_or_end_without_one_in_the_middle(t):
    processes = Nodes(t, ("edge", "gpu", "cloud"), ROW_OF_NODES.replace("COUNT", "100")).start()
    t.until(lambda: all_ready(processes[0]), processes[0])
    processes[1].send_signal(signal.SIGKILL)
    for process in (processes[0], processes[2]):
        process.wait(SECONDS_MAX)


# ---- running them ----------------------------------------------------------------------------------------------------


def tools(millrace):
    have = {name for name in ("ffmpeg", "ffprobe", "cc", "c++") if shutil.which(name)}
    listed = subprocess.run([millrace, "handlers"], capture_output=True, text=True, timeout=SECONDS_MAX).stdout
    have |= {plugin for plugin, handler in (("media", "video.file"), ("opencv", "image.file")) if handler in listed}
    if "ffmpeg" in have:
        encoders = subprocess.run(["ffmpeg", "-hide_banner", "-encoders"], capture_output=True, text=True).stdout
        have |= {name for name in ("libx264", "libwebp") if name in encoders}
    return have


def try_row(millrace, function):
    """"" if it is right, else what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        t = Trial(millrace, pathlib.Path(folder))
        try:
            function(t)
            return ""
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            return str(wrong)
        except Exception:  # a row that cannot be tried is not right
            return traceback.format_exc()
        finally:
            t.end()


def main():
    millrace, chosen = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    have = tools(millrace)
    rows = [one for one in ROWS if not chosen or one[0] in chosen]
    must(rows, f"there are no such rows; there are: {', '.join(name for name, _, _ in ROWS)}")
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        tried = {}
        for name, needs, function in rows:
            if have.issuperset(needs):
                tried[pool.submit(try_row, millrace, function)] = name
            else:
                print(f"left out  {name.replace('_', ' ')}: lacks {', '.join(set(needs) - have)}", flush=True)
        for future in concurrent.futures.as_completed(tried):
            words = future.result()
            wrong += bool(words)
            print(f"{'wrong' if words else 'right':9} {tried[future].replace('_', ' ')}" + (f": {words}" if words else ""),
                  flush=True)
    print(f"{len(rows)} rows, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
