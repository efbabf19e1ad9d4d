"""Nodes of one pipeline as processes of this machine, over TLS on the loopback: what tests of them share.

A test sets MILLRACE, the path of the command, before the first one starts.
"""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

MILLRACE = ""
SECONDS_MAX = 60

# A picture goes to the other node and comes back.
THERE_AND_BACK = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera: { type: test.pattern, width: 64, height: 48, count: 200, node: edge }
  blur:   { type: image.blur, node: gpu, input: camera }
  save:   { type: file.raw_writer, path: out.rgb, node: edge, input: blur }
"""


class Process:
    """A node under way, with what it says on stderr."""

    def __init__(self, test, machine, node, *arguments):
        self.report_path = test.folder / f"{node}-{len(test.processes)}.json"
        self.node = node
        self.process = subprocess.Popen(
            [MILLRACE, "run", str(test.pipeline), "--node", node, "--json", str(self.report_path), *map(str, arguments)],
            cwd=test.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=test.environment(machine))
        test.processes.append(self)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        test.addCleanup(self.process.send_signal, signal.SIGCONT)
        self.said = ""

    def until(self, words, seconds=SECONDS_MAX):
        """Reads until it said something that matches; the match."""
        end = time.monotonic() + seconds
        while not (match := re.search(words, self.said)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                raise AssertionError(f"{self.node} did not say '{words}' within {seconds} s: {self.said}")
            got = os.read(self.process.stderr.fileno(), 65536)
            if not got:
                raise AssertionError(f"{self.node} did not say '{words}': {self.said}")
            self.said += got.decode(errors="replace")
        return match

    def end(self, seconds=SECONDS_MAX):
        """Its exit code."""
        end = time.monotonic() + seconds
        while got := self.read(end - time.monotonic()):
            self.said += got.decode(errors="replace")
        return self.process.wait(max(end - time.monotonic(), 1))

    def read(self, seconds):
        if not select.select([self.process.stderr], [], [], max(seconds, 0))[0]:
            raise AssertionError(f"{self.node} does not end: {self.said}")
        return os.read(self.process.stderr.fileno(), 65536)

    def report(self):
        return json.loads(self.report_path.read_text())


class Fleet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pipeline = self.folder / "pipeline.yaml"
        self.processes = []
        self.address = ""

    def environment(self, machine):
        return {**os.environ, "XDG_CONFIG_HOME": str(self.folder / machine), "MILLRACE_MACHINE": ""}

    def call(self, machine, *arguments):
        return subprocess.run([MILLRACE, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=True,
                              env=self.environment(machine)).stdout

    def know_each_other(self, *machines):
        ids = {machine: json.loads(self.call(machine, "identity", "--json"))["id"] for machine in machines}
        for machine in machines:
            for other in machines:
                if other != machine:
                    self.call(machine, "nodes", "add", other, ids[other])

    def write(self, text, *machines):
        self.pipeline.write_text(text)
        self.know_each_other(*(machines or ("edge", "gpu")))

    def edge(self, *arguments):
        """The coordinator, once it listens."""
        process = Process(self, "edge", "edge", "--listen", "127.0.0.1:0", *arguments)
        self.address = process.until(r"listening at (127\.0\.0\.1:\d+)").group(1)
        return process

    def other(self, node, *arguments):
        return Process(self, node, node, "--coordinator", self.address, *arguments)

    def both(self, *arguments):
        edge = self.edge(*arguments)
        gpu = self.other("gpu")
        edge.until("all nodes are ready")
        return edge, gpu

    def ends(self, process, code, seconds=SECONDS_MAX):
        self.assertEqual(process.end(seconds), code, process.said)
