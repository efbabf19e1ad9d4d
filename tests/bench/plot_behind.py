"""Draws how many pictures are under way to a browser's screen, by time, with logarithmic axes."""
import plot

SECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 300)
COLOURS = (plot.GREEN, plot.ORANGE)


def points_of(line):
    """The most until each of SECONDS, of [second, pictures]."""
    return [(second, max(most for at, most in line if at <= second)) for second in SECONDS if line[-1][0] + 1 >= second]


def write(lines, path):
    """`lines`: name → [second, pictures under way, the most of it]."""
    drawn = [plot.Line(name, colour, points_of(line)) for colour, (name, line) in zip(COLOURS, lines.items())]
    if all(len(line.points) > 1 for line in drawn):
        path.parent.mkdir(exist_ok=True)
        path.write_text(plot.svg(plot.Plot("Pictures under way to the screen on loaded cores", "seconds",
                                           "pictures under way, the most until then", drawn)), encoding="utf-8")
