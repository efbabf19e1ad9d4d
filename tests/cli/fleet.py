"""Nodes of one pipeline as processes of this machine, over TLS on the loopback: what tests of them share.

A test sets MILLRACE, the path of the command, before the first one starts.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from under_way import SECONDS_MAX, UnderWay  # noqa: E402: found by the line above

MILLRACE = ""

# A picture goes to the other node and comes back.
THERE_AND_BACK = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera: { type: test.pattern, width: 64, height: 48, count: 200, node: edge }
  blur:   { type: image.blur, node: gpu, input: camera }
  save:   { type: file.raw_writer, path: out.rgb, node: edge, input: blur }
"""


class Process(UnderWay):
    """A node under way."""

    def __init__(self, test, machine, node, *arguments):
        super().__init__(test, node, test.folder / f"{node}-{len(test.processes)}.json",
                         [MILLRACE, "run", test.pipeline, "--node", node, *arguments], env=test.environment(machine))
        self.node = node
        test.processes.append(self)


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
        """A node that dials the coordinator. Other nodes may dial it: it listens at a free port of the loopback, since
        the default port may be another program's or another test's."""
        listens = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
        return Process(self, node, node, "--coordinator", self.address, *listens, *arguments)

    def both(self, *arguments):
        edge = self.edge(*arguments)
        gpu = self.other("gpu")
        edge.until("all nodes are ready")
        return edge, gpu

    def ends(self, process, code, seconds=SECONDS_MAX):
        self.assertEqual(process.end(seconds), code, process.said)
