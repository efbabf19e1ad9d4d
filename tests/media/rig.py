"""Runs millrace, ffmpeg and ffprobe for the tests of video, each for a bounded time, and counts what was run."""
import atexit
import concurrent.futures
import faulthandler
import functools
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SECONDS_MAX = 60  # of one process; far more than any of these takes, on a machine that is busy with other things
PROGRAM_SECONDS_MAX = 880  # of one test program; ctest ends it at 900 and would not say where it stood
FFMPEG = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y"]
# Names of ITU-T H.273 as ffprobe says them, and the code points as a value says them.
PRIMARIES = {"bt709": 1, "bt470bg": 5, "smpte170m": 6, "bt2020": 9}
TRANSFERS = {"bt709": 1, "bt470bg": 5, "smpte170m": 6, "bt2020-10": 14, "smpte2084": 16, "arib-std-b67": 18}
COLORS = {"srgb": 0, "bt601": 1, "bt709": 2, "bt2020": 3}
MATRICES = {"gbr": "srgb", "bt470bg": "bt601", "smpte170m": "bt601", "bt709": "bt709", "bt2020nc": "bt2020"}

millrace = ""  # the command, from the command line
build_folder = pathlib.Path()  # what may be kept from one run to the next


def environment(**more):
    """Without a display, and without what calibrate keeps for the user's machine."""
    return {**os.environ, "MILLRACE_MACHINE": "", "DISPLAY": "", "WAYLAND_DISPLAY": "", **more}


def lay_out(command, plugin_folder):
    """A folder with the command and two plugins, media and check: to load OpenCV takes longer than most of these tests."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="laid-out-", dir=build_folder))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    place.chmod(0o755)
    (place / "plugins").mkdir()
    shutil.copy(command, place / "millrace")
    shutil.copy(command.parent / "plugins" / "media.so", place / "plugins")
    shutil.copy(plugin_folder / "check.so", place / "plugins")
    return str(place / "millrace")


def said(arguments, result):
    """The command, what it answered and what it printed: what a failed check shows."""
    def text(output):
        return output if isinstance(output, str) else (output or b"").decode(errors="replace")
    return (f"\n$ {' '.join(map(str, arguments))}\nexit code {result.returncode}\n"
            f"{text(result.stdout)[-2000:]}{text(result.stderr)[-4000:]}")


def call(arguments, seconds=SECONDS_MAX, **options):
    """Another program's result; fails where it does. `-v error` is not its fault: what it says is no failure."""
    result = subprocess.run([*map(str, arguments)], capture_output=True, timeout=seconds,
                            stdin=options.pop("stdin", subprocess.DEVNULL), **options)
    if result.returncode:
        raise AssertionError(said(arguments, result))
    return result.stdout


@functools.cache
def encoders():
    """The encoders of this machine's ffmpeg."""
    listed = call(["ffmpeg", "-hide_banner", "-encoders"]).decode()
    return set(re.findall(r"^ V\S{5} (\S+)", listed, re.MULTILINE))


@functools.cache
def ffmpeg_version():
    return call(["ffmpeg", "-version"]).decode().splitlines()[0]


def probe(path, *more):
    """What ffprobe says of a file's streams and container."""
    return json.loads(call(["ffprobe", "-v", "quiet", "-show_streams", "-show_format", "-of", "json", *more, path]))


def looked_at(path):
    """What ffprobe says of a film's streams, its container and its pictures; asked once of each film."""
    status = os.stat(path)
    return _looked_at(path, status.st_ino, status.st_mtime_ns, status.st_size)


@functools.cache
def _looked_at(path, *_):
    return probe(path, "-show_frames")


def video_stream(path):
    return next(stream for stream in looked_at(path)["streams"] if stream["codec_type"] == "video")


def stream_and_frames(path, stream="v:0"):
    """What ffprobe says of one stream and of each of its pictures."""
    found = probe(path, "-select_streams", stream, "-show_frames")
    return found["streams"][0], found["frames"]


def frames(path):
    """What ffprobe says of each picture."""
    index = video_stream(path)["index"]
    return [frame for frame in looked_at(path)["frames"] if frame["stream_index"] == index]


def times_ns(path):
    """The time of each picture in nanoseconds, less the first's."""
    return times_of(video_stream(path), frames(path))


def times_of(stream, pictures):
    """From whole numbers: the decimals are rounded."""
    numerator, denominator = map(int, stream["time_base"].split("/"))
    stamps = [picture["best_effort_timestamp"] for picture in pictures]
    return [round((stamp - stamps[0]) * numerator * 10**9 / denominator) for stamp in stamps]


def frame_md5s(path, *options, before=()):
    """The MD5 of each decoded picture, as `ffmpeg -f framemd5` says it."""
    printed = call([*FFMPEG, *before, "-i", path, *options, "-vsync", "passthrough", "-an", "-sn", "-f", "framemd5", "-"])
    return [line.split(",")[-1].strip() for line in printed.decode().splitlines() if not line.startswith("#")]


def fraction(text):
    numerator, denominator = map(int, re.split("[:/]", text))
    return numerator / denominator if denominator else 0.0


_ports, _ports_lock = set(), threading.Lock()


def free_port():
    """A port that nobody has, by TCP or UDP, and that no other test of this program gets.

    Not one of those that the system gives to whoever connects: another test's client would have it before its server.
    """
    with _ports_lock:
        while True:
            port = random.randrange(10000, 32000)
            if port in _ports:
                continue
            _ports.add(port)
            with socket.socket() as by_tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as by_udp:
                try:
                    by_tcp.bind(("127.0.0.1", port))
                    by_udp.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    continue


class Media(unittest.TestCase):
    """A test with a folder of its own, in which commands run."""

    longMessage = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-media-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, *arguments, code=0, seconds=SECONDS_MAX, stdin=subprocess.DEVNULL, text=True, more=None, **options):
        command = [millrace, *map(str, arguments)]
        result = subprocess.run(command, cwd=options.pop("cwd", self.folder), capture_output=True, text=text,
                                timeout=seconds, stdin=stdin, env=environment(**(more or {})), **options)
        self.assertEqual(result.returncode, code, f"the exit code is {code}{said(command, result)}")
        return result

    def refused(self, *arguments, words=(), error=None, **options):
        """Refused before anything ran: exit code 3, one error that has the words."""
        result = self.run_it("run", *arguments, code=options.pop("code", 3), **options)
        self.assertEqual(result.stderr.count("error MR"), 1, f"one error is told{said(arguments, result)}")
        if error:
            self.assertIn(f"error {error}", result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result.stderr

    def report(self, *arguments, code=0, **options):
        """The report of a run as JSON."""
        path = self.folder / "report.json"
        path.unlink(missing_ok=True)
        self.run_it("run", *arguments, "--json", path, code=code, **options)
        return json.loads(path.read_text())

    def pictures(self, source, *arguments, pixels=True, code=0, **options):
        """What check.pictures says of each picture at the end of a line of handlers; the report is in `self.told`."""
        path = self.folder / "pictures.jsonl"
        path.unlink(missing_ok=True)
        self.told = self.report(f"{source} ! check.pictures name=check path={path} pixels={str(pixels).lower()}",
                                *arguments, code=code, **options)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def need_encoder(self, *names):
        for name in names:
            if name not in encoders():
                self.skipTest(f"this ffmpeg has no encoder {name}")


def counts(report, name):
    """The numbers that a handler has counted."""
    return report["handlers"][name].get("counts", {})


class Told(unittest.TextTestResult):
    """A skipped case stands in the output with its reason, whatever the verbosity."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f"skipped: {test.id()}: {reason}")


class SideBySide:
    """Runs each case in one of several threads: most of them wait for a process, a clock or a network.

    A case has a folder of its own and shares nothing; fixtures of classes and modules are not known here.
    """

    SLOWEST = 5

    def __init__(self, threads):
        self.threads = threads
        self.stream = unittest.runner._WritelnDecorator(sys.stderr)

    def run(self, suite):
        begun, result = time.monotonic(), Told(self.stream, True, 1)
        with concurrent.futures.ThreadPoolExecutor(self.threads) as workers:
            done = list(workers.map(self.run_one, self.cases_of(suite)))
        for own, _, _ in done:
            self.add(own, result)
        result.printErrors()
        print(f"{result.testsRun} cases, {self.threads} at a time, in {time.monotonic() - begun:.1f} s; the longest:")
        for _, name, seconds in sorted(done, key=lambda each: -each[2])[:self.SLOWEST]:
            print(f"  {seconds:5.1f} s  {name}")
        return result

    def cases_of(self, suite):
        return [case for part in suite for case in (self.cases_of(part) if isinstance(part, unittest.TestSuite) else [part])]

    @staticmethod
    def run_one(case):
        begun, own = time.monotonic(), Told(unittest.runner._WritelnDecorator(io.StringIO()), True, 1)
        case.run(own)
        return own, case.id(), time.monotonic() - begun

    def add(self, own, result):
        self.stream.write(own.stream.getvalue())
        self.stream.flush()
        result.testsRun += own.testsRun
        for kind in ("failures", "errors", "skipped", "expectedFailures", "unexpectedSuccesses"):
            getattr(result, kind).extend(getattr(own, kind))


def main(cases, side_by_side):
    """Runs the tests of the calling script, of which there are `cases`, so many at a time.

    usage: SCRIPT MILLRACE CHECK_PLUGINS FOLDER [TEST…]
    """
    global millrace, build_folder
    if len(sys.argv) < 4:
        sys.exit(f"usage: {sys.argv[0]} MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]")
    build_folder = pathlib.Path(sys.argv[3]).resolve()
    build_folder.mkdir(parents=True, exist_ok=True)
    millrace = lay_out(*(pathlib.Path(given).resolve() for given in sys.argv[1:3]))
    # What this program ignores (nohup, a shell's &) its processes would ignore, too.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    names = sys.argv[4:]
    faulthandler.dump_traceback_later(PROGRAM_SECONDS_MAX, exit=True)
    program = unittest.main(module="__main__", argv=[sys.argv[0], *names], exit=False,
                            testRunner=SideBySide(side_by_side))
    result = program.result
    skipped = len(result.skipped)
    print(f"{result.testsRun - skipped} cases ran, {skipped} were skipped")
    if not names and result.testsRun != cases:
        sys.exit(f"{result.testsRun} cases were found, {cases} are written: the count in {sys.argv[0]} says which")
    sys.exit(not result.wasSuccessful())
