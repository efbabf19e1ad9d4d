#!/usr/bin/env python3
"""A fit of a codebook on a GPU, through the command: in a region with handlers around it, its copies, its memory.

usage: around_fit.py MILLRACE FOLDER [unittest arguments]

FOLDER has the plugin tests/cuda/around_fit.cu. Needs a GPU.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MILLRACE = FOLDER = ""
TICKS, VECTORS, DIMENSIONS, ANCHORS = 20, 3000, 64, 32
PIPELINE = f"""\
version: 1
handlers:
  v: {{type: test.vectors, n: {VECTORS}, d: {DIMENSIONS}, data: mixture, count: {TICKS}, device: cpu}}
  before: {{type: around.before, input: v, device: DEVICE}}
  fit: {{type: codebook.fit, m: {ANCHORS}, maintenance: corrected, interval: 3, inputs: {{vectors: before}}, device: DEVICE}}
  after: {{type: around.after, input: fit.labels, device: DEVICE}}
  labels: {{type: tensor.to_npy, path: FOLDER/labels.npy, input: after, device: cpu}}
  book: {{type: tensor.to_npy, path: FOLDER/book.npy, input: fit.codebook, device: cpu}}
"""


class AroundFit(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_on(self, device):
        """The report, and the bytes of labels and of codebooks."""
        folder = self.folder / device.replace(":", "")
        folder.mkdir()
        (folder / "p.yaml").write_text(PIPELINE.replace("DEVICE", device).replace("FOLDER", str(folder)))
        done = subprocess.run([MILLRACE, "run", folder / "p.yaml", "--devices", "cuda:0,cpu", "--plugin-path", FOLDER,
                               "--json", folder / "report.json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (json.loads((folder / "report.json").read_text()), (folder / "labels.npy").read_bytes(),
                (folder / "book.npy").read_bytes())

    def test_it_is_in_one_region_with_what_is_around_it_and_gives_what_the_host_gives(self):
        report, labels, book = self.run_on("cuda:0")
        _, labels_of_host, book_of_host = self.run_on("cpu")
        self.assertEqual(labels, labels_of_host)
        self.assertEqual(book, book_of_host)
        (region,) = report["regions"]
        self.assertEqual(region["handlers"], ["before", "fit", "after"])
        self.assertEqual((region["launches"], region["one_by_one"]), (TICKS, 0))

    def test_vectors_are_copied_up_once_a_tick_and_labels_down(self):
        report, _, _ = self.run_on("cuda:0")
        head = 256  # of a value that goes up
        copied = sorted((one["count"], one["bytes"]) for one in report["transfers"])
        self.assertEqual(copied, [(TICKS, TICKS * VECTORS * 4), (TICKS, TICKS * (VECTORS * DIMENSIONS * 2 + head))],
                         report["transfers"])

    def test_fits_that_no_gpu_can_hold_are_refused_with_their_bytes(self):
        vectors, dimensions = 5_000_000, 2048
        line = (f"test.vectors name=v n={vectors} d={dimensions} ! codebook.fit name=one m=16 device=cuda:0 "
                "v. ! codebook.fit name=two m=16 device=cuda:0  one.codebook ! null.sink  two.codebook ! null.sink")
        done = subprocess.run([MILLRACE, "plan", line, "--devices", "cuda:0,cpu"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        needed = re.search(r"MR0404: the plan needs (\d+) bytes in cuda:0, which has \d+", done.stderr)
        self.assertTrue(needed, done.stderr)
        self.assertGreater(int(needed.group(1)), vectors * dimensions * (2 + 4 + 4))  # as they come, and in each fit

    def test_the_published_fits_are_the_same_bytes_on_the_gpu(self):
        done = subprocess.run([MILLRACE, "codebook", "test", "--large", "--device", "cuda:0"], capture_output=True, text=True,
                              timeout=120)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("cuda:0", done.stdout)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    FOLDER = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
