#!/usr/bin/env python3
"""Measures how much memory a run has at most that looks at a volume of a file: the volume once, and a fifth of it.

usage: resident.py MILLRACE [unittest arguments]

MILLRACE_VOLUME_MIB (128) is the size of the volume. The files are sparse, so that large ones take no room.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MILLRACE = pathlib.Path()
MIB = int(os.environ.get("MILLRACE_VOLUME_MIB", "128"))
SIDE = 1024  # of a plane of a byte a voxel: a MiB
AT_MOST = 1.2
READERS = "cut.video ! null.sink name=a ; seen.video ! null.sink name=b"


def peak_kib(folder, data):
    """The greatest resident size of a run with two readers of the volume."""
    line = (f"{data} name=data ; data.volume ! volume.slice name=cut ; data.volume ! volume.render name=seen width=64 "
            f"height=36 step=16 ; {READERS}")
    child = subprocess.Popen([MILLRACE, "run", line, "--quiet"], cwd=folder, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stderr.close()
    if child.returncode != 0:
        raise AssertionError(errors)
    return usage.ru_maxrss


class Resident(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def check(self, data):
        alone = peak_kib(self.folder, "volume.test width=16 height=16 depth=16")
        peak = peak_kib(self.folder, data)
        volume = MIB * 1024
        print(f"{data}: {peak / 1024:.0f} MiB, of which {alone / 1024:.0f} without the volume of {MIB}")
        self.assertGreater(peak - alone, volume / 2)  # it was looked at
        self.assertLess(peak - alone, volume * AT_MOST)

    def test_a_mapped_file_is_there_once(self):
        with open(self.folder / "a.raw", "wb") as file:
            file.truncate(MIB << 20)
        self.check(f"volume.file path=a.raw shape={MIB}x{SIDE}x{SIDE}")

    def test_a_decoded_file_is_there_once(self):
        (self.folder / "a.zarr").mkdir()
        (self.folder / "a.zarr" / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [MIB, SIDE, SIDE], "chunks": [16, SIDE, SIDE], "dtype": "|u1", "compressor": None,
            "fill_value": 0, "order": "C", "filters": None}))
        for chunk in range((MIB + 15) // 16):
            with open(self.folder / "a.zarr" / f"{chunk}.0.0", "wb") as file:
                file.truncate(16 << 20)
        self.check("volume.file path=a.zarr")


if __name__ == "__main__":
    MILLRACE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
