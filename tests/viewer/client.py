"""A run with a viewer, and a page of it that is a program: it gets pictures, and acknowledges them when it is told to."""
import itertools
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from web_socket import SECONDS_MAX, Closed, WebSocket  # noqa: E402: found by the line above

MILLRACE = ""
DRAWN, PASSED_OVER, FAILED = 1, 2, 3
H264, JPEG = 0, 1
LINK = re.compile(r"(\w+): https?://([\w.:\[\]]+)/view/(\w+)/#token=([0-9a-f]{32})$")
WATCH_LINK = re.compile(r"to watch alone: https?://[\w.:\[\]]+/view/\w+/#token=([0-9a-f]{32})&role=watch$")


def has_viewer():
    return subprocess.run([MILLRACE, "inspect", "view.remote"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


class View:
    """A run that goes on until it is stopped. `pages` has the port and both tokens of each viewer, by its name."""

    def __init__(self, test, *arguments, viewers=1):
        folder = tempfile.TemporaryDirectory(prefix="mr-")
        test.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.test = test
        self.process = subprocess.Popen([MILLRACE, "run", *map(str, arguments), "--json", self.folder / "report.json"],
                                        cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True,
                                        env=os.environ | {"XDG_RUNTIME_DIR": folder.name, "XDG_CONFIG_HOME": folder.name,
                                                             "MILLRACE_MACHINE": ""},
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.pages, self.said, name = {}, "", None
        while len(self.pages) < viewers or name:
            line = self.process.stderr.readline()
            test.assertTrue(line, f"it gave no link: {self.said}")
            self.said += line
            if match := LINK.search(line.rstrip()):
                name = match[3]
                self.pages[name] = {"host": match[2], "port": int(match[2].rsplit(":", 1)[1]), "token": match[4]}
            elif (match := WATCH_LINK.search(line.rstrip())) and name:
                self.pages[name]["watch"] = match[1]
                name = None
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        try:
            for line in self.process.stderr:
                self.said += line
        except ValueError:  # it is closed
            pass

    def page(self, name="main", watches=False, codecs=("jpeg",)):
        page = Page(self.pages[name], name, self.pages[name]["watch" if watches else "token"])
        self.test.addCleanup(page.close)
        page.hello()
        if codecs:
            page.start(codecs)
        return page

    def end(self):
        """The report of the run, which is stopped."""
        self.process.send_signal(signal.SIGINT)
        self.test.assertEqual(self.process.wait(SECONDS_MAX), 130, self.said)
        return json.loads((self.folder / "report.json").read_text())


class Picture:
    def __init__(self, message):
        (self.seq, self.seconds, self.width, self.height, self.codec, self.flags, zero) = struct.unpack_from(">IdIIBBH", message)
        assert zero == 0
        at = struct.calcsize(">IdIIBBH")
        self.is_key = bool(self.flags & 1)
        self.answers = self.encoded_us = 0
        if self.flags & 4:
            self.answers, at = struct.unpack_from(">I", message, at)[0], at + 4
        if self.flags & 8:
            self.encoded_us, at = struct.unpack_from(">I", message, at)[0], at + 4
        self.bytes = message[at:]


class Page(WebSocket):
    def __init__(self, place, name="main", token="", **arguments):
        super().__init__(place["port"], path=f"/view/{name}/channel", **arguments)
        self.token = token
        self.said = []      # texts of the viewer that nobody has asked for yet
        self.pictures = []  # likewise
        self.seqs = itertools.count(1)

    def tell(self, **message):
        self.say(json.dumps(message))

    def hello(self, role="steer"):
        self.say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello",
                             "params": {"protocol": 3, "token": self.token, "role": role}}))
        opcode, data = self.hear()
        assert opcode == 1
        answer = json.loads(data)
        self.role = answer.get("result", {}).get("role")
        if self.role:
            self.welcome = self.text("welcome")
            self.number = self.welcome["viewer"]
        return answer

    def start(self, codecs=("jpeg",)):
        self.tell(type="start", codecs=list(codecs))

    def take(self, is_wanted):
        """Reads until something wanted has come, and keeps the rest."""
        while not (found := is_wanted()):
            opcode, data = self.hear()
            if opcode == 2:
                self.pictures.append(Picture(data))
            else:
                self.said.append(json.loads(data))
        return found

    def text(self, kind):
        """The next text of that type."""
        text = self.take(lambda: next((text for text in self.said if text.get("type") == kind), None))
        self.said.remove(text)
        return text

    def picture(self, fate=DRAWN):
        """The next picture. With a fate it is acknowledged."""
        self.take(lambda: self.pictures)
        picture = self.pictures.pop(0)
        if fate:
            self.acknowledge(picture, fate)
        return picture

    def acknowledge(self, picture, fate=DRAWN):
        self.say(struct.pack(">IBd", picture.seq, fate, time.monotonic()), opcode=2)

    def event(self, kind, **fields):
        seq = next(self.seqs)
        self.tell(type="event", kind=kind, seq=seq, **fields)
        return seq

    def pong(self):
        """All that was said before has been read once this returns."""
        self.tell(type="ping", at=1)
        return self.text("pong")

    def why_closed(self):
        """(code, reason), once the viewer has closed."""
        try:
            while True:
                self.hear()
        except Closed as closed:
            self.close()  # its place is another page's
            return closed.args
