#!/usr/bin/env python3
"""model.run through the command, with each engine: what networks compute, how several streams share one, what is refused.

usage: run.py MILLRACE

Without ONNX Runtime in media/models (`./dev models`) and a build with libtorch only what needs no engine is tested, and
lines say so. Networks of libtorch are written by make_network, which lies beside MILLRACE.
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
import time
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from onnx_file import DOUBLE, FLOAT, INT64, STRING, constant, network, node  # noqa: E402: found by the line above

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "media" / "models"
ENGINE = next(iter(sorted(MODELS.glob("libonnxruntime.so*"))), None)
TEXT_NETWORK = MODELS / "ch_PP-OCRv4_det_infer.onnx"
THREAD_LOOKS = 8
SECONDS_MAX = 120
MILLRACE = pathlib.Path(sys.argv[1]).resolve()  # wrong.py is called with it too
MAKE_NETWORK = MILLRACE.parent / "make_network"
TORCH = (MILLRACE.parent / "plugins" / "model" / "model_torch.so").exists() and MAKE_NETWORK.exists()
NUMBERS = {"|u1": 2, "|i1": 3, "<i2": 5, "<i4": 6, "<i8": 7, "<f2": 10, "<f4": 1, "<f8": 11}  # of ONNX, by NumPy's
NO_ONNX, NO_TORCH = "ONNX Runtime is not here: ./dev models", "millrace was built without libtorch: libtorch-dev"


def write_npy(path, dtype, shape, numbers):
    """`shape` begins with the ticks."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + numbers)


def read_npy(path):
    """(shape, numbers) of float32 or float16."""
    data = path.read_bytes()
    end = 10 + struct.unpack("<H", data[8:10])[0]
    shape = tuple(int(n) for n in re.search(rb"'shape': \(([^)]*)\)", data).group(1).replace(b" ", b"").split(b",") if n)
    letter, width = ("e", 2) if b"'<f2'" in data[:end] else ("f", 4)
    return shape, list(struct.unpack(f"<{(len(data) - end) // width}{letter}", data[end:]))


class Suite(unittest.TestCase):
    ending = ""  # of the engine's files

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.net = self.folder / f"net{self.ending}"

    def run_it(self, *arguments, millrace=None, **environment):
        known = {"MILLRACE_ONNXRUNTIME": str(ENGINE)} if ENGINE else {}
        told = {**os.environ, **known, **environment}
        return subprocess.run([millrace or MILLRACE, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
                              env={name: value for name, value in told.items() if value is not None})

    def give(self, ticks=2, shape=(1, 3), dtype="<f4", numbers=None):
        count = ticks
        for extent in shape:
            count *= extent
        numbers = numbers if numbers is not None else array.array("f", [float(i) for i in range(count)]).tobytes()
        write_npy(self.folder / "x.npy", dtype, (ticks, *shape), numbers)

    def line(self, path=None, more=""):
        path = self.folder / (path or self.net.name)
        return (f"tensor.from_npy path={self.folder}/x.npy ! model.run name=n path={path} {more} "
                f"; n.tensor ! tensor.to_npy path={self.folder}/y.npy")

    def computed(self, more=""):
        done = self.run_it("run", "--quiet", self.line(more=more))
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_npy(self.folder / "y.npy")

    def refused(self, *words, line=None, code=3, **options):
        """Before anything runs, in these words."""
        done = self.run_it("plan", line or self.line(), **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn("n (model.run)", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class Conformance:
    """What is the same with every engine. write(kind) makes a network of that kind, of the file self.net. One of the
    kind `same` is for one type and shape.
    """

    def test_a_network_computes_what_its_nodes_say(self):
        self.write("scaled")
        self.give()
        self.assertEqual(self.computed(), ((2, 1, 3), [1.0, 4.0, 7.0, 7.0, 10.0, 13.0]))
        self.assertEqual(self.computed(f"engine={self.engine}")[1], [1.0, 4.0, 7.0, 7.0, 10.0, 13.0])

    def test_a_network_of_one_row_computes_the_same(self):
        self.write("one_row")
        self.give()
        self.assertEqual(self.computed()[1], [1.0, 4.0, 7.0, 7.0, 10.0, 13.0])

    def test_outputs_are_chosen_by_name_and_shapes_that_the_file_leaves_open_are_found(self):
        self.write("minus_and_twice")
        self.give(ticks=1)
        self.assertEqual(self.computed(), ((1, 1, 3), [0.0, -1.0, -2.0]))
        self.assertEqual(self.computed('outputs="twice"'), ((1, 1, 6), [0.0, 1.0, 2.0] * 2))
        self.refused("has no output 'trice'", "minus (float32 [any, ", "), twice (float32 [any, ",
                     line=self.line(more="outputs=trice"))

    def test_a_network_of_two_inputs_reads_both(self):
        self.write("added")
        self.give()
        done = self.run_it("run", "--quiet", f"tensor.from_npy name=x path={self.folder}/x.npy ; x. ! model.run name=n "
                           f"path={self.net} ; n.tensor ! tensor.to_npy path={self.folder}/y.npy ; x. ! n.tensor2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_npy(self.folder / "y.npy")[1], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
        self.refused("takes 2 tensors, a (", "), b (", "), and 1 is connected")

    def test_inputs_are_given_another_order_by_their_names(self):
        self.write("less")
        self.give(ticks=1)
        line = (f"tensor.from_npy name=x path={self.folder}/x.npy ; tensor.from_npy name=zero path={self.folder}/zero.npy ; "
                f"x. ! model.run name=n path={self.net} input_names={{}} ; n.tensor ! tensor.to_npy path={self.folder}/y.npy "
                "; zero. ! n.tensor2")
        write_npy(self.folder / "zero.npy", "<f4", (1, 1, 3), bytes(12))
        for names, wanted in (("a,b", [0.0, 1.0, 2.0]), ("'b, a'", [0.0, -1.0, -2.0])):
            done = self.run_it("run", "--quiet", line.format(names))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(read_npy(self.folder / "y.npy")[1], wanted)

    def test_every_element_type_and_number_of_dimensions_comes_through(self):
        for dtype, shape in (*((dtype, (2, 3)) for dtype in NUMBERS), ("<f4", (6,)), ("<f4", (1, 1, 2, 1, 1, 3))):
            with self.subTest(dtype=dtype, shape=shape):
                self.write("same", dtype, shape)
                self.give(shape=shape, dtype=dtype, numbers=bytes(range(12 * int(dtype[2:]))))
                done = self.run_it("run", "--quiet", self.line())
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual((self.folder / "y.npy").read_bytes(), (self.folder / "x.npy").read_bytes())

    def test_it_keeps_the_rules_that_every_handler_keeps(self):
        self.write("four_of_three")
        done = self.run_it("check-handler", "model.run", "--set", f"path={self.net}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("works", "items", "interrupt", "interrupt-thread"):
            self.assertRegex(done.stdout, rf"(?m)^pass +{name} ")

    def cameras(self, shared):
        """The bytes that a network gives each of eight cameras of different sizes, by one handler for all or by eight."""
        items = ", ".join(f"c{i}: {{ width: {16 + 2 * i} }}" for i in range(8))
        each = "" if shared else ", for_each: cameras"
        (self.folder / "p.yaml").write_text(f"""version: 1
streams: {{ cameras: {{ items: {{ {items} }} }} }}
clocks: {{ main: {{ mode: free }} }}
handlers:
  video: {{ type: test.pattern, for_each: cameras, width: '{{width}}', height: 16, count: 12 }}
  fit: {{ type: image.letterbox, for_each: cameras, input: video, width: 8, height: 8, mean: 0.3 }}
  net: {{ type: model.run{each}, input: fit.tensor, path: {self.net.name} }}
  save: {{ type: tensor.to_npy, for_each: cameras, input: net.tensor, path: '{{stream}}-{shared}.npy' }}
""")
        done = self.run_it("run", "p.yaml", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        made = [(self.folder / f"c{i}-{shared}.npy").read_bytes() for i in range(8)]
        self.assertGreater(len(set(made)), 4, "the cameras show different pictures")
        return made

    def test_eight_cameras_that_share_a_network_get_what_eight_networks_give(self):
        for kind in ("means", "means_of_one"):
            with self.subTest(kind):
                self.write(kind)
                self.assertEqual(self.cameras(True), self.cameras(False))

    def threads_of(self, chain, threads):
        """The threads of the process of a run that is given so many, once it has written some of the chain's tensors, look by
        look: those of the command itself, such as its socket's, may begin later."""
        made = self.folder / "made.npy"
        made.unlink(missing_ok=True)
        known = {"MILLRACE_ONNXRUNTIME": str(ENGINE)} if ENGINE else {}
        run = subprocess.Popen([MILLRACE, "run", "--quiet", "--threads", str(threads), f"test.pattern width=64 height=64 ! "
                                f"image.patches width=64 height=64 ! {chain} tensor.to_npy path={made}"],
                               cwd=self.folder, stdin=subprocess.DEVNULL, env={**os.environ, **known})
        try:
            while run.poll() is None and not (made.exists() and made.stat().st_size > 1_000_000):
                time.sleep(0.01)
            looks = []
            while run.poll() is None and len(looks) < THREAD_LOOKS:
                looks.append(len(os.listdir(f"/proc/{run.pid}/task")))
                time.sleep(0.1)
            return looks
        finally:
            run.terminate()
            run.wait(timeout=SECONDS_MAX)

    def test_no_more_threads_run_than_were_given_but_the_engines_own(self):
        self.write("blurred")
        for threads, more in ((1, self.own_threads), (4, self.own_threads_of_several)):  # of four, one is the engine's
            with self.subTest(threads):
                with_net, without = self.threads_of(f"model.run name=n path={self.net} ; n.tensor !", threads), self.threads_of("", threads)
                self.assertLessEqual(min(with_net), max(without) + more, f"{with_net}, {without} without the network")

    def plan(self, line, *arguments):
        done = self.run_it("plan", "--json", *arguments, line)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_networks_share_the_threads_that_a_run_is_given_and_the_plan_counts_them(self):
        self.write("scaled")
        self.give()
        for threads, more, workers, of_library in ((1, "", 1, 0), (2, "", 2, 0), (4, "", 3, 1), (16, "", 9, 7),
                                                   (4, "threads=3", 2, 2)):
            with self.subTest(threads=threads, more=more):
                plan = self.plan(self.line(more=more), "--threads", str(threads))
                self.assertEqual((plan["workers"], plan.get("library_threads", 0)), (workers, of_library))
        said = self.run_it("plan", "--threads", "16", self.line()).stdout
        self.assertRegex(said.splitlines()[0], "threads, and 7 of libraries$")
        # Such a plan is made again as it was.
        saved = self.folder / "plan.json"
        saved.write_text(json.dumps(self.plan(self.line(), "--threads", "4")))
        done = self.run_it("run", "--quiet", "--plan", saved, self.line())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_plan_says_that_a_network_is_called_tensor_by_tensor_and_why(self):
        self.give()
        for kind, said in (("scaled", False), ("one_row", True)):
            self.write(kind)
            notes = [note for note in self.plan(self.line())["notes"] if note.startswith("n: ")]
            self.assertEqual(len(notes), said, notes)
        self.assertRegex(notes[0], f"^n: it is called tensor by tensor: .*{self.net.name} {self.fixes}")
        self.assertIn(notes[0], self.run_it("plan", self.line()).stdout)

    def test_two_networks_compute_at_the_same_time(self):
        self.write("scaled")
        self.give(ticks=40)
        done = self.run_it("run", "--quiet", f"tensor.from_npy name=x path={self.folder}/x.npy ; "
                           f"x. ! model.run name=a path={self.net} ; a.tensor ! tensor.to_npy path={self.folder}/y.npy ; "
                           f"x. ! model.run name=b path={self.net} ; b.tensor ! tensor.to_npy path={self.folder}/z.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_npy(self.folder / "y.npy")[1], [2.0 * i + i % 3 + 1 for i in range(120)])
        self.assertEqual((self.folder / "y.npy").read_bytes(), (self.folder / "z.npy").read_bytes())

    def test_what_is_no_network_is_refused_in_the_engines_words(self):
        self.give()
        self.refused("there is no file", line=self.line(f"nte{self.ending}"))
        self.write("scaled")
        whole = self.net.read_bytes()
        for bad in (b"", b"no network", whole[:-20]):
            self.net.write_bytes(bad)
            self.refused(f"{self.net.name}': ", self.no_network[bool(bad.startswith(whole[:2]))])

    def test_a_network_that_fails_in_a_call_fails_its_tick_with_the_engines_words(self):
        # x says which of six numbers are taken; there is no ninth. Zeros, which the plan tries, are fine.
        self.write("taken")
        self.give(ticks=2, shape=(2,), dtype="<i8", numbers=array.array("q", [2, 3, 4, 9]).tobytes())
        self.assertEqual(self.run_it("plan", self.line()).returncode, 0)
        done = self.run_it("run", "--quiet", self.line())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"n (model.run) failed at tick 1: {self.speaks}: ", done.stderr)


@unittest.skipUnless(ENGINE, NO_ONNX)
class OnnxRuntime(Conformance, Suite):
    ending, engine, speaks = ".onnx", "onnx", "ONNX Runtime"
    own_threads = own_threads_of_several = 1  # of version 1.32; it sleeps
    fixes = "fixes the first dimension"
    no_network = ("ONNX Runtime: ", "ONNX Runtime: ")

    def write(self, kind, dtype="<f4", shape=()):
        def rows_of(count):
            return [("x", FLOAT, [count, 3])], [("y", FLOAT, [count, 3])]

        def means(count):
            return network([node("Relu", ["x"], ["r"]), node("ReduceMean", ["r"], ["y"], axes=[1], keepdims=1)],
                           [("x", FLOAT, [count, 3, 8, 8])], [("y", FLOAT, [count, 1, 8, 8])])

        def of_two(kind):
            return network([node(kind, ["a", "b"], ["y"])], [("a", FLOAT, ["rows", 3]), ("b", FLOAT, ["rows", 3])],
                           [("y", FLOAT, ["rows", 3])])

        def scaled(count):  # y = 2x + (1, 2, 3)
            return network([node("Mul", ["x", "two"], ["m"]), node("Add", ["m", "offset"], ["y"])], *rows_of(count),
                           [constant("two", [1], [2.0]), constant("offset", [3], [1.0, 2.0, 3.0])])

        many, number = ("a", "b", "c", "sum", "minus", "size", "same"), NUMBERS[dtype]
        self.net.write_bytes({
            "scaled": lambda: scaled("rows"),
            "one_row": lambda: scaled(1),
            "minus_and_twice": lambda: network(
                [node("Neg", ["x"], ["minus"]), node("Concat", ["x", "x"], ["twice"], axis=1)],
                [("x", FLOAT, ["rows", "columns"])],
                [("minus", FLOAT, ["rows", "columns"]), ("twice", FLOAT, ["rows", "wide"])]),
            "added": lambda: of_two("Add"),
            "less": lambda: of_two("Sub"),
            "blurred": lambda: network([node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
                                       [("x", FLOAT, ["rows", 3, 64, 64])], [("y", FLOAT, ["rows", 1, 64, 64])],
                                       [constant("w", [1, 3, 3, 3], [1.0] * 27)]),
            "same": lambda: network([node("Identity", ["x"], ["y"])], [("x", number, shape)], [("y", number, shape)]),
            "four_of_three": lambda: network(
                [node("Sum", ["a", "b", "c"], ["sum"]), node("Neg", ["a"], ["minus"]), node("Abs", ["a"], ["size"]),
                 node("Identity", ["a"], ["same"])],
                [(name, DOUBLE, ["rows"]) for name in many[:3]], [(name, DOUBLE, ["rows"]) for name in many[3:]]),
            "means": lambda: means("rows"),
            "means_of_one": lambda: means(1),
            "taken": lambda: network([node("Gather", ["six", "x"], ["y"])], [("x", INT64, [2])],
                                     [("y", FLOAT, ["taken"])], [constant("six", [6], [1.0] * 6)]),
        }[kind]())

    def test_the_plan_counts_the_file_and_its_weights_keep_their_type(self):
        self.write("scaled")
        self.give()
        self.assertRegex(self.run_it("plan", self.line()).stdout, r"\n    n +1\.0 MiB: what it works in\n")
        self.refused("dtype converts the weights of TorchScript networks alone", line=self.line(more="dtype=f16"))

    def with_open_shapes(self, kind="Neg"):
        shape = ["rows", "columns"]
        return network([node(kind, ["x"], ["y"])], [("x", FLOAT, shape)], [("y", FLOAT, shape)])

    def planned_shape(self, **environment):
        done = self.run_it("plan", self.line(), **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search(r"model\.run +float32\[([\d×]+)\]", done.stdout).group(1), done.stderr

    def test_shapes_that_were_found_are_kept_for_the_next_plan_by_the_content_of_the_file(self):
        machine = {"MILLRACE_MACHINE": str(self.folder / "settings" / "machine.json")}
        kept = self.folder / "settings" / "network_shapes.txt"
        self.net.write_bytes(self.with_open_shapes())
        self.give()
        self.assertEqual(self.planned_shape(**machine), ("1×3", ""))
        self.assertEqual(len(kept.read_text().splitlines()), 2)
        # What the file says is taken, so nothing was computed.
        kept.write_text(kept.read_text().replace("-> 1x3", "-> 1x5"))
        self.assertEqual(self.planned_shape(**machine), ("1×5", ""))
        # Another network has its own line, and so have other inputs.
        self.net.write_bytes(self.with_open_shapes("Abs"))
        self.assertEqual(self.planned_shape(**machine)[0], "1×3")
        self.give(shape=(2, 3))
        self.assertEqual(self.planned_shape(**machine)[0], "2×3")
        self.assertEqual(len(kept.read_text().splitlines()), 4)

    def test_a_damaged_file_of_shapes_is_passed_over_with_a_warning_and_one_that_cannot_be_written_is_none(self):
        kept = self.folder / "network_shapes.txt"
        machine = {"MILLRACE_MACHINE": str(self.folder / "machine.json")}
        self.net.write_bytes(self.with_open_shapes())
        self.give()
        self.assertEqual(self.planned_shape(**machine)[0], "1×3")
        sound = kept.read_text()
        key, _ = sound.splitlines()[1].split(" -> ")
        for text in ("", "\0\1\2", sound + "rubbish\n", f"{sound.splitlines()[0]}\n{key} -> 1x-3\n",
                     f"{sound.splitlines()[0]}\n{key} -> 1x\n", f"{sound.splitlines()[0]}\n{key} -> {'9' * 30}\n"):
            kept.write_text(text)
            done = self.run_it("run", "--quiet", self.line(), **machine)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"warning n: {kept} is damaged", done.stderr)
            kept.write_text(text)
            self.assertIn(f"n: {kept} is damaged", self.run_it("plan", self.line(), **machine).stdout)
            if not text.endswith("rubbish\n"):  # its sound line was enough
                self.assertEqual(kept.read_text(), sound)
        # Too many outputs, or an extent that the file of the network contradicts: found anew.
        self.net.write_bytes(network([node("Concat", ["x", "x"], ["y"], axis=0)], [("x", FLOAT, ["rows", 3])],
                                     [("y", FLOAT, ["more", 3])]))
        self.assertEqual(self.planned_shape(**machine)[0], "2×3")
        lines = kept.read_text()
        for wrong in ("2x4", "2x3 2x3", "2"):
            kept.write_text(lines.replace("-> 2x3", f"-> {wrong}"))
            self.assertEqual(self.planned_shape(**machine), ("2×3", ""))
        for folder in ("/proc/nowhere", "/dev/null"):
            self.assertEqual(self.planned_shape(MILLRACE_MACHINE=f"{folder}/machine.json"), ("2×3", ""))

    def test_the_machine_file_says_where_the_engine_is_and_the_variable_goes_before_it(self):
        self.write("scaled")
        self.give()
        (self.folder / "engine.so").symlink_to(ENGINE)
        machine = self.folder / "machine.json"
        for path in ("engine.so", str(ENGINE)):
            machine.write_text(json.dumps({"version": 1, "onnxruntime": path}))
            done = self.run_it("plan", "--machine", machine, self.line(), MILLRACE_ONNXRUNTIME=None)
            self.assertEqual(done.returncode, 0, done.stderr)
        machine.write_text(json.dumps({"version": 1, "onnxruntime": "nowhere.so"}))
        self.assertEqual(self.run_it("plan", "--machine", machine, self.line()).returncode, 0)
        done = self.run_it("plan", "--machine", machine, self.line(), MILLRACE_ONNXRUNTIME=None)
        self.assertIn(f"{self.folder}/nowhere.so", done.stderr)

    def test_types_and_ranks_that_do_not_fit_are_refused_with_both(self):
        self.write("scaled")
        self.give(ticks=1, dtype="<i8", numbers=array.array("q", [1, 2, 3]).tobytes())
        self.refused("takes float32 [any, 3] at 'x', and int64 [1, 3] comes")
        self.give(ticks=1, shape=(1, 1, 3))
        self.refused("takes float32 [any, 3] at 'x', and float32 [1, 1, 3] comes")
        self.write("one_row")
        self.give(shape=(2, 3))
        self.refused("takes float32 [1, 3] at 'x', and float32 [2, 3] comes")
        self.net.write_bytes(network([node("Identity", ["x"], ["y"])], [("x", STRING, [1])], [("y", STRING, [1])]))
        self.refused("'x' of the network holds neither whole nor floating-point numbers")

    def test_an_unknown_operator_is_refused_by_its_name(self):
        self.give()
        self.net.write_bytes(network([node("Frobnicate", ["x"], ["y"])], [("x", FLOAT, [1, 3])], [("y", FLOAT, [1, 3])]))
        self.refused("Frobnicate")

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


@unittest.skipUnless(TORCH, NO_TORCH)
class Libtorch(Conformance, Suite):
    ending, engine, speaks = ".pt", "torch", "libtorch"
    # The thread that calls, for which a worker waits, and one of a pool that libtorch makes for other uses: it sleeps.
    own_threads, own_threads_of_several = 0, 2
    fixes = "computes two at once otherwise than each alone"
    no_network = ("it is no TorchScript file", "its archive is cut off or damaged")
    kinds = {
        "scaled": "return 2.0 * x + torch.tensor([1.0, 2.0, 3.0])",
        "one_row": "return 2.0 * x.view([1, 3]) + torch.tensor([1.0, 2.0, 3.0])",
        "minus_and_twice": "return {'minus': -x, 'twice': torch.cat([x, x], 1)}",
        "means": "return torch.relu(x).mean([1], keepdim=True)",
        "means_of_one": "return torch.relu(x.view([1, 3, 8, 8])).mean([1], keepdim=True)",
        "taken": "return torch.ones([6])[x]",
        "added": "return a + b",
        "less": "return a - b",
        "blurred": "return torch.conv2d(x, torch.ones([1, 3, 3, 3]), None, [1, 1], [1, 1])",
        "same": "return x",
        "four_of_three": "return (a + b + c, -a, a.abs(), a.clone())",
    }

    def write(self, kind, *_):
        self.script(self.kinds[kind], {"added": "a, b", "less": "a, b", "four_of_three": "a, b, c"}.get(kind, "x"))

    def script(self, lines, inputs="x", name="forward", parameters=()):
        text = self.folder / "net.txt"
        text.write_text(f"def {name}(self, {inputs}):\n" + "".join(f"    {line}\n" for line in lines.split("\n")))
        subprocess.run([MAKE_NETWORK, text, self.net, *parameters], check=True, timeout=SECONDS_MAX)

    def test_weights_have_another_element_type_if_that_is_asked_for(self):
        self.script("return x.to(self.w.dtype).matmul(self.w).to(x.dtype)", parameters=["w=3x2"])
        self.give(ticks=1, numbers=array.array("f", [1.0, 0.0, 0.0]).tobytes())
        self.assertEqual(self.computed()[1], [-1.0, array.array("f", [-0.6])[0]])
        self.assertEqual(self.computed("dtype=bf16")[1], [-1.0, -0.6015625])

    def test_the_plan_counts_the_weights(self):
        self.give()
        for dtype, mib in (("file", 4), ("bf16", 2)):
            with self.subTest(dtype):
                self.script("return x + self.w.sum()", parameters=["w=1000x1000"])
                plan = self.run_it("plan", self.line(more=f"dtype={dtype}"))
                self.assertRegex(plan.stdout, rf"\n    n +{mib}\.0 MiB: what it works in\n")

    def test_make_network_refuses_what_is_no_parameter(self):
        text = self.folder / "net.txt"
        text.write_text("def forward(self, x):\n    return x\n")
        for word in ("w", "=3", "w=", "w=3x", "w=0", "w=3y2", "w=-1"):
            done = subprocess.run([MAKE_NETWORK, text, self.net, word], capture_output=True, text=True, timeout=SECONDS_MAX)
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"{word} names no parameter with its shape, as weights=16x3x3x3 does\n"))

    def test_commands_without_a_network_do_not_map_libtorch(self):
        self.write("scaled")
        self.give()
        for arguments, expected in ((["handlers"], False), (["inspect", "model.run"], False),
                                    (["plan", "test.pattern ! null.sink"], False), (["plan", self.line()], True)):
            done = self.run_it(*arguments, LD_DEBUG="files")  # the loader writes each library that it maps to stderr
            self.assertEqual(done.returncode, 0)
            self.assertIn("libc.so", done.stderr)
            self.assertEqual("libtorch" in done.stderr, expected, arguments)

    def test_a_tuple_gives_its_tensors_in_order(self):
        self.script("return (x, x + 1.0, x > 1.0)")
        self.give(ticks=1)
        self.assertEqual(self.computed()[1], [0.0, 1.0, 2.0])
        self.assertEqual(self.computed("outputs=output2")[1], [1.0, 2.0, 3.0])
        self.refused("output (float32 [any, 3]), output2 (float32 [any, 3]), output3 (uint8 [any, 3])",
                     line=self.line(more="outputs=output4"))

    def test_what_is_no_tensor_is_refused_by_its_type(self):
        self.give()
        for lines, said in (("return 'text'", "'output' of the network is a str"),
                            ("return (x, (x, x))", "'output2' of the network is a Tuple[Tensor, Tensor]"),
                            ("return [x, x]", "'output' of the network is a List[Tensor]"),
                            ("return {1: x}", "'output' of the network is a Dict[int, Tensor]"),
                            ("return torch.complex(x, x)", "'output' of the network is a tensor of ComplexFloat"),
                            ("return x.sum()", "gives float32 [] at 'output', and tensor has one to eight dimensions")):
            with self.subTest(lines):
                self.script(lines)
                self.refused(said)
        self.script("return x * scale", "x, scale: float")
        self.refused("'scale' of the network is a float, and inputs are tensors")
        self.script("return x", name="predict")
        self.refused("the network has no method `forward`")

    def test_inputs_with_a_default_are_left_to_the_network(self):
        self.script("return x * scale if y is None else x", "x, scale: float=3.0, y: Optional[Tensor]=None")
        self.give(ticks=1)
        self.assertEqual(self.computed()[1], [0.0, 3.0, 6.0])

    def test_a_network_that_does_not_take_what_comes_is_refused_in_libtorchs_last_line(self):
        self.script("return torch.matmul(x, torch.ones([4, 5]))")
        self.give()
        self.refused("cannot compute zeros of float32 [1, 3]: libtorch: mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)\n")
        self.give(dtype="<u2", numbers=array.array("H", range(6)).tobytes())
        self.refused("libtorch has no tensors of uint16")

    def test_a_network_that_mixes_its_rows_is_called_item_by_item(self):
        # One camera must not change what another gets.
        self.script("return x - x.mean()")
        self.assertEqual(self.cameras(True), self.cameras(False))

    def test_a_network_that_writes_into_its_input_works_on_a_copy_or_fails(self):
        self.give()
        self.script("x.add_(1.0)\nreturn x")
        done = self.run_it("run", "--quiet", f"tensor.from_npy name=x path={self.folder}/x.npy ; x. ! model.run name=n "
                           f"path={self.net} ; n.tensor ! null.sink ; n.tensor ! tensor.to_npy path={self.folder}/y.npy ; "
                           f"x. ! tensor.to_npy path={self.folder}/z.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(read_npy(self.folder / "y.npy")[1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        self.assertEqual(read_npy(self.folder / "z.npy")[1], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
        self.script("if bool(x.sum() > 5.0):\n    x.add_(1.0)\nreturn x")
        done = self.run_it("run", "--quiet", self.line())
        self.assertIn("failed at tick 1: the network wrote into its input 'x'", done.stderr)

    def test_a_network_whose_output_changes_its_shape_fails_its_tick_with_both(self):
        self.script("if bool(x.sum() > 5.0):\n    return torch.cat([x, x], 1)\nreturn x")
        self.give()
        done = self.run_it("run", "--quiet", self.line())
        self.assertIn("failed at tick 1: 'output' of the network is float32 [1, 6], and was float32 [1, 3]", done.stderr)

    def test_a_second_number_of_threads_is_a_warning_with_both(self):
        self.write("scaled")
        self.give()
        both = (f"tensor.from_npy path={self.folder}/x.npy ! model.run name=a path={self.net} threads=2 ; "
                f"a.tensor ! model.run name=b path={self.net} threads={{}} ; b.tensor ! null.sink")
        done = self.run_it("run", both.format(1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout + done.stderr, "threads: [12] is not taken: .* threads: [12]\n")
        done = self.run_it("run", both.format(2))
        self.assertNotIn("is not taken", done.stdout + done.stderr)

    def test_a_checkpoint_of_python_is_refused_with_the_command_that_exports_its_network(self):
        self.give()
        with zipfile.ZipFile(self.net, "w") as archive:
            for name in ("data.pkl", "version"):
                archive.writestr(f"net/{name}", b"3\n")
        self.refused("a Python checkpoint", "torch.jit.trace(network.eval(), example).save(", "torch.onnx.export")
        self.net.write_bytes(b"\x80\x02}q\x00.")
        self.refused("a Python checkpoint")
        with zipfile.ZipFile(self.net, "w") as archive:
            archive.writestr("numbers.npy", b"1")
        self.refused("none of PyTorch's")

    def test_the_disc_that_millrace_draws_is_found_by_the_network_of_the_example(self):
        subprocess.run([MAKE_NETWORK, ROOT / "examples" / "model" / "disc.txt", self.net], check=True, timeout=SECONDS_MAX)
        sizes = {"a": (320, 240), "b": (240, 240), "c": (400, 200)}
        items = ", ".join(f"{name}: {{ width: {size[0]}, height: {size[1]} }}" for name, size in sizes.items())
        (self.folder / "p.yaml").write_text(f"""version: 1
streams: {{ cameras: {{ items: {{ {items} }} }} }}
clocks: {{ main: {{ mode: free }} }}
handlers:
  video: {{ type: test.pattern, for_each: cameras, pattern: disc, width: '{{width}}', height: '{{height}}', count: 20 }}
  fit: {{ type: image.letterbox, input: video, width: 64, height: 48 }}
  net: {{ type: model.run, input: fit.tensor, path: {self.net} }}
  found: {{ type: detect.mask_boxes, inputs: {{ tensor: net.tensor, transform: fit.transform }}, grow: 0 }}
  save: {{ type: record.to_json, for_each: cameras, input: found, path: '{{stream}}.jsonl' }}
""")
        done = self.run_it("run", "p.yaml", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        for stream, (width, height) in sizes.items():
            lines = (self.folder / f"{stream}.jsonl").read_text().splitlines()
            self.assertEqual(len(lines), 20)
            for tick, line in enumerate(lines):
                boxes = [(box["x"], box["y"], box["width"], box["height"]) for box in json.loads(line)["records"]]
                self.assertEqual(len(boxes), 1, line)
                self.assertGreaterEqual(overlap(boxes[0], disc_at(tick, width, height)), 0.5, line)


class WithoutEngines(Suite):
    ending = ".onnx"

    def test_files_that_no_engine_opens_are_refused_with_what_to_do(self):
        self.give()
        for name, word in (("net.engine", "take the .onnx file"), ("net.tflite", "tf2onnx"),
                           ("net.bin", "known are .onnx, .pt, .torchscript,")):
            (self.folder / name).write_bytes(b"x")
            self.refused(word, line=self.line(name))

    def test_an_engine_that_is_not_here_or_is_none_is_said_with_how_to_get_it(self):
        self.net.write_bytes(b"")
        self.give()
        self.refused("./dev models onnxruntime", "/nowhere.so", MILLRACE_ONNXRUNTIME="/nowhere.so")

    def test_a_build_without_libtorch_names_its_package(self):
        (self.folder / "plugins").mkdir()
        millrace = shutil.copy(MILLRACE, self.folder)
        shutil.copy(MILLRACE.parent / "plugins" / "model.so", self.folder / "plugins")
        self.give()
        (self.folder / "net.pt").write_bytes(b"x")
        self.refused("libtorch-dev", "torch.onnx.export", line=self.line("net.pt"), millrace=millrace)

    def test_commands_without_a_network_open_no_engine(self):
        # An engine that is not there would be complained about.
        for arguments in (["handlers"], ["inspect", "model.run"], ["plan", "test.pattern ! null.sink"]):
            done = self.run_it(*arguments, MILLRACE_ONNXRUNTIME="/nowhere.so")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


def disc_at(tick, width, height):
    """The box around the disc of test.pattern: handlers/test/painting.h."""
    def bounce(step, limit):
        return min(step % (2 * limit), 2 * limit - step % (2 * limit))

    top = max(height // 16, 1)  # the strip of its number
    radius = min(width, height - top) // 8
    x = radius + bounce(tick * 5, width - 2 * radius - 1)
    y = top + radius + bounce(tick * 3, height - top - 2 * radius - 1)
    return x - radius, y - radius, 2 * radius + 1, 2 * radius + 1


def overlap(a, b):
    """Intersection over union of two (left, top, width, height)."""
    wide = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    high = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(wide, 0) * max(high, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


if __name__ == "__main__":
    for there, why in ((ENGINE, NO_ONNX), (TORCH, NO_TORCH)):
        if not there:
            print(f"left out: what needs an engine: {why}")
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
