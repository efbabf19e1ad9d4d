#!/usr/bin/env python3
"""Cameras and servers as they are: slow, silent, restarted, far from a key frame, refusing. A table; see camera_server.py.

usage: cameras.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [--long] [TEST…]

A row says what a server sends and what must be seen. With --long each rate is watched for two minutes.
"""
import dataclasses
import fcntl
import json
import re
import sys
import threading

import camera_server
import rig
from camera_server import Camera, Datagrams, Film, GStreamers, Pieces
from rig import FFMPEG, Media, call

IS_LONG = "--long" in sys.argv
SECONDS_LONG = 120
SECONDS_TO_END = 100 if not IS_LONG else 2 * SECONDS_LONG
SOURCE = "testsrc2=size=64x48:rate=25"
ENCODERS = {
    "h264": ["libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-x264-params", "slices=1:sliced-threads=0:force-cfr=0"],
    "h265": ["libx265", "-preset", "ultrafast", "-bf", "0", "-x265-params", "log-level=none"],
    "mjpeg": ["mjpeg", "-huffman", "default", "-force_duplicated_matrix", "1", "-pix_fmt", "yuvj420p", "-q:v", "3"],
}
DROPPED_MOST = 0.25  # of a row's pictures, on a machine so busy that a run starts late
LOSS_WORDS = ("is lost",)
KEY_FRAME_WORDS = "no key frame came within `timeout`"

_lock = threading.Lock()
_films = {}


def encoded(name, codec, *options, source=SOURCE, seconds=4, gop=25):
    """A film of the corpus folder, made once."""
    path = rig.build_folder / "cameras" / f"{name}.{codec if codec != 'mpeg2' else 'ts'}"
    with _lock, open(rig.build_folder / "cameras.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            part = path.with_name(f"part-{path.name}")
            call([*FFMPEG, "-f", "lavfi", "-i", f"{source}:duration={seconds}", "-c:v", *ENCODERS[codec], "-g", gop, *options, part])
            part.rename(path)
    return path


def film_of(path):
    """The film's packets, made once in this process."""
    with _lock:
        if path not in _films:
            _films[path] = Film(path, path.parent)
        return _films[path]


class Cameras(Media):
    def setUp(self):
        super().setUp()
        for codec in ("libx264", "libx265", "mjpeg"):
            self.need_encoder(codec)

    def serve(self, server):
        self.addCleanup(server.end)
        return server

    def md5s(self, path):
        """The film's pictures as millrace shows them from the file."""
        seen = self.folder / "whole.jsonl"
        self.run_it("run", f"video.file path={path} ! check.pictures path={seen}")
        return [json.loads(line)["md5"] for line in seen.read_text().splitlines()]

    def play(self, address, *arguments, parameters="", code=0):
        """What check.pictures saw; the report is in `told`, what was said in `words`."""
        path, report = self.folder / "seen.jsonl", self.folder / "seen.json"
        ran = self.run_it("run", f"video.file name=in path={address} {parameters} ! check.pictures name=check path={path}",
                          *arguments, "--json", report, code=code, seconds=SECONDS_TO_END)
        self.words, self.told = ran.stderr, json.loads(report.read_text())
        return [json.loads(line) for line in path.read_text().splitlines()]

    def dropped(self):
        """Pictures that a busy machine did not take in time, which millrace has counted."""
        edges = sum(sum(edge.get("dropped", {}).values()) for edge in self.told["edges"])
        return edges + self.told["ticks"]["late"] + self.told["ticks"]["skipped"]

    def check_all_came(self, got, expected, begins_at=0):
        """Every picture that was sent came, in order; those are left out that the report counts as dropped."""
        numbers = iter(range(begins_at, 1 << 30))
        skipped = 0
        for picture in got:
            for number in numbers:
                if expected[number % len(expected)] == picture["md5"]:
                    break
                skipped += 1
                self.assertLessEqual(skipped, self.dropped(), f"picture {number} is missing\n{self.words}")

    def check_held(self):
        """The connection was neither lost nor said to be, and no word of FFmpeg's came through."""
        self.assertEqual(rig.counts(self.told, "in").get("reconnects", 0), 0, self.words)
        for words in LOSS_WORDS:
            self.assertNotIn(words, self.words)
        self.check_words()

    def check_words(self):
        self.assertNotRegex(self.words, "Immediate exit|not permitted|Input/output error|no reason")


class Rtsp(Cameras):
    """Cameras of each rate, codec and transport; see RATES below."""

    def watch(self, codec, rate, transport):
        film = encoded("film", codec)
        camera = self.serve(Camera(film_of(film), fps=rate.fps, stamp_fps=rate.stamp_fps))
        count = rate.pictures if not IS_LONG else max(rate.pictures, int(SECONDS_LONG * rate.fps))
        timeout = "" if IS_LONG else f"timeout={rate.timeout}s"
        got = self.play(camera.address, "--ticks", count, parameters=f"transport={transport} {timeout}")
        self.assertEqual(len(got), count)
        self.check_held()
        self.assertEqual(camera.wrong, [], "the server understood every request")
        self.assertEqual(len(camera.sent), 1, "it was connected to once")
        self.check_all_came(got, self.md5s(film))
        self.assertLessEqual(self.dropped(), count * DROPPED_MOST, f"a slow reader drops little\n{self.words}")
        step = 10**9 / (rate.stamp_fps or rate.fps)
        if not self.dropped():
            for number, picture in enumerate(got):
                self.assertAlmostEqual(picture["media_time"], number * step, delta=20_000, msg=f"the time of picture {number}")


@dataclasses.dataclass
class Rate:
    name: str
    fps: float  # that are sent
    pictures: int  # that are looked at
    timeout: float  # so short that a limit which begins once would be over, and long enough for a busy machine to answer
    stamp_fps: float = None  # where the stamps run faster than the sending


RATES = [
    Rate("one_picture_in_10_s_by_its_stamps", 8, 40, 3, stamp_fps=0.1),
    Rate("1_picture_a_second", 1, 10, 3),
    Rate("3_pictures_a_second", 3, 30, 3),
    Rate("5_pictures_a_second", 5, 50, 3),
    Rate("60_pictures_a_second", 60, 240, 3),
]


def add_rates():
    def test(codec, rate, transport):
        return lambda self: self.watch(codec, rate, transport)
    for codec in ENCODERS:
        for rate in RATES:
            for transport in ("tcp", "udp"):
                setattr(Rtsp, f"test_{codec}_of_{rate.name}_over_{transport}", test(codec, rate, transport))
    for codec, transport in (("h264", "tcp"), ("h265", "udp"), ("mjpeg", "tcp")):
        slow = Rate("one_picture_in_10_s", 0.1, 2, 5)
        setattr(Rtsp, f"test_{codec}_of_{slow.name}_over_{transport}", test(codec, slow, transport))


add_rates()


class GStreamersCameras(Cameras):
    """The same of GStreamer's server, whose codecs are those of its elements that are installed."""

    def watch(self, codec, transport):
        film = self.folder / "film.mp4"
        call([*FFMPEG, "-r", "25", "-i", encoded("film", "h264"), "-c", "copy", film])
        server = self.serve(GStreamers(film))
        if codec not in server.codecs:
            self.skipTest(f"GStreamer has no encoder or payloader of {codec}, only {server.codecs}")
        seconds = 20  # its pipeline begins within the answer to DESCRIBE
        for fps, count in ((1, 5), (3, 15), (60, 120)):
            with self.subTest(fps=fps):
                got = self.play(f"rtsp://127.0.0.1:{server.port}/{codec}_{fps}", "--ticks", count,
                                parameters=f"transport={transport} timeout={seconds}s")
                self.check_held()
                self.assertEqual(len(got), count)
                times = [picture["media_time"] for picture in got]
                left_out = round((times[-1] - times[0]) * fps / 1e9) - (count - 1)
                self.assertGreaterEqual(left_out, 0)
                self.assertLessEqual(left_out, self.dropped(), f"{times}\n{self.words}")


def add_gstreamers():
    def test(codec, transport):
        return lambda self: self.watch(codec, transport)
    for codec in ENCODERS:
        for transport in ("tcp", "udp"):
            setattr(GStreamersCameras, f"test_{codec}_over_{transport}", test(codec, transport))


add_gstreamers()


class RtspFaults(Cameras):
    def setUp(self):
        super().setUp()
        self.path = encoded("film", "h264")
        self.film = film_of(self.path)

    def test_a_pause_as_long_as_two_of_the_camera_is_none(self):
        camera = self.serve(Camera(self.film, fps=0.5, pauses={4: 1.5}))
        got = self.play(camera.address, "--ticks", 6, parameters="timeout=2.5s")
        self.check_held()
        self.check_all_came(got, self.md5s(self.path))

    def test_a_camera_that_falls_silent_is_lost_and_comes_back(self):
        camera = self.serve(Camera(self.film, fps=10, pauses={12: 60}))
        got = self.play(camera.address, "--ticks", 30, parameters="timeout=3s")
        self.assertEqual(rig.counts(self.told, "in")["reconnects"], 1, self.words)
        self.assertRegex(self.words, r"is lost \(nothing came for \d+\.\d{3} s\) and is opened again")
        self.check_words()
        times = [picture["media_time"] for picture in got]
        self.assertEqual(times, sorted(set(times)), "times rise over the gap")
        self.check_all_came(got[-10:], self.md5s(self.path), begins_at=self.place_of(got[-10]))

    def place_of(self, picture):
        return self.md5s(self.path).index(picture["md5"])

    def test_a_camera_that_breaks_off_in_a_packet_is_opened_anew(self):
        camera = self.serve(Camera(self.film, fps=10, halves=12))
        self.play(camera.address, "--ticks", 30, parameters="timeout=3s")
        self.assertEqual(rig.counts(self.told, "in")["reconnects"], 1, self.words)
        self.assertRegex(self.words, r"is lost \(nothing came for \d+\.\d{3} s\)")
        self.assertEqual(camera.wrong, [], "nothing was asked in the middle of a packet")
        self.check_words()

    def test_a_camera_that_closes_says_so(self):
        camera = self.serve(Camera(self.film, fps=10, closes_after=12))
        self.play(camera.address, "--ticks", 30)
        self.assertEqual(rig.counts(self.told, "in")["reconnects"], 1, self.words)
        self.assertIn("is lost (the other side ended it)", self.words)
        self.check_words()

    def test_a_camera_that_closes_after_one_picture_is_told_with_its_reason(self):
        camera = self.serve(Camera(self.film, fps=10, closes_after=1))
        self.play(camera.address, parameters="reconnect=0s", code=1)
        self.assertIn("the connection is lost: the other side ended it", self.words)
        self.check_words()

    def test_a_camera_that_plays_and_sends_nothing_is_given_up(self):
        camera = self.serve(Camera(self.film, fps=10, pauses={0: 600}))
        said = self.refused(f"video.file path={camera.address} ! null.sink")
        self.assertIn("nothing came for 30.000 s", said)

    def test_a_camera_that_refuses_is_told_with_its_reason(self):
        for status, words in (("401 Unauthorized", "wants a user and a password"), ("403 Forbidden", "refuses it (403"),
                              ("404 Not Found", "does not have it (404"), ("503 Service Unavailable", "has failed (an answer of 5xx)")):
            camera = self.serve(Camera(self.film, fps=10, refuses=status))
            self.words = self.refused(f"video.file path={camera.address} ! null.sink")
            self.assertIn(words, self.words)
            self.check_words()

    def test_a_camera_far_from_its_key_frame_says_so_and_is_waited_for(self):
        seconds = 6 if not IS_LONG else 12
        path = encoded(f"gop-{seconds}", "h264", seconds=2 * seconds, gop=25 * seconds)
        expected = self.md5s(path)
        for sets in (True, False):
            with self.subTest(sets=sets):
                camera = self.serve(Camera(film_of(path), fps=25, begins_at=1, sets=sets))
                got = self.play(camera.address, "--ticks", 20, parameters="timeout=3s" if not IS_LONG else "")
                self.assertEqual(self.words.count(KEY_FRAME_WORDS), 1, self.words)
                self.check_held()
                self.check_all_came(got, expected, begins_at=25 * seconds)

    def test_pictures_of_another_size_are_scaled_or_refused_as_sizes_says(self):
        small = encoded("small", "h264", source="testsrc2=size=32x32:rate=25")
        path = rig.build_folder / "cameras" / f"both-{self.id()}.h264"
        path.write_bytes(self.path.read_bytes() + small.read_bytes())
        self.addCleanup(path.unlink)
        camera = self.serve(Camera(Film(path, self.folder), fps=50))
        self.play(camera.address, "--ticks", 150, parameters="sizes=fit")
        self.assertGreater(rig.counts(self.told, "in")["pictures_scaled"], 30)
        self.check_held()
        camera = self.serve(Camera(camera.film, fps=50))
        self.play(camera.address, "--ticks", 150, code=1)
        self.assertIn("is 32 × 32, the first was 64 × 48; `sizes: fit`", self.words)

    def test_a_camera_that_comes_back_with_another_size_plays_on_scaled(self):
        small = film_of(encoded("small", "h264", source="testsrc2=size=32x32:rate=25"))
        camera = self.serve(Camera(self.film, fps=25, closes_after=20, comes_back_as=small))
        got = self.play(camera.address, "--ticks", 40, parameters="sizes=fit")
        self.assertEqual({(picture["width"], picture["height"]) for picture in got}, {(64, 48)})
        self.assertEqual(rig.counts(self.told, "in")["reconnects"], 1, self.words)
        self.assertGreater(rig.counts(self.told, "in")["pictures_scaled"], 5)

    def test_pictures_that_come_at_once_first_come_all(self):
        camera = self.serve(Camera(self.film, fps=25, burst=30))
        got = self.play(camera.address, "--ticks", 60)
        self.check_held()
        self.check_all_came(got, self.md5s(self.path))
        self.assertLessEqual(self.dropped(), 60 * DROPPED_MOST, self.words)

    def test_lost_packets_cost_pictures_and_not_the_connection(self):
        for codec in ENCODERS:
            with self.subTest(codec=codec):
                path = encoded("large", codec, source="testsrc2=size=320x240:rate=25")
                camera = self.serve(Camera(film_of(path), fps=50, loses=29))
                got = self.play(camera.address, "--ticks", 50, parameters="transport=udp")
                self.check_held()
                times = [picture["media_time"] for picture in got]
                self.assertEqual(times, sorted(set(times)))
                whole = set(self.md5s(path))
                self.assertGreater(sum(picture["md5"] in whole for picture in got), 5, "whole pictures come between")

    def test_a_camera_without_reports_and_without_its_first_stamp_has_the_same_times(self):
        camera = self.serve(Camera(self.film, fps=25, reports=False, tells_rtp=False))
        got = self.play(camera.address, "--ticks", 20)
        if not self.dropped():
            self.assertEqual([picture["media_time"] for picture in got], [number * 40_000_000 for number in range(20)])


class Others(Cameras):
    """UDP and HTTP."""

    def ts(self):
        path = rig.build_folder / "cameras" / "film.ts"
        film = encoded("film", "h264")
        with _lock, open(rig.build_folder / "cameras.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                part = path.with_name("part-film.ts")
                call([*FFMPEG, "-r", "25", "-i", film, "-c", "copy", "-f", "mpegts", part])
                part.rename(path)
        return path

    def test_a_sender_of_udp_that_falls_silent_is_told_with_the_time(self):
        sender = self.serve(Datagrams(self.ts(), fps=25, count=60))
        got = self.play(sender.address, parameters="timeout=3s reconnect=0s", code=1)
        self.assertRegex(self.words, r"the connection is lost: nothing came for \d+\.\d{3} s")
        self.check_words()
        self.assertGreater(len(got), 0)

    def test_senders_of_udp_of_3_and_5_pictures_a_second_hold(self):
        expected = self.md5s(self.ts())
        for fps in (3, 5):
            sender = self.serve(Datagrams(self.ts(), fps=fps))
            got = self.play(sender.address, "--ticks", 30, parameters="timeout=3s")
            self.check_held()
            first = expected.index(got[0]["md5"])  # what came before anybody listened is gone, and nobody can know of it
            self.assertLess(first, 25)
            self.check_all_came(got, expected, first)
            self.assertLessEqual(self.dropped(), 30 * DROPPED_MOST, self.words)

    def test_a_film_with_a_length_and_without_ranges_gives_every_picture(self):
        server = self.serve(Pieces([self.ts().read_bytes()], kind="video/mp2t"))
        expected = self.md5s(self.ts())
        got = self.play(server.address)
        self.assertEqual([picture["md5"] for picture in got], expected)

    def test_a_film_that_comes_in_drops_is_not_silent(self):
        pieces = camera_server.pictures_of_ts(self.ts())[:40]
        server = self.serve(Pieces(pieces, kind="video/mp2t", fps=3, has_length=True))
        got = self.play(server.address, parameters="timeout=3s")
        self.assertEqual(server.clients, 1, "the search took longer than the limit of silence, and was not ended by it")
        self.assertEqual([picture["md5"] for picture in got], self.md5s(self.ts())[:40])
        self.check_held()

    def test_a_search_that_falls_silent_opens_the_source_anew_and_loses_no_picture(self):
        server = self.serve(Pieces(camera_server.pictures_of_ts(self.ts()), kind="video/mp2t", halts_after=10))
        got = self.play(server.address, parameters="timeout=3s")
        self.assertEqual(server.clients, 2)
        self.assertEqual([picture["md5"] for picture in got], self.md5s(self.ts()))
        self.check_held()

    def test_a_camera_of_two_pictures_in_5_s_over_http_holds(self):
        path = encoded("film", "mjpeg")
        pictures = re.findall(rb"\xff\xd8.*?\xff\xd9", path.read_bytes(), re.DOTALL)
        head = b"--edge\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"
        pieces = [head % len(picture) + picture + b"\r\n" for picture in pictures]
        server = self.serve(Pieces(pieces, kind="multipart/x-mixed-replace;boundary=edge", fps=0.4))
        got = self.play(server.address, "--ticks", 5, parameters="timeout=2s")
        self.check_held()
        self.check_all_came(got, self.md5s(path))


if __name__ == "__main__":
    if IS_LONG:
        sys.argv.remove("--long")
        rig.PROGRAM_SECONDS_MAX = 40 * SECONDS_LONG
    rig.main(cases=58, side_by_side=16)
