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


# Draws what a tracker gives, on DEVICE. POINTS are the handlers that end in `points`.
TRACKED = """
version: 1
handlers:
  video:  { type: test.pattern, width: 256, height: 144, format: rgba8, count: 30, pattern: gradient }
POINTS
  frames: { type: marks.boxes, size: age, roundness: 0.5, fill: 0.3, opacity: 0.7, device: "DEVICE", inputs: { points: points } }
  feet:   { type: marks.dots, shape: cross, device: "DEVICE", inputs: { points: points } }
  paint:  { type: draw.marks, device: "DEVICE", inputs: { video: video, marks: [frames, feet] } }
  save:   { type: file.raw_writer, path: out.raw, input: paint }
"""
# A whole frame: points that are joined, by links that remember.
LINKED = """
version: 1
handlers:
  video:  { type: test.pattern, width: 256, height: 144, format: rgba8, count: 60, pattern: gradient }
  points: { type: test.points, points: 60, width: 256, height: 144, count: 60 }
  links:  { type: points.links, k: 2, hysteresis: 0.3, gain: 0.3, fade: 0.7, device: "DEVICE", input: points }
  lines:  { type: marks.lines, shape: curve, width: 2, device: "DEVICE", inputs: { links: links, points: points } }
  frames: { type: marks.boxes, size: radius, roundness: 0.5, device: "DEVICE", inputs: { points: points } }
  dots:   { type: marks.dots, radius: 3, device: "DEVICE", inputs: { points: points } }
  paint:  { type: draw.marks, device: "DEVICE", inputs: { video: video, marks: [lines, frames, dots] } }
  save:   { type: file.raw_writer, path: out.raw, input: paint }
"""
MOVING = "  points: { type: test.points, points: 20, width: 256, height: 144, count: 30 }"
SEEN_EVERY_THIRD_TICK = """\
  boxes:  { type: record.from_json, path: boxes.jsonl }
  points: { type: points.from_boxes, at: foot, every: 3, input: boxes }"""
BOXES = [{"x": 20.5 + 40 * n, "y": 30, "width": 30, "height": 50.25, "id": n} for n in range(5)]


def run(folder, device):
    """(what the pipeline of a folder wrote, its report); its own words say what runs on the device."""
    devices = "cpu" if device == "cpu" else "cpu," + device
    subprocess.run([MILLRACE, "run", "p.yaml", "--devices", devices, "--quiet", "--json", "report.json"], cwd=folder,
                   check=True, timeout=SECONDS_MAX)
    return (folder / "out.raw").read_bytes(), json.loads((folder / "report.json").read_text())


def tracked(device, pipeline):
    """(the pictures, the report) of a run."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "p.yaml").write_text(pipeline.replace("DEVICE", device))
        (folder / "boxes.jsonl").write_text("".join(
            json.dumps({"tick": tick, "schema": "millrace.Box", "records": BOXES}) + "\n" for tick in range(30)))
        return run(folder, device)


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
        return run(folder, DEVICE)


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


class Tracked(unittest.TestCase):
    """The same graph on the CPU and on another device."""
    device = "sim:0"

    def compare(self, pipeline, handlers, ticks):
        here, _ = tracked("cpu", pipeline)
        there, report = tracked(self.device, pipeline)
        self.assertEqual(len(here), ticks * 256 * 144 * 4)
        self.assertEqual(len(there), len(here))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(here, there)), 1)
        if self.device.startswith("cuda"):  # elsewhere the report does not count launches
            self.assertEqual([(sorted(region["handlers"]), region["launches"], region["one_by_one"])
                              for region in report["regions"]], [(sorted(handlers), ticks, 0)])
        return here

    def compare_tracked(self, points):
        return self.compare(TRACKED.replace("POINTS", points), ["frames", "feet", "paint"], 30)

    def test_moving_points(self):
        pictures = self.compare_tracked(MOVING)
        size = len(pictures) // 30
        self.assertEqual(len({pictures[at:at + size] for at in range(0, len(pictures), size)}), 30)

    def test_points_on_every_third_tick_are_one_launch_on_every_tick(self):
        self.compare_tracked(SEEN_EVERY_THIRD_TICK)

    def test_a_whole_frame_of_links_frames_and_dots_is_one_launch(self):
        pictures = self.compare(LINKED, ["links", "lines", "frames", "dots", "paint"], 60)
        size = len(pictures) // 60
        self.assertEqual(len({pictures[at:at + size] for at in range(0, len(pictures), size)}), 60)


def test_of(name):
    return lambda self: self.compare(name)


for scene in scenes.SCENES:
    setattr(Reference, f"test_{scene}", test_of(scene))


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if "--device" in sys.argv:
        at = sys.argv.index("--device")
        DEVICE = Tracked.device = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main()
