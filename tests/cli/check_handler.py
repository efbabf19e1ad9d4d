#!/usr/bin/env python3
"""Runs `millrace check-handler` for every handler that there is, and for handlers that lie about themselves.

usage: check_handler.py MILLRACE [unittest arguments]
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
from onnx_file import DOUBLE, network, node  # noqa: E402: found by the line above

ROOT = pathlib.Path(__file__).resolve().parents[2]
MILLRACE = pathlib.Path()
SECONDS_MAX = 600  # of one handler, several at a time, under a sanitizer

# What a handler reads has to be written first, by its counterpart. Types that are not listed need nothing.
SOURCES = {
    "codebook.read": ("test.vectors n=20 d=4 ! codebook.fit name=fit m=3  fit.codebook ! codebook.write path={folder}/codebook",
                      ["path={folder}/codebook"]),
    "file.raw_reader": ("test.pattern width=64 height=48 count=9 ! file.raw_writer path={folder}/raw",
                        ["path={folder}/raw", "width=64", "height=48", "format=rgb8"]),
    "image.file": ("test.pattern width=64 height=48 count=9 ! image.writer path={folder}/p_{{index}}.png",
                   ["path={folder}/p_*.png"]),
    "tensor.from_npy": ("test.number count=9 ! tensor.to_npy path={folder}/numbers.npy",
                        ["path={folder}/numbers.npy"]),
    "volume.file": ("volume.test width=9 height=8 depth=7 ! tensor.to_npy path={folder}/volume.npy", ["path={folder}/volume.npy"]),
    "video.file": ("test.pattern width=64 height=48 count=9 fps=25 ! video.writer path={folder}/video.avi",
                   ["path={folder}/video.avi"]),
}
# Settings that leave slow handlers less to do, or without which the inputs of the checks are refused: of their tensors
# of 2 x 64 numbers detect.decode makes two boxes. The checks set every parameter to its limits all the same.
QUICKER = {"codebook.fit": ["m=2", "init=given"], "detect.decode": ["rows=last"], "detect.faces": ["size_min=100"], "detect.people": ["width=64"],
           "image.letterbox": ["width=24", "height=20"], "image.patches": ["width=24", "height=20", "count_max=8"]}
# What this machine may not have: a camera, a screen, sample files.
NEEDS_HARDWARE = {"video.camera", "view.window"}
# The checks make packets of random bytes, which these refuse; tests/codec/handlers.cpp has packets of their codecs.
NEEDS_A_CODEC = {"decode.h264", "decode.jpeg"}


def run(*arguments):
    return subprocess.run([MILLRACE, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
                          timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)


def verdicts(result):
    return {check["name"]: check["verdict"] for check in json.loads(result.stdout)["checks"]}


class EveryHandler(unittest.TestCase):
    def options_of(self, kind, folder):
        sets = QUICKER.get(kind, [])
        if kind == "model.run":  # as many inputs and outputs as it can have
            ports = [(name, DOUBLE, ["rows"]) for name in ("a", "b", "c", "sum", "minus", "size", "same")]
            nodes = [node("Sum", ["a", "b", "c"], ["sum"]), node("Neg", ["a"], ["minus"]), node("Abs", ["a"], ["size"]),
                     node("Identity", ["a"], ["same"])]
            (pathlib.Path(folder) / "net.onnx").write_bytes(network(nodes, ports[:3], ports[3:]))
            sets = ["path={folder}/net.onnx"]
        if kind in SOURCES:
            pipeline, sets = SOURCES[kind]
            written = run("run", pipeline.format(folder=folder), "--quiet")
            self.assertEqual(written.returncode, 0, written.stderr)
        return [word for text in sets for word in ("--set", text.format(folder=folder))]

    def test_every_handler_that_is_there_passes(self):
        kinds = [handler["type"] for handler in json.loads(run("handlers", "--json").stdout)["handlers"]]
        kinds = [kind for kind in kinds if kind not in NEEDS_HARDWARE | NEEDS_A_CODEC]

        def check(kind):
            with tempfile.TemporaryDirectory() as folder:
                return run("check-handler", kind, *self.options_of(kind, folder))

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(check, kinds))
        checked = 0
        for kind, result in zip(kinds, results):
            with self.subTest(kind=kind):
                if "MR0112" in result.stderr or "no such file" in result.stdout or "./dev models" in result.stdout:
                    continue  # sample files that are not here
                failed = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("FAIL ")]
                self.assertEqual(failed, [], "\n" + result.stdout + result.stderr)
                self.assertIn("pass     works", result.stdout)
                checked += 1
        self.assertGreater(checked, 20)


class Liars(unittest.TestCase):
    def check(self, kind):
        return run("check-handler", f"liar.{kind}", "--json", "--plugin-path", MILLRACE.parent / "test_liars")

    def test_who_does_what_it_declares_passes(self):
        result = self.check("none")
        self.assertEqual(result.returncode, 0, result.stdout)
        for name in ("stateless", "no_allocation", "keeps", "sizes"):
            self.assertEqual(verdicts(result)[name], "pass", name)

    def test_a_handler_whose_state_the_runtime_clears_forgets_the_past(self):
        result = self.check("forgets_not")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(verdicts(result)["forgets"], "pass")

    def test_each_lie_is_found_by_the_check_that_is_made_for_it(self):
        for kind in ("described", "works", "lives_twice", "interrupt", "sizes", "optional", "parameters", "end",
                     "max_pending", "keeps", "stateless", "forgets", "items", "in_place", "no_allocation"):
            with self.subTest(kind=kind):
                result = self.check(kind)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                name = kind if kind in verdicts(result) else kind.replace("_", "-")
                self.assertEqual(verdicts(result)[name], "FAIL", result.stdout)

    def test_a_crash_is_a_finding_and_the_other_checks_go_on(self):
        result = self.check("crash")
        self.assertEqual(result.returncode, 1, result.stderr)
        sizes = next(check for check in json.loads(result.stdout)["checks"] if check["name"] == "sizes")
        self.assertEqual((sizes["verdict"], sizes["reason"]), ("FAIL", "it died: Aborted"))
        self.assertEqual(verdicts(result)["parameters"], "skipped")
        self.assertEqual(verdicts(result)["works"], "pass")


class Usage(unittest.TestCase):
    def refused(self, error, *arguments):
        result = run("check-handler", *arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertTrue(result.stderr.startswith(f"error {error}: "), result.stderr)
        return result.stderr

    def test_a_type_that_is_not_known_is_answered_with_the_nearest(self):
        self.assertIn("try: millrace check-handler image.blur", self.refused("MR0106", "image.blurr"))

    def test_a_parameter_is_set_as_a_pipeline_would(self):
        self.assertEqual(run("check-handler", "image.blur", "--set", "sigma=0").returncode, 0)
        self.refused("MR0101", "image.blur", "--set", "sigma")
        result = run("check-handler", "image.blur", "--set", "sigm=2")
        self.assertIn("did you mean 'sigma'?", result.stderr)


if __name__ == "__main__":
    MILLRACE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
