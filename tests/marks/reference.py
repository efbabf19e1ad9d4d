#!/usr/bin/env python3
"""draw.marks against the reference pictures of scenes.py, through the command.

usage: reference.py MILLRACE [--device DEVICE] [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import paint  # noqa: E402: found by the line above
import scenes  # noqa: E402: the same

MILLRACE, DEVICE = "", "cpu"
SECONDS_MAX = 120
WRONG_SHARE = 0.001  # of covered pixels; the others are within one step
PIPELINE = """
version: 1
handlers:
  canvas: { type: file.raw_reader, path: canvas.raw, width: WIDTH, height: HEIGHT, format: PIXEL }
  marks:  { type: record.from_json, path: marks.jsonl }
  paint:  { type: draw.marks, edge: EDGE, blend: BLEND, device: "DEVICE", inputs: { video: canvas, marks: marks } }
  save:   { type: file.raw_writer, path: out.raw, input: paint }
"""


def painted(pixel, edge, blend, marks, canvas, width=scenes.WIDTH, height=scenes.HEIGHT):
    """(the picture, the report) of a run."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "canvas.raw").write_bytes(canvas)
        (folder / "marks.jsonl").write_text(scenes.record_line(marks))
        text = PIPELINE
        for word, value in {"WIDTH": width, "HEIGHT": height, "PIXEL": pixel, "EDGE": edge, "BLEND": blend,
                            "DEVICE": DEVICE}.items():
            text = text.replace(word, str(value))
        (folder / "p.yaml").write_text(text)
        subprocess.run([MILLRACE, "run", "p.yaml", "--quiet", "--json", "report.json"], cwd=folder, check=True,
                       timeout=SECONDS_MAX)
        return (folder / "out.raw").read_bytes(), json.loads((folder / "report.json").read_text())


class Reference(unittest.TestCase):
    def compare(self, name):
        pixel, edge, blend, marks = scenes.SCENES[name]
        canvas, wanted = scenes.canvas(pixel), scenes.read(name)
        got, report = painted(pixel, edge, blend, marks, canvas)
        size = len(paint.CHANNELS[pixel])
        self.assertEqual(len(got), len(wanted))
        covered = wrong = 0
        for at in range(0, len(wanted), size):
            here, there, before = got[at:at + size], wanted[at:at + size], canvas[at:at + size]
            covered += there != before
            wrong += any(abs(a - b) > 1 for a, b in zip(here, there))
        self.assertGreater(covered, 500)
        self.assertLessEqual(wrong, covered * WRONG_SHARE)
        self.assertNotIn("marks_skipped", report["handlers"]["paint"].get("counts", {}))

    def test_the_pictures_are_those_of_the_program(self):
        for name in ("no_length", "dots"):
            self.assertEqual(scenes.made(name)[0], scenes.read(name))

    def test_marks_that_are_not_sound_are_skipped_and_counted(self):
        sound = scenes.segment(10, 10, 60, 30, width=4)
        wrong = [scenes.segment(10, None, 60, 30), scenes.segment(2e6, 1, 5, 5), scenes.box(1, 1, -5, 9), scenes.box(1, 1, 5, 9, -2e6),
                 {**sound, "kind": 7}, {**sound, "width": None}, {**sound, "color": [1, 1, None, 1]},
                 {**sound, "fill": [0, 0, 0, 3e6]}, {**sound, "roundness": -1e7}]
        canvas = scenes.canvas("rgb8")
        alone, report = painted("rgb8", "crisp", "over", [sound], canvas)
        among, with_wrong = painted("rgb8", "crisp", "over", [*wrong[:4], sound, *wrong[4:]], canvas)
        self.assertEqual(alone, among)
        self.assertNotEqual(alone, canvas)
        self.assertNotIn("marks_skipped", report["handlers"]["paint"].get("counts", {}))
        self.assertEqual(with_wrong["handlers"]["paint"]["counts"]["marks_skipped"], len(wrong))
        self.assertEqual(painted("rgb8", "crisp", "over", wrong, canvas)[0], canvas)


def test_of(name):
    return lambda self: self.compare(name)


for scene in scenes.SCENES:
    setattr(Reference, f"test_{scene}", test_of(scene))


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if "--device" in sys.argv:
        at = sys.argv.index("--device")
        DEVICE = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main()
