#!/usr/bin/env python3
"""Reads files of all kinds with video.file, and compares each picture with ffmpeg's and each time with ffprobe's.

usage: read_back.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import json
import os
import pathlib
import re
import subprocess
import threading
import unittest

import corpus
import rig
from rig import FFMPEG, Media, call, counts, environment, frame_md5s, said, stream_and_frames, times_of

NS = 10**9
TIME_SLACK_NS = 1  # both sides round a fraction to whole nanoseconds
# What a file's own pixel format becomes: the handler's, and the one that ffmpeg is asked for where it is another.
PIXELS = {
    "yuv420p": ("i420", None), "yuvj420p": ("i420", None), "nv12": ("nv12", None), "p010le": ("p010", None),
    "gray": ("gray8", None), "rgb24": ("rgb8", None), "bgr24": ("bgr8", None), "rgba": ("rgba8", None),
    "bgra": ("bgra8", None), "yuv422p": ("i420", "yuv420p"), "yuv444p": ("i420", "yuv420p"),
    "yuvj422p": ("i420", "yuvj420p"), "yuvj444p": ("i420", "yuvj420p"), "yuva420p": ("i420", "yuv420p"),
    "yuv420p10le": ("p010", "p010le"), "yuv422p10le": ("p010", "p010le"), "yuva444p10le": ("p010", "p010le"),
    "yuva444p12le": ("p010", "p010le"), "gray16le": ("gray8", "gray"), "bgr0": ("rgb8", "rgb24"),
    "gbrp16le": ("rgb8", "rgb24"), "pal8": ("rgba8", "rgba"),
}
# A shift of bits or an exchange of channels: every way to do it gives the same.
EXACT = {"yuv420p10le"}


def pipeline_of(path, file=None):
    more = (f" stream={file.stream}" if file and file.stream is not None else "") + (
        f" threads={file.threads}" if file and file.threads else "")
    return f"video.file name=in path={path}{more}"


def rising(times):
    """Times as a clock has them: one that does not rise becomes the one before and a nanosecond."""
    result = []
    for time in times:
        result.append(time if not result or time > result[-1] else result[-1] + 1)
    return result


def without_jumps(times, period):
    """Times that went back by more than a second or on by more than an hour go on with a period."""
    result, shift = times[:1], 0
    for before, time in zip(times, times[1:]):
        if not -NS <= time - before <= 3600 * NS:
            shift = result[-1] + period - time
        result.append(time + shift)
    return result


class Corpus(Media):
    """One test for each file of corpus.py, made below."""

    def expected_times(self, file, own, found):
        period = NS / rig.fraction(own["r_frame_rate"])
        if not all("best_effort_timestamp" in picture for picture in found):
            return [round(i * period) for i in range(len(found))]
        times = times_of(own, found)
        return rising(without_jumps(times, round(period)) if file.mended else times)

    def compare(self, file):
        path, reason = corpus.make(file, rig.build_folder / "corpus")
        if not path:
            self.skipTest(reason)
        stream = f"v:{file.stream}" if file.stream is not None else "v:0"
        own, found = stream_and_frames(path, stream)
        pixels, asked = PIXELS[own["pix_fmt"]]
        before = [] if file.turned else ["-noautorotate"]
        options = ["-map", f"0:{stream}", *(["-pix_fmt", asked] if asked else [])]
        if file.threads:
            before += ["-threads", file.threads]
        expected = frame_md5s(path, *options, before=before)
        got = self.pictures(pipeline_of(path, file))
        self.assertEqual({picture["format"] for picture in got}, {pixels}, f"{own['pix_fmt']} is given as {pixels}")
        self.assertEqual(len(got), len(expected), "as many pictures come as ffmpeg decodes")
        wrong = [i for i, picture in enumerate(got) if picture["md5"] != expected[i]]
        self.assertEqual(wrong, [], f"every picture is ffmpeg's ({path.name}, {own['pix_fmt']})")
        times = self.expected_times(file, own, found)
        late = [(i, picture["media_time"], time) for i, (picture, time) in enumerate(zip(got, times))
                if abs(picture["media_time"] - time) > TIME_SLACK_NS]
        self.assertEqual(late[:4], [], "every time is ffprobe's less the first: (picture, got, expected)")
        self.check_tags(file, own, got)
        lost = counts(self.told, "in").get("pictures_lost", 0)
        if file.lost:
            self.assertGreater(lost, 0, "pictures that were lost are counted")
        if not file.name.startswith(("cut_off", "damaged")):
            self.assertEqual(lost, 0, "a whole file loses no picture")
            if not file.mended and file.name != "equal_times.mkv":
                told = self.told["handlers"]["in"].get("messages", [])
                self.assertEqual([message for message in told if message["level"] in ("warning", "error")], [],
                                 "nothing is wrong with a whole file")
        converted = counts(self.told, "in").get("pictures_converted", 0)
        self.assertEqual(converted, len(got) if asked and own["pix_fmt"] not in ("yuva420p",) else 0,
                         "conversions of pixels are counted")

    def check_tags(self, file, own, got):
        for name, expected in file.tags.items():
            self.assertEqual({json.dumps(picture[name]) for picture in got}, {json.dumps(expected)}, f"{name} is kept")
        yuv = own["pix_fmt"].startswith(("yuv", "nv", "p0"))
        if yuv and "color" not in file.tags:
            named = rig.MATRICES.get(own.get("color_space"))
            expected = named or ("bt709" if own["height"] >= 720 else "bt601")
            self.assertEqual({picture["color"] for picture in got}, {rig.COLORS[expected]}, f"the matrix is {expected}")
        if yuv and "range" not in file.tags:
            full = own["pix_fmt"].startswith("yuvj") or own.get("color_range") == "pc"
            self.assertEqual({picture["range"] for picture in got}, {0 if full else 1}, "the range is the file's")
        if "aspect" not in file.tags:
            self.assertTrue(all(picture["aspect"] in ([0, 0], [1, 1]) for picture in got), "the pixels are square")


def add_corpus():
    for file in corpus.FILES:
        def test(self, file=file):
            self.compare(file)
        setattr(Corpus, f"test_every_picture_and_time_is_ffmpegs_in_{re.sub(r'[^a-z0-9]+', '_', file.name.lower())}", test)


class Kept(Media):
    """Tests that read one of the corpus's files."""

    def file(self, name):
        file = next(file for file in corpus.FILES if file.name == name)
        path, reason = corpus.make(file, rig.build_folder / "corpus")
        if not path:
            self.skipTest(reason)
        return path

    def messages(self, name="in"):
        return [message.get("text", message) if isinstance(message, dict) else message
                for message in self.told["handlers"][name].get("messages", [])]


class Choice(Kept):
    def test_decoding_copies_no_picture_of_h264(self):
        for name in ("h264_b_frames.mp4", "hevc.mp4", "vp9.webm", "mpeg2.ts"):
            self.pictures(pipeline_of(self.file(name)))
            self.assertEqual(counts(self.told, "in").get("pictures_copied", 0), 0, name)

    def test_threads_change_nothing(self):
        path = self.file("h264_b_frames.mp4")
        several = [self.pictures(f"video.file name=in path={path} threads={threads}") for threads in (1, 2, 5, 0)]
        for one in several[1:]:
            self.assertEqual(one, several[0])

    def test_start_and_end_choose_the_pictures_whose_times_they_hold(self):
        for name in ("h264_b_frames.mp4", "h264_b_frames.mkv", "h264_b_frames.ts", "mpeg4.avi", "vp9.webm", "h264_elementary.h264"):
            path = self.file(name)
            whole = self.pictures(pipeline_of(path))
            for start, end in ((0.5, None), (0.52, None), (0, 0.4), (0.3, 0.8), (0.04, 0.08), (1.1, None)):
                got = self.pictures(f"{pipeline_of(path)} start={start}" + (f" end={end}" if end else ""))
                kept = [picture for picture in whole
                        if picture["media_time"] >= start * NS - 1 and (end is None or picture["media_time"] < end * NS - 1)]
                self.assertEqual([picture["md5"] for picture in got], [picture["md5"] for picture in kept],
                                 f"{name} from {start} to {end}")
                self.assertEqual([picture["media_time"] for picture in got],
                                 [picture["media_time"] - kept[0]["media_time"] for picture in kept],
                                 f"the times of {name} from {start} to {end} begin at 0")

    def test_start_may_be_said_with_its_unit(self):
        path = self.file("h264_b_frames.mp4")
        self.assertEqual(self.pictures(f"{pipeline_of(path)} start=500ms"), self.pictures(f"{pipeline_of(path)} start=0.5"))

    def test_a_start_behind_the_end_is_an_error_that_says_so(self):
        path = self.file("h264_b_frames.mp4")
        result = subprocess.run([rig.millrace, "run", f"{pipeline_of(path)} start=100 ! null.sink"], capture_output=True,
                                text=True, env=environment(), timeout=rig.SECONDS_MAX)
        self.assertIn(result.returncode, (1, 3))
        self.assertRegex(result.stderr, r"100|start", "the words name the start")

    def test_loop_goes_on_with_rising_times(self):
        path = self.file("h264_b_frames.mp4")
        once = self.pictures(pipeline_of(path))
        got = self.pictures(f"{pipeline_of(path)} loop=true", "--ticks", 130)
        self.assertEqual(len(got), 130)
        for i, picture in enumerate(got):
            self.assertEqual(picture["md5"], once[i % len(once)]["md5"], f"picture {i} of the loop")
            self.assertEqual(picture["media_time"], i * NS // 25, f"time of picture {i}")

    def test_speed_divides_the_times(self):
        path = self.file("h264_b_frames.mp4")
        whole = self.pictures(pipeline_of(path))
        for speed in (2, 0.5):
            got = self.pictures(f"{pipeline_of(path)} speed={speed}")
            self.assertEqual([picture["md5"] for picture in got], [picture["md5"] for picture in whole])
            for picture, other in zip(got, whole):
                self.assertAlmostEqual(picture["media_time"], other["media_time"] / speed, delta=2)

    def test_a_decoder_may_be_named(self):
        path = self.file("vp9.webm")
        self.assertEqual(len(self.pictures(f"{pipeline_of(path)} decoder=vp9")), 30)
        said = self.refused(f"{pipeline_of(path)} decoder=vp99 ! null.sink", words=["vp99"])
        self.assertNotIn("[vp9", said)
        self.refused(f"{pipeline_of(path)} decoder=h264 ! null.sink", words=["h264"])

    def test_a_stream_that_is_not_there_is_refused(self):
        self.refused(f"video.file path={self.file('h264_b_frames.mp4')} stream=3 ! null.sink", words=["3"])

    def test_a_stream_is_chosen_by_its_number(self):
        path = self.file("second_stream.mkv")
        self.assertEqual({picture["width"] for picture in self.pictures(f"video.file name=in path={path} stream=1")}, {48})
        self.assertEqual({picture["width"] for picture in self.pictures(f"video.file name=in path={path}")}, {64})

    def test_square_pixels_are_made_where_a_reader_asks_for_them(self):
        plan = json.loads(self.run_it("plan", f"video.file path={self.file('pixels_16_11.mp4')} ! null.sink", "--json").stdout)
        self.assertNotIn("resize", json.dumps(plan), "null.sink takes any pixels")

    def test_the_plan_shows_the_turn_that_a_file_asks_for(self):
        shown = self.run_it("plan", f"video.file path={self.file('rotated_90.mp4')} ! null.sink").stdout
        self.assertIn("image.flip", shown)
        self.assertNotIn("image.flip", self.run_it("plan", f"video.file path={self.file('h264_b_frames.mp4')} ! null.sink").stdout)

    def test_colours_of_hd_are_converted_by_their_own_matrix(self):
        """The row of the issue's table: green is 0 126 0."""
        call([*FFMPEG, "-f", "lavfi", "-i", "color=c=green:s=1280x720:r=30:d=0.1", "-vf",
              "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p", "-colorspace", "bt709", "-c:v", "ffv1", "green.mkv"],
             cwd=self.folder)
        self.run_it("run", "video.file path=green.mkv ! image.convert to=bgr8 ! file.raw_writer path=green.raw")
        blue, green, red = (self.folder / "green.raw").read_bytes()[:3]
        for got, expected in ((blue, 0), (green, 127), (red, 0)):
            self.assertLessEqual(abs(got - expected), 2, f"green is 0 127 0, got {blue} {green} {red} (b g r)")


class Changes(Kept):
    """A film that changes in its middle, and one that its stream crops."""

    def joined(self, *options):
        """One film of transport streams that are written one after the other."""
        path = self.folder / "joined.ts"
        with open(path, "wb") as whole:
            for i, (size, sar) in enumerate(options):
                call([*rig.FFMPEG, "-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration=1", "-vf", f"setsar={sar}",
                      "-c:v", "mpeg2video", "-pix_fmt", "yuv420p", "-output_ts_offset", i, self.folder / "part.ts"])
                whole.write((self.folder / "part.ts").read_bytes())
        return path

    def test_another_shape_of_the_pixels_is_said_and_each_picture_has_its_own(self):
        self.pictures(pipeline_of(self.joined(("320x240", "1/1"), ("320x240", "4/3"))), pixels=False)
        self.assertEqual(counts(self.told, "in").get("shape_changes"), 1)
        self.assertTrue([text for text in self.messages() if "from 1:1 to 4:3" in str(text)], self.messages())

    def test_another_size_is_refused_or_scaled_as_sizes_says(self):
        path = self.joined(("320x240", "1/1"), ("160x240", "1/1"))
        refused = self.run_it("run", f"{pipeline_of(path)} ! null.sink", code=1).stderr
        self.assertIn("`sizes: fit` or `sizes: stretch` would scale it", refused)
        for sizes, corner in (("fit", 16), ("stretch", None)):
            raw = self.folder / f"{sizes}.raw"
            report = self.report(f"{pipeline_of(path)} sizes={sizes} ! file.raw_writer path={raw}")
            scaled = counts(report, "in")["pictures_scaled"]
            self.assertGreater(scaled, 20)
            picture = raw.read_bytes()[-320 * 240 * 3 // 2:]
            self.assertEqual(len(raw.read_bytes()) % len(picture), 0)
            if corner is not None:  # black beside it
                self.assertEqual({picture[row * 320 + x] for row in range(240) for x in (0, 79, 240, 319)}, {corner})
            else:
                self.assertGreater(len(set(picture[:320])), 2)

    def test_a_film_that_its_stream_crops_has_the_pictures_of_ffmpeg(self):
        for codec, crop, extension in (("h264", "crop_left=16", "mp4"), ("h264", "crop_left=64:crop_top=8", "mkv"),
                                       ("h264", "crop_left=2:crop_right=6:crop_bottom=2", "ts"),
                                       ("hevc", "crop_left=16", "mp4"), ("hevc", "crop_top=16:crop_left=32", "mkv")):
            path, want, got = (self.folder / f"crop.{end}" for end in (extension, "want", "got"))
            encoder = ["-c:v", "libx264"] if codec == "h264" else ["-c:v", "libx265", "-x265-params", "log-level=none"]
            self.need_encoder(encoder[1])
            call([*rig.FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=0.4", *encoder, "-preset",
                  "ultrafast", "-pix_fmt", "yuv420p", "-bsf:v", f"{codec}_metadata={crop}", path])
            call([*rig.FFMPEG, "-i", path, "-f", "rawvideo", "-pix_fmt", "yuv420p", want])
            self.run_it("run", f"{pipeline_of(path)} ! file.raw_writer path={got}")
            self.assertEqual(got.read_bytes(), want.read_bytes(), f"{codec} {crop}")

    def test_a_pause_of_hours_is_kept(self):
        for extension in ("mkv", "nut", "webm", "mp4"):
            codec = ["-c:v", "libvpx", "-deadline", "realtime"] if extension == "webm" else ["-c:v", "libx264", "-bf", "0"]
            path = self.folder / f"pause.{extension}"
            call([*rig.FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.4", "-vf",
                  "setpts='(N+gte(N,5)*25*7200)/25/TB'", "-vsync", "passthrough", "-video_track_timescale", "25000"]
                 [:None if extension == "mp4" else -2] + [*codec, path])
            times = [picture["pts"] for picture in self.pictures(pipeline_of(path), pixels=False)]
            self.assertEqual(len(times), 10)
            self.assertAlmostEqual(times[-1], 7200.36 * 10**9, delta=2 * 10**6, msg=extension)


class Said(Kept):
    def test_sound_and_subtitles_that_are_not_used_are_said_once(self):
        for name, word in (("sound.mp4", "sound"), ("subtitles.mkv", "subtitles"), ("sound_first.mkv", "sound")):
            self.pictures(pipeline_of(self.file(name)))
            found = [message for message in self.messages() if word in json.dumps(message).replace(name, "")]
            self.assertEqual(len(found), 1, f"{name}: {self.messages()}")

    def test_interlaced_pictures_are_said(self):
        self.pictures(pipeline_of(self.file("h264_interlaced.ts")))
        self.assertIn("interlaced", json.dumps(self.messages()))

    def test_the_matrix_of_an_untagged_file_is_said(self):
        for name, matrix in (("untagged_719.mkv", "bt601"), ("untagged_720.mkv", "bt709")):
            self.pictures(pipeline_of(self.file(name)))
            self.assertIn(matrix, json.dumps(self.messages()), name)

    def test_the_library_says_nothing_on_the_terminal_itself(self):
        for name in ("damaged.ts", "damaged.avi", "cut_off.mp4", "damaged_png.mkv", "mjpeg_422.mov"):
            result = self.run_it("run", f"{pipeline_of(self.file(name))} ! null.sink")
            raw = re.findall(r"^.*\[\w[\w,]* @ 0x[0-9a-f]+\].*$", result.stderr, re.MULTILINE)
            self.assertEqual(raw, [], f"{name}: FFmpeg's log goes through the report")

    def test_damage_is_counted_and_told_once_with_its_place(self):
        self.pictures(pipeline_of(self.file("damaged_png.mkv")) + " threads=1")
        self.assertEqual(counts(self.told, "in").get("pictures_lost"), 1)
        told = [message for message in self.messages() if "lost" in json.dumps(message) or "damage" in json.dumps(message)]
        self.assertEqual(len(told), 1, f"told once: {self.messages()}")
        self.assertRegex(json.dumps(told), r"\d", "the place is told")

    def test_damage_ends_the_run_where_it_is_asked_to(self):
        result = self.run_it("run", f"{pipeline_of(self.file('damaged_png.mkv'))} on_damage=fail ! null.sink", code=1)
        self.assertIn("damaged_png.mkv", result.stderr)


class Refused(Kept):
    def wrong(self, path, *words):
        text = self.refused(f"video.file path={path} ! null.sink", error="MR0604", words=[pathlib.Path(path).name, *words])
        self.assertNotRegex(text, r"@ 0x")

    def test_a_file_that_is_not_there(self):
        self.wrong(self.folder / "nothing.mp4", "o such file")

    def test_a_file_that_may_not_be_read(self):
        path = self.folder / "secret.mp4"
        path.write_bytes(self.file("h264_b_frames.mp4").read_bytes())
        path.chmod(0)
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            if not readable_by_others(rig.millrace):
                self.skipTest("run as root, and the command is in a folder that others may not enter")
            options = {"user": 65534, "group": 65534, "extra_groups": []}
        else:
            options = {}
        result = self.run_it("run", f"video.file path={path} ! null.sink", code=3, cwd="/", **options)
        self.assertIn("Permission denied", result.stderr)
        self.assertIn("secret.mp4", result.stderr)

    def test_a_file_that_is_empty(self):
        path = self.folder / "empty.mp4"
        path.touch()
        self.wrong(path)

    def test_a_file_that_is_no_video(self):
        path = self.folder / "letter.mp4"
        path.write_text("Dear reader, this is a letter.\n" * 50)
        self.wrong(path)

    def test_a_file_of_sound_alone(self):
        path = self.folder / "song.mkv"
        call([*FFMPEG, *corpus.SOUND, "-c:a", "flac", path])
        self.wrong(path)

    def test_a_container_without_its_index(self):
        path = self.folder / "no_index.mp4"
        whole = self.folder / "whole.mp4"
        call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-t", 1, whole])
        path.write_bytes(whole.read_bytes()[:2000])
        self.wrong(path)


def readable_by_others(path):
    """Whether every folder on the way to a file may be entered by anybody."""
    path = pathlib.Path(path)
    return all(os.stat(folder).st_mode & 0o001 for folder in path.parents) and bool(os.stat(path).st_mode & 0o001)


class Streams(Kept):
    """Files that are no files: standard input, FIFOs, folders of segments."""

    def expected(self, name):
        return [picture["md5"] for picture in self.pictures(pipeline_of(self.file(name)))]

    def from_pipe(self, line, data):
        path = self.folder / "pictures.jsonl"
        path.unlink(missing_ok=True)
        command = [rig.millrace, "run", f"{line} ! check.pictures path={path}"]
        result = subprocess.run(command, input=data, capture_output=True, env=environment(), timeout=rig.SECONDS_MAX)
        self.assertEqual(result.returncode, 0, said(command, result))
        return [json.loads(line)["md5"] for line in path.read_text().splitlines()]

    def test_standard_input(self):
        for name in ("h264_b_frames.mkv", "h264_b_frames.ts", "h264_fragmented.mp4", "mpeg4.avi", "yuv4mpeg.y4m"):
            self.assertEqual(self.from_pipe("video.file path=-", self.file(name).read_bytes()), self.expected(name), name)

    def test_standard_input_of_a_format_that_has_no_head(self):
        name = "h264_elementary.h264"
        self.assertEqual(self.from_pipe("video.file path=- format=h264", self.file(name).read_bytes()), self.expected(name))

    def test_pictures_of_ffmpegs_pipe_are_ffmpegs(self):
        made = call([*FFMPEG, "-i", self.file("h264_b_frames.mp4"), "-f", "yuv4mpegpipe", "-"])
        self.assertEqual(self.from_pipe("video.file path=-", made), self.expected("h264_b_frames.mp4"))

    def test_a_fifo(self):
        fifo = self.folder / "video.fifo"
        os.mkfifo(fifo)
        data = self.file("h264_b_frames.mkv").read_bytes()

        def feed():
            with open(fifo, "wb") as pipe:
                pipe.write(data)
        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        got = [picture["md5"] for picture in self.pictures(f"video.file name=in path={fifo}", seconds=60)]
        self.assertEqual(got, self.expected("h264_b_frames.mkv"))

    def test_an_empty_standard_input_is_refused(self):
        self.assertRegex(self.refused("video.file path=- ! null.sink"), "standard input|'-'")

    def test_a_folder_of_segments_is_one_stream(self):
        whole = self.file("h264_b_frames.mkv")
        parts = self.folder / "parts"
        parts.mkdir()
        call([*FFMPEG, "-i", whole, "-c", "copy", "-f", "segment", "-segment_time", "0.4", "-reset_timestamps", 1, parts / "part-%d.mkv"])
        self.assertGreater(len(list(parts.iterdir())), 2)
        got = self.pictures(f"video.file name=in path={parts}")
        self.assertEqual([picture["md5"] for picture in got], self.expected("h264_b_frames.mkv"))
        self.assertEqual([picture["media_time"] for picture in got], [i * NS // 25 for i in range(50)])

    def test_a_folder_without_videos_is_refused(self):
        (self.folder / "parts").mkdir()
        self.refused(f"video.file path={self.folder / 'parts'} ! null.sink", words=["parts"])

    def test_a_playlist_is_one_stream(self):
        call([*FFMPEG, "-i", self.file("h264_b_frames.mkv"), "-c", "copy", "-f", "hls", "-hls_time", "0.4", "-hls_playlist_type", "vod",
              self.folder / "list.m3u8"])
        got = [picture["md5"] for picture in self.pictures(f"video.file name=in path={self.folder / 'list.m3u8'}")]
        self.assertEqual(got, self.expected("h264_b_frames.mkv"))


add_corpus()
if __name__ == "__main__":
    if len(corpus.FILES) < 40:
        raise SystemExit(f"{len(corpus.FILES)} files are made, at least 40 are promised")
    rig.main(cases=len(corpus.FILES) + 37, side_by_side=2)
