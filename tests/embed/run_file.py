#!/usr/bin/env python3
"""Runs examples/embed/run_file: pipelines from files, with plugins and devices, and as a node beside the command.

usage: run_file.py MILLRACE RUN_FILE FOLDER_OF_A_PLUGIN [unittest arguments]
"""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import fleet  # noqa: E402: found by the line above
from under_way import SECONDS_MAX  # noqa: E402

RUN_FILE = PLUGIN = ""
# `mark` is of a plugin, and `blur` may run on one device alone.
PIPELINE = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera: { type: test.pattern, width: 64, height: 48, count: 20, format: gray8, node: edge }
  mark:   { type: test.foreign, gain: 3, node: gpu, input: camera }
  blur:   { type: image.blur, device: sim:0, node: gpu, input: mark }
  save:   { type: file.raw_writer, path: out.raw, node: edge, input: blur }
"""


class RunFile(fleet.Fleet):
    def setUp(self):
        super().setUp()
        self.pipeline.write_text(PIPELINE)
        self.out = self.folder / "out.raw"

    def app(self, *words, machine="gpu", plugins=True):
        environment = {**self.environment(machine), "MILLRACE_PLUGIN_PATH": PLUGIN if plugins else ""}
        return subprocess.run([RUN_FILE, self.pipeline, *words], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=SECONDS_MAX)

    def bytes_of_the_command(self):
        self.call_in_folder("run", self.pipeline, "--devices", "sim:0,cpu", "--plugin-path", PLUGIN, "--quiet")
        written = self.out.read_bytes()
        self.out.unlink()
        self.assertEqual(len(written), 20 * 64 * 48)
        return written

    def call_in_folder(self, *arguments):
        subprocess.run([fleet.MILLRACE, *arguments], cwd=self.folder, env=self.environment("gpu"), timeout=SECONDS_MAX,
                       check=True)

    def test_all_nodes_in_the_application_give_the_bytes_of_the_command(self):
        expected = self.bytes_of_the_command()
        done = self.app("", "", "sim:0,cpu")
        self.assertEqual((done.returncode, done.stdout), (0, "20 ticks\n"), done.stderr)
        self.assertEqual(self.out.read_bytes(), expected)

    def test_a_node_in_the_application_beside_one_of_the_command_gives_the_same_bytes(self):
        expected = self.bytes_of_the_command()
        self.know_each_other("edge", "gpu")
        edge = self.edge()
        done = self.app("gpu", self.address, "sim:0,cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(edge.end(), 0, edge.said)
        self.assertEqual(self.out.read_bytes(), expected)
        on_gpu = {name for name, row in edge.report()["handlers"].items() if row["on"] == "gpu"}
        self.assertEqual(on_gpu, {"mark", "blur"})

    def test_errors_are_those_of_the_command(self):
        for words, options in ((["gpv"], ["--node", "gpv"]), (["", "", "sim:0,cpu"], ["--devices", "sim:0,cpu"])):
            done = self.app(*words, plugins=False)
            command = subprocess.run([fleet.MILLRACE, "run", self.pipeline, *options], cwd=self.folder, capture_output=True,
                                     text=True, env=self.environment("gpu"), timeout=SECONDS_MAX)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith("error MR"), done.stderr)
            self.assertEqual(done.stderr, command.stderr)


if __name__ == "__main__":
    fleet.MILLRACE, RUN_FILE, PLUGIN = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    unittest.main(verbosity=1)
