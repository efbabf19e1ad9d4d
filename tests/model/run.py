#!/usr/bin/env python3
"""model.run with ONNX Runtime, through the command: what networks compute, how several streams share one, what is refused.

usage: run.py MILLRACE

Without ONNX Runtime in media/models (`./dev models`) only what needs no engine is tested, and a line says so.
"""
import array
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from onnx_file import FLOAT, INT64, STRING, constant, network, node  # noqa: E402: found by the line above

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "media" / "models"
ENGINE = next(iter(sorted(MODELS.glob("libonnxruntime.so*"))), None)
TEXT_NETWORK = MODELS / "ch_PP-OCRv4_det_infer.onnx"
SECONDS_MAX = 120
MILLRACE = None

needs_engine = unittest.skipUnless(ENGINE, "ONNX Runtime is not here: ./dev models")


def write_npy(path, dtype, shape, numbers):
    """`shape` begins with the ticks."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + numbers)


def read_npy(path):
    """(shape, numbers) of float32."""
    data = path.read_bytes()
    end = 10 + struct.unpack("<H", data[8:10])[0]
    shape = tuple(int(n) for n in re.search(rb"'shape': \(([^)]*)\)", data).group(1).replace(b" ", b"").split(b",") if n)
    return shape, array.array("f", data[end:]).tolist()


def scaled(rows="rows"):
    """y = 2x + (1, 2, 3), for [rows, 3]."""
    return network([node("Mul", ["x", "two"], ["m"]), node("Add", ["m", "offset"], ["y"])],
                   [("x", FLOAT, [rows, 3])], [("y", FLOAT, [rows, 3])],
                   [constant("two", [1], [2.0]), constant("offset", [3], [1.0, 2.0, 3.0])])


class Networks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.net = self.folder / "net.onnx"

    def run_it(self, *arguments, **environment):
        known = {"MILLRACE_ONNXRUNTIME": str(ENGINE)} if ENGINE else {}
        return subprocess.run([MILLRACE, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=SECONDS_MAX, stdin=subprocess.DEVNULL, env={**os.environ, **known, **environment})

    def give(self, ticks=2, shape=(1, 3), dtype="<f4", numbers=None):
        count = ticks
        for extent in shape:
            count *= extent
        numbers = numbers if numbers is not None else array.array("f", [float(i) for i in range(count)]).tobytes()
        write_npy(self.folder / "x.npy", dtype, (ticks, *shape), numbers)

    def line(self, path="net.onnx", more=""):
        return (f"tensor.from_npy path={self.folder}/x.npy ! model.run name=n path={self.folder}/{path} {more} "
                f"; n.tensor ! tensor.to_npy path={self.folder}/y.npy")

    def computed(self, more=""):
        done = self.run_it("run", "--quiet", self.line(more=more))
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_npy(self.folder / "y.npy")

    def refused(self, *words, line=None, code=3, **environment):
        """Before anything runs, in these words."""
        done = self.run_it("plan", line or self.line(), **environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn("n (model.run)", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    @needs_engine
    def test_a_network_computes_what_its_nodes_say(self):
        self.net.write_bytes(scaled())
        self.give()
        self.assertEqual(self.computed(), ((2, 1, 3), [1.0, 4.0, 7.0, 7.0, 10.0, 13.0]))

    @needs_engine
    def test_a_network_whose_rows_are_fixed_computes_the_same(self):
        self.net.write_bytes(scaled(1))
        self.give()
        self.assertEqual(self.computed()[1], [1.0, 4.0, 7.0, 7.0, 10.0, 13.0])
        self.give(shape=(2, 3))
        self.refused("takes float32 [1, 3] at 'x', and float32 [2, 3] comes")

    @needs_engine
    def test_outputs_are_chosen_by_name_and_shapes_that_the_file_leaves_open_are_found(self):
        self.net.write_bytes(network([node("Neg", ["x"], ["minus"]), node("Concat", ["x", "x"], ["twice"], axis=1)],
                                     [("x", FLOAT, ["rows", "columns"])],
                                     [("minus", FLOAT, ["rows", "columns"]), ("twice", FLOAT, ["rows", "wide"])]))
        self.give(ticks=1)
        self.assertEqual(self.computed(), ((1, 1, 3), [0.0, -1.0, -2.0]))
        self.assertEqual(self.computed('outputs="twice"'), ((1, 1, 6), [0.0, 1.0, 2.0] * 2))
        self.refused("has no output 'trice'", "minus (float32 [any, any]), twice (float32 [any, any])",
                     line=self.line(more="outputs=trice"))

    @needs_engine
    def test_a_network_of_two_inputs_reads_both(self):
        self.net.write_bytes(network([node("Add", ["a", "b"], ["y"])], [("a", FLOAT, ["rows", 3]), ("b", FLOAT, ["rows", 3])],
                                     [("y", FLOAT, ["rows", 3])]))
        self.give()
        done = self.run_it("run", "--quiet", f"tensor.from_npy name=x path={self.folder}/x.npy ; x. ! model.run name=n "
                           f"path={self.net} ; n.tensor ! tensor.to_npy path={self.folder}/y.npy ; x. ! n.tensor2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_npy(self.folder / "y.npy")[1], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
        self.refused("takes 2 tensors, a (float32 [any, 3]), b (float32 [any, 3]), and 1 is connected")

    @needs_engine
    def test_eight_cameras_that_share_a_network_get_what_eight_networks_give(self):
        self.net.write_bytes(network(
            [node("Relu", ["x"], ["r"]), node("ReduceMean", ["r"], ["y"], axes=[1], keepdims=1)],
            [("x", FLOAT, ["rows", 3, 8, 8])], [("y", FLOAT, ["rows", 1, 8, 8])]))
        items = ", ".join(f"c{i}: {{ width: {16 + 2 * i} }}" for i in range(8))

        def made(shared):
            each = "" if shared else ", for_each: cameras"
            text = f"""version: 1
streams: {{ cameras: {{ items: {{ {items} }} }} }}
clocks: {{ main: {{ mode: free }} }}
handlers:
  video: {{ type: test.pattern, for_each: cameras, width: '{{width}}', height: 16, count: 12 }}
  fit: {{ type: image.letterbox, for_each: cameras, input: video, width: 8, height: 8, mean: 0.3 }}
  net: {{ type: model.run{each}, input: fit.tensor, path: net.onnx }}
  save: {{ type: tensor.to_npy, for_each: cameras, input: net.tensor, path: '{{stream}}-{shared}.npy' }}
"""
            (self.folder / "p.yaml").write_text(text)
            done = self.run_it("run", "p.yaml", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            return [(self.folder / f"c{i}-{shared}.npy").read_bytes() for i in range(8)]

        self.assertEqual(made(True), made(False))

    @needs_engine
    def test_types_and_ranks_that_do_not_fit_are_refused_with_both(self):
        self.net.write_bytes(scaled())
        self.give(ticks=1, dtype="<i8", numbers=array.array("q", [1, 2, 3]).tobytes())
        self.refused("takes float32 [any, 3] at 'x', and int64 [1, 3] comes")
        self.give(ticks=1, shape=(1, 1, 3))
        self.refused("takes float32 [any, 3] at 'x', and float32 [1, 1, 3] comes")
        self.net.write_bytes(network([node("Identity", ["x"], ["y"])], [("x", STRING, [1])], [("y", STRING, [1])]))
        self.refused("'x' of the network holds neither whole nor floating-point numbers")

    @needs_engine
    def test_what_is_no_network_is_refused_in_the_engines_words(self):
        self.give()
        self.refused("there is no file", line=self.line("nte.onnx"))
        self.net.write_bytes(b"")
        self.refused("net.onnx cannot be opened: ONNX Runtime: ")
        self.net.write_bytes(scaled()[:-20])
        self.refused("net.onnx cannot be opened: ONNX Runtime: ")
        self.net.write_bytes(network([node("Frobnicate", ["x"], ["y"])], [("x", FLOAT, [1, 3])], [("y", FLOAT, [1, 3])]))
        self.refused("Frobnicate")

    @needs_engine
    def test_a_network_that_fails_in_a_call_fails_its_tick_with_the_engines_words(self):
        # x says which of six numbers are taken; there is no ninth. Zeros, which the plan tries, are fine.
        self.net.write_bytes(network([node("Gather", ["six", "x"], ["y"])], [("x", INT64, [2])], [("y", FLOAT, ["taken"])],
                                     [constant("six", [6], [1.0] * 6)]))
        self.give(ticks=2, shape=(2,), dtype="<i8", numbers=array.array("q", [2, 3, 4, 9]).tobytes())
        self.assertEqual(self.run_it("plan", self.line()).returncode, 0)
        done = self.run_it("run", "--quiet", self.line())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("n (model.run) failed at tick 1: ONNX Runtime: ", done.stderr)

    def test_files_that_no_engine_opens_are_refused_with_what_to_do(self):
        self.give()
        for name, word in (("net.pt", "torch.onnx.export"), ("net.engine", "take the .onnx file"),
                           ("net.tflite", "tf2onnx"), ("net.bin", "known are .onnx")):
            (self.folder / name).write_bytes(b"x")
            self.refused(word, line=self.line(name))

    def test_an_engine_that_is_not_here_or_is_none_is_said_with_how_to_get_it(self):
        self.net.write_bytes(scaled())
        self.give()
        self.refused("./dev models onnxruntime", "/nowhere.so", MILLRACE_ONNXRUNTIME="/nowhere.so")

    def test_commands_without_a_network_open_no_engine(self):
        # An engine that is not there would be complained about.
        for arguments in (["handlers"], ["inspect", "model.run"], ["plan", "test.pattern ! null.sink"]):
            done = self.run_it(*arguments, MILLRACE_ONNXRUNTIME="/nowhere.so")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    @needs_engine
    @unittest.skipUnless(TEXT_NETWORK.exists(), "the network for text is not here: ./dev models")
    def test_lines_that_millrace_has_drawn_are_found_by_a_real_network(self):
        text = f"""version: 1
streams: {{ cameras: {{ items: {{ a: {{ at: 20 }}, b: {{ at: 60 }}, c: {{ at: 100 }} }} }} }}
clocks: {{ main: {{ mode: free }} }}
handlers:
  video: {{ type: test.pattern, for_each: cameras, width: 320, height: 160, count: 4 }}
  words: {{ type: draw.text, for_each: cameras, input: video, text: 'mill race', size: 36, x: 40, y: '{{at}}' }}
  fit:
    type: image.letterbox
    input: words
    width: 320
    height: 192
    mean: '0.485,0.456,0.406'
    std: '0.229,0.224,0.225'
  net: {{ type: model.run, input: fit.tensor, path: {TEXT_NETWORK} }}
  lines: {{ type: detect.mask_boxes, inputs: {{ tensor: net.tensor, transform: fit.transform }} }}
  save: {{ type: record.to_json, for_each: cameras, input: lines, path: '{{stream}}.jsonl' }}
"""
        (self.folder / "p.yaml").write_text(text)
        done = self.run_it("run", "p.yaml", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        for stream, at in (("a", 20), ("b", 60), ("c", 100)):
            lines = (self.folder / f"{stream}.jsonl").read_text().splitlines()
            self.assertEqual(len(lines), 4)
            for line in lines:
                # The letters are about 150 wide and 30 high.
                overlaps = [overlap((box["x"], box["y"], box["width"], box["height"]), (40, at + 4, 150, 34))
                            for box in json.loads(line)["records"]]
                self.assertGreaterEqual(max(overlaps, default=0), 0.5, line)


def overlap(a, b):
    """Intersection over union of two (left, top, width, height)."""
    wide = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    high = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(wide, 0) * max(high, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if not ENGINE:
        print("left out: all that needs ONNX Runtime, which `./dev models` fetches")
    unittest.main()
