#!/usr/bin/env python3
"""Nodes over links that are slow, through a proxy with faults.

usage: node_links.py MILLRACE CHAOS [unittest arguments]

CHAOS is the proxy tests/net/chaos. MILLRACE_LINKS=long runs each for 5 minutes instead of seconds.
"""
import os
import re
import subprocess
import sys
import pathlib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fleet  # noqa: E402: found by the line above

CHAOS = ""
SECONDS = 300 if os.environ.get("MILLRACE_LINKS") == "long" else 6

# The overlay waits for both: the way over the other node, and the camera's own.
OVERLAY = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera:  { type: test.pattern, width: 64, height: 48, fps: 30, live: true, node: edge }
  detect:  { type: image.blur, node: gpu, input: camera }
  overlay: { type: image.composite, node: edge, input: [camera, detect] }
  screen:  { type: null.sink, node: edge, input: overlay }
"""


class SlowLinks(fleet.Fleet):
    def run_over(self, faults, *arguments):
        """The report of a run whose only link has these faults."""
        edge = self.edge(*arguments)
        proxy = subprocess.Popen([CHAOS, "--to", self.address, "--print-port", "-e", faults], stdout=subprocess.PIPE,
                                 text=True)
        self.addCleanup(proxy.stdout.close)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.terminate)
        self.address = f"127.0.0.1:{int(proxy.stdout.readline())}"
        gpu = self.other("gpu")
        self.ends(edge, 0, SECONDS + 60)
        self.ends(gpu, 0)
        return edge.report()

    def test_depth_keeps_30_beats_a_second_over_round_trips_of_1_20_and_80_ms(self):
        for round_trip_ms in (1, 20, 80):
            with self.subTest(round_trip_ms=round_trip_ms):
                self.write(OVERLAY)
                report = self.run_over(f"latency {round_trip_ms * 500}us", "--duration", SECONDS)
                ran = report["ticks"]["run"]
                self.assertGreaterEqual(sum(report["ticks"].values()), 30 * SECONDS - 2)
                left_out = sum(sum(crossing["left_out"].values()) for crossing in report["crossings"])
                print(f"{round_trip_ms} ms: {report['ticks']}, {left_out} left out", file=sys.stderr)
                # In seconds on a machine that does other things at once, a stall of some 100 ms costs a few.
                self.assertLessEqual(left_out, ran // (1000 if SECONDS >= 300 else 10), report["crossings"])
                [link] = [link for link in report["links"] if link["on"] == "edge"]
                self.assertGreaterEqual(link["round_trip_us"], round_trip_ms * 1000 * 0.9)
                [path] = [path for path in report["paths"] if path["sink"] == "screen"]
                self.assertGreater(path["p50"], round_trip_ms * 1000 * 0.9)

    def test_7_13_cuts_and_slices_cost_a_clock_that_waits_nothing(self):
        self.write(fleet.THERE_AND_BACK.replace("count: 200", "count: 3000"))
        report = self.run_over("every 300ms cut repeat 12; slice 1..5000; latency 2ms")
        self.assertEqual({crossing["parcels"] for crossing in report["crossings"]}, {3000})
        got = (self.folder / "out.rgb").read_bytes()
        subprocess.run([fleet.MILLRACE, "run", str(self.pipeline), "--quiet"], cwd=self.folder, check=True, timeout=60)
        self.assertTrue(got == (self.folder / "out.rgb").read_bytes(), "the bytes differ from those of one machine")


if __name__ == "__main__":
    fleet.MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    CHAOS = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
