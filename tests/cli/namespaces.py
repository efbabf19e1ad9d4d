#!/usr/bin/env python3
"""The example of three nodes, each with a network of its own: the bytes of one machine, and links that are really cut.

usage: namespaces.py MILLRACE [unittest arguments]

Ends with 77, which is a skip, where a user may not have namespaces.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MILLRACE = ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "nodes" / "three_nodes.sh"
SECONDS_MAX = 240
TICKS = "75"

# Two nodes with a line between them; the shell of the test cuts it and kills.
TWO_NODES = """
mount -t tmpfs tmpfs /run
for i in 1 2; do ip netns add n$i; done
ip link add name line netns n1 type veth peer name line netns n2
for i in 1 2; do
  ip -n n$i address add 10.78.0.$i/24 dev line
  ip -n n$i link set lo up
  ip -n n$i link set line up
done
edge() { ip netns exec n1 env XDG_CONFIG_HOME=$PWD/edge "$MILLRACE" "$@"; }
gpu() { ip netns exec n2 env XDG_CONFIG_HOME=$PWD/gpu "$MILLRACE" "$@"; }
e=$(edge identity | head -1); g=$(gpu identity | head -1)
edge nodes add gpu $g > /dev/null; gpu nodes add edge $e 10.78.0.1 > /dev/null
run_gpu() { exec ip netns exec n2 $SHIFTED env XDG_CONFIG_HOME=$PWD/gpu "$MILLRACE" run pipeline.yaml --node gpu --quiet; }
run_gpu &
gpu=$!
edge run pipeline.yaml --node edge --quiet --json edge.json &
edge=$!
until [ -s out.rgb ]; do sleep 0.05; done
"""

PIPELINE = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera: { type: test.pattern, width: 64, height: 48, COUNT, node: edge }
  blur:   { type: image.blur, node: gpu, input: camera }
  record: { type: file.raw_writer, path: out.rgb, node: edge, input: camera }
  screen: { type: file.raw_writer, path: screen.rgb, node: edge, input: blur }
"""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class ThreeNodes(unittest.TestCase):
    def test_7_13_the_street_over_three_networks_gives_the_bytes_of_one_machine(self):
        subprocess.run([str(SCRIPT), MILLRACE, "--ticks", TICKS, "--quiet"], check=True, timeout=SECONDS_MAX)
        films = [ROOT / "out" / f"edge_gpu_cloud.{kind}" for kind in ("mp4", "png")]
        got = [digest(film) for film in films]
        pipeline = ROOT / "examples" / "pipelines" / "edge_gpu_cloud.yaml"
        subprocess.run([MILLRACE, "run", str(pipeline), "--ticks", TICKS, "--quiet"], check=True, timeout=SECONDS_MAX)
        self.assertEqual(got, [digest(film) for film in films])


class Cuts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_nodes(self, count, faults, pipeline=PIPELINE, **environment):
        """The report of a run in which this script of faults was carried out once it had begun."""
        (self.folder / "pipeline.yaml").write_text(pipeline.replace("COUNT", count))
        script = f"set -e\n{TWO_NODES}\n{faults}\nwait $edge\n"
        subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--mount", "bash", "-c", script], check=True,
                       cwd=self.folder, timeout=SECONDS_MAX, env={**os.environ, "MILLRACE": MILLRACE, "SHIFTED": "", **environment})
        return json.loads((self.folder / "edge.json").read_text())

    def test_7_10_a_line_that_is_down_for_a_while_costs_a_clock_that_waits_nothing(self):
        report = self.run_nodes("count: 3000", "ip -n n1 link set line down; sleep 2; ip -n n1 link set line up")
        self.assertEqual({e["to"]: e["delivered"] for e in report["edges"]},
                         {"blur.video": 3000, "record.in": 3000, "screen.in": 3000})
        self.assertEqual({c["parcels"] for c in report["crossings"]}, {3000})
        subprocess.run([MILLRACE, "run", "pipeline.yaml", "--set", "record.path=one.rgb", "--set", "screen.path=two.rgb",
                        "--quiet"], cwd=self.folder, check=True, timeout=SECONDS_MAX)
        self.assertEqual(digest(self.folder / "screen.rgb"), digest(self.folder / "two.rgb"))

    def test_7_9_a_node_that_dies_costs_the_recorder_no_frame_and_no_beat(self):
        live = "fps: 50, live: true, count: 350"
        calm = self.run_nodes(live, "")
        (self.folder / "out.rgb").unlink()
        killed = self.run_nodes(live, "kill -9 $gpu; sleep 4; run_gpu &")
        for report in (calm, killed):
            delivered = {e["to"]: e["delivered"] for e in report["edges"]}
            self.assertEqual(delivered["record.in"], report["ticks"]["run"])
            self.assertGreaterEqual(report["ticks"]["run"], 300)  # a busy machine is late now and then
        lost = {e["to"]: e["dropped"] for e in killed["edges"]}["blur.video"]
        self.assertGreater(lost["away"], 0)


    def test_7_12_a_machine_whose_clock_is_a_day_ahead_measures_latency_and_loses_no_beat(self):
        shift_s = 100_000
        report = self.run_nodes("fps: 30, live: true, count: 120", "", SINKS,
                                SHIFTED=f"unshare --time --monotonic {shift_s} --boottime {shift_s}")
        link = {link["on"]: link for link in report["links"]}
        self.assertAlmostEqual(link["edge"]["offset_us"], shift_s * 1e6, delta=1e6)
        self.assertAlmostEqual(link["edge"]["offset_us"], -link["gpu"]["offset_us"],
                               delta=link["edge"]["offset_error_us"] + link["gpu"]["offset_error_us"])
        self.assertLess(link["gpu"]["offset_error_us"], 20_000)
        self.assertGreaterEqual(report["ticks"]["run"], 110)  # a busy machine is late now and then
        paths = {path["sink"]: path for path in report["paths"]}
        self.assertEqual(paths["far"]["on"], "gpu")
        self.assertGreater(paths["far"]["sampled"], 0)
        # A day would be seen: the far sink has its ticks within a period or two, but for the error of the clocks.
        self.assertGreater(paths["far"]["p50"], 0)
        self.assertLess(paths["far"]["p50"], 100_000 + paths["far"]["clock_error"])
        self.assertEqual(paths["far"]["home"], "edge")
        self.assertGreater(paths["far"]["clock_error"], 0)
        self.assertLess(paths["far"]["clock_error"], 20_000)
        self.assertNotIn("clock_error", paths["near"])


SINKS = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera: { type: test.pattern, width: 64, height: 48, COUNT, node: edge }
  near:   { type: file.raw_writer, path: out.rgb, node: edge, input: camera }
  far:    { type: null.sink, node: gpu, input: camera }
"""

if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    may = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c",
                          "mount -t tmpfs tmpfs /run && ip netns add may && unshare --time true"], capture_output=True, text=True)
    if may.returncode != 0:
        print(f"left out: no namespaces here: {may.stderr.strip()}")
        sys.exit(77)
    unittest.main()
