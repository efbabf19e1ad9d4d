#!/usr/bin/env python3
"""Runs examples/pipelines/objects.yaml with a network that always finds the same thing, as YOLOv8 says it.

usage: objects.py MILLRACE

Without ONNX Runtime (`./dev models`) or the film nothing is tested, and a line says so.
"""
import json
import pathlib
import sys

from place import Place, ROOT, missing_media

sys.path.insert(0, str(ROOT / "tests" / "model"))
from onnx_file import FLOAT, constant, network, node  # noqa: E402: found by the line above

EXAMPLE = ROOT / "examples" / "pipelines" / "objects.yaml"
CLASSES, ROWS, SIDE = 80, 100, 640
PICTURE = 768, 576  # of the film
IN_PATCH = 320, 290, 100, 150  # centre and size of the thing
TICKS = 8


def finds_one_thing():
    """The bytes of a network: [1, 84, rows] as YOLOv8 exports it, with one row of class 2 and the score 0.9."""
    columns = [[0.0] * ROWS for _ in range(4 + CLASSES)]
    for number, value in enumerate(IN_PATCH):
        columns[number][7] = float(value)
    columns[4 + 2][7] = 0.9
    rows = [value for column in columns for value in column]
    return network([node("ReduceMax", ["images"], ["top"], keepdims=0), node("Mul", ["top", "zero"], ["nothing"]),
                    node("Add", ["rows", "nothing"], ["output0"])],
                   [("images", FLOAT, [1, 3, SIDE, SIDE])], [("output0", FLOAT, [1, 4 + CLASSES, ROWS])],
                   [constant("rows", [1, 4 + CLASSES, ROWS], rows), constant("zero", [1], [0.0])])


def in_picture():
    """The thing in pixels of the film: (left, top, width, height)."""
    scale = SIDE / max(PICTURE)
    above = (SIDE - PICTURE[1] * scale) / 2
    x, y, width, height = IN_PATCH
    return (x - width / 2) / scale, (y - height / 2 - above) / scale, width / scale, height / scale


def complaints(place):
    folder = pathlib.Path(place.path)
    file = folder / "yolo.onnx"
    file.write_bytes(finds_one_thing())
    text = EXAMPLE.read_text(encoding="utf-8")
    if "--set net.path=FILE" not in text:
        yield "does not say how a file is given"
    done = place.run("run", "examples/pipelines/objects.yaml", "--set", f"net.path={file}", "--ticks", str(TICKS), "--quiet")
    film = folder / "out" / "objects.mp4"
    if done.returncode or not film.exists():
        yield f"ends with {done.returncode} and leaves {'a' if film.exists() else 'no'} film\n{done.stderr}"
    # The same with the boxes as its result.
    last = text.splitlines()[-1]
    boxes = folder / "examples.yaml"
    boxes.write_text(text.replace(last, "  boxes: { type: record.to_json, input: found, path: boxes.jsonl }")
                     .replace("../../media", "media").replace("../data", "examples/data"))
    done = place.run("run", boxes.name, "--set", f"net.path={file}", "--ticks", str(TICKS), "--quiet")
    if done.returncode:
        yield done.stderr
        return
    lines = (folder / "boxes.jsonl").read_text(encoding="utf-8").splitlines()
    if len(lines) != TICKS:
        yield f"{len(lines)} ticks, not {TICKS}"
    for line in lines:
        found = json.loads(line)["records"]
        if len(found) != 1 or found[0]["label"] != 2:
            yield f"not one thing of class 2: {line}"
        elif any(abs(found[0][key] - value) > 0.1
                 for key, value in zip(("x", "y", "width", "height"), in_picture())):
            yield f"the thing is not at {in_picture()}: {line}"


def main():
    text = EXAMPLE.read_text(encoding="utf-8") + "media/models/"
    missing = missing_media(text)
    if missing:
        print(f"left out: {', '.join(missing)}")
        return 0
    place = Place(sys.argv[1])
    found = list(complaints(place))
    place.close()
    print("\n".join(found) if found else "objects.yaml finds what its network says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
