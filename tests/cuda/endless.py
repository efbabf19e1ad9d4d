#!/usr/bin/env python3
"""A kernel that never ends, and one that writes where it may not, through the command (semantics.md 4.9).

usage: endless.py MILLRACE FOLDER [unittest arguments]

FOLDER has the plugin tests/cuda/endless.cu. Needs a GPU.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

MILLRACE = FOLDER = ""
LINE = "test.pattern width=64 height=48 ! endless.kernel name=kernel device=cuda:0 {} ! image.flip device=cuda:0 ! null.sink device=cpu"


class Endless(unittest.TestCase):
    def run_it(self, words, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            begin = time.monotonic()
            process = subprocess.Popen([MILLRACE, "run", LINE.format(words), "--devices", "cuda:0,cpu", "--plugin-path", FOLDER,
                                        "--json", str(report), *arguments], stderr=subprocess.PIPE, text=True)
            try:
                said = process.communicate(timeout=60)[1]
            finally:
                process.kill()
            took = time.monotonic() - begin
            self.assertEqual(process.returncode, 5, said)
            self.assertFalse(os.path.exists(f"/proc/{process.pid}"))
            self.assertEqual(json.loads(report.read_text())["error"]["code"], "MR0703")
            print(f"{words or 'never ends'} {' '.join(arguments)}: {took:.1f} s: {said.strip().splitlines()[-1]}")
            return said, took

    def test_a_kernel_that_never_ends_is_left_behind_with_a_report_and_code_5(self):
        said, took = self.run_it("")
        self.assertLess(took, 15)  # 10 s without a sign of life, and the opening of the device
        self.assertIn("under way was kernel (endless.kernel) (tick 3)", said)

    def test_an_illegal_address_names_what_was_under_way(self):
        said, _ = self.run_it("wild=true")
        self.assertIn("; under way was ", said)

    def test_an_illegal_address_is_of_the_one_that_made_it_where_devices_are_synchronised(self):
        said, _ = self.run_it("wild=true", "--sync-devices")
        self.assertIn("under way was kernel (endless.kernel) (tick 3)", said)

    def test_a_kernel_that_never_ends_is_named_where_devices_are_synchronised(self):
        said, took = self.run_it("", "--sync-devices")
        self.assertLess(took, 15)
        self.assertIn("under way was kernel (endless.kernel) (tick 3)", said)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    FOLDER = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
