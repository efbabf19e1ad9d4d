#!/usr/bin/env python3
"""Plans for a GPU of few bytes: what fits is planned, fewer ticks are in flight where that is allowed, and the rest is
refused before anything runs, with the sum.

usage: gpu_memory.py MILLRACE MODULE [unittest arguments]

MODULE is tests/cli/small_gpu.cpp, which says that SMALL_GPU_BYTES are free.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MILLRACE = MODULE = ""
TICK = 1024 * 1024 * 3  # bytes of a picture
RINGS = 2  # what came up, and the blurred one
PIPELINE = ("version: 1\nclock: {{ mode: free, in_flight: {} }}\nhandlers:\n"
            "  video: {{ type: test.pattern, width: 1024, height: 1024, device: cpu }}\n"
            "  blur: {{ type: image.blur, device: 'cuda:0', input: video }}\n"
            "  sink: {{ type: null.sink, device: cpu, input: blur }}\n")


class GpuMemory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plan(self, in_flight, free, *arguments, command="plan"):
        (self.folder / "pipeline.yaml").write_text(PIPELINE.format(in_flight))
        environment = {**os.environ, "MILLRACE_MACHINE": "", "MILLRACE_CUDA_MODULE": MODULE, "SMALL_GPU_BYTES": str(free)}
        return subprocess.run([MILLRACE, command, "pipeline.yaml", "--devices", "cpu,cuda:0", "--threads", "2", *arguments],
                              cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)

    def needed(self, in_flight):
        """Bytes in cuda:0 of a plan with all the room that it wants."""
        result = self.plan(in_flight, 1 << 40, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["memory"]["cuda:0"]

    def in_flight(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["clocks"][0]["in_flight"]

    def test_what_does_not_fit_is_refused_with_the_sum(self):
        needed = self.needed(4)
        self.assertGreaterEqual(needed, 4 * RINGS * TICK)
        for command in ("plan", "check", "run"):
            result = self.plan(4, needed - 1, command=command)
            self.assertEqual(result.returncode, 3, result.stderr)
            said = f"error MR0404: the plan needs {needed} bytes in cuda:0, which has {needed - 1}\n"
            self.assertTrue(result.stderr.startswith(said), result.stderr)
            parts = re.findall(r"(?m)^  (?:(\d+) × )?(\d+) for ", result.stderr)
            self.assertEqual(sum(int(count or 1) * int(size) for count, size in parts), needed, result.stderr)
            self.assertIn("try: clock: { in_flight: [1, 3] }", result.stderr)
        self.assertEqual(self.in_flight(self.plan(4, needed, "--json")), 4)

    def test_of_a_range_the_most_that_fits_is_taken(self):
        for fits in (1, 3, 7, 8):
            result = self.plan("[1, 8]", self.needed(fits), "--json")
            self.assertEqual(self.in_flight(result), fits)
        words = self.plan("[1, 8]", self.needed(3)).stdout
        self.assertRegex(words, r"in_flight 3 of \[1, 8\]: 8 would need [\d.]+ MiB in cuda:0, which has [\d.]+ MiB")
        self.assertEqual(self.plan("[2, 8]", self.needed(1)).returncode, 3)

    def test_a_machine_file_may_allow_less_and_never_more(self):
        for allowed, free, fits in ((2, 8, 2), (8, 2, 2)):
            machine = {"version": 1, "limits": {"cuda:0": {"memory_bytes": self.needed(allowed)}}}
            (self.folder / "machine.json").write_text(json.dumps(machine))
            result = self.plan("[1, 8]", self.needed(free), "--json", "--machine", "machine.json")
            self.assertEqual(self.in_flight(result), fits)

    def test_a_device_that_says_nothing_is_not_limited(self):
        self.assertEqual(self.in_flight(self.plan(8, 0, "--json")), 8)

    def test_a_saved_plan_for_a_gpu_that_is_not_here_is_refused(self):
        (self.folder / "plan.json").write_text(self.plan(2, 1 << 40, "--json").stdout)
        environment = {**os.environ, "MILLRACE_MACHINE": "", "MILLRACE_CUDA_MODULE": ""}
        result = subprocess.run([MILLRACE, "run", "pipeline.yaml", "--plan", "plan.json"], cwd=self.folder, env=environment,
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("MR0408: cuda:0 is not available", result.stderr)


if __name__ == "__main__":
    MILLRACE, MODULE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
