#!/usr/bin/env python3
"""model.run on a GPU: the same numbers as on the CPU, in the memory that the plan counts.

usage: gpu.py MILLRACE

Needs a GPU, and a build with a libtorch that has CUDA; without that it says so and ends well.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import MAKE_NETWORK, MILLRACE, ROOT, SECONDS_MAX, TORCH, Suite, disc_at, overlap, read_npy  # noqa: E402

ON_GPU, ON_CPU = ("--devices", "cuda:0,cpu"), ("--devices", "cpu")
ENDLESS = MILLRACE.parent / "test_endless"  # tests/cuda/endless.cu
MIB = 1 << 20
# Convolutions with weights of its own, a matrix product and a mean over the picture.
LAYERS = """def forward(self, x):
    a = torch.silu(torch.conv2d(x, self.first / 9.0, None, [1, 1], [1, 1]))
    b = torch.silu(torch.conv2d(a, self.second / 48.0, None, [2, 2], [1, 1]))
    c = b.flatten(2).matmul(b.flatten(2).transpose(1, 2)) / 1000.0
    return (b.mean([2, 3]), c)
"""
PARAMETERS = ("first=16x3x3x3", "second=32x16x3x3", "unused=1024x1024")  # the last one is 4 MiB


def used_mib():
    """Of the GPU's memory, by all processes."""
    said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], check=True,
                          capture_output=True, text=True, timeout=SECONDS_MAX)
    return int(said.stdout.split()[0])


class OnGpu(Suite):
    ending = ".pt"

    def setUp(self):
        super().setUp()
        self.machine = {"MILLRACE_MACHINE": str(self.folder / "machine.json")}

    def write(self, text, parameters=()):
        source = self.folder / "net.txt"
        source.write_text(text + "\n")
        subprocess.run([MAKE_NETWORK, source, self.net, *parameters], check=True, timeout=SECONDS_MAX)

    def pattern(self, more="", count=12, size=128, dtype="f32", out="y", source=""):
        return (f"test.pattern name=video width=320 height=240 count={count} {source} ! image.letterbox name=fit width={size} "
                f"height={size} dtype={dtype} ; fit.tensor ! model.run name=n path={self.net} {more} ; "
                f"n.tensor ! tensor.to_npy path={self.folder}/{out}.npy")

    def ran(self, line, *arguments, code=0):
        report = self.folder / "report.json"
        done = self.run_it("run", "--quiet", "--json", report, *arguments, line, **self.machine)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(report.read_text())

    def planned(self, line, *arguments):
        done = self.run_it("plan", "--json", *arguments, line, **self.machine)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_close(self, found, wanted, relative):
        self.assertEqual(found[0], wanted[0])
        largest = max(map(abs, wanted[1]))
        self.assertGreater(largest, 0)
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found[1], wanted[1])), relative * largest)

    def test_results_are_those_of_the_cpu_within_the_types_tolerance(self):
        self.write(LAYERS, PARAMETERS)
        # libtorch's convolutions of float32 have the 10 bits of TF32 by default, as float16 has.
        for dtype in ("f32", "f16"):
            with self.subTest(dtype):
                line = self.pattern(f"dtype={dtype}", dtype=dtype)
                report = self.ran(line, *ON_GPU)
                self.assertEqual(report["handlers"]["n"]["domain"], "cuda:0")
                made = self.folder / "y.npy"
                found, size = read_npy(made), made.stat().st_size
                self.ran(line, *ON_CPU)
                self.assertEqual(size, made.stat().st_size)
                self.assert_close(found, read_npy(made), 4e-3)

    def test_the_picture_crosses_the_bus_once(self):
        self.write(LAYERS, PARAMETERS)
        report = self.ran(self.pattern(source="device=cpu"), *ON_GPU)
        up = [one for one in report["transfers"] if one["to"] == "cuda:0"]
        self.assertEqual([(one["edge"], one["count"]) for one in up], [("video.video → fit.video", 12)])
        down = [one for one in report["transfers"] if one["from"] == "cuda:0"]
        self.assertEqual([(one["edge"], one["count"]) for one in down], [("n.tensor → to_npy.in", 12)])

    def test_memory_is_what_the_plan_counts_and_stays_so_over_a_thousand_firings(self):
        self.write(LAYERS, PARAMETERS)
        line = self.pattern(count=1500)
        first = self.planned(line, *ON_GPU)["memory"]["cuda:0"]
        used = self.ran(line, *ON_GPU)["handlers"]["n"]["counts"]["gpu_bytes_used"]
        self.assertLess(0, used)
        self.assertLessEqual(used, first)
        second = self.planned(line, *ON_GPU)["memory"]["cuda:0"]
        self.assertLess(second, first, "the next plan counts what was seen")
        self.assertLessEqual(used, second)
        print(f"memory: planned {first / MIB:.0f} MiB, used {used / MIB:.0f}, then planned {second / MIB:.0f}")
        made, seen = self.folder / "long.npy", []
        run = subprocess.Popen([MILLRACE, "run", "--quiet", *ON_GPU, self.pattern(count=1_000_000, out="long")],
                               cwd=self.folder, stdin=subprocess.DEVNULL,
                               env={**os.environ, **self.machine})
        try:
            for ticks in (100, 600, 1200, 2500):
                while run.poll() is None and (not made.exists() or made.stat().st_size < ticks * 32 * 4):
                    time.sleep(0.002)
                self.assertIsNone(run.poll())
                seen.append(used_mib())
        finally:
            run.terminate()
            run.wait(timeout=SECONDS_MAX)
        print(f"memory of the GPU after 100, 600, 1,200 and 2,500 firings: {seen} MiB")
        self.assertEqual(len(set(seen)), 1)

    def test_too_little_memory_is_refused_with_what_it_needs_and_the_next_plan_has_it(self):
        self.write(LAYERS, PARAMETERS)
        done = self.run_it("run", "--quiet", *ON_GPU, self.pattern("memory=1"), **self.machine)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("MR0909", done.stderr)
        needed = re.search(r"it needs (\d+) MiB, and the plan has 1\n", done.stderr)
        self.assertTrue(needed, done.stderr)
        self.assertIn(f"memory={needed.group(1)}", done.stderr)
        self.ran(self.pattern(f"memory={needed.group(1)}"), *ON_GPU)

    def test_eight_cameras_that_share_a_network_get_what_eight_networks_give(self):
        self.write(LAYERS, PARAMETERS)

        def cameras(shared):
            items = ", ".join(f"c{i}: {{ width: {160 + 2 * i} }}" for i in range(8))
            each = "" if shared else ", for_each: cameras"
            (self.folder / "p.yaml").write_text(f"""version: 1
streams: {{ cameras: {{ items: {{ {items} }} }} }}
clocks: {{ main: {{ mode: free }} }}
handlers:
  video: {{ type: test.pattern, for_each: cameras, width: '{{width}}', height: 120, count: 20 }}
  fit: {{ type: image.letterbox{each}, input: video, width: 64, height: 64 }}
  net: {{ type: model.run{each}, input: fit.tensor, path: {self.net} }}
  save: {{ type: tensor.to_npy, for_each: cameras, input: net.tensor, path: '{{stream}}-{shared}.npy' }}
""")
            self.ran("p.yaml", *ON_GPU)
            made = [(self.folder / f"c{i}-{shared}.npy").read_bytes() for i in range(8)]
            self.assertGreater(len(set(made)), 4, "the cameras show different pictures")
            return made

        self.assertEqual(cameras(True), cameras(False))

    def test_two_networks_compute_at_the_same_time(self):
        self.write(LAYERS, PARAMETERS)
        line = self.pattern(count=200) + (f" ; fit.tensor ! model.run name=m path={self.net} outputs=output2 ; "
                                          f"m.tensor ! tensor.to_npy path={self.folder}/z.npy")
        self.ran(line, *ON_GPU)
        both = [read_npy(self.folder / f"{name}.npy") for name in "yz"]
        self.ran(line, *ON_CPU)
        for name, found in zip("yz", both):
            self.assert_close(found, read_npy(self.folder / f"{name}.npy"), 4e-3)

    def test_a_network_of_two_inputs_and_one_that_writes_into_its_input(self):
        self.write("def forward(self, a, b):\n    return a - 2.0 * b")
        line = (f"test.pattern name=video width=64 height=64 count=5 ! image.letterbox name=fit width=32 height=32 ; "
                f"video. ! image.flip ! image.letterbox name=other width=32 height=32 ; "
                f"fit.tensor ! model.run name=n path={self.net} ; other.tensor ! n.tensor2 ; "
                f"n.tensor ! tensor.to_npy path={self.folder}/y.npy")
        self.ran(line, *ON_GPU)
        found = read_npy(self.folder / "y.npy")
        self.ran(line, *ON_CPU)
        self.assert_close(found, read_npy(self.folder / "y.npy"), 1e-6)
        self.write("def forward(self, x):\n    x.add_(1.0)\n    return x")
        line = self.pattern() + f" ; fit.tensor ! tensor.to_npy path={self.folder}/x.npy"
        self.ran(line, *ON_GPU)
        before, after = (read_npy(self.folder / f"{name}.npy")[1] for name in "xy")
        self.assertLess(max(abs(b + 1 - a) for a, b in zip(after, before)), 1e-6)

    def test_a_network_that_fails_in_a_call_fails_its_tick_with_the_engines_words(self):
        self.write("def forward(self, x):\n    if bool(x.sum() > 0.0):\n        return x[5:9]\n    return x[0:1]")
        done = self.run_it("run", "--quiet", *ON_GPU, self.pattern(), **self.machine)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("n (model.run) failed at tick 0: 'output' of the network is float32 [0, 3, 128, 128]", done.stderr)

    @unittest.skipUnless(ENDLESS.exists(), "its plugin is not built: build target gpu_tests")
    def test_a_device_that_is_lost_by_a_wild_kernel_ends_the_run_with_a_network_too(self):
        self.write(LAYERS, PARAMETERS)
        line = self.pattern(count=100, source="! endless.kernel wild=true")
        done = self.run_it("run", "--quiet", *ON_GPU, "--plugin-path", ENDLESS, line, **self.machine)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("MR0703", done.stderr)

    def test_the_disc_is_found(self):
        subprocess.run([MAKE_NETWORK, ROOT / "examples" / "model" / "disc.txt", self.net], check=True, timeout=SECONDS_MAX)
        report = self.ran(f"test.pattern pattern=disc width=320 height=240 count=20 ! image.letterbox name=fit width=64 "
                          f"height=48 ; fit.tensor ! model.run name=n path={self.net} ; n.tensor ! detect.mask_boxes name=m "
                          f"grow=0 ; fit.transform ! m.transform ; m. ! record.to_json path={self.folder}/boxes.jsonl", *ON_GPU)
        self.assertEqual(report["handlers"]["n"]["domain"], "cuda:0")
        lines = (self.folder / "boxes.jsonl").read_text().splitlines()
        self.assertEqual(len(lines), 20)
        for tick, line in enumerate(lines):
            boxes = [(box["x"], box["y"], box["width"], box["height"]) for box in json.loads(line)["records"]]
            self.assertEqual(len(boxes), 1, line)
            self.assertGreaterEqual(overlap(boxes[0], disc_at(tick, 320, 240)), 0.5, line)


def has_gpu():
    """False if this build's libtorch has no CUDA: then a network stays on the CPU."""
    return b"libtorch_cuda.so" in (MILLRACE.parent / "plugins" / "model" / "model_torch.so").read_bytes()


if __name__ == "__main__":
    if not TORCH or not has_gpu():
        print("left out: networks on a GPU: this build has no libtorch with CUDA")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
