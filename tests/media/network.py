#!/usr/bin/env python3
"""Videos from HTTP and RTSP servers on 127.0.0.1: they play, end, say nothing, refuse, break off and come back.

usage: network.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import http.server
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import corpus
import rig
from camera_server import GStreamers
from faults import Process, wait_for
from rig import FFMPEG, Media, call, free_port

SECONDS_TO_STOP = 30  # after an interrupt, while it waits for a network: half of what it would wait
HALF = 0.5


class Server(http.server.ThreadingHTTPServer):
    """Serves one film under several paths, each with a fault; see Answers."""

    daemon_threads = True

    def __init__(self, film, port=0):
        super().__init__(("127.0.0.1", port), Answers)
        self.data = film.read_bytes()
        self.requests, self.cuts_left = [], 0
        self.hold = threading.Event()  # set at the end: whoever was left waiting goes
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def address(self, path):
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def end(self):
        self.hold.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that has gone is what some of these tests are about."""


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_error(405)

    def do_GET(self):
        name, server = self.path.strip("/"), self.server
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        server.requests.append((name, self.headers.get("Range", "")))
        again = [asked for asked, _ in server.requests].count(name) > 1
        if name.startswith("silent") or (name.startswith("stops") and again):
            server.hold.wait(60)
            self.close_connection = True
            return
        if name.startswith("refused"):
            self.send_error(403)
            return
        if name.startswith("missing"):
            self.send_error(404)
            return
        if name.startswith("unsought") and asked and int(asked.group(1)):  # says that it has ranges, and gives none
            self.send_error(500)
            return
        begin = int(asked.group(1)) if asked and not name.startswith("rangeless") else 0
        body = server.data[begin:]
        self.send_response(206 if begin else 200)
        if not name.startswith("rangeless"):
            self.send_header("Accept-Ranges", "bytes")
            if asked:
                self.send_header("Content-Range", f"bytes {begin}-{len(server.data) - 1}/{len(server.data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if name.startswith("cut") and server.cuts_left > 0:
            server.cuts_left -= 1
            self.wfile.write(body[:int(len(body) * HALF)])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif name.startswith("stops"):  # half of it, and then nothing, with the connection open
            self.wfile.write(body[:int(len(body) * HALF)])
            self.wfile.flush()
            server.hold.wait(60)
            self.close_connection = True
        else:
            self.wfile.write(body)


class Network(Media):
    def setUp(self):
        super().setUp()
        self.film = rig.build_folder / "corpus" / "h264_b_frames.mkv"
        corpus.make(next(file for file in corpus.FILES if file.name == self.film.name), rig.build_folder / "corpus")
        self.expected = [picture["md5"] for picture in self.pictures(f"video.file name=in path={self.film}")]

    def told_pictures(self):
        path = self.folder / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []


class Http(Network):
    def setUp(self):
        super().setUp()
        self.server = Server(self.film)
        self.addCleanup(self.server.end)

    def md5s(self, path, options="", **more):
        return [picture["md5"] for picture in self.pictures(f"video.file name=in path={self.server.address(path)} {options}", **more)]

    def test_a_film_plays_and_ends(self):
        self.assertEqual(self.md5s("film.mkv"), self.expected)

    def test_a_film_plays_from_a_server_that_cannot_seek(self):
        self.assertEqual(self.md5s("rangeless.mkv"), self.expected)

    def test_a_film_is_sought_by_ranges(self):
        got = self.md5s("film.mkv", "start=1.2")
        self.assertEqual(got, self.expected[30:])

    def test_an_mp4_with_its_index_at_its_end_is_read_from_a_server_that_cannot_seek(self):
        film = self.folder / "late.mp4"
        rig.call([*rig.FFMPEG, "-i", self.film, "-c", "copy", film])
        self.server.data = film.read_bytes()
        self.assertGreater(self.server.data.index(b"moov"), self.server.data.index(b"mdat"))
        self.assertEqual(self.md5s("rangeless.mp4"), self.expected)
        large = self.folder / "large.mp4"  # larger than what a pipe's reader keeps
        rig.call([*rig.FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=640x480:rate=25:duration=2", "-c:v", "mjpeg", "-q:v", "2", large])
        self.assertGreater(large.stat().st_size, 1 << 20)
        said = subprocess.run([rig.millrace, "run", "video.file path=- ! null.sink"], input=large.read_bytes(),
                              capture_output=True, env=rig.environment(), timeout=rig.SECONDS_MAX, check=False)
        self.assertIn("the index of this MP4 lies at its end", said.stderr.decode())

    def test_a_connection_that_may_not_be_opened_again_is_not_said_to_be(self):
        said = self.run_it("run", f"video.file path={self.server.address('stops.mkv')} timeout=1s reconnect=0 ! null.sink",
                           code=1).stderr
        self.assertIn("the connection is lost: nothing came for 1.000 s", said)
        self.assertNotIn("opened again", said)

    def test_a_start_is_exact_on_a_server_that_cannot_seek(self):
        for name in ("rangeless.mkv", "unsought.mkv"):
            self.assertEqual(self.md5s(name, "start=1.2 reconnect=0s"), self.expected[30:], name)

    def test_a_server_that_says_nothing_is_given_up_after_the_timeout(self):
        begun = time.monotonic()
        said = self.refused(f"video.file path={self.server.address('silent.mkv')} timeout=1s ! null.sink",
                            words=[f"127.0.0.1:{self.server.server_port}"])
        self.assertLess(time.monotonic() - begun, 30, "the timeout bounds the wait")
        self.assertRegex(said, "timed out|timeout|no answer|nothing came")

    def test_a_server_that_refuses_is_told_with_its_reason(self):
        for path, reason in (("refused.mkv", "403"), ("missing.mkv", "404")):
            said = self.refused(f"video.file path={self.server.address(path)} ! null.sink", words=[path])
            self.assertRegex(said, f"{reason}|[Ff]orbidden|[Nn]ot [Ff]ound|[Aa]ccess denied")

    def test_nobody_who_listens_is_told_with_the_reason(self):
        port = free_port()
        self.refused(f"video.file path=http://127.0.0.1:{port}/film.mkv timeout=1s ! null.sink", words=[str(port), "Connection refused"])

    def test_a_film_that_is_cut_comes_back_where_it_was(self):
        self.server.cuts_left = 2
        got = self.md5s("cut.mkv", "timeout=2s")
        self.assertEqual(got[-1], self.expected[-1], "the film is played to its end")
        self.assertEqual(len(set(got) - set(self.expected)), 0, "no picture is another")
        self.assertGreaterEqual(len(set(got)), len(self.expected) - 12, "at most what stood in a group of pictures is lost")

    def test_a_film_that_stops_for_ever_ends_with_the_address_and_the_reason(self):
        begun = time.monotonic()
        process = Process(self, f"video.file path={self.server.address('stops.mkv')} timeout=1s reconnect=1s ! "
                          "check.pictures path=told.jsonl")
        wait_for(lambda: any(name.startswith("stops") for name, _ in self.server.requests))
        code = process.end(seconds=40)
        self.assertEqual(code, 1, process.said())
        self.assertIn(f"127.0.0.1:{self.server.server_port}", process.text)
        self.assertRegex(process.text, "timed out|timeout|nothing came|lost")
        self.assertLess(time.monotonic() - begun, 40)

    def test_an_interrupt_ends_the_wait_for_a_server(self):
        for path in ("silent.mkv", "stops.mkv"):
            process = Process(self, f"video.file path={self.server.address(path)} timeout=60s ! check.pictures path=told.jsonl")
            self.assertTrue(wait_for(lambda: any(name == path for name, _ in self.server.requests)), "it asks")
            time.sleep(0.3)
            begun = time.monotonic()
            self.assertEqual(process.end(signal.SIGINT), 130, f"{path}{process.said()}")
            self.assertLess(time.monotonic() - begun, SECONDS_TO_STOP, path)


class FromFfmpeg(Network):
    def test_a_stream_of_ffmpegs_server_plays_and_ends(self):
        port = free_port()
        sender = subprocess.Popen([*FFMPEG, "-re", "-i", self.film, "-c", "copy", "-f", "mpegts", "-listen", "1",
                                   f"http://127.0.0.1:{port}/film.ts"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(sender.wait)
        self.addCleanup(sender.kill)
        self.assertTrue(wait_for(lambda: listens(port)), "ffmpeg listens")
        got = self.pictures(f"video.file name=in path=http://127.0.0.1:{port}/film.ts reconnect=0s", seconds=60)
        self.in_order([picture["md5"] for picture in got])
        self.assertGreater(len(got), len(self.expected) // 2, "what a live source loses on a busy machine is less than that")
        # A live picture that comes while the window is full is dropped, the last one too.
        self.assertIn(got[-1]["md5"], self.expected[-12:], "it is played to its end")

    def in_order(self, got):
        rest = iter(self.expected)
        self.assertTrue(all(md5 in rest for md5 in got), "pictures of the film come in its order")

    def test_udp_plays(self):
        port = free_port()
        sender = subprocess.Popen([*FFMPEG, "-re", "-f", "lavfi", "-i", corpus.SOURCE, "-c:v", "mpeg2video", "-g", "5", "-f", "mpegts",
                                   f"udp://127.0.0.1:{port}?pkt_size=1316"], stdin=subprocess.DEVNULL)
        self.addCleanup(sender.wait)
        self.addCleanup(sender.kill)
        got = self.pictures(f"video.file name=in path=udp://127.0.0.1:{port}", "--ticks", 20, seconds=60)
        self.assertEqual(len(got), 20)

    def test_a_sender_of_udp_that_is_not_there_is_given_up(self):
        begun = time.monotonic()
        self.refused(f"video.file path=udp://127.0.0.1:{free_port()} timeout=1s ! null.sink", words=["udp://127.0.0.1"])
        self.assertLess(time.monotonic() - begun, 30)


def listens(port):
    """Whether a TCP port is listened on, without connecting: a server that takes one client would be spent."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].split(":")[1], 16) == port:
                return True
    return False


class Rtsp(Network):
    def setUp(self):
        super().setUp()
        self.mp4 = self.folder / "film.mp4"
        call([*FFMPEG, "-i", self.film, "-c", "copy", self.mp4])
        self.port = self.serve()

    def serve(self, port=0):
        self.server = GStreamers(self.mp4, port)
        self.addCleanup(self.server.end)
        return self.server.port

    def address(self, path):
        return f"rtsp://127.0.0.1:{self.port}/{path}"

    def test_a_film_plays_and_ends(self):
        got = [picture["md5"] for picture in self.pictures(f"video.file name=in path={self.address('film')} reconnect=0s", seconds=60)]
        self.assertGreater(len(got), 20)
        self.assertEqual(set(got) - set(self.expected), set(), "every picture is one of the film")

    def test_a_camera_plays_at_its_speed(self):
        got = self.pictures(f"video.file name=in path={self.address('camera')}", "--duration", 2, pixels=False, seconds=60)
        self.assertGreater(len(got), 25, "2 s of 25 pictures a second, less what the connection takes")
        times = [picture["media_time"] for picture in got]
        self.assertEqual(times, sorted(times))
        self.assertEqual({(picture["width"], picture["height"]) for picture in got}, {(96, 64)})

    def test_a_camera_that_goes_and_comes_back_plays_on(self):
        process = Process(self, f"video.file name=in path={self.address('camera')} timeout=2s ! "
                          "check.pictures path=told.jsonl pixels=false")
        self.assertTrue(wait_for(lambda: len(self.told_pictures()) > 10), "it plays")
        self.server.end()
        before = len(self.told_pictures())
        time.sleep(0.5)
        self.assertEqual(self.serve(self.port), self.port)
        came_back = wait_for(lambda: len(self.told_pictures()) > before + 20, seconds=40)
        code = process.end(signal.SIGINT)
        self.assertTrue(came_back, f"it plays on{process.said()}")
        self.assertEqual(code, 130, process.said())
        times = [picture["media_time"] for picture in self.told_pictures()]
        self.assertEqual(times, sorted(set(times)), "times rise over the gap")

    def test_a_camera_that_stays_away_ends_the_run_with_address_and_reason(self):
        process = Process(self, f"video.file name=in path={self.address('camera')} timeout=1s reconnect=2s ! "
                          "check.pictures path=told.jsonl pixels=false")
        self.assertTrue(wait_for(lambda: len(self.told_pictures()) > 10), "it plays")
        self.server.end()
        code = process.end(seconds=40)
        self.assertEqual(code, 1, process.said())
        self.assertIn(f"127.0.0.1:{self.port}", process.text)
        self.assertRegex(process.text, "refused|timed out|lost|reset", "the reason is told")

    def test_an_interrupt_ends_the_wait_for_a_camera_that_is_away(self):
        process = Process(self, f"video.file name=in path={self.address('camera')} ! check.pictures path=told.jsonl pixels=false")
        self.assertTrue(wait_for(lambda: len(self.told_pictures()) > 10), "it plays")
        self.server.end()
        time.sleep(1)
        begun = time.monotonic()
        self.assertEqual(process.end(signal.SIGINT), 130, process.said())
        self.assertLess(time.monotonic() - begun, SECONDS_TO_STOP)

    def test_a_stream_that_the_server_does_not_have_is_refused(self):
        said = self.refused(f"video.file path={self.address('nothing')} ! null.sink", words=["nothing"])
        self.assertRegex(said, "404|[Nn]ot [Ff]ound")

    def test_a_server_that_accepts_and_says_nothing_is_given_up(self):
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            port, begun = mute.getsockname()[1], time.monotonic()
            self.refused(f"video.file path=rtsp://127.0.0.1:{port}/camera timeout=1s ! null.sink", words=[str(port)])
            self.assertLess(time.monotonic() - begun, 30)

    def test_a_camera_is_recorded_and_the_film_lasts_as_long(self):
        self.run_it("run", f"video.file path={self.address('camera')} ! video.writer path=film.mkv codec=mpeg4", "--duration", 2)
        self.assertGreater(len(rig.times_ns(self.folder / "film.mkv")), 25)


if __name__ == "__main__":
    rig.main(cases=23, side_by_side=8)
