#!/usr/bin/env python3
"""Asks the command for plans of volume.file: what is wrong with a file is told there, and ends it as a script expects.

usage: plan.py MILLRACE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

MILLRACE = pathlib.Path()
CANNOT_BE_OPENED = 3
ARRAY = {"zarr_format": 2, "shape": [2, 3, 4], "chunks": [1, 3, 4], "dtype": "|u1", "compressor": None, "fill_value": 0,
         "order": "C", "filters": None}
PLANE = bytes(range(12))


class Plan(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_it(self, command, settings):
        return subprocess.run([MILLRACE, command, f"volume.file {settings} ! null.sink"], cwd=self.folder, timeout=120,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def refused(self, words, settings):
        result = self.run_it("plan", settings)
        self.assertEqual((result.returncode, result.stdout), (CANNOT_BE_OPENED, ""), result.stderr)
        self.assertRegex(result.stderr, r"^error MR0604: file \(volume\.file\) could not be opened: " + words)

    def given(self, shape, settings):
        result = self.run_it("plan", settings)
        self.assertIn(shape, result.stdout, result.stderr)
        self.assertEqual(self.run_it("run", settings).returncode, 0)

    def test_missing_chunks_are_told_by_the_plan(self):
        (self.folder / "a.zarr").mkdir()
        (self.folder / "a.zarr" / ".zarray").write_text(json.dumps(ARRAY))
        (self.folder / "a.zarr" / "0.0.0").write_bytes(PLANE)
        self.refused(r"cannot read 'a\.zarr': 1 of 2 chunks are missing, the first is '1\.0\.0'", "path=a.zarr")
        self.given("uint8[2×3×4]", "path=a.zarr missing=fill")
        (self.folder / "a.zarr" / "1.0.0").write_bytes(PLANE)
        self.given("uint8[2×3×4]", "path=a.zarr")

    def test_a_file_that_breaks_off_is_told_by_the_plan(self):
        (self.folder / "a.raw").write_bytes(PLANE * 2)
        self.given("uint16[1×3×4]", "path=a.raw shape=1x3x4 dtype=uint16")
        self.refused(r"cannot read 'a\.raw': it breaks off: .* takes 48 bytes .* there are 24",
                     "path=a.raw shape=2x3x4 dtype=uint16")


if __name__ == "__main__":
    MILLRACE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
