#!/usr/bin/env python3
"""The times of all segments of a recording together are the recording's, whatever pauses it has: read back from the
folder and from the list by video.file, and from the list by ffmpeg's concat demuxer.

usage: segments.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import json
import os
import shutil

import rig
from rig import FFMPEG, Media, call

NS = 10**9
PERIOD_NS = NS // 25
# How far a time may be off: a unit of the container, and one of the source's nanoseconds.
UNIT_NS = {"mkv": 10**6, "webm": 10**6, "flv": 10**6, "ts": 11_112, "mp4": 1001, "mov": 1001, "avi": PERIOD_NS // 2, "nut": 1001}


def even(first_s, count, period_ns=PERIOD_NS):
    return [round(first_s * NS) + i * period_ns for i in range(count)]


# Recordings with pauses, as the times of their pictures. They are cut after each second.
PAUSES = {
    "over_one_border": even(0, 50) + even(9, 75),
    "within_a_segment": even(0, 10) + even(0.8, 20) + even(1.6, 40),
    "from_a_border_to_a_border": even(0, 25) + even(6, 25) + even(8, 25),
    "between_single_pictures": even(0, 30) + [3 * NS, 5 * NS] + even(7.5, 30),
    "at_the_first_picture": [0, PERIOD_NS] + even(4.02, 40),
}
UNEVEN = [0, PERIOD_NS, 90 * 10**6, 170 * 10**6] + [200 * 10**6 + i * 70 * 10**6 + i % 3 * 11 * 10**6 for i in range(60)]
HOURS = {"50_minutes": even(0, 25) + even(3000, 40), "11_hours": even(0, 25) + even(40_000.5, 40)}


class Segments(Media):
    def film(self, times):
        """A film with pictures at these times, of which there are few runs at an even pace."""
        path, terms, first = self.folder / "source.nut", [], 0
        us = [ns // 1000 for ns in times] + [None]
        for i in range(1, len(us)):
            step = us[first + 1] - us[first] if first + 1 < len(times) else 0
            if us[i] is None or us[i] != us[first] + (i - first) * step:
                terms.append(f"between(N,{first},{i - 1})*({us[first]}+(N-{first})*{step})")
                first = i
        call([*FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-frames:v", len(times), "-vf",
              f"settb=1/1000000,setpts='{'+'.join(terms)}'", "-vsync", "passthrough", "-enc_time_base", "1/1000000", "-c:v", "ffv1", path])
        return f"video.file path={path}"

    def written(self, times, films, options="segment=1s", listed=True, source="", fresh=True):
        """Records these films, (extension, codec), in one run, each into a folder of its own; what the run said."""
        line = f"{source or self.film(times)} name=source"
        for extension, codec in films:
            folder = self.folder_of(extension, codec)
            if fresh:
                shutil.rmtree(folder, ignore_errors=True)
            line += f" source. ! video.writer path={folder}/s-%03d.{extension} codec={codec} {options}"
            line += f" list={folder}/all.txt" if listed else ""
        return self.run_it("run", line.replace("name=source source. !", "name=source !", 1)).stderr

    def folder_of(self, extension, codec):
        return self.folder / f"{extension}-{codec}"

    def read(self, path):
        return [picture["media_time"] for picture in self.pictures(f"video.file path={path}", pixels=False)]

    def by_ffmpeg(self, listing):
        found = json.loads(call(["ffprobe", "-v", "error", "-f", "concat", "-safe", "0", "-select_streams", "v:0", "-show_frames",
                                 "-show_streams", "-of", "json", listing]))
        return rig.times_of(found["streams"][0], found["frames"])

    def same(self, got, times, extension, words, slack=0):
        self.assertEqual(len(got), len(times), f"{words}: every picture is there once")
        wrong = [(i, a, b) for i, (a, b) in enumerate(zip(got, times)) if abs(a - b) > max(slack, UNIT_NS[extension])]
        self.assertEqual(wrong[:4], [], f"{words}: (picture, read, recorded)")

    def all_ways(self, times, films, least=2, **options):
        """Records the films and reads each from its folder, with and without the list, and from its list."""
        self.written(times, films, **options)
        for extension, codec in films:
            folder = self.folder_of(extension, codec)
            with self.subTest(folder=folder.name):
                listing = folder / "all.txt"
                self.assertGreaterEqual(len(list(folder.glob(f"*.{extension}"))), least, "the recording is cut")
                self.same(self.read(listing), times, extension, f"the list of {folder.name}")
                self.same(self.by_ffmpeg(listing), times, extension, f"ffmpeg's view of {folder.name}")
                if extension in TELL_NO_END:
                    self.same(self.read(folder), times, extension, f"the folder {folder.name} with its list")
                listing.unlink()
                if times is not UNEVEN or extension not in TELL_NO_END:
                    slack = PERIOD_NS if extension in TELL_NO_END else 0  # the last picture of a segment lasts a guess
                    self.same(self.read(folder), times, extension, f"the folder {folder.name}", slack)


TELL_NO_END = ("ts", "nut", "flv", "avi")
FILMS = [("ts", "h264"), ("ts", "mpeg2"), ("mp4", "h264"), ("mp4", "mpeg4"), ("mov", "mjpeg"), ("mkv", "h264"), ("mkv", "ffv1"),
         ("webm", "vp8"), ("nut", "h264"), ("flv", "h264")]


class Pauses(Segments):
    """One test for each pause, made below."""


class Uneven(Segments):
    def test_times_that_vary_are_kept_by_the_container_or_by_the_list_beside(self):
        self.all_ways(UNEVEN, [("mp4", "h264"), ("mkv", "h264"), ("mkv", "ffv1"), ("mov", "mpeg4"), ("ts", "h264"), ("ts", "mpeg2"),
                               ("nut", "ffv1")])

    def test_the_list_of_an_earlier_recording_is_left_out(self):
        films = [("mkv", "ffv1")]
        self.written(even(0, 25) + even(30, 75), films)
        times = even(0, 110)
        self.written(times, films, listed=False, fresh=False)
        folder = self.folder_of(*films[0])
        os.utime(folder / "all.txt", (1, 1))
        self.same(self.read(folder), times, "mkv", "the folder with an old list")

    def test_a_constant_rate_does_not_drift_by_the_roundings_of_its_segments(self):
        times = [round(i * NS / 30) for i in range(240)]
        self.all_ways(times, [("mkv", "ffv1")], least=20, options="segment=233ms rate=30",
                      source="test.pattern width=64 height=48 fps=30 count=240")


class Names(Segments):
    def test_a_list_that_names_files_by_their_whole_paths_is_read_if_one_allows_it(self):
        times = even(0, 50)
        self.written(times, [("mkv", "ffv1")])
        folder = self.folder_of("mkv", "ffv1")
        names = sorted(folder.glob("*.mkv"))
        listing = self.folder / "whole.txt"
        listing.write_text("ffconcat version 1.0\n" + "".join(f"file {name}\n" for name in names))
        said = self.run_it("run", f"video.file path={listing} ! null.sink", code=3).stderr
        self.assertIn("`any_names=true` opens files of any name", said)
        got = self.pictures(f"video.file path={listing} any_names=true", pixels=False)
        self.assertEqual(len(got), len(times))


class Long(Segments):
    def test_pauses_of_hours(self):
        for times in HOURS.values():
            self.all_ways(times, [("mp4", "h264"), ("mp4", "mpeg4"), ("mkv", "ffv1")])


class TransportStreams(Segments):
    """Pauses that are longer than what was taken for a join, and streams that were joined."""

    def stream(self, name, start, times=even(0, 25)):
        path = self.folder / f"{name}.ts"
        self.run_it("run", f"{self.film(times)} ! video.writer path={self.folder}/{name}.mkv codec=ffv1")
        call([*FFMPEG, "-i", self.folder / f"{name}.mkv", "-c:v", "libx264", "-copyts", "-enc_time_base", "1/90000", "-output_ts_offset",
              start, path])
        return path

    def test_a_pause_of_hours_is_kept_in_a_file(self):
        for hours in (2, 20):
            times = even(0, 50) + even(hours * 3600, 50)
            for codec in ("h264", "mpeg2"):
                path = self.folder / f"{codec}.ts"
                told = self.run_it("run", f"{self.film(times)} ! video.writer path={path} codec={codec}").stderr
                self.assertNotIn("transport stream counts", told)
                self.same(self.read(path), times, "ts", f"{hours} hours in {codec}")
                self.assertNotIn("times_mended", rig.counts(self.told, "file"))

    def test_joined_streams_go_on_after_a_period_and_say_so_once(self):
        joined = self.folder / "joined.ts"
        joined.write_bytes(self.stream("one", 0).read_bytes() + self.stream("two", 5 * 3600).read_bytes())
        got = self.read(joined)
        self.same(got, even(0, 50), "ts", "joined streams", slack=PERIOD_NS)
        self.assertEqual(rig.counts(self.told, "file").get("times_mended"), 1)
        told = self.run_it("run", f"video.file path={joined} ! null.sink").stderr
        self.assertEqual(told.count("as where streams were joined"), 1, told)

    def test_times_go_on_where_their_count_ends(self):
        turn_s = 2**33 / 90000
        path = self.stream("turn", turn_s - 3, even(0, 150))
        self.same(self.read(path), even(0, 150), "ts", "a film over the end of the count")

    def test_a_pause_that_is_longer_than_the_count_is_said_once_with_its_place(self):
        times = even(0, 25) + even(30 * 3600, 25) + even(90 * 3600, 25)
        told = self.run_it("run", f"{self.film(times)} ! video.writer path=long.ts codec=mpeg2").stderr
        self.assertEqual(told.count("a transport stream counts 26.5 hours"), 1, told)
        self.assertIn("in 'long.ts' no picture came for 30.0 hours after 0.0 hours: this pause is read as 3.5 hours", told)
        for name in ("long.mkv", "long.mp4"):
            self.assertNotIn("transport", self.run_it("run", f"{self.film(times)} ! video.writer path={name} codec=mpeg4").stderr)


class Words(Segments):
    def test_a_pause_that_is_in_no_segment_is_said_once_unless_the_list_tells_it(self):
        times = [i * 4 * NS for i in range(80)]
        times[1] = PERIOD_NS  # the first two tell the rate
        films = [("ts", "mpeg2")]
        told = self.written(times, films, listed=False)
        self.assertEqual(told.count("is in no segment"), 1, told)
        self.assertIn("`list` names a file that tells it", told)
        told = self.written(times, films)
        self.assertNotIn("is in no segment", told)
        folder = self.folder_of(*films[0])
        self.same(self.by_ffmpeg(folder / "all.txt"), times, "ts", "ffmpeg's view of the list")
        self.same(self.read(folder), times, "ts", "the folder with its list")

    def test_segments_by_size_keep_pauses(self):
        times = even(0, 60) + even(9, 60) + even(30, 60)
        self.all_ways(times, [("ts", "mpeg2"), ("mp4", "mpeg4"), ("mkv", "mpeg4")], options="segment=8kB")

    def test_sound_is_as_long_as_the_pause(self):
        sound = self.folder / "sound.mkv"
        call([*FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=13", "-f", "lavfi", "-i", "sine=duration=13", "-c:v",
              "ffv1", "-c:a", "aac", sound])
        films, times = [("mkv", "ffv1"), ("mp4", "mpeg4"), ("ts", "h264")], PAUSES["over_one_border"]
        self.written(times, films, options=f"segment=1s sound={sound}", listed=False)
        for extension, codec in films:
            self.same(self.read(self.folder_of(extension, codec)), times, extension, f"the folder of {extension}")


def add_pauses():
    for words, times in PAUSES.items():
        setattr(Pauses, f"test_a_pause_{words}_is_kept", lambda self, times=times: self.all_ways(times, FILMS))


add_pauses()
if __name__ == "__main__":
    rig.main(cases=len(PAUSES) + 12, side_by_side=2)
