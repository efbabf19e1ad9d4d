#!/usr/bin/env python3
"""How long a picture takes to a browser's canvas, and an event to the picture that answers it, beside the least page that
could show them; and how many pictures are under way to the page on a loaded machine, with credits and without. Writes JSON.

usage: view_times.py MILLRACE OUT_JSON [--turns N] [--seconds S] [--minutes M]

The page and the bare page (bare_page.js) show the same run in turns; a ratio is that of their medians. Under load, two
programs that only count keep two cores busy, and pictures are made faster than the page takes them. Without credits the
page acknowledges each picture as soon as it is there, before it is decoded: so the viewer sends all.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import viewer_browser  # noqa: E402: beside this file
import write_performance  # noqa: E402: found by the line above
from viewer_browser import Browser, View, client  # noqa: E402: the same

CASES = [("jpeg", 1920, 1080, 30), ("jpeg", 1280, 720, 60), ("h264", 1920, 1080, 30), ("h264", 1280, 720, 60)]
SETTLE_S, EVENT_EVERY_S, WITHOUT_CREDITS_S = 1.5, 0.137, 30
PAGE, BARE = "page", "bare page"
BARE_PAGE = (pathlib.Path(__file__).resolve().parent / "bare_page.js").read_text()
HEAR_PAGE = """
window.latencies = [];
const figures = millraceView.figures, done = figures.done.bind(figures);
figures.done = (picture) => {
  done(picture);
  if (figures.offset === figures.offset) latencies.push(picture.drawnMs - (picture.seconds - figures.offset) * 1000);
};
"""
POINT = """
const canvas = document.getElementById('screen'), box = canvas.getBoundingClientRect();
canvas.parentElement.dispatchEvent(new PointerEvent('pointermove', {
  bubbles: true, pointerType: 'mouse', clientX: box.left + arguments[0], clientY: box.top + arguments[1]}));
"""
# The pictures that have come and are not drawn, whenever one is: `behind`, each with the seconds since the page began.
COUNT_BEHIND = """
window.behind = [];
const socket = millraceView.socket, send = socket.sendBytes.bind(socket), atOnce = arguments[0];
let got = 0;
socket.addEventListener('picture', ({detail}) => {
  got = new DataView(detail).getUint32(0);
  if (!atOnce) return;
  const ack = new DataView(new ArrayBuffer(13));
  ack.setUint32(0, got);
  ack.setUint8(4, 1);
  send(ack.buffer);
});
socket.sendBytes = (ack) => {
  behind.push([performance.now() / 1000, got - new DataView(ack).getUint32(0)]);
  if (!atOnce) send(ack);
};
socket.socket.close(); // the page comes back, and its pictures count from 1 again
"""


def at(values, part):
    values = sorted(values)
    return values[min(int(len(values) * part), len(values) - 1)]


class Times(Browser):
    """The tools of the browser's tests, outside a test."""

    def runTest(self):
        pass

    def open_page(self, view):
        self.open(view)
        self.await_drawn(1)
        time.sleep(SETTLE_S)
        self.script(HEAR_PAGE)

    def open_bare(self, view, codec):
        place = view.pages["main"]
        self.driver.get("about:blank")
        self.driver.get(f"http://127.0.0.1:{place['port']}/view/main/")  # without a token the real page does nothing
        self.script("document.body.replaceChildren()")
        self.script(BARE_PAGE, place["token"], codec)
        self.await_(lambda: self.script("return bare.latencies.length > 0"))
        time.sleep(SETTLE_S)
        self.script("bare.latencies.length = 0")

    def latencies(self, codec, width, height, rate, turns, turn_s):
        """Milliseconds from a picture's coming to the viewer until it is drawn, by page; and the page's stages."""
        view = View(self, f"test.pattern width={width} height={height} ! view.remote still=0 codec={codec}", "--clock", "realtime",
                    "--rate", rate)
        taken, stages = {PAGE: [], BARE: []}, []
        for turn in range(turns):
            for which in (PAGE, BARE) if turn % 2 == 0 else (BARE, PAGE):
                if which == PAGE:
                    self.open_page(view)
                    time.sleep(turn_s)
                    taken[PAGE] += self.script("return latencies")
                    stages.append(self.script(viewer_browser.FIGURES))
                else:
                    self.open_bare(view, codec)
                    time.sleep(turn_s)
                    taken[BARE] += self.script("return bare.latencies")
        view.end()
        return taken, {name: at([one[name] for one in stages], 0.5) for name in ("encode", "wire", "decode", "wait")}

    def answers(self, turns, turn_s):
        """Milliseconds from an event to the picture that answers it, by page."""
        view = View(self, viewer_browser.EXAMPLES / "remote_draw.yaml")
        taken = {PAGE: [], BARE: []}
        for turn in range(turns):
            for which in (PAGE, BARE) if turn % 2 == 0 else (BARE, PAGE):
                self.open_page(view) if which == PAGE else self.open_bare(view, "h264")
                if which == PAGE:
                    self.script("const f = millraceView.figures; f.all = []; f.answered = {push: (ms) => f.all.push(ms)};")
                end = time.monotonic() + turn_s
                while time.monotonic() < end:
                    x, y = 100 + int(time.monotonic() * 997) % 200, 100 + int(time.monotonic() * 991) % 150
                    self.script(POINT if which == PAGE else "bare.point(arguments[0], arguments[1])", x, y)
                    time.sleep(EVENT_EVERY_S)
                taken[which] += self.script("return millraceView.figures.all" if which == PAGE else "return bare.answers")
                if which == PAGE:
                    self.driver.get("about:blank")
                    time.sleep(1)
        view.end()
        return taken

    def behind(self, credits_, seconds):
        """[seconds, pictures that have come and are not drawn] on loaded cores, and the viewer's counts."""
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
        try:
            view = View(self, "test.pattern width=1920 height=1080 ! view.remote name=view still=0 codec=jpeg", "--clock", "realtime",
                        "--rate", 60)
            self.open(view)
            self.await_drawn(1)
            self.script(COUNT_BEHIND, not credits_)
            self.await_(lambda: self.script("return behind.length > 0"), "a picture is drawn")
            seen, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(1)
                seen += self.script("return behind.splice(0)")
            return seen, view.end()["handlers"]["view"]["counts"]
        finally:
            for one in load:
                one.kill()
                one.wait()


def row(case, program, metric, values, unit="ms"):
    return {"bench": "viewer", "case": case, "program": program, "metric": metric, "p50": at(values, 0.5), "p99": at(values, 0.99),
            "unit": unit}


def ratio(case, taken):
    return row(case, PAGE, "of_bare", [at(taken[PAGE], 0.5) / at(taken[BARE], 0.5)], "")


def by_second(seen):
    """[second, pictures under way, the most of it]: those that have come and are not drawn, and the one that is drawn then."""
    begin, most = seen[0][0], {}
    for seconds, behind in seen:
        second = int(seconds - begin)
        most[second] = max(most.get(second, 0), behind + 1)
    return sorted(most.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8, help="of a turn")
    parser.add_argument("--minutes", type=float, default=5, help="on loaded cores")
    asked = parser.parse_args()
    if reason := viewer_browser.missing():
        sys.exit(f"not measured: {reason} (./dev setup)")
    client.MILLRACE = str(asked.millrace.resolve())
    viewer_browser.EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "pipelines"
    times, rows, lines = Times(), [], {}
    Times.setUpClass()
    try:
        for codec, width, height, rate in CASES:
            taken, stages = times.latencies(codec, width, height, rate, asked.turns, asked.seconds)
            case = f"{width}×{height}, {rate}/s, {codec}"
            rows += [row(case, which, "done to drawn", taken[which]) for which in (PAGE, BARE)]
            rows += [row(case, PAGE, f"of it {name}", [value]) for name, value in stages.items()]
            rows.append(ratio(case, taken))
            print(rows[-1], flush=True)
        taken = times.answers(asked.turns, asked.seconds)
        case = "1280×720, 30/s, h264, pointer"
        rows += [row(case, which, "event to picture", taken[which]) for which in (PAGE, BARE)]
        rows.append(ratio(case, taken))
        Times.tearDownClass()  # a browser that has shown much is not the one to be loaded
        Times.setUpClass()
        for name, credits_, seconds in (("two credits", True, 60 * asked.minutes),
                                         ("without credits", False, min(WITHOUT_CREDITS_S, 60 * asked.minutes))):
            seen, counts = times.behind(credits_, seconds)
            lines[name] = by_second(seen)
            rows.append(row("1920×1080, 60/s, both cores loaded", name, "under way", [most for _, most in lines[name]], ""))
            rows.append(row("1920×1080, 60/s, both cores loaded", name, "most under way", [max(most for _, most in lines[name])], ""))
            rows.append(row("1920×1080, 60/s, both cores loaded", name, "left out before encoding", [counts.get("no_credit", 0)], ""))
            print(rows[-3:], flush=True)
    finally:
        times.doCleanups()
        Times.tearDownClass()
    asked.out.write_text(json.dumps({"rows": rows, "lines": lines, "machine": write_performance.machine(), "turns": asked.turns, "seconds": asked.seconds,
                                     "date": datetime.date.today().isoformat(), "load": os.getloadavg()[0]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
