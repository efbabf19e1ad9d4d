#!/usr/bin/env python3
"""Reads with ffprobe and ffmpeg what video.writer has written: pictures, times, tags, codecs, and what may go wrong.

usage: written.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import json
import os
import re
import struct
import subprocess
import threading

import corpus
import rig
from rig import (FFMPEG, Media, call, counts, environment, fraction, frame_md5s, looked_at, probe, said, times_ns,
                 video_stream)

NS = 10**9
TIME_SLACK_NS = 1000  # what a time base of a millionth of a second loses
MILLISECOND_SLACK_NS = 10**6  # Matroska and FLV count in milliseconds
PATTERN = "test.pattern width=96 height=64 fps=10 count=20"
# Container, parameters → codec and pixel format as ffprobe says them; the encoder that it needs; a tick of its times.
CODED = [
    ("mp4", "", "h264", "yuv420p", "libx264"), ("mov", "", "h264", "yuv420p", "libx264"),
    ("m4v", "", "h264", "yuv420p", "libx264"), ("mkv", "", "h264", "yuv420p", "libx264"),
    ("ts", "", "h264", "yuv420p", "libx264"), ("m2ts", "", "h264", "yuv420p", "libx264"),
    ("flv", "", "h264", "yuv420p", "libx264"), ("webm", "", "vp9", "yuv420p", "libvpx-vp9"),
    ("avi", "", "mpeg4", "yuv420p", "mpeg4"), ("gif", "", "gif", "bgra", "gif"), ("y4m", "", "rawvideo", "yuv420p", None),
    ("mp4", "codec=hevc", "hevc", "yuv420p", "libx265"), ("mkv", "codec=hevc", "hevc", "yuv420p", "libx265"),
    ("webm", "codec=vp8", "vp8", "yuv420p", "libvpx"), ("mp4", "codec=av1", "av1", "yuv420p", "libsvtav1"),
    ("mkv", "codec=av1", "av1", "yuv420p", "libsvtav1"), ("mp4", "codec=mpeg4", "mpeg4", "yuv420p", "mpeg4"),
    ("ts", "codec=mpeg2", "mpeg2video", "yuv420p", "mpeg2video"), ("avi", "codec=mjpeg", "mjpeg", "yuvj420p", "mjpeg"),
    ("mov", "codec=mjpeg", "mjpeg", "yuvj420p", "mjpeg"), ("mkv", "codec=ffv1", "ffv1", None, "ffv1"),
    ("avi", "codec=huffyuv", "huffyuv", None, "huffyuv"), ("mkv", "codec=png", "png", None, "png"),
    ("mov", "codec=prores", "prores", None, "prores_ks"), ("nut", "codec=rawvideo", "rawvideo", None, None),
    ("mkv", "codec=libx264", "h264", "yuv420p", "libx264"), ("avi", "codec=MJPG", "mjpeg", "yuvj420p", "mjpeg"),
    ("mp4", "codec=mp4v", "mpeg4", "yuv420p", "mpeg4"), ("mp4", "codec=avc1", "h264", "yuv420p", "libx264"),
    ("avi", "codec=HFYU", "huffyuv", None, "huffyuv"), ("mkv", "codec=FFV1", "ffv1", None, "ffv1"),
]


def slack(path):
    """How far a time may be off in this container, which may count in coarser ticks."""
    return {"mkv": MILLISECOND_SLACK_NS, "webm": MILLISECOND_SLACK_NS, "flv": MILLISECOND_SLACK_NS, "gif": 5_000_001,
            "ts": 12_000, "m2ts": 12_000}.get(str(path).rsplit(".", 1)[-1], TIME_SLACK_NS)


class Written(Media):
    def write(self, line, name, *arguments, **options):
        """Runs a line whose last handler is the writer of `name`; the path, whose .part file has gone."""
        self.told = self.report(line.replace("OUT", str(self.folder / name)), *arguments, **options)
        return self.whole(name, line)

    def write_all(self, source, films):
        """Runs one line with a writer for each (name, options): to start a process takes longer than to write a film."""
        writers = [f"video.writer path={self.folder / name} {options}" for name, options in films]
        line = f"{source} name=source ! " + "  source. ! ".join(writers)
        self.told = self.report(line)
        return [self.whole(name, line) for name, _ in films]

    def whole(self, name, line):
        """The path of a film that was written; its .part file has gone."""
        path = self.folder / name
        if "%" not in name:
            self.assertTrue(path.exists(), f"{name} is there after {line}")
        stem, extension = name.split("%")[0].split(".")[0], name.rsplit(".", 1)[-1]
        left = [found.name for found in self.folder.iterdir() if re.fullmatch(rf"{stem}.*\.part.*\.{extension}", found.name)]
        self.assertEqual(left, [], f"no .part file stays after {line}")
        return path

    def same_times(self, path, expected, words=""):
        got = times_ns(path)
        self.assertEqual(len(got), len(expected), f"{path.name} has every picture {words}")
        wrong = [(i, a, b) for i, (a, b) in enumerate(zip(got, expected)) if abs(a - b) > slack(path)]
        self.assertEqual(wrong[:4], [], f"each time of {path.name} is its tick's {words}: (picture, file, tick)")

    def lasts(self, path, seconds, delta):
        self.assertAlmostEqual(float(looked_at(path)["format"]["duration"]), seconds, delta=delta,
                               msg=f"{path.name} lasts as long as its media times say")

    def not_begun(self, line, *words):
        """Refused while the plan is made or while it starts, before any tick."""
        command = [rig.millrace, "run", line]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=environment(),
                                timeout=rig.SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertIn(result.returncode, (1, 3), said(command, result))
        self.assertTrue(result.stderr.startswith("error MR"), f"nothing ran before{said(command, result)}")
        for word in words:
            self.assertIn(word, result.stderr)

    def corpus_file(self, name):
        path, reason = corpus.make(next(file for file in corpus.FILES if file.name == name), rig.build_folder / "corpus")
        if not path:
            self.skipTest(reason)
        return path


class Codecs(Written):
    """One test for each row of CODED, made below."""

    def compare(self, extension, options, codec, pixels, encoder):
        if encoder:
            self.need_encoder(encoder)
        path = self.write(f"{PATTERN} ! video.writer name=save path=OUT {options}", f"film.{extension}")
        stream = video_stream(path)
        self.assertEqual(stream["codec_name"], codec)
        if pixels:
            self.assertEqual(stream["pix_fmt"], pixels)
        self.assertEqual((stream["width"], stream["height"]), (96, 64))
        self.same_times(path, [i * NS // 10 for i in range(20)])
        if extension not in ("y4m", "gif", "flv", "nut"):  # which say no duration
            self.lasts(path, 2.0, 0.11 if extension in ("ts", "m2ts") else 0.02)


def add_codecs():
    for row in CODED:
        def test(self, row=row):
            self.compare(*row)
        name = f"{row[0]}_{row[1]}".replace("codec=", "with_").rstrip("_")
        setattr(Codecs, f"test_pictures_times_and_codec_are_right_in_{name}", test)


class TwoClocks(Written):
    SIDES = """version: 1
clocks:
  left:  { mode: source }
  right: { mode: source }
handlers:
  first:  { type: test.pattern, width: 96, height: 64, fps: 10, count: 30, clock: left }
  second: { type: test.pattern, width: 96, height: 64, fps: 24, count: 72, clock: right }
  both:
    type: image.composite
    clock: right
    input: [INPUTS]
    layout: row
    width: 192
    height: 64
    format: rgb8
  save: { type: video.writer, input: both, path: NAME, OPTIONS }
"""

    def test_two_films_side_by_side_last_as_long_as_the_clock_that_they_are_shown_by(self):
        other, own = "{ from: first, policy: align, within: 60ms }", "second"
        for inputs in (f"{other}, {own}", f"{own}, {other}"):
            for name, options in (("sides.mp4", "codec: mpeg4"), ("sides.mkv", "codec: ffv1"), ("sides.mov", "codec: mjpeg"),
                                  ("sides.avi", "codec: mpeg4")):
                with self.subTest(inputs=inputs, name=name):
                    text = self.SIDES.replace("INPUTS", inputs).replace("NAME", name).replace("OPTIONS", options)
                    (self.folder / "sides.yaml").write_text(text)
                    path = self.write(str(self.folder / "sides.yaml"), name)
                    self.same_times(path, [i * NS // 24 for i in range(72)])
                    self.lasts(path, 3.0, 0.002)
                    self.assertEqual(video_stream(path)["r_frame_rate"], "24/1")
                    if name.endswith("mp4"):
                        packets = probe(path, "-select_streams", "v:0", "-show_packets")["packets"]
                        self.assertAlmostEqual(float(packets[-1]["duration_time"]), 1 / 24, delta=1e-5)


class Exact(Written):
    def exact(self, source, name, pixels, options):
        path = self.folder / name
        expected = [picture["md5"] for picture in self.pictures(f"{source} name=source ! video.writer path={path} {options}  source.")]
        self.assertEqual(frame_md5s(path, "-pix_fmt", pixels), expected, f"{name} of {pixels} is bit-exact")

    def test_ffv1_huffyuv_and_png_keep_every_bit(self):
        formats = {"gray8": "gray", "rgb8": "rgb24", "bgr8": "bgr24", "rgba8": "rgba", "i420": "yuv420p", "nv12": "nv12"}
        for options, name, kept in (("codec=ffv1", "film.mkv", ("gray8", "rgb8", "bgr8", "rgba8", "i420", "nv12")),
                                    ("codec=huffyuv", "film.avi", ("rgb8", "bgr8", "rgba8")),
                                    ("codec=png", "film.mov", ("gray8", "rgb8", "bgr8", "rgba8")),
                                    ("codec=rawvideo", "film.nut", ("rgb8", "i420", "nv12"))):
            for pixel in kept:
                with self.subTest(codec=options, pixel=pixel):
                    self.exact(f"test.pattern pattern=gradient width=65 height=37 fps=10 count=5 format={pixel}", name,
                               formats[pixel], options)

    def test_ffv1_keeps_10_bits(self):
        self.exact(f"video.file path={self.corpus_file('h264_10_bit.mkv')}", "film.mkv", "p010le", "codec=ffv1")

    def test_h264_and_hevc_keep_10_bits(self):
        for codec, encoder in (("h264", "libx264"), ("hevc", "libx265")):
            self.need_encoder(encoder)
            path = self.write(f"video.file path={self.corpus_file('h264_10_bit.mkv')} ! video.writer path=OUT codec={codec}", "film.mkv")
            self.assertEqual(video_stream(path)["pix_fmt"], "yuv420p10le")

    def test_a_copy_of_a_lossless_film_is_the_film(self):
        for name in ("odd.mkv", "ffv1.mkv", "one_pixel.mkv", "png.mkv"):
            source = self.corpus_file(name)
            path = self.write(f"video.file path={source} ! video.writer path=OUT codec=ffv1", "copy.mkv")
            own = video_stream(source)["pix_fmt"]
            self.assertEqual(frame_md5s(path, "-pix_fmt", own), frame_md5s(source), f"the copy of {name}")


class Times(Written):
    AS_H264 = [(f"film.{extension}", "codec=h264") for extension in ("mp4", "mov", "mkv", "ts", "nut")]

    def test_every_third_picture_lasts_as_long(self):
        path = self.write("test.pattern width=96 height=64 fps=30 count=150 ! image.blur every=3 ! video.writer path=OUT", "film.mp4")
        self.same_times(path, [i * NS // 10 for i in range(50)])
        self.lasts(path, 5, 0.11)

    def test_a_lowered_rate_lasts_as_long(self):
        path = self.write("test.pattern width=96 height=64 fps=30 count=150 ! flow.rate per_second=10 ! video.writer path=OUT",
                          "film.mp4")
        self.same_times(path, [i * NS // 10 for i in range(50)])
        self.lasts(path, 5, 0.11)

    def test_silent_ticks_leave_gaps(self):
        path = self.write("test.pattern width=96 height=64 fps=10 count=30 silent_every=4 ! video.writer path=OUT", "film.mkv")
        got = self.pictures("test.pattern width=96 height=64 fps=10 count=30 silent_every=4")
        first = got[0]["media_time"]
        self.assertLess(len(got), 30)
        self.same_times(path, [picture["media_time"] - first for picture in got])

    def test_a_live_picture_that_is_too_slow_lasts_as_long_as_life(self):
        (self.folder / "slow.yaml").write_text("""version: 1
handlers:
  cam:  { type: test.pattern, width: 96, height: 64, fps: 30, live: true }
  slow: { type: check.slow, ms: 130, input: cam }
  told: { type: check.pictures, path: told.jsonl, input: slow }
  save: { type: video.writer, path: film.mp4, input: slow }
""")
        self.run_it("run", "slow.yaml", "--duration", 3)
        told = [json.loads(line) for line in (self.folder / "told.jsonl").read_text().splitlines()]
        self.assertLess(len(told), 40, "the handler is too slow for 30 pictures a second")
        first = told[0]["media_time"]
        self.same_times(self.folder / "film.mp4", [picture["media_time"] - first for picture in told])
        self.assertGreater(times_ns(self.folder / "film.mp4")[-1], 2 * NS, "3 s of life last about 3 s")
        self.lasts(self.folder / "film.mp4", (told[-1]["media_time"] - first) / NS + 1 / 30, 0.2)

    def test_variable_rates_are_kept(self):
        for source in ("variable_rate.mkv", "variable_rate.mp4"):
            expected = [picture["media_time"] for picture in self.pictures(f"video.file path={self.corpus_file(source)}")]
            for path in self.write_all(f"video.file path={self.corpus_file(source)}", self.AS_H264):
                with self.subTest(source=source, name=path.name):
                    self.same_times(path, expected)

    def test_times_that_hardly_rise_are_all_kept(self):
        """A clock makes of two equal times one a nanosecond later, which no container can say."""
        self.need_encoder("libx264")
        source = self.corpus_file("equal_times.mkv")
        expected = [picture["media_time"] for picture in self.pictures(f"video.file path={source}")]
        for path in self.write_all(f"video.file path={source}", self.AS_H264):
            with self.subTest(name=path.name):
                got = times_ns(path)
                self.assertEqual(len(got), len(expected))
                self.assertEqual(got, sorted(got), "no time falls")
                self.assertLessEqual(max(abs(a - b) for a, b in zip(got, expected)), 2 * slack(path))

    def test_the_nominal_rate_is_exact(self):
        for rate, numerator, denominator in (("30000/1001", 30000, 1001), ("24000/1001", 24000, 1001), ("60", 60, 1), ("25", 25, 1)):
            line = f"test.pattern width=96 height=64 count=60 ! video.writer path=OUT"
            path = self.write(line, "film.mp4", "--rate", rate)
            self.assertEqual(video_stream(path)["r_frame_rate"], f"{numerator}/{denominator}")
            self.same_times(path, [i * NS * denominator // numerator for i in range(60)], f"at {rate}")

    def test_avi_puts_times_on_the_grid_of_its_rate(self):
        path = self.write("test.pattern width=96 height=64 fps=30 count=60 ! image.flip every=3 ! video.writer path=OUT", "film.avi")
        self.lasts(path, 2, 0.12)

    def test_a_constant_rate_repeats_and_drops_and_counts(self):
        line = "test.pattern width=96 height=64 fps={} count={} ! video.writer name=save path=OUT rate={} codec=ffv1"
        path = self.write(line.format(10, 20, 30), "film.mkv")
        self.same_times(path, [i * NS // 30 for i in range(60)])
        self.assertEqual(counts(self.told, "save").get("pictures_repeated"), 40)
        md5s = frame_md5s(path)
        self.assertEqual([md5s[i] for i in range(0, 60, 3)], [md5s[i + 2] for i in range(0, 60, 3)])
        path = self.write(line.format(30, 60, 10), "film.mkv")
        self.same_times(path, [i * NS // 10 for i in range(20)])
        self.assertEqual(counts(self.told, "save").get("pictures_dropped"), 40)
        path = self.write(line.format(25, 50, "30000/1001"), "film.mkv")
        self.assertIn(len(times_ns(path)), (59, 60, 61))
        self.lasts(path, 2, 0.07)

    def test_a_variable_rate_becomes_constant_where_it_is_asked_for(self):
        path = self.write(f"video.file path={self.corpus_file('variable_rate.mp4')} ! video.writer name=save path=OUT rate=25", "film.mp4")
        got = times_ns(path)
        self.assertEqual({b - a for a, b in zip(got, got[1:])}, {NS // 25})
        self.assertGreater(counts(self.told, "save").get("pictures_repeated", 0), 0)

    def test_one_picture_lasts_a_period(self):
        path = self.write("test.pattern width=96 height=64 fps=10 count=1 ! video.writer path=OUT", "film.mp4")
        self.lasts(path, 0.1, 0.01)


class SideBySide(Written):
    """Two films of 10/s and 24000/1001 per s, whose pictures tell by their brightness which they are."""

    def setUp(self):
        super().setUp()
        for name, rate, count, step in (("left", "10", 30, 8), ("right", "24000/1001", 72, 3)):
            call([*FFMPEG, "-f", "lavfi", "-i", f"color=c=black:size=32x32:rate={rate},format=gray,geq=lum='N*{step}'",
                  "-frames:v", count, "-c:v", "ffv1", self.folder / f"{name}.mkv"])

    def film(self, text):
        (self.folder / "two.yaml").write_text(text)
        self.run_it("run", "two.yaml")
        path = self.folder / "film.mkv"
        raw = call([*FFMPEG, "-i", path, "-vsync", "passthrough", "-pix_fmt", "gray", "-f", "rawvideo", "-"])
        times = times_ns(path)
        pictures = [raw[i * 64 * 32:(i + 1) * 64 * 32] for i in range(len(times))]
        return path, [(time, picture[16 * 64 + 16], picture[16 * 64 + 48]) for time, picture in zip(times, pictures)]

    def right(self, text, late_s):
        path, shown = self.film(text)
        self.lasts(path, 3.0, 0.11)
        for time, left, right in shown:
            if time / NS <= 2.9 + late_s:  # the left film's last picture
                self.assertLessEqual(abs(time / NS - left / 8 / 10), late_s + 0.005, f"the left picture at {time / NS} s")
            self.assertLessEqual(abs(time / NS - right / 3 * 1001 / 24000), 0.047, f"the right picture at {time / NS} s")
        return shown

    TWO_CLOCKS = """version: 1
clocks:
  main: {{ mode: source }}
  left: {{ mode: source }}
handlers:
  a: {{ type: video.file, path: left.mkv, clock: left }}
  b: {{ type: video.file, path: right.mkv, clock: main }}
  both: {{ type: image.composite, inputs: {{ layers: [{layer}, b] }}, layout: row, width: 64, height: 32, format: gray8, clock: main }}
  save: {{ type: video.writer, input: both, path: film.mkv, codec: ffv1, clock: main }}
"""
    ONE_CLOCK = """version: 1
{clock}handlers:
  a: {{ type: video.file, path: left.mkv{a} }}
  b: {{ type: video.file, path: right.mkv{b} }}
  both: {{ type: image.composite, input: [a, b], layout: row, width: 64, height: 32, format: gray8 }}
  save: {{ type: video.writer, input: both, path: film.mkv, codec: ffv1 }}
"""

    def test_align_shows_each_at_its_time(self):
        self.right(self.TWO_CLOCKS.format(layer="{ from: a, policy: align, within: 60ms }"), 0.06)

    def test_latest_shows_each_at_its_time(self):
        shown = self.right(self.TWO_CLOCKS.format(layer="{ from: a, policy: latest }"), 0.1)
        self.assertEqual(len(shown), 72)

    def test_what_the_refusal_proposes_shows_each_at_its_time(self):
        said = self.refused_text(self.ONE_CLOCK.format(clock="", a="", b=""))
        self.assertIn("MR0406", said)
        edit = re.search(r"try: (.*)", said).group(1)
        self.assertTrue(edit)
        if "rate:" in edit:
            self.right(self.ONE_CLOCK.format(clock="clock: { rate: 24000/1001 }\n", a="", b=""), 0.1)
        said = self.refused_text(self.TWO_CLOCKS.format(layer="a"))
        policy = re.search(r"try: .*policy: (\w+)", said)
        self.assertIsNotNone(policy, said)
        self.right(self.TWO_CLOCKS.format(layer=f"{{ from: a, policy: {policy.group(1)} }}"), 0.1)

    def refused_text(self, text):
        (self.folder / "two.yaml").write_text(text)
        return self.run_it("check", "two.yaml", code=3).stderr


class Meaning(Written):
    """Colours, range, shape and depth as they were."""

    def test_tags_are_kept(self):
        names = [name for matrix in ("bt601", "bt709", "bt2020") for name in (f"{matrix}_limited.mp4", f"{matrix}_full.mp4")]
        self.need_encoder("libx264", "libx265", "ffv1")
        targets = ("h264.mp4", "hevc.mkv", "ffv1.mkv", "h264.ts")
        for source in names:
            written = self.write_all(f"video.file path={self.corpus_file(source)}",
                                     [(target, f"codec={target.split('.')[0]}") for target in targets])
            for path in written:
                with self.subTest(source=source, target=path.name):
                    own, got = video_stream(self.corpus_file(source)), video_stream(path)
                    for key in ("color_space", "color_range", "color_transfer", "color_primaries"):
                        if path.name == "ffv1.mkv" and key == "color_space":  # kept by Matroska
                            continue
                        self.assertEqual(got.get(key), own.get(key), f"{key} of {source} as {path.name}")

    def test_hdr_stays_hdr(self):
        self.need_encoder("libx265")
        path = self.write(f"video.file path={self.corpus_file('hdr.mkv')} ! video.writer path=OUT codec=hevc", "film.mp4")
        stream = video_stream(path)
        self.assertEqual((stream["pix_fmt"], stream["color_transfer"], stream["color_primaries"], stream["color_space"]),
                         ("yuv420p10le", "smpte2084", "bt2020", "bt2020nc"))

    def test_the_shape_of_pixels_is_kept(self):
        for source, ratio in (("pixels_16_11.mp4", 16 / 11), ("pixels_8_9.mkv", 8 / 9)):
            films = [(f"film.{extension}", "") for extension in ("mp4", "mkv", "avi", "ts", "mov")]
            for path in self.write_all(f"video.file path={self.corpus_file(source)}", films):
                self.assertAlmostEqual(fraction(video_stream(path)["sample_aspect_ratio"]), ratio, places=3,
                                       msg=f"{source} as {path.name}")

    def test_pictures_from_rgb_are_tagged(self):
        for height, matrix in ((64, "bt601"), (720, "bt709")):
            path = self.write(f"test.pattern width=96 height={height} fps=10 count=3 ! video.writer path=OUT", "film.mp4")
            stream = video_stream(path)
            self.assertEqual(rig.MATRICES.get(stream.get("color_space")), matrix, f"{height} rows")
            self.assertEqual(stream.get("color_range"), "tv")

    def test_a_turned_film_is_written_upright(self):
        source = self.corpus_file("rotated_90.mp4")
        path = self.write(f"video.file path={source} ! video.writer path=OUT codec=ffv1", "film.mkv")
        self.assertEqual((video_stream(path)["width"], video_stream(path)["height"]), (48, 64))
        self.assertEqual(frame_md5s(path), frame_md5s(source), "as ffmpeg turns it")

    def test_gray_and_alpha_are_kept_where_the_codec_can(self):
        for pixel, pixels in (("gray8", "gray"), ("rgba8", "rgba")):
            path = self.write(f"test.pattern width=96 height=64 fps=10 count=3 format={pixel} ! "
                              "video.writer path=OUT codec=png", "film.mkv")
            self.assertEqual(video_stream(path)["pix_fmt"], pixels)

    def test_transparency_is_kept_where_the_film_can_and_its_loss_is_said(self):
        half = self.folder / "half.mkv"
        call([*FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.2,format=rgba,colorchannelmixer=aa=0.5",
              "-c:v", "png", half])
        for codec, name, decoder in (("vp9", "film.webm", ["-c:v", "libvpx-vp9"]), ("vp8", "film.mkv", ["-c:v", "libvpx"]),
                                     ("prores", "film.mov", [])):
            path = self.write(f"video.file path={half} ! video.writer path=OUT codec={codec}", name)
            raw = call([*FFMPEG, *decoder, "-i", path, "-frames:v", 1, "-f", "rawvideo", "-pix_fmt", "rgba", "-"])
            self.assertAlmostEqual(raw[3], 127, delta=6, msg=codec)
        for codec, name in (("vp9", "film.mp4"), ("h264", "film.mp4"), ("mjpeg", "film.avi"), ("mpeg4", "film.mp4")):
            said = self.run_it("run", f"video.file path={half} ! video.writer path={name} codec={codec}").stderr
            self.assertEqual(said.count("writes no transparency"), 1, said)

    def test_a_pause_is_as_long_as_it_was(self):
        for seconds, films in ((3000, ("mp4 h264", "mp4 mpeg4", "mov hevc", "mov mjpeg", "avi mpeg4", "avi mjpeg", "flv h264",
                                       "nut h264", "webm vp8", "gif gif", "ts h264")),
                               (400_000, ("mp4 h264", "mov mpeg4", "mkv h264"))):
            source = self.folder / "pause.mkv"
            call([*FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2", "-vf",
                  f"setpts='(N+gte(N,25)*25*{seconds})/25/TB'", "-vsync", "passthrough", "-c:v", "ffv1", source])
            for film in films:
                extension, codec = film.split()
                path = self.write(f"video.file path={source} ! video.writer path=OUT codec={codec}", f"{seconds}.{extension}")
                self.lasts(path, seconds + 2, 0.2)

    def test_a_pause_that_a_container_cannot_hold_is_named_with_those_that_can(self):
        source = self.folder / "pause.mkv"
        call([*FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2", "-vf",
              "setpts='(N+gte(N,25)*25*500000)/25/TB'", "-vsync", "passthrough", "-c:v", "ffv1", source])
        for name, options, words in (("film.avi", "", "mkv and mp4 hold such a pause"),
                                     ("film.mp4", "fragment=none", "`fragment: auto` does")):
            said = self.run_it("run", f"video.file path={source} ! video.writer path={name} {options}", code=1).stderr
            self.assertIn("no picture came for 139 hours", said)
            self.assertIn(words, said)

    def test_a_list_is_read_by_ffmpeg_whatever_the_names_are(self):
        for number, pattern in enumerate(("12:30 %d", "it's %d", "a#%d?b", "back\\\\slash %d", "- %d", " lead %d", "日本 %d")):
            folder = self.folder / f"{number}:s"
            line = (f"test.pattern width=64 height=48 fps=25 count=50 ! "
                    f"video.writer path=\"{folder}/{pattern}.mkv\" segment=1s list=\"{folder}/all.txt\"")
            self.run_it("run", line)
            counted = call(["ffprobe", "-v", "error", "-f", "concat", "-safe", "0", "-count_frames", "-show_entries",
                            "stream=nb_read_frames", "-of", "csv=p=0", f"file:{folder}/all.txt"]).decode()
            self.assertEqual(counted.strip(), "50", pattern)

    def test_odd_sizes_are_kept_where_the_codec_can(self):
        films = [(name, f"codec={name.split('.')[0]}") for name in ("ffv1.mkv", "vp9.webm", "mjpeg.avi", "mpeg4.avi", "png.mkv")]
        for path in self.write_all("test.pattern width=65 height=37 fps=10 count=3", films):
            self.assertEqual((video_stream(path)["width"], video_stream(path)["height"]), (65, 37), path.name)

    def test_odd_sizes_are_refused_with_the_crop_where_the_codec_cannot(self):
        for codec in ("h264", "hevc"):
            line = f"test.pattern width=65 height=37 fps=10 count=3 ! video.writer path=film.mp4 codec={codec}"
            text = self.run_it("run", line, code=3).stderr
            self.assertIn("image.crop", text)
            self.assertIn("width=64 height=36", text)
            self.assertFalse((self.folder / "film.mp4").exists())


class Choices(Written):
    def test_more_quality_is_more_bytes(self):
        for extension, codec, encoder in (("mp4", "h264", "libx264"), ("mp4", "hevc", "libx265"), ("webm", "vp9", "libvpx-vp9"),
                                          ("webm", "vp8", "libvpx"), ("avi", "mpeg4", "mpeg4"), ("avi", "mjpeg", "mjpeg"),
                                          ("mp4", "av1", "libsvtav1"), ("ts", "mpeg2", "mpeg2video")):
            self.need_encoder(encoder)
            films = [(f"{quality}.{extension}", f"codec={codec} quality={quality}") for quality in (20, 70, 95)]
            written = self.write_all("test.pattern pattern=disc width=160 height=120 fps=10 count=10 ! draw.text text=words", films)
            sizes = [path.stat().st_size for path in written]
            self.assertTrue(sizes[0] < sizes[1] < sizes[2], f"{codec}: {sizes}")

    def test_quality_70_is_crf_23(self):
        self.need_encoder("libx264")
        path = self.write(f"{PATTERN} ! video.writer path=OUT quality=70", "film.mp4")
        self.assertIn(b"crf=23.0", path.read_bytes())

    def test_a_bitrate_is_kept(self):
        for text, bits in (("400k", 400_000), ("1M", 1_000_000)):
            path = self.write(f"test.pattern pattern=gradient width=320 height=240 fps=25 count=75 ! image.blur sigma=0.3 ! "
                              f"video.writer path=OUT bitrate={text}", "film.mp4")
            self.assertLess(path.stat().st_size * 8 / 3, bits * 1.5)
        self.refused("test.pattern count=1 ! video.writer path=x.mp4 bitrate=fast", words=["fast"])

    def test_a_key_picture_comes_every_gop(self):
        for seconds, pictures in (("1", 10), ("500ms", 5)):
            path = self.write(f"test.pattern width=96 height=64 fps=10 count=30 ! video.writer path=OUT gop={seconds}", "film.mp4")
            keys = [i for i, frame in enumerate(rig.frames(path)) if frame["key_frame"]]
            self.assertLessEqual(max(b - a for a, b in zip(keys, keys[1:])), pictures)

    def test_a_preset_reaches_the_encoder(self):
        self.need_encoder("libx264")
        fast = self.write(f"{PATTERN} ! video.writer path=OUT preset=ultrafast", "film.mp4").read_bytes()
        self.assertIn(b"cabac=0", fast)
        self.refused(f"{PATTERN} ! video.writer path=x.mp4 preset=quickly", words=["quickly"])

    def test_pixels_may_be_chosen(self):
        self.need_encoder("libx264")
        path = self.write(f"{PATTERN} ! video.writer path=OUT codec=ffv1 pixels=rgb8", "film.mkv")
        self.assertIn(video_stream(path)["pix_fmt"], ("rgb24", "bgr0", "gbrp", "bgra"))
        self.refused(f"{PATTERN} ! video.writer path=x.mp4 pixels=rgb9", words=["rgb9"])

    def test_names_that_are_wrong_are_answered_before_anything_is_written(self):
        for options, words in (("path=x.mp4 codec=h246", ["h246", "h264"]), ("path=x.mp4 container=mp5", ["mp5"]),
                               ("path=x.webm codec=h264", ["h264", "webm"]), ("path=x", ["extension"]),
                               ("path=x.txt", ["txt"]), ("path=x.mp4 rate=often", ["often"]), ("path=x.mp4 segment=long", ["long"])):
            self.refused(f"{PATTERN} ! video.writer {options}", words=words)
            self.assertEqual(list(self.folder.iterdir()), [], f"nothing is written by {options}")

    def test_folders_on_the_way_are_made(self):
        self.run_it("run", f"{PATTERN} ! video.writer path=a/b/film.mp4")
        self.assertEqual(len(times_ns(self.folder / "a" / "b" / "film.mp4")), 20)

    def test_a_file_that_is_there_is_replaced_or_kept_as_asked(self):
        path = self.folder / "film.mp4"
        path.write_text("precious")
        self.not_begun(f"{PATTERN} ! video.writer path={path} exists=fail", "film.mp4")
        self.assertEqual(path.read_text(), "precious")
        self.run_it("run", f"{PATTERN} ! video.writer path={path}")
        self.assertEqual(len(times_ns(path)), 20)

    def test_what_fails_does_not_touch_the_file_that_was_there(self):
        path = self.folder / "film.mp4"
        path.write_text("precious")
        self.run_it("run", f"test.number fail_at=0 ! null.sink", code=1)
        (self.folder / "fails.yaml").write_text(f"""version: 1
handlers:
  cam: {{ type: test.pattern, width: 96, height: 64, fps: 10, count: 50 }}
  bad: {{ type: test.number, fail_at: 5, count: 50 }}
  end: {{ type: null.sink, input: bad }}
  save: {{ type: video.writer, path: {path}, input: cam }}
""")
        self.run_it("run", "fails.yaml", code=1)
        data = path.read_bytes()
        self.assertTrue(data == b"precious" or len(times_ns(path)) > 0, "the old file, or a film that plays")


def boxes(path):
    """The names of an MP4 file's outer boxes."""
    data, at, names = path.read_bytes(), 0, []
    while at + 8 <= len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        names.append(name.decode("latin-1"))
        if size == 1:
            size = struct.unpack(">Q", data[at + 8:at + 16])[0]
        at += size or len(data)
    return names


class Containers(Written):
    def test_mp4_is_fragmented_so_that_a_crash_leaves_what_plays(self):
        for name in ("film.mp4", "film.mov"):
            path = self.write("test.pattern width=96 height=64 fps=10 count=40 ! video.writer path=OUT", name)
            self.assertGreaterEqual(boxes(path).count("moof"), 4, boxes(path))

    def test_fragment_none_gives_a_plain_one(self):
        path = self.write(f"{PATTERN} ! video.writer path=OUT fragment=none", "film.mp4")
        self.assertNotIn("moof", boxes(path))
        self.assertEqual(len(times_ns(path)), 20)

    def test_a_container_may_be_named(self):
        path = self.write(f"{PATTERN} ! video.writer path=OUT container=matroska", "film.data")
        self.assertIn("matroska", probe(path)["format"]["format_name"])

    def test_segments_by_time_are_films_of_their_own_and_lose_nothing(self):
        self.write("test.pattern width=96 height=64 fps=10 count=35 ! video.writer path=OUT segment=1s list=LIST codec=ffv1".replace(
            "LIST", str(self.folder / "list.txt")), "part-%03d.mkv")
        parts = sorted(self.folder.glob("part-*.mkv"))
        self.assertEqual([part.name for part in parts], [f"part-{i:03d}.mkv" for i in range(4)])
        self.assertEqual([len(times_ns(part)) for part in parts], [10, 10, 10, 5])
        whole = [picture["md5"] for picture in self.pictures("test.pattern width=96 height=64 fps=10 count=35")]
        self.assertEqual([md5 for part in parts for md5 in frame_md5s(part, "-pix_fmt", "rgb24")], whole)
        listed = (self.folder / "list.txt").read_text()
        for part in parts:
            self.assertIn(part.name, listed)

    def test_segments_of_h264_begin_with_a_key_picture(self):
        self.write("test.pattern width=96 height=64 fps=10 count=35 ! video.writer path=OUT segment=1s", "part-%d.mp4")
        parts = sorted(self.folder.glob("part-*.mp4"))
        self.assertEqual(len(parts), 4)
        for part in parts:
            self.assertEqual(rig.frames(part)[0]["key_frame"], 1, part.name)
            self.assertEqual(call([*FFMPEG[:-1], "-i", part, "-f", "null", "-"]), b"", f"{part.name} decodes alone")
        self.assertEqual(sum(len(times_ns(part)) for part in parts), 35)

    def test_segments_by_size_are_about_that_long(self):
        self.write("test.pattern pattern=gradient width=96 height=64 fps=10 count=40 ! video.writer path=OUT segment=60kB codec=ffv1",
                   "part-%d.mkv")
        sizes = [part.stat().st_size for part in sorted(self.folder.glob("part-*.mkv"), key=lambda part: part.stat().st_mtime_ns)]
        self.assertGreater(len(sizes), 1)
        self.assertLess(max(sizes), 120_000)

    def test_a_folder_of_segments_is_read_back_as_one_film(self):
        (self.folder / "parts").mkdir()
        self.run_it("run", "test.pattern width=96 height=64 fps=10 count=35 ! "
                    "video.writer path=parts/p-%03d.mkv segment=1s codec=ffv1 pixels=rgb8")
        got = self.pictures(f"video.file path={self.folder / 'parts'}")
        self.assertEqual([picture["media_time"] for picture in got], [i * NS // 10 for i in range(35)])

    def test_the_list_of_one_recording_is_no_file_of_another_handler(self):
        (self.folder / "all.txt").write_text("precious")
        (self.folder / "two.yaml").write_text("""version: 1
handlers:
  cam: { type: test.pattern, width: 96, height: 64, fps: 10, count: 5 }
  one: { type: video.writer, path: a.mkv, segment: 1s, list: all.txt, input: cam }
  two: { type: video.writer, path: b.mkv, segment: 1s, list: ./all.txt, input: cam }
""")
        said_of_two = self.refused("two.yaml", error="MR0413", words=("two handlers write one file", "its list"))
        self.assertIn("one (video.writer)", said_of_two)
        self.assertEqual((self.folder / "all.txt").read_text(), "precious")

    def test_a_list_that_cannot_be_written_is_refused_before_the_first_tick(self):
        (self.folder / "file").write_text("no folder")
        for name, why in ((".", "Is a directory"), ("file/all.txt", "Not a directory")):
            self.not_begun(f"{PATTERN} ! video.writer path=parts/a.mkv segment=1s list={self.folder}/{name}", why)
            self.assertEqual([path.name for path in self.folder.rglob("*.mkv")], [], "no film is begun either")

    def test_sound_is_copied_beside(self):
        for source, codec, names in (("sound.mp4", "aac", ("film.mp4", "film.mkv", "film.ts", "film.mov")),
                                     ("sound_first.mkv", "flac", ("film.mkv",))):
            path = self.corpus_file(source)
            for name in names:
                film = self.write(f"video.file path={path} ! video.writer path=OUT sound={path}", name)
                streams = {stream["codec_type"]: stream for stream in probe(film)["streams"]}
                self.assertEqual(streams["audio"]["codec_name"], codec, f"{source} as {name}")
                packets = sound_packets(film)
                end = max(float(packet["pts_time"]) for packet in packets)
                self.assertAlmostEqual(end, 1.2, delta=0.15, msg="the sound is as long as the film")

    def test_sound_is_cut_to_the_pictures(self):
        path = self.corpus_file("sound.mp4")
        film = self.write(f"video.file path={path} start=0.4 end=0.8 ! video.writer path=OUT sound={path}", "film.mkv")
        packets = sound_packets(film)
        self.assertLess(float(packets[-1]["pts_time"]), 0.45)

    def test_sound_that_is_not_there_is_refused(self):
        self.not_begun(f"{PATTERN} ! video.writer path=x.mp4 sound={self.folder}/none.wav", "none.wav", "there is no such file")
        self.not_begun(f"{PATTERN} ! video.writer path=x.mp4 sound={self.corpus_file('ffv1.mkv')}", "ffv1.mkv")


class Pipes(Written):
    def test_y4m_from_ffmpeg_and_back(self):
        made = subprocess.run([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-frames:v", "20", "-pix_fmt", "yuv420p", "-f",
                               "yuv4mpegpipe", "-"], capture_output=True, timeout=rig.SECONDS_MAX, check=True).stdout
        command = [rig.millrace, "run", "video.file path=- ! video.writer path=- container=yuv4mpegpipe"]
        result = subprocess.run(command, input=made, capture_output=True, env=environment(), timeout=rig.SECONDS_MAX)
        self.assertEqual(result.returncode, 0, said(command, result))
        again = call_with_input([*FFMPEG, "-i", "-", "-f", "framemd5", "-"], result.stdout)
        self.assertEqual(md5s_in(again), md5s_in(call_with_input([*FFMPEG, "-i", "-", "-f", "framemd5", "-"], made)))
        self.assertEqual(len(md5s_in(again)), 20)

    def test_a_pipe_of_two_processes(self):
        script = (f"ffmpeg -nostdin -loglevel error -f lavfi -i {corpus.SOURCE} -frames:v 25 -pix_fmt yuv420p -f yuv4mpegpipe - | "
                  f"'{rig.millrace}' run 'video.file path=- ! image.flip ! video.writer path=- container=yuv4mpegpipe' --quiet | "
                  "ffmpeg -nostdin -loglevel error -i - -f framemd5 -")
        result = subprocess.run(["bash", "-o", "pipefail", "-c", script.replace("-nostdin -loglevel error -i -", "-loglevel error -i -")],
                                capture_output=True, text=True, env=environment(), timeout=rig.SECONDS_MAX)
        self.assertEqual(result.returncode, 0, said([script], result))
        expected = call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-frames:v", 25, "-pix_fmt", "yuv420p", "-vf", "hflip",
                         "-f", "framemd5", "-"])
        self.assertEqual(md5s_in(result.stdout.encode()), md5s_in(expected))

    def test_standard_output_of_each_container_that_needs_no_seeking(self):
        for container, count in (("matroska", 20), ("mpegts", 20), ("nut", 20), ("mp4", 20), ("avi", 20)):
            with self.subTest(container=container):
                command = [rig.millrace, "run", f"{PATTERN} ! video.writer path=- container={container} codec=mpeg4"]
                result = subprocess.run(command, capture_output=True, env=environment(), timeout=rig.SECONDS_MAX, stdin=subprocess.DEVNULL)
                self.assertEqual(result.returncode, 0, said(command, result))
                path = self.folder / "piped"
                path.write_bytes(result.stdout)
                self.assertEqual(len(rig.frames(path)), count)

    def test_standard_output_without_a_container_is_refused(self):
        self.refused(f"{PATTERN} ! video.writer path=-", words=["container"])

    def test_the_report_and_a_film_do_not_share_standard_output(self):
        result = subprocess.run([rig.millrace, "run", f"{PATTERN} ! video.writer path=- container=matroska codec=ffv1"],
                                capture_output=True, env=environment(), timeout=rig.SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertTrue(result.stdout.startswith(b"\x1a\x45\xdf\xa3"), "nothing but the film is on standard output")

    def test_a_fifo(self):
        fifo = self.folder / "film.mkv"
        os.mkfifo(fifo)
        taken = []
        reader = threading.Thread(target=lambda: taken.append(fifo.read_bytes()), daemon=True)
        reader.start()
        self.run_it("run", f"{PATTERN} ! video.writer path={fifo} codec=ffv1", seconds=60)
        reader.join(10)
        path = self.folder / "taken.mkv"
        path.write_bytes(taken[0])
        self.assertEqual(len(times_ns(path)), 20)
        self.assertEqual(sorted(found.name for found in self.folder.iterdir()), ["film.mkv", "taken.mkv"])


def sound_packets(path):
    """What ffprobe says of each packet of sound."""
    return json.loads(call(["ffprobe", "-v", "quiet", "-select_streams", "a", "-show_packets", "-of", "json", path]))["packets"]


def call_with_input(arguments, data):
    arguments = [str(argument) for argument in arguments if argument != "-nostdin"]
    result = subprocess.run(arguments, input=data, capture_output=True, timeout=rig.SECONDS_MAX)
    if result.returncode:
        raise AssertionError(said(arguments, result))
    return result.stdout


def md5s_in(printed):
    return [line.split(",")[-1].strip() for line in printed.decode().splitlines() if not line.startswith("#")]


add_codecs()
if __name__ == "__main__":
    rig.main(cases=len(CODED) + 59, side_by_side=2)
