"""Paints marks slowly, in double precision and pixel by pixel: the reference of draw.marks.

It is written from the rule of docs/reference/marks.md alone and shares nothing with the handler. A mark is a dictionary as
record.to_json writes it.
"""
import itertools
import math

SEGMENT, BOX = 0, 1
PLACE_MAX = 1e6
CHANNELS = {"gray8": "l", "rgb8": "rgb", "bgr8": "bgr", "rgba8": "rgba", "bgra8": "bgra"}


def is_sound(mark):
    """False for a mark that is skipped and counted."""
    used = mark["at"][:4] if mark["kind"] == SEGMENT else mark["at"][:5]
    numbers = [*used, mark["width"], mark["roundness"], *mark["color"], *mark["fill"]]
    if mark["kind"] not in (SEGMENT, BOX) or not all(abs(number) <= PLACE_MAX for number in numbers):
        return False
    return mark["kind"] == SEGMENT or (mark["at"][2] >= 0 and mark["at"][3] >= 0)


def place_on_segment(mark, x, y):
    """How far from the first end to the second the nearest place is, 0 to 1, and the distance to it."""
    ax, ay, bx, by = mark["at"][:4]
    dx, dy = bx - ax, by - ay
    squared = dx * dx + dy * dy
    along = min(max(((x - ax) * dx + (y - ay) * dy) / squared, 0), 1) if squared > 0 else 0
    return along, math.hypot(x - ax - along * dx, y - ay - along * dy)


def distance_to_box(mark, x, y):
    """To its outline; negative inside."""
    middle_x, middle_y, width, height, turn = mark["at"][:5]
    corner = min(max(mark["roundness"], 0), 1) * min(width, height) / 2
    dx, dy = x - middle_x, y - middle_y
    across = abs(math.cos(turn) * dx + math.sin(turn) * dy) - width / 2 + corner
    down = abs(math.cos(turn) * dy - math.sin(turn) * dx) - height / 2 + corner
    return math.hypot(max(across, 0), max(down, 0)) + min(max(across, down), 0) - corner


def smooth_step(begin, end, value):
    share = min(max((value - begin) / (end - begin), 0), 1)
    return share * share * (3 - 2 * share)


def line_coverage(width, distance, edge, softness):
    if width <= 0:
        return 0
    if edge == "soft":
        return 1 - smooth_step(-softness, softness, distance - width / 2)
    return min(max(0.5 + max(width, 1) / 2 - distance, 0), 1) * min(width, 1)


def fill_coverage(distance):
    return min(max(0.5 - distance, 0), 1)


def clamped(color):
    return [min(max(part, 0), 1) for part in color]


def layers_of(mark, x, y, edge):
    """[(coverage times alpha, colour)] of the inside and of the line at a place."""
    color, fill = clamped(mark["color"]), clamped(mark["fill"])
    if mark["kind"] == SEGMENT:
        along, distance = place_on_segment(mark, x, y)
        if fill[3] > 0:
            color = [a + (b - a) * along for a, b in zip(color, fill)]
        return [(0, color), (line_coverage(mark["width"], distance, edge, 1.5) * color[3], color)]
    distance = distance_to_box(mark, x, y)
    line = line_coverage(mark["width"], abs(distance), edge, 1)
    return [(fill_coverage(distance) * fill[3], fill), (line * color[3], color)]


def strokes_of(marks):
    """Lists of marks that are one stroke, in order."""
    numbered = itertools.count(-1, -1)  # numbers of their own for those that have none, and for those that are skipped
    keyed = [(mark["stroke"] if mark["stroke"] >= 0 else next(numbered), mark) for mark in marks if is_sound(mark)]
    return [[mark for _, mark in pieces] for _, pieces in itertools.groupby(keyed, key=lambda pair: pair[0])]


def is_far(mark, x, y):
    """True where nothing of a mark can be: it saves time and changes nothing."""
    if mark["kind"] == SEGMENT:
        ax, ay, bx, by = mark["at"][:4]
        middle_x, middle_y, reach = (ax + bx) / 2, (ay + by) / 2, [abs(ax - bx) / 2, abs(ay - by) / 2]
    else:
        middle_x, middle_y, width, height = mark["at"][:4]
        reach = [math.hypot(width, height) / 2] * 2
    beyond = max(mark["width"], 1) + 4
    return abs(x - middle_x) > reach[0] + beyond or abs(y - middle_y) > reach[1] + beyond


def blends_of(stroke, x, y, edge):
    """[(alpha, colour)] that a stroke blends at a place, in order. Of its pieces the one that covers most counts, the
    first of several; inside and line of one colour are blended once."""
    inside, line = [], []
    stroke = [mark for mark in stroke if not is_far(mark, x, y)]
    if not stroke:
        return []
    for mark in stroke:
        for layer, found in zip((inside, line), layers_of(mark, x, y, edge)):
            layer.append(found)
    most = [max(layer, key=lambda found: found[0]) for layer in (inside, line)]
    if most[0][1] == most[1][1]:
        most = [max(most, key=lambda found: found[0])]
    return [(alpha, color) for alpha, color in most if alpha > 0]


def ink(color, channels):
    red, green, blue = color[:3]
    return [255 * {"l": 0.299 * red + 0.587 * green + 0.114 * blue, "r": red, "g": green, "b": blue, "a": 1}[channel]
            for channel in channels]


def paint(canvas, width, height, pixel, marks, edge, blend):
    """`canvas`: the bytes of a picture, row after row. Returns such bytes, and for each pixel if a mark covers it."""
    channels = CHANNELS[pixel]
    strokes = strokes_of(marks)
    made, covered = bytearray(canvas), bytearray(width * height)
    for row in range(height):
        for column in range(width):
            at = (row * width + column) * len(channels)
            values = [float(value) for value in canvas[at:at + len(channels)]]
            for stroke in strokes:
                for alpha, color in blends_of(stroke, column + 0.5, row + 0.5, edge):
                    covered[row * width + column] = 1
                    for c, (channel, to) in enumerate(zip(channels, ink(color, channels))):
                        if blend == "over" or channel == "a":
                            values[c] += (to - values[c]) * alpha
                        else:
                            values[c] += to * alpha
            made[at:at + len(channels)] = bytes(int(min(max(value, 0), 255) + 0.5) for value in values)
    return bytes(made), bytes(covered)
