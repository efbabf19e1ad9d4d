#!/usr/bin/env python3
"""`millrace codebook`, and the handlers of codebooks in pipelines: what is compressed, read back, explained and refused.

usage: command.py MILLRACE [unittest arguments]
"""
import json
import math
import os
import pathlib
import random
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MILLRACE = ""
SECONDS_MAX = 300
VECTORS_MAX = 1 << 23
LETTERS = {"f2": "e", "f4": "f", "f8": "d"}


def npy(path, rows, columns, numbers, dtype="f4"):
    """Writes [rows, columns] as numpy.save does; without numbers the file is that long, of zeros."""
    header = f"{{'descr': '<{dtype}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        if numbers is None:
            file.truncate(file.tell() + rows * columns * int(dtype[1]))
        else:
            file.write(struct.pack(f"<{len(numbers)}{LETTERS[dtype]}", *numbers))


def npy_numbers(path, letter):
    """All numbers of an .npy file, in order."""
    data = pathlib.Path(path).read_bytes()
    body = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return struct.unpack(f"<{len(body) // struct.calcsize(letter)}{letter}", body)


class Codebooks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        draw = random.Random(1)
        self.numbers = [draw.gauss(row % 7, 0.25) for row in range(300) for _ in range(6)]
        npy(self.folder / "own.npy", 300, 6, self.numbers)

    def call(self, *arguments):
        return subprocess.run([MILLRACE, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=SECONDS_MAX,
                              stdin=subprocess.DEVNULL)

    def done(self, *arguments):
        result = self.call(*arguments)
        self.assertEqual(result.returncode, 0, (arguments, result.stdout, result.stderr))
        return result.stdout

    def refused(self, words, *arguments, code=3):
        result = self.call(*arguments)
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, (arguments, said))
        for word in words:
            self.assertIn(word, said)
        return said

    def refused_fit(self, words, source, settings, code=3):
        return self.refused(words, "run", f"{source} ! codebook.fit name=fit {settings}  fit.labels ! null.sink", code=code)


class Command(Codebooks):
    def test_vectors_of_ones_own_are_compressed_and_looked_at(self):
        said = self.done("codebook", "index", "--emb", "own.npy", "--m", 7, "--out", "own.codebook")
        self.assertIn("7 anchors of 6 dimensions, 300 vectors", said)
        self.assertIn("sections: settings, anchors, deviations, labels", said)
        self.assertEqual(self.done("codebook", "info", "own.codebook"), said.split("\n", 1)[1])

    def test_what_was_compressed_is_read_back(self):
        self.done("codebook", "index", "--emb", "own.npy", "--m", 7, "--out", "own.codebook", "--set", "last_step=true")
        self.done("run", "codebook.read name=book path=own.codebook  book.codebook ! tensor.to_npy path=anchors.npy\n"
                         "book.labels ! tensor.to_npy path=labels.npy  book.deviations ! tensor.to_npy path=deviations.npy")
        anchors, labels = npy_numbers(self.folder / "anchors.npy", "e"), npy_numbers(self.folder / "labels.npy", "I")
        deviations = npy_numbers(self.folder / "deviations.npy", "e")
        self.assertEqual((len(anchors), len(labels), len(deviations)), (42, 300, 42))
        for row, label in enumerate(labels):
            self.assertEqual(label, labels[row % 7], "seven groups, far from each other")
            for column in range(6):
                self.assertLess(abs(anchors[label * 6 + column] - self.numbers[row * 6 + column]), 1.5)
        for at, deviation in enumerate(deviations):
            members = [self.numbers[row * 6 + at % 6] for row, label in enumerate(labels) if label == at // 6]
            expected = math.sqrt(sum((number - anchors[at]) ** 2 for number in members) / len(members))
            self.assertAlmostEqual(deviation, expected, delta=1e-3)

    def test_the_published_files_are_written_and_read(self):
        said = self.done("codebook", "index", "--emb", "own.npy", "--m", 7, "--out", "own.idx")
        self.assertIn("own.idx: a published index of three files", said)
        sizes = [(self.folder / f"own{end}").stat().st_size for end in (".idx", ".anchors.bin", ".assign.bin")]
        self.assertEqual(sizes, [19, 2 * 7 * 6, 4 * 300])
        self.done("run", "codebook.read name=book path=own.idx  book.codebook ! tensor.to_npy path=anchors.npy")
        self.assertEqual(npy_numbers(self.folder / "anchors.npy", "e"),
                         struct.unpack("<42e", (self.folder / "own.anchors.bin").read_bytes()))

    def test_the_pipeline_that_explain_prints_writes_the_same_file(self):
        (self.folder / "it's here").mkdir()
        arguments = ["codebook", "index", "--emb", "own.npy", "--m", 7, "--out", "it's here/a.codebook", "--set", "mean=huber"]
        explained = self.done(*arguments, "--explain")
        self.assertFalse((self.folder / "it's here/a.codebook").exists())
        self.done(*arguments)
        written = (self.folder / "it's here/a.codebook").read_bytes()
        (self.folder / "it's here/a.codebook").unlink()
        words = shlex.split(explained)
        self.assertEqual(words[:2], ["millrace", "run"])
        self.done("run", *words[2:])
        self.assertEqual((self.folder / "it's here/a.codebook").read_bytes(), written)

    def test_the_published_fits_are_the_same(self):
        said = self.done("codebook", "test")
        self.assertEqual(len(re.findall("  the same\n", said)), 8, said)
        on_gpu = "no GPU is used" not in said
        self.assertEqual(len(said.splitlines()), 1 + 3 * 8 if on_gpu else 10, said)
        self.assertEqual(self.done("codebook", "test", "--device", "cpu").count("the same"), 8)
        self.assertIn("test.vectors name=vectors n=300 d=64", self.done("codebook", "test", "--explain"))

    def test_a_device_that_is_not_there_ends_the_test_as_it_ends_a_run(self):
        result = self.call("codebook", "test", "--device", "cuda:77")
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn("MR0408", result.stderr)

    def test_the_plan_notes_that_loops_are_unrolled(self):
        if "bodies: cpu, cuda" not in self.done("inspect", "codebook.fit"):
            self.skipTest("built without nvcc")
        line = "test.vectors ! codebook.fit name=fit m=9 iterations=7  fit.codebook ! null.sink"
        self.assertNotIn("iterations are enqueued", self.done("plan", line))
        plan = subprocess.run([MILLRACE, "plan", line], env=os.environ | {"MILLRACE_CUDA_UNROLL": "1"}, capture_output=True, text=True,
                              timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertIn("fit: on a GPU all 7 iterations are enqueued: MILLRACE_CUDA_UNROLL is 1", plan.stdout)

    def test_the_guide_shows_what_its_commands_print(self):
        guide = (ROOT / "docs" / "guide" / "codebooks.md").read_text()
        commands = re.search(r"```sh\n(.*?)```", guide, re.DOTALL)[1].splitlines()
        shown = re.search(r"```text\n(.*?)```", guide, re.DOTALL)[1]
        self.assertEqual(len(commands), 3)
        for command in commands:
            said = self.done(*shlex.split(command)[1:])
        self.assertEqual(said, shown)

    def test_a_path_of_any_letters_is_explained_as_a_shell_reads_it(self):
        name = "a \"b\" $HOME `id` 'c' \\ ! #.npy"
        (self.folder / name).write_bytes((self.folder / "own.npy").read_bytes())
        arguments = ["codebook", "index", "--emb", name, "--m", 7, "--out", "x.codebook"]
        self.done(*arguments)
        written = (self.folder / "x.codebook").read_bytes()
        (self.folder / "x.codebook").unlink()
        explained = self.done(*arguments, "--explain").replace("millrace run", shlex.quote(MILLRACE) + " run", 1)
        subprocess.run(["sh", "-c", explained], cwd=self.folder, check=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertEqual((self.folder / "x.codebook").read_bytes(), written)

    def test_a_fit_that_differs_from_the_published_one_is_told_and_fails(self):
        other = self.folder / "other"
        other.write_text(f"#!/bin/sh\nexec {shlex.quote(MILLRACE)} \"$@\" --set fit.rate=0.19\n")
        other.chmod(0o755)
        program = pathlib.Path(MILLRACE).with_name("millrace-codebook")
        result = subprocess.run([program, "test"], env=os.environ | {"MILLRACE_COMMAND": str(other)}, capture_output=True, text=True,
                                timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("differs: ", result.stdout)
        self.assertIn("labels, anchors", result.stdout)

    def test_a_signal_ends_the_run_and_leaves_nothing(self):
        npy(self.folder / "large.npy", 200_000, 64, None, "f2")  # takes minutes: all vectors are alike
        sockets = tempfile.TemporaryDirectory()  # the folder of control sockets stays, as it belongs to all runs of a user
        self.addCleanup(sockets.cleanup)
        process = subprocess.Popen([MILLRACE, "codebook", "index", "--emb", "large.npy", "--m", "100000", "--out", "large.codebook"],
                                   cwd=self.folder, env=os.environ | {"TMPDIR": str(self.folder), "XDG_RUNTIME_DIR": sockets.name},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (runs := children.read_text().split()):
            time.sleep(0.01)
        while not list(pathlib.Path(sockets.name).glob("millrace/*.sock")):  # the run is about to begin
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        while process.poll() is None:  # the first lets the fit end, the second does not
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        self.assertNotEqual(process.returncode, 0)
        self.assertFalse(pathlib.Path(f"/proc/{runs[0]}").exists(), "the run has ended before the command")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["large.npy", "own.npy"])

    def test_the_last_step_is_in_the_energy_that_is_kept(self):
        energies = []
        for last_step in ("false", "true"):
            said = self.done("codebook", "index", "--emb", "own.npy", "--m", 7, "--out", "own.codebook", "--set",
                             f"last_step={last_step}")
            energies.append(float(re.search(r"energy: (\S+)", said)[1]))
        self.assertLess(energies[1], energies[0])

    def test_wrong_command_lines_are_refused(self):
        for arguments in ([], ["indx"], ["index"], ["index", "--emb", "own.npy"], ["info"],
                          ["index", "--emb", "own.npy", "--out", "a", "--set", "mean"],
                          ["index", "--emb", "own.npy", "--out", "a", "--set", "m=3"],
                          ["index", "--emb", "own.npy", "--out", "a", "--set", "name=x"]):
            self.assertEqual(self.call("codebook", *arguments).returncode, 2, arguments)

    def test_files_that_are_none_are_refused(self):
        (self.folder / "words").write_text("hello, world")
        self.refused(["'words' is not a codebook's file"], "codebook", "info", "words", code=1)
        self.refused(["cannot read 'none': No such file"], "codebook", "info", "none", code=1)
        self.refused(["error MR0604", "'words' is not a codebook's file"], "run",
                     "codebook.read name=book path=words  book.codebook ! null.sink")
        self.done("codebook", "index", "--emb", "own.npy", "--m", 7, "--out", "own.codebook")
        bytes_of_file = bytearray((self.folder / "own.codebook").read_bytes())
        bytes_of_file[-100] ^= 1
        (self.folder / "own.codebook").write_bytes(bytes_of_file)
        self.refused(["error MR0604", "is damaged: its section labels"], "run",
                     "codebook.read name=book path=own.codebook  book.codebook ! null.sink")


@unittest.skipIf(os.environ.get("MILLRACE_PART"), "the quick tests and those under sanitizers have the small fits")
class Large(Codebooks):
    def test_the_large_published_fits_are_the_same(self):
        said = self.done("codebook", "test", "--large")
        self.assertEqual(said.count("  the same\n"), 12, said)
        self.assertIn(" 107091    2.09%", said)


class Wrong(Codebooks):
    def test_too_few_vectors_none_and_too_many_are_refused_before_anything_runs(self):
        self.refused_fit(["error MR0402", "[300, 6], which is fewer than the m=301 anchors", "try: m=300"],
                         "tensor.from_npy path=own.npy stacked=false", "m=301")
        npy(self.folder / "none.npy", 0, 4, [])
        self.refused_fit(["error MR0402", "the vectors are [0, 4]: there are none"], "tensor.from_npy path=none.npy stacked=false", "m=1")
        npy(self.folder / "flat.npy", 4, 0, [])
        self.refused_fit(["error MR0402", "the vectors are [4, 0] and have no numbers"],
                         "tensor.from_npy path=flat.npy stacked=false", "m=1")
        npy(self.folder / "many.npy", VECTORS_MAX + 1, 1, None, "f2")
        self.refused_fit(["error MR0402", f"one fit takes at most {VECTORS_MAX}"], "tensor.from_npy path=many.npy stacked=false", "m=1")
        self.refused_fit(["error MR0312", "m"], "test.vectors", "m=0")

    def test_numbers_that_are_not_finite_are_named_or_skipped(self):
        for bad, word in ((math.nan, "NaN"), (math.inf, "an infinity")):
            numbers = list(self.numbers)
            numbers[17 * 6 + 2] = bad
            npy(self.folder / "bad.npy", 300, 6, numbers)
            source = "tensor.from_npy path=bad.npy stacked=false"
            self.refused_fit([f"the vector of row 17 has {word} in column 2", "bad=skip"], source, "m=7", code=1)
            self.done("run", f"{source} ! codebook.fit name=fit m=7 bad=skip  fit.labels ! tensor.to_npy path=labels.npy", "--json",
                      "report.json", "--quiet")
            report = json.loads((self.folder / "report.json").read_text())
            self.assertEqual(report["handlers"]["fit"]["counts"]["vectors_skipped"], 1)
            labels = npy_numbers(self.folder / "labels.npy", "I")
            self.assertEqual([row for row, label in enumerate(labels) if label == 0xffffffff], [17])
        npy(self.folder / "zeros.npy", 2, 2, [1, 1, 0, 0])
        self.refused_fit(["the vector of row 1 is all zeros and has no direction"], "tensor.from_npy path=zeros.npy stacked=false",
                         "m=1 metric=cosine", code=1)

    def test_given_anchors_must_fit(self):
        self.refused_fit(["error MR0402", "init=given needs the first anchors"], "test.vectors", "m=4 init=given")
        npy(self.folder / "given.npy", 4, 5, [0.5] * 20)
        line = "tensor.from_npy name=given path=given.npy stacked=false ; tensor.from_npy name=own path=own.npy stacked=false ! " \
               "codebook.fit name=fit m=4 {}  given. ! fit.anchors  fit.labels ! null.sink"
        self.refused(["error MR0402", "the first anchors are [4, 5], and m=4 anchors of these vectors are [4, 6]"], "run",
                     line.format("init=given"))
        self.refused(["error MR0402", "the input anchors is for init=given"], "run", line.format("init=random"))
        npy(self.folder / "given.npy", 4, 6, self.numbers[:24])
        self.done("run", line.format("init=given"))

    def test_what_a_published_index_cannot_say_is_refused(self):
        numbers = list(self.numbers)
        numbers[0] = math.nan
        npy(self.folder / "bad.npy", 300, 6, numbers)
        self.refused(["vector 0 has no anchor, because it was left out of the fit"], "codebook", "index", "--emb", "bad.npy", "--m", 7,
                     "--out", "bad.idx", "--set", "bad=skip", code=1)
        self.assertEqual([path.name for path in self.folder.glob("bad.*")], ["bad.npy"])
        self.refused(["error MR0402", "layout=published has no deviations"], "run",
                     "test.vectors ! codebook.fit name=fit m=8  fit.codebook ! codebook.write name=out layout=published path=a.idx  "
                     "fit.labels ! out.labels  fit.deviations ! out.deviations")

    def test_outputs_that_the_writer_needs_are_named(self):
        fit = "test.vectors ! codebook.fit name=fit m=8  fit.codebook ! codebook.write "
        self.refused(["error MR0402", "layout=published has labels"], "run", fit + "path=a.idx layout=published")
        self.refused(["error MR0402", "ends with .idx", "try: path=a.idx"], "run",
                     fit + "name=out path=a layout=published  fit.labels ! out.labels")

    def test_numbers_of_other_types_are_refused(self):
        npy(self.folder / "double.npy", 300, 6, self.numbers, "f8")
        self.refused_fit(["error MR0402", "gives float64", "takes float16, float32, bfloat16"],
                         "tensor.from_npy path=double.npy stacked=false", "m=7")


if __name__ == "__main__":
    MILLRACE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
