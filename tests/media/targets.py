#!/usr/bin/env python3
"""Films sent to servers on 127.0.0.1 by RTMP, RTSP, SRT, UDP and TCP: they arrive whole, and whatever goes wrong ends.

usage: targets.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]

ffmpeg is the server. What it has received is counted picture by picture.
"""
import functools
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import corpus
import rig
from faults import Process, wait_for
from rig import FFMPEG, Media, call, free_port

TIMEOUT_S = 1  # of the writer in these tests, unless a case says another
SECONDS_TO_FAIL = 40  # what may pass on a busy machine until a wait of TIMEOUT_S has ended a run
SECONDS_TO_STOP = 45  # after an interrupt: a call that is stuck is let go after 5 s
SECONDS_OF_SRT = 45  # SRT takes a peer for gone when it has been silent for 5 s
PICTURES = 60
FILM = f"test.pattern width=96 height=64 fps=30 count={PICTURES}"
LIVE = "test.pattern width=96 height=64 fps=30 live=true"
# Ten times what the buffers between two sockets of one machine hold.
FLOOD = "test.pattern pattern=gradient width=640 height=480 fps=30"
FLOOD_OPTIONS = "quality=100 preset=ultrafast"
# What ffmpeg listens with, and where it is sent to.
SERVERS = {
    "rtmp": (["-listen", "1", "-i", "rtmp://127.0.0.1:{port}/live/one"], "rtmp://127.0.0.1:{port}/live/one"),
    "rtsp": (["-rtsp_flags", "listen", "-i", "rtsp://127.0.0.1:{port}/live"], "rtsp://127.0.0.1:{port}/live"),
    "srt": (["-i", "srt://127.0.0.1:{port}?mode=listener"], "srt://127.0.0.1:{port}"),
    # It ends when nothing has come for so many microseconds.
    "udp": (["-i", "udp://127.0.0.1:{port}?timeout=2000000"], "udp://127.0.0.1:{port}"),
    "tcp": (["-i", "tcp://127.0.0.1:{port}?listen=1"], "tcp://127.0.0.1:{port}"),
}


def is_bound(port):
    """Whether a server waits at a port, by TCP or UDP, without sending it anything."""
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and int(fields[1].split(":")[1], 16) == port:
                return True
    return False


def opens(process, path):
    """Whether a process holds a file open."""
    for entry in pathlib.Path(f"/proc/{process.process.pid}/fd").iterdir():
        try:
            if os.readlink(entry) == os.path.realpath(path):
                return True
        except FileNotFoundError:  # it was closed meanwhile
            pass
    return False


class Receiver:
    """ffmpeg as a server that decodes what it gets and writes a line for each picture."""

    def __init__(self, test, scheme, port):
        self.pictures_path, self.log_path = test.folder / "received.txt", test.folder / "receiver.txt"
        log = open(self.log_path, "w")
        test.addCleanup(log.close)
        listens = [part.format(port=port) for part in SERVERS[scheme][0]]
        self.process = subprocess.Popen(["ffmpeg", "-nostdin", "-hide_banner", "-y", "-analyzeduration", "500000", *listens, "-vsync",
                                         "passthrough", "-an", "-flush_packets", "1", "-f", "framemd5", self.pictures_path],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        test.assertTrue(wait_for(lambda: is_bound(port)), f"ffmpeg listens{self.said()}")

    def pictures(self):
        """The lines of all pictures that have come so far."""
        text = self.pictures_path.read_text() if self.pictures_path.exists() else ""
        return [line for line in text.splitlines() if line and not line.startswith("#")]

    def end(self):
        self.process.wait(rig.SECONDS_MAX)

    def codec(self):
        found = re.search(r"Stream #0:\d.*: Video: (\w+)", self.log_path.read_text())
        return found and found.group(1)

    def said(self):
        return "\nffmpeg: " + self.log_path.read_text()[-2000:]


class Mute:
    """Accepts one connection and reads nothing of it."""

    def __init__(self, test):
        self.socket = socket.socket()
        test.addCleanup(self.socket.close)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen()
        self.port = self.socket.getsockname()[1]

    def accept(self, test):
        connection, _ = self.socket.accept()
        test.addCleanup(connection.close)
        return connection


class Targets(Media):
    def need(self, scheme):
        if scheme not in protocols():
            self.skipTest(f"this ffmpeg does not know {scheme}")

    def address(self, scheme, port):
        return SERVERS[scheme][1].format(port=port)

    def serve(self, scheme):
        self.need(scheme)
        port = free_port()
        self.receiver = Receiver(self, scheme, port)
        return self.address(scheme, port)

    def send(self, line, address, options=f"timeout={TIMEOUT_S}s"):
        return Process(self, f"{line} ! video.writer path={address} {options}")

    def failed(self, process, address, words, seconds):
        begun = time.monotonic()
        code = process.end(seconds=seconds)
        self.assertEqual(code, 1, f"it ends within {seconds} s{process.said()}")
        shown = re.sub(r"^(rtmp://[^/]+/[^/]+/).*", r"\1***", address)  # the name of the stream is its key
        self.assertIn(f"cannot write '{shown}': ", process.text)
        self.assertRegex(process.text, words)
        return time.monotonic() - begun


@functools.cache
def protocols():
    listed = call(["ffmpeg", "-hide_banner", "-protocols"]).decode().split("Output:")[1].split()
    return {*listed, "rtsp"}  # which is a muxer


class Arrives(Targets):
    def arrives(self, scheme):
        address = self.serve(scheme)
        process = self.send(FILM, address, "")
        self.assertEqual(process.end(seconds=rig.SECONDS_MAX), 0, process.said())
        self.receiver.end()
        self.assertEqual(len(self.receiver.pictures()), PICTURES, f"every picture arrives{self.receiver.said()}")
        self.assertEqual(self.receiver.codec(), "h264")

    def test_who_joins_a_stream_waits_two_seconds_for_a_key_frame(self):
        server = Mute(self)
        process = Process(self, f"test.pattern width=96 height=64 fps=25 count=225 ! video.writer path=tcp://127.0.0.1:{server.port} container=ts")
        connection, received = server.accept(self), self.folder / "received.ts"
        with received.open("wb") as file:
            while piece := connection.recv(1 << 16):
                file.write(piece)
        self.assertEqual(process.end(), 0, process.said())
        keys = [i for i, frame in enumerate(rig.frames(received)) if frame["key_frame"]]
        self.assertEqual(keys, [0, 50, 100, 150, 200])

    def test_a_film_arrives_whole_by_rtmp(self):
        self.arrives("rtmp")

    def test_a_film_arrives_whole_by_rtsp(self):
        self.arrives("rtsp")

    def test_a_film_arrives_whole_by_srt(self):
        self.arrives("srt")

    def test_a_film_arrives_whole_by_udp(self):
        self.arrives("udp")

    def test_a_film_arrives_whole_by_tcp(self):
        self.arrives("tcp")

    def test_datagrams_hold_whole_packets_of_the_stream(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            taken.settimeout(20)
            self.run_it("run", f"{FILM} ! video.writer path=udp://127.0.0.1:{taken.getsockname()[1]}")
            sizes = [len(taken.recv(65536)) for _ in range(20)]
        self.assertEqual({size % 188 for size in sizes}, {0})
        self.assertLessEqual(max(sizes), 1316, "it fits into an Ethernet frame")

    def test_an_interrupt_ends_a_stream_whole(self):
        address = self.serve("rtmp")
        process = self.send(LIVE, address)
        self.assertTrue(wait_for(lambda: len(self.receiver.pictures()) > 5), f"it arrives{self.receiver.said()}")
        self.assertEqual(process.end(signal.SIGINT), 130, process.said())
        self.receiver.end()
        ran = int(re.search(r"(\d+) ticks in", process.text).group(1))
        self.assertEqual(len(self.receiver.pictures()), ran, "what was sent has arrived")


class NobodyThere(Targets):
    def nobody(self, scheme, words):
        self.need(scheme)
        address = self.address(scheme, free_port())
        self.failed(self.send(FILM, address), address, words, SECONDS_TO_FAIL)

    def test_nobody_who_listens_is_told_by_rtmp(self):
        self.nobody("rtmp", "Connection refused")

    def test_nobody_who_listens_is_told_by_rtsp(self):
        self.nobody("rtsp", "Connection refused")

    def test_nobody_who_listens_is_told_by_srt(self):
        self.nobody("srt", "it did not answer in time|Input/output error|refused")

    def test_nobody_who_listens_is_told_by_tcp(self):
        self.nobody("tcp", "Connection refused")

    def test_udp_goes_out_whether_anybody_listens_or_not(self):
        process = self.send(FILM, self.address("udp", free_port()))
        self.assertEqual(process.end(), 0, process.said())


class Mutes(Targets):
    """A server that accepts, and then neither says nor reads anything."""

    def given_up(self, scheme):
        mute = Mute(self)
        address = self.address(scheme, mute.port)
        process = self.send(FILM, address)
        mute.accept(self)
        self.failed(process, address, r"it did not answer in time \(`timeout`\)", SECONDS_TO_FAIL)

    def interrupted(self, scheme):
        mute = Mute(self)
        process = self.send(LIVE, self.address(scheme, mute.port), "timeout=600s")
        mute.accept(self)
        self.assertIn(process.end(signal.SIGINT, seconds=SECONDS_TO_STOP), (1, 130), process.said())
        self.assertIn("interrupted", process.text, process.said())

    def test_a_mute_server_is_given_up_by_rtmp(self):
        self.given_up("rtmp")

    def test_a_mute_server_is_given_up_by_rtsp(self):
        self.given_up("rtsp")

    def test_an_interrupt_ends_the_wait_for_a_mute_server_by_rtmp(self):
        self.interrupted("rtmp")

    def test_an_interrupt_ends_the_wait_for_a_mute_server_by_rtsp(self):
        self.interrupted("rtsp")

    def test_a_server_that_accepts_and_reads_nothing_is_given_up(self):
        mute = Mute(self)
        address = self.address("tcp", mute.port)
        process = self.send(FLOOD, address, f"timeout={TIMEOUT_S}s {FLOOD_OPTIONS}")
        mute.accept(self)
        self.failed(process, address, r"it did not answer in time \(`timeout`\)", rig.SECONDS_MAX)


class Goes(Targets):
    """A server that ends, or stops, in the middle."""

    def dies(self, scheme, words, seconds=SECONDS_TO_FAIL):
        address = self.serve(scheme)
        process = self.send(LIVE, address)
        self.assertTrue(wait_for(lambda: len(self.receiver.pictures()) > 5), f"it arrives{self.receiver.said()}")
        self.receiver.process.kill()
        self.failed(process, address, words, seconds)

    def stops(self, scheme, words, seconds=rig.SECONDS_MAX):
        address = self.serve(scheme)
        process = self.send(FLOOD, address, f"timeout={TIMEOUT_S}s {FLOOD_OPTIONS}")
        self.assertTrue(wait_for(lambda: self.receiver.pictures()), f"it arrives{self.receiver.said()}")
        self.receiver.process.send_signal(signal.SIGSTOP)
        self.failed(process, address, words, seconds)

    def test_a_server_that_dies_is_told_by_rtmp(self):
        self.dies("rtmp", "Broken pipe|Connection reset")

    def test_a_server_that_dies_is_told_by_rtsp(self):
        self.dies("rtsp", "Broken pipe|Connection reset|End of file")

    def test_a_server_that_dies_is_told_by_srt(self):
        self.dies("srt", "Input/output error|it did not answer in time", SECONDS_OF_SRT)

    def test_a_server_that_dies_is_told_by_tcp(self):
        self.dies("tcp", "Broken pipe|Connection reset")

    def test_a_server_that_stops_is_given_up_by_rtmp(self):
        self.stops("rtmp", "it did not answer in time")

    def test_a_server_that_stops_is_given_up_by_rtsp(self):
        self.stops("rtsp", "it did not answer in time")

    def test_a_server_that_stops_is_given_up_by_srt(self):
        self.stops("srt", "Input/output error|it did not answer in time")

    def test_an_interrupt_ends_a_stream_to_a_server_that_stops(self):
        address = self.serve("rtmp")
        process = self.send(FLOOD, address, f"timeout=600s {FLOOD_OPTIONS}")
        self.assertTrue(wait_for(lambda: self.receiver.pictures()), f"it arrives{self.receiver.said()}")
        self.receiver.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        self.assertIn(process.end(signal.SIGINT, seconds=SECONDS_TO_STOP), (1, 130), process.said())


class SoundFrom(Targets):
    """`sound` names what video.file could name: a file of any name, a pipe, an address."""

    def sound(self, name):
        path = self.folder / name
        call([*FFMPEG, *corpus.SOUND, "-c:a", "aac", "-f", "ipod", f"file:{path}"])
        return path

    def write(self, sound, options=""):
        return Process(self, f"test.pattern width=96 height=64 fps=10 count=15 ! video.writer path=film.mkv sound={sound} {options}")

    def sound_of_film(self):
        streams = rig.probe(self.folder / "film.mkv")["streams"]
        return [stream["codec_name"] for stream in streams if stream["codec_type"] == "audio"]

    def test_sound_comes_from_a_file_with_a_colon_in_its_name(self):
        self.sound("a:b.m4a")
        process = self.write("a:b.m4a")
        self.assertEqual(process.end(), 0, process.said())
        self.assertEqual(self.sound_of_film(), ["aac"])

    def test_a_fifo_of_sound_that_nobody_writes_holds_up_no_signal(self):
        os.mkfifo(self.folder / "sound.aac")
        process = self.write("sound.aac")
        self.assertTrue(wait_for(lambda: opens(process, self.folder / "sound.aac")), "it waits")
        self.assertIn(process.end(signal.SIGINT, seconds=SECONDS_TO_STOP), (1, 130), process.said())

    def test_an_address_of_sound_that_says_nothing_is_given_up(self):
        mute = Mute(self)
        address = f"http://127.0.0.1:{mute.port}/song.mp3"
        process = self.write(address, f"timeout={TIMEOUT_S}s")
        self.assertIn(process.end(seconds=SECONDS_TO_FAIL), (1, 3), process.said())
        self.assertIn(f"cannot read the sound of '{address}': it did not answer in time (`timeout`)", process.text)

    def test_sound_without_sound_says_what_there_is_instead(self):
        call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-frames:v", 5, "-c:v", "ffv1", self.folder / "mute.mkv"])
        process = self.write("mute.mkv")
        self.assertIn(process.end(), (1, 3), process.said())
        self.assertIn("cannot read the sound of 'mute.mkv': there is no sound in it, only video", process.text)


if __name__ == "__main__":
    rig.main(cases=30, side_by_side=8)
