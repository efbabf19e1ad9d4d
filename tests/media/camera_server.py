"""Cameras on 127.0.0.1 that send what a row of cameras.py says: RTSP over TCP and UDP, UDP, and HTTP.

A film is made into RTP packets by ffmpeg once; a server gives each client the film from its beginning, with stamps and
pauses of its own. So a picture's number is known, the stamps may run faster than the sending, and every fault is exact.
"""
import errno
import http.server
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

import rig

CLOCK = 90000  # stamps a second
SECONDS_TO_PACK = 60


class Film:
    """A film as packets of RTP: `pictures[n]` has the payloads of picture n, `lines` what an SDP says of it."""

    def __init__(self, path, folder):
        sdp = folder / f"{path.name}.sdp"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
            taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            port = self.bind(taker)
            taker.settimeout(0.2)
            packer = subprocess.Popen([*rig.FFMPEG, "-readrate", "8", "-i", path, "-an", "-c", "copy", "-sdp_file", sdp, "-f", "rtp",
                                       f"rtp://127.0.0.1:{port}?pkt_size=1200"], stdin=subprocess.DEVNULL)
            packets = self.taken(taker, packer)
        first = struct.unpack(">H", packets[0][2:4])[0]
        numbers = [struct.unpack(">H", packet[2:4])[0] for packet in packets]
        assert numbers == [(first + n) & 0xFFFF for n in range(len(packets))], "a packet was lost on its way"
        self.kind, self.pictures, before = packets[0][1] & 127, [], None
        for packet in packets:
            stamp = packet[4:8]
            if stamp != before:
                self.pictures.append([])
                before = stamp
            self.pictures[-1].append((bool(packet[1] & 128), packet[12:]))
        text = sdp.read_text()
        self.lines = [line for line in text[text.index("m=video"):].splitlines() if line.startswith(("a=rtpmap", "a=fmtp"))]

    @staticmethod
    def bind(taker):
        """Another program may take a free port before it is bound."""
        while True:
            port = rig.free_port()
            try:
                taker.bind(("127.0.0.1", port))
                return port
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise

    @staticmethod
    def taken(taker, packer):
        packets, end = [], time.monotonic() + SECONDS_TO_PACK
        while time.monotonic() < end:
            try:
                packets.append(taker.recv(65536))
            except TimeoutError:
                if packer.poll() is not None:
                    break
        if packer.wait(SECONDS_TO_PACK) or not packets:
            raise AssertionError("ffmpeg did not make packets of the film")
        return packets

    def without_sets(self):
        """The SDP's lines without parameter sets: they come with the key pictures only."""
        return [re.sub(r";? *sprop-[a-z-]+=[^;]*", "", line) for line in self.lines]


class Camera:
    """An RTSP server of one film. Ends its clients and itself with end()."""

    def __init__(self, film, *, fps, stamp_fps=None, begins_at=0, count=0, pauses=None, sets=True, refuses=None, halves=None,
                 closes_after=None, comes_back_as=None, burst=0, loses=0, reports=True, tells_rtp=True):
        """`stamp_fps`: of the stamps, where another than what is sent. `pauses`: seconds of silence before a picture, for the
        first client. `refuses`: the status that DESCRIBE gets. `halves`: the picture of which only a half of a packet comes, for
        the first client. `closes_after`: as many pictures, for the first client; `comes_back_as`: the film of all later ones.
        `burst`: as many pictures come at once first. `loses`: each packet of that number is lost. `count`: as many pictures, and
        then silence."""
        self.film, self.fps, self.stamp_fps, self.begins_at, self.count = film, fps, stamp_fps or fps, begins_at, count
        self.pauses, self.sets, self.refuses, self.halves, self.closes_after = pauses or {}, sets, refuses, halves, closes_after
        self.reports, self.tells_rtp, self.comes_back_as, self.burst, self.loses = reports, tells_rtp, comes_back_as, burst, loses
        self.sent, self.wrong, self.is_ending = [], [], threading.Event()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.listener.listen(16)
        self.address = f"rtsp://127.0.0.1:{self.port}/camera"
        threading.Thread(target=self.accept, daemon=True).start()

    def end(self):
        self.is_ending.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while not self.is_ending.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=Client(self, connection).serve, daemon=True).start()


class Client:
    def __init__(self, camera, connection):
        self.camera, self.connection = camera, connection
        self.lock, self.is_gone, self.udp, self.target = threading.Lock(), threading.Event(), [], None

    def serve(self):
        data = b""
        try:
            while True:
                if data[:1] == b"$" and len(data) >= 4 and len(data) >= 4 + struct.unpack(">H", data[2:4])[0]:
                    data = data[4 + struct.unpack(">H", data[2:4])[0]:]
                elif data[:1] != b"$" and b"\r\n\r\n" in data:
                    request, data = data.split(b"\r\n\r\n", 1)
                    if not self.answer(request.decode("latin1")):
                        break
                else:
                    more = self.connection.recv(65536)
                    if not more:
                        break
                    data += more
        except OSError:
            pass
        self.close()

    def close(self):
        self.is_gone.set()
        for each in [self.connection, *self.udp]:
            each.close()

    def answer(self, request):
        """False where the connection ends with it."""
        method, number = request.split(" ")[0], re.search(r"CSeq: *(\d+)", request)
        if number is None:
            self.camera.wrong.append(request[:80])
            return False
        status, head, body = "200 OK", "", ""
        if method == "OPTIONS":
            head = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n"
        elif method == "DESCRIBE" and self.camera.refuses:
            status = self.camera.refuses
        elif method == "DESCRIBE":
            film = self.camera.film
            lines = film.lines if self.camera.sets else film.without_sets()
            body = "\r\n".join(["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=camera", "t=0 0", f"m=video 0 RTP/AVP {film.kind}", *lines,
                                "a=control:one", ""])
            head = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
        elif method == "SETUP":
            head = f"Transport: {self.transport(request)}\r\nSession: 1;timeout=60\r\n"
        elif method == "PLAY":
            info = f"RTP-Info: url={self.camera.address}/one;seq=1;rtptime={self.stamp(0)}\r\n" if self.camera.tells_rtp else ""
            head = f"Session: 1\r\nRange: npt=0.000-\r\n{info}"
        with self.lock:
            self.connection.sendall(f"RTSP/1.0 {status}\r\nCSeq: {number.group(1)}\r\n{head}\r\n{body}".encode())
        if method == "PLAY":
            threading.Thread(target=self.play, daemon=True).start()
        return method != "TEARDOWN"

    def transport(self, request):
        ports = re.search(r"client_port=(\d+)-(\d+)", request)
        if "RTP/AVP/TCP" in request or ports is None:
            return "RTP/AVP/TCP;unicast;interleaved=0-1"
        for _ in range(2):
            self.udp.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            self.udp[-1].bind(("127.0.0.1", 0))
        self.target = int(ports.group(1))
        own = "-".join(str(each.getsockname()[1]) for each in self.udp)
        return f"RTP/AVP;unicast;client_port={ports.group(1)}-{ports.group(2)};server_port={own}"

    def stamp(self, n):
        return (int(n * CLOCK / self.camera.stamp_fps) + 3_000_000_000) & 0xFFFFFFFF

    def send(self, packet, channel=0, is_cut=False):
        if self.udp:
            self.udp[channel].sendto(packet, ("127.0.0.1", self.target + channel))
            return
        framed = struct.pack(">BBH", 36, channel, len(packet)) + packet
        with self.lock:
            self.connection.sendall(framed[:len(framed) // 2] if is_cut else framed)

    def report(self, n):
        """A sender report: where the stamps are on the wall clock."""
        now = time.time() + 2208988800
        self.send(struct.pack(">BBHIIIIII", 0x80, 200, 6, 7, int(now), int(now % 1 * 2**32), self.stamp(n), n, n), channel=1)

    def play(self):
        try:
            self.send_pictures()
        except OSError:
            pass

    def send_pictures(self):
        camera, number, sequence, due = self.camera, 0, 1, time.monotonic()
        is_first = not camera.sent
        film = camera.film if is_first else camera.comes_back_as or camera.film
        sent = []
        camera.sent.append(sent)
        while not self.is_gone.is_set() and not camera.is_ending.is_set():
            at = camera.begins_at + number
            if camera.count and number >= camera.count:
                self.is_gone.wait()
            if is_first and number == camera.closes_after:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            due += camera.pauses.get(number, 0) if is_first else 0
            if self.is_gone.wait(max(0, due - time.monotonic())):
                return
            if camera.reports and number % 20 == 0:
                self.report(number)
            for mark, payload in film.pictures[at % len(film.pictures)]:
                head = struct.pack(">BBHII", 0x80, camera.film.kind | (128 if mark else 0), sequence & 0xFFFF, self.stamp(number), 7)
                is_cut = is_first and number == camera.halves
                if not camera.loses or sequence % camera.loses:
                    self.send(head + payload, is_cut=is_cut)
                if is_cut:
                    self.is_gone.wait()
                    return
                sequence += 1
            sent.append(at % len(film.pictures))
            number += 1
            due += 1 / camera.fps if number >= camera.burst else 0
        self.close()


class GStreamers:
    """GStreamer's RTSP server, rtsp_server.py, by the system's Python where this one has no binding of GStreamer's."""

    def __init__(self, film, port=0):
        reasons = []
        for python in dict.fromkeys([sys.executable, "/usr/bin/python3"]):
            if not shutil.which(python):
                continue
            script = pathlib.Path(__file__).with_name("rtsp_server.py")
            self.process = subprocess.Popen([python, script, film, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True)
            if line := self.process.stdout.readline():
                self.port = int(line)
                self.codecs = self.process.stdout.readline().split()
                return
            code, reason = self.process.wait(10), self.process.stderr.read().strip()
            self.end()
            if code != 77:
                raise AssertionError(f"the RTSP server does not start: {reason}")
            reasons.append(reason)
        raise unittest.SkipTest(f"gir1.2-gst-rtsp-server-1.0 is not installed: {reasons}")

    def end(self):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


def pictures_of_ts(path):
    """The packets of a transport stream with one film, picture by picture; tables come with the picture after them."""
    data, pictures, head = path.read_bytes(), [], b""
    for at in range(0, len(data), 188):
        packet = data[at:at + 188]
        pid = struct.unpack(">H", packet[1:3])[0] & 0x1FFF
        if pid != 256:
            head += packet
            continue
        if packet[1] & 0x40:
            pictures.append(b"")
        pictures[-1] += head + packet
        head = b""
    return pictures


class Datagrams:
    """Sends a transport stream to a port as soon as somebody has it."""

    def __init__(self, ts, *, fps, count=0):
        self.pictures, self.fps, self.count = pictures_of_ts(ts), fps, count
        self.port, self.is_ending = rig.free_port(), threading.Event()
        self.address = f"udp://127.0.0.1:{self.port}"
        threading.Thread(target=self.send, daemon=True).start()

    def end(self):
        self.is_ending.set()

    def is_taken(self):
        lines = pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]
        return any(int(line.split()[1].split(":")[1], 16) == self.port for line in lines)

    def send(self):
        while not self.is_taken():
            if self.is_ending.wait(0.02):
                return
        due = time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number, picture in enumerate(self.pictures):
                if (self.count and number == self.count) or self.is_ending.wait(max(0, due - time.monotonic())):
                    return
                for at in range(0, len(picture), 7 * 188):
                    sender.sendto(picture[at:at + 7 * 188], ("127.0.0.1", self.port))
                due += 1 / self.fps


class Pieces(http.server.ThreadingHTTPServer):
    """Serves what lies in `pieces`, one after another, `fps` a second; 0: at once, with its length."""

    daemon_threads = True

    def __init__(self, pieces, *, kind, fps=0, has_length=False, halts_after=0):
        """`has_length`: also where the pieces come one by one. `halts_after`: as many pieces, for the first client, and then silence."""
        super().__init__(("127.0.0.1", 0), PieceAnswers)
        self.pieces, self.kind, self.fps, self.is_ending = pieces, kind, fps, threading.Event()
        self.has_length, self.halts_after, self.clients = has_length or not fps, halts_after, 0
        self.address = f"http://127.0.0.1:{self.server_port}/camera"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self):
        self.is_ending.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that has gone is no fault here."""


class PieceAnswers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server, due = self.server, time.monotonic()
        server.clients += 1
        pieces = server.pieces[:server.halts_after] if server.halts_after and server.clients == 1 else server.pieces
        self.send_response(200)
        self.send_header("Content-Type", server.kind)
        if server.has_length:
            self.send_header("Content-Length", str(sum(map(len, server.pieces))))
        self.end_headers()
        for piece in pieces:
            if server.is_ending.wait(max(0, due - time.monotonic())):
                return
            self.wfile.write(piece)
            self.wfile.flush()
            due += 1 / server.fps if server.fps else 0
        if pieces is not server.pieces:
            server.is_ending.wait()
