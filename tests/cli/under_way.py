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
    """Killed when the test ends, if it has not ended by then. `options` are those of subprocess.Popen."""

    def __init__(self, test, name, report_path, command, **options):
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
            raise AssertionError(f"{self.name} {otherwise}: {self.said}")
        got = os.read(self.process.stderr.fileno(), 65536).decode(errors="replace")
        self.said += got
        return got

    def report(self):
        return json.loads(self.report_path.read_text())
