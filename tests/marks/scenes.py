"""The scenes of draw.marks: thirteen lists of marks on canvases of 256×144, and the pictures that paint.py makes of them.

usage: scenes.py [--write] [SCENE…]   computes the pictures anew and compares them with those of the tree, or writes them
"""
import json
import math
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import paint  # noqa: E402: found by the line above

FOLDER = pathlib.Path(__file__).resolve().parent / "scenes"
WIDTH, HEIGHT = 256, 144
DEFAULTS = {"width": 1, "roundness": 0, "color": [1, 1, 1, 1], "fill": [0, 0, 0, 0], "stroke": -1}
RED, GREEN, BLUE, WHITE, BLACK = [0.9, 0.1, 0.1, 1], [0.1, 0.8, 0.2, 1], [0.1, 0.3, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]


def segment(ax, ay, bx, by, **keys):
    return {"kind": paint.SEGMENT, "at": [ax, ay, bx, by, 0, 0], **DEFAULTS, **keys}


def box(x, y, across, down, turn=0, **keys):
    return {"kind": paint.BOX, "at": [x, y, across, down, turn, 0], **DEFAULTS, **keys}


def half(color):
    return color[:3] + [0.5]


def fan(x, y, radius, **keys):
    """Lines from one point in all directions."""
    return [segment(x, y, x + radius * math.cos(turn), y + radius * math.sin(turn), **keys)
            for turn in (math.tau * part / 11 for part in range(11))]


def frames(**keys):
    return [box(50, 40, 70, 50, **keys), box(140, 45.25, 60.5, 41, roundness=0.5, **keys),
            box(215, 45, 50, 50, roundness=1, **keys), box(60, 108, 80, 30, turn=0.4, roundness=0.3, **keys),
            box(170, 108, 44, 44, turn=math.pi / 4, **keys), box(230.3, 110.7, 20, 40, turn=-1, roundness=1, **keys)]


# name → pixel format, edge, blend, marks
SCENES = {
    "segments_crisp": ("rgb8", "crisp", "over", fan(60, 70, 55, color=GREEN) + fan(185, 72.5, 60, width=5.5, color=RED)),
    "segments_soft": ("bgr8", "soft", "over", fan(60, 70, 55, color=GREEN, width=1.5) + fan(185, 72, 60, width=6, color=RED)),
    "frames_crisp": ("rgba8", "crisp", "over", frames(width=2, color=WHITE)),
    "frames_soft": ("bgra8", "soft", "over", frames(width=3, color=BLUE)),
    # Both sides of these lie within a few columns.
    "narrow": ("rgba8", "crisp", "over", [box(12.25 + 20.3 * i, 12.5 + 16.4 * j, 2 + 0.5 * i, 3 + j, width=1 + j % 4,
                                              roundness=i % 3 / 2, color=half(WHITE)) for i in range(12) for j in range(8)]),
    "insides": ("rgb8", "crisp", "over", frames(width=4, color=BLACK, fill=half(GREEN)) +
                [box(128, 72, 250, 20, roundness=1, width=6, color=half(RED), fill=half(RED))]),
    "dots": ("gray8", "crisp", "over", [segment(20 + 22.3 * i, 30 + i, 20 + 22.3 * i, 30 + i, width=1 + 2 * i, color=WHITE)
                                        for i in range(11)] +
             [box(20 + 22.3 * i, 100 - i, 2 + 3 * i, 2 + 3 * i, roundness=1, width=1.5, color=BLACK) for i in range(11)]),
    "overlaps": ("rgba8", "crisp", "over", [box(40 + 20 * i, 40 + 7 * i, 60, 50, width=8, roundness=0.4, color=half(WHITE),
                                                fill=half((RED, GREEN, BLUE)[i % 3])) for i in range(9)]),
    "strokes": ("bgr8", "soft", "over", [segment(10 + 30 * i, 30 + 90 * (i % 2), 40 + 30 * i, 120 - 90 * (i % 2), width=9,
                                                 color=half(WHITE), stroke=3) for i in range(7)] +
                [segment(110, 72, 150, 72, width=12, color=half(RED), stroke=4),
                 segment(130, 52, 130, 92, width=12, color=half(RED), stroke=4),
                 segment(10, 135, 245, 139, width=6, color=RED, fill=half(BLUE))]),
    "thin": ("rgb8", "crisp", "over", fan(60, 70, 60, width=0.3) + frames(width=0.3, color=GREEN)[2:] +
             [segment(130, 20.5, 250, 20.5, width=0.3), segment(130.5, 4, 130.5, 140, width=0.3)]),
    "no_length": ("rgb8", "soft", "over", [segment(40, 40, 40, 40, width=20, color=RED), box(110, 50, 0, 40, width=5),
                                           box(170, 50, 40, 0, width=5, roundness=1), box(220, 50, 0, 0, width=9, color=GREEN),
                                           segment(40, 110, 40, 110, width=0), box(110, 110, 30, 30, width=0),
                                           segment(170.5, 110.5, 170.5, 110.5, width=1, color=BLUE),
                                           box(220.5, 110.5, 1, 1, width=0, fill=WHITE)]),
    "off_canvas": ("bgra8", "crisp", "over", [box(0, 0, 90, 60, width=7, roundness=0.6, color=RED, fill=half(BLUE)),
                                              box(256, 144, 120, 60, turn=0.5, width=7, color=GREEN),
                                              segment(-4000, 20, 4200, 130, width=3), segment(300, -9, 400, 200, width=9),
                                              segment(-90000, -90000, -80000, -90000, width=50),
                                              box(128, 72, 5000, 140.5, width=2, color=BLUE),
                                              segment(64, 0, 64, 144, width=2, color=half(WHITE)),
                                              segment(0, 128, 256, 128, width=1, color=half(WHITE)),
                                              box(160, 64, 64, 64, width=1, color=WHITE)]),
    "added": ("rgba8", "soft", "add", fan(80, 72, 60, width=10, color=[0.4, 0.2, 0.1, 0.8]) +
              [box(170, 72, 120, 90, width=12, roundness=0.7, color=[0.3, 0.5, 0.9, 0.7], fill=[0.2, 0.3, 0.1, 0.9])]),
}


def canvas(pixel):
    """Colours that run, and an alpha that does."""
    rows = bytearray()
    for y in range(HEIGHT):
        for x in range(WIDTH):
            parts = {"r": 40 + x * 120 // WIDTH, "g": 30 + y, "b": 90 + (x + y) % 64, "l": 50 + (x + 2 * y) % 120, "a": x}
            rows += bytes(parts[channel] for channel in paint.CHANNELS[pixel])
    return bytes(rows)


def record_line(marks):
    return json.dumps({"tick": 0, "schema": "millrace.Mark", "records": marks}, separators=(",", ":")) + "\n"


def made(name):
    pixel, edge, blend, marks = SCENES[name]
    return paint.paint(canvas(pixel), WIDTH, HEIGHT, pixel, marks, edge, blend)


def shown_channels(pixel):
    """The channels of a PNG, which people look at."""
    return {1: "l", 3: "rgb", 4: "rgba"}[len(paint.CHANNELS[pixel])]


def png_of(pixel, data):
    """A PNG whose rows are stored as differences to the ones above (filter "up")."""
    channels, shown = paint.CHANNELS[pixel], shown_channels(pixel)
    place = [channels.index(channel) for channel in shown]
    stride = WIDTH * len(channels)
    rows = [bytes(data[y * stride + x * len(channels) + c] for x in range(WIDTH) for c in place) for y in range(HEIGHT)]
    packed = b"".join(b"\2" + bytes((here - above) % 256 for here, above in zip(row, before))
                      for row, before in zip(rows, [bytes(stride), *rows]))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, {"l": 0, "rgb": 2, "rgba": 6}[shown], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(packed, 9)) + chunk(b"IEND", b"")


def read(name):
    """The bytes of the picture in the tree, in the channels of the scene's canvas."""
    channels, shown = paint.CHANNELS[SCENES[name][0]], shown_channels(SCENES[name][0])
    data, packed, at = (FOLDER / f"{name}.png").read_bytes(), b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    packed, stride = zlib.decompress(packed), WIDTH * len(channels)
    rows = [bytes(stride)]
    for y in range(HEIGHT):
        differences = packed[y * (stride + 1) + 1:(y + 1) * (stride + 1)]
        rows.append(bytes((above + difference) % 256 for above, difference in zip(rows[-1], differences)))
    place = [shown.index(channel) for channel in channels]
    return bytes(row[x * len(channels) + c] for row in rows[1:] for x in range(WIDTH) for c in place)


def main(arguments):
    writes = "--write" in arguments
    wrong = []
    for name in [argument for argument in arguments if argument != "--write"] or SCENES:
        picture, covered = made(name)
        if writes:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{name}.png").write_bytes(png_of(SCENES[name][0], picture))
        elif picture != read(name):
            wrong.append(name)
        print(f"{name}: {sum(covered)} pixels are covered", flush=True)
    if wrong:
        raise SystemExit(f"other pictures than in the tree: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
