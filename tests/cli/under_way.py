"""A run of the command under way, with what it says on stderr: what tests of endings and of nodes share."""
import json
import os
import re
import select
import signal
import subprocess
import time

SECONDS_MAX = 60


class UnderWay:
    """Killed when the test ends, if it has not ended by then. `options` are those of subprocess.Popen.

    A test with a list `processes` of all that it has begun hears them all when one does not say what it should.
    """

    def __init__(self, test, name, report_path, command, **options):
        self.test = test
        self.name = name
        self.report_path = report_path
        self.process = subprocess.Popen([*map(str, command), "--json", str(report_path)], cwd=test.folder,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        for undo in (self.process.stderr.close, self.process.wait, self.process.kill):
            test.addCleanup(undo)
        test.addCleanup(self.process.send_signal, signal.SIGCONT)
        self.said = ""

    def until(self, words, seconds=SECONDS_MAX):
        """Reads until it said something that matches; the match."""
        end = time.monotonic() + seconds
        while not (match := re.search(words, self.said)):
            if not self.read(end - time.monotonic(), f"did not say '{words}' within {seconds} s"):
                raise AssertionError(f"{self.name} did not say '{words}': {self.said}")
        return match

    def end(self, seconds=SECONDS_MAX):
        """Its exit code."""
        end = time.monotonic() + seconds
        while self.read(end - time.monotonic(), "does not end"):
            pass
        return self.process.wait(max(end - time.monotonic(), 1))

    def read(self, seconds, otherwise):
        """What came next; nothing at the end."""
        if not select.select([self.process.stderr], [], [], max(seconds, 0))[0]:
            others = [other for other in getattr(self.test, "processes", []) if other is not self]
            raise AssertionError("\n".join([f"{self.name} {otherwise}: {self.said}",
                                            *(f"{other.name} said: {other.said_by_now()}" for other in others)]))
        got = os.read(self.process.stderr.fileno(), 65536).decode(errors="replace")
        self.said += got
        return got

    def said_by_now(self):
        while select.select([self.process.stderr], [], [], 0)[0] and self.read(0, ""):
            pass
        return self.said

    def report(self):
        return json.loads(self.report_path.read_text())
