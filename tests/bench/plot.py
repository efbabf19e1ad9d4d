"""Draws lines over sizes, with logarithmic axes, as SVG."""
import dataclasses
import math

WIDTH, HEIGHT = 800, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 30, 60
STYLE = """<style>
  text { font: 13px sans-serif; fill: #7d8590 }
  .axis { stroke: #8a8f98; stroke-width: 1 }
  .grid { stroke: #8a8f98; stroke-width: 1; opacity: 0.25 }
  .line { fill: none; stroke-width: 2.5 }
  @media (prefers-color-scheme: dark) { text { fill: #adb5bd } }
</style>"""
# All stand out on white and on black.
BLUE, ORANGE, GREY, GREEN = "#2f81d6", "#d9730d", "#8a8f98", "#23a055"


@dataclasses.dataclass
class Line:
    name: str  # in the legend
    colour: str
    points: list  # of (size, value), by size
    dashes: str = ""
    wide: bool = False


@dataclasses.dataclass
class Plot:
    title: str
    across: str  # what the axes are
    up: str
    lines: list
    words: dict = dataclasses.field(default_factory=dict)  # size → how it is written
    every: int = 1  # that many-th size is written


class Axes:
    def __init__(self, plot):
        self.plot = plot
        points = [point for line in plot.lines for point in line.points]
        self.sizes = sorted({size for size, _ in points})
        self.low = math.floor(math.log10(min(value for _, value in points)))
        self.high = math.ceil(math.log10(max(value for _, value in points)))

    def x(self, size):
        low, high = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return LEFT + (math.log2(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - (math.log10(value) - self.low) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def drawn(self):
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        for power in range(self.low, self.high + 1):
            for times in range(1, 10) if power < self.high else (1,):
                y = self.y(times * 10.0 ** power)
                if times in (1, 2, 5):
                    yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
                    yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{times * 10.0 ** power:g}</text>'
        for size in self.sizes[::self.plot.every]:
            x = self.x(size)
            yield f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{self.plot.words.get(size, size)}</text>'
        yield f'<path class="axis" fill="none" d="M{LEFT} {TOP} V{bottom} H{right}"/>'
        yield f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{self.plot.across}</text>'
        middle = (TOP + bottom) / 2
        yield f'<text transform="translate(18 {middle:.0f}) rotate(-90)" text-anchor="middle">{self.plot.up}</text>'


def svg(plot):
    axes = Axes(plot)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             f"<title>{plot.title}</title>", STYLE, *axes.drawn()]
    for place, line in enumerate(plot.lines):
        points = " ".join(f"{axes.x(size):.1f},{axes.y(value):.1f}" for size, value in line.points)
        dashed = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
        width = ' style="stroke-width: 6"' if line.wide else ""
        parts.append(f'<polyline class="line" stroke="{line.colour}"{dashed}{width} points="{points}"/>')
        y = TOP + 20 + 24 * place
        x = WIDTH - RIGHT + 14
        parts.append(f'<line class="line" stroke="{line.colour}"{dashed}{width} x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}"/>')
        parts.append(f'<text x="{x + 32}" y="{y + 4}">{line.name}</text>')
    return "\n".join(parts + ["</svg>", ""])
