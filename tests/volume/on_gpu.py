#!/usr/bin/env python3
"""A volume that is turned on a GPU, through the command: what is copied, how often it is launched, what is seen.

usage: on_gpu.py MILLRACE [unittest arguments]

Needs a GPU.
"""
import array
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

MILLRACE = pathlib.Path()
WIDTH, HEIGHT, DEPTH = 96, 80, 64
TICKS = 60
PIPELINE = f"""\
version: 1
clocks: {{data: {{mode: free}}, eye: {{mode: free}}}}
handlers:
  data: {{type: volume.test, width: {WIDTH}, height: {HEIGHT}, depth: {DEPTH}, clock: data}}
  eye: {{type: record.from_json, path: camera.jsonl, clock: eye}}
  turned:
    type: volume.render
    clock: eye
    width: 160
    height: 90
    device: DEVICE
    inputs:
      volume: {{from: data, policy: latest}}
      camera: {{from: eye, policy: latest}}
  numbers: {{type: image.normalize, input: turned.video, device: cpu}}
  kept: {{type: tensor.to_npy, input: numbers, path: pictures.npy}}
"""


class OnGpu(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        lines = [json.dumps({"tick": tick, "schema": "millrace.ViewCamera", "records": [
            {"center": [0, 0, 0], "angles": [6 * tick, tick - 30, 0], "zoom": 1 + tick / 60, "moving": int(tick % 3 == 0)}]})
            for tick in range(TICKS)]
        (self.folder / "camera.jsonl").write_text("\n".join(lines) + "\n")

    def run_on(self, device):
        """The report, and the numbers of all pictures."""
        (self.folder / "p.yaml").write_text(PIPELINE.replace("DEVICE", device))
        done = subprocess.run([MILLRACE, "run", "p.yaml", "--devices", "cuda:0,cpu", "--json", "report.json"],
                              cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers = array.array("f")
        numbers.frombytes((self.folder / "pictures.npy").read_bytes()[-TICKS * 160 * 90 * 3 * 4:])
        return json.loads((self.folder / "report.json").read_text()), numbers

    def test_it_is_one_launch_a_tick_and_the_volume_goes_up_once(self):
        report, pictures = self.run_on("cuda:0")
        (region,) = report["regions"]
        self.assertEqual((region["handlers"], region["launches"] + region["one_by_one"]), (["turned"], TICKS))
        self.assertLessEqual(region["one_by_one"], 1)  # a tick that is measured
        copies = {one["edge"]: one for one in report["transfers"]}
        up, down = copies["data.volume → turned.volume"], copies["turned.video → numbers.video"]
        self.assertEqual((up["count"], down["count"]), (1, TICKS))
        self.assertGreaterEqual(up["bytes"], WIDTH * HEIGHT * DEPTH)

        # tests/gpu/volume.cu has the pictures themselves. A steep map makes two steps of one where a ray's sample is rounded
        # to the other side, which is rare.
        _, of_host = self.run_on("cpu")
        self.assertGreater(max(pictures), 0.5)
        steps = [round(255 * abs(one - other)) for one, other in zip(pictures, of_host)]
        self.assertLessEqual(max(steps), 3)
        self.assertLess(sum(step > 1 for step in steps), len(steps) / 5000)


if __name__ == "__main__":
    MILLRACE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
