#!/usr/bin/env python3
"""A volume that is turned on a GPU and shown to four pages: whether it keeps its beat, and what it takes. A table of markdown.

usage: gpu_view.py MILLRACE [SECONDS]

The pages are programs on the same machine that acknowledge each picture as it comes. One of them turns the volume without
a pause, so that each picture is another one. Needs a GPU; without JPEG's encoder there is no table.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import client  # noqa: E402: found by the line above
from client import Closed, View  # noqa: E402

SIDE, WIDTH, HEIGHT, RATE, PAGES, SECONDS = 512, 1920, 1080, 60, 4, 180
WARM_UP_S = 5  # the first launches, and the pages' way to the beat
PIPELINE = f"""\
version: 1
clocks:
  data: {{ mode: free }}
  hand: {{ mode: realtime, rate: {RATE} }}
handlers:
  data: {{ type: volume.test, width: {SIDE}, height: {SIDE}, depth: {SIDE}, clock: data, device: cpu }}
  hand: {{ type: view.events, clock: hand, fps: {RATE} }}
  turned:
    type: volume.render
    clock: hand
    width: {WIDTH}
    height: {HEIGHT}
    device: cuda:0
    inputs:
      volume: {{ from: data, policy: latest }}
      camera: {{ from: hand.camera, policy: latest }}
      look: {{ from: hand.look, policy: latest }}
  show: {{ type: view.remote, codec: jpeg, input: turned.video }}
"""


class Listener(threading.Thread):
    """A page that draws what comes at once. The first one has the hand."""

    def __init__(self, view, turns):
        super().__init__(daemon=True)
        self.page = view.page()
        self.turns = turns
        self.pictures, self.bytes, self.waits = 0, 0, []
        self.sent = {}
        self.measures = self.ends = False

    def run(self):
        if self.turns:
            threading.Thread(target=self.turn, daemon=True).start()
        while not self.ends:
            try:
                picture = self.page.picture()
            except Closed:
                return  # the run is over
            sent = self.sent.get(picture.answers)
            for seq in [seq for seq in list(self.sent) if seq <= picture.answers]:
                del self.sent[seq]
            if not self.measures:
                continue
            self.pictures += 1
            self.bytes += len(picture.bytes)
            if sent:
                self.waits.append(1000 * (time.monotonic() - sent))

    def turn(self):
        while not self.ends:
            self.page.tell(type="camera", op="orbit", dx=0.7, dy=0)
            seq = next(self.page.seqs)
            self.sent[seq] = time.monotonic()
            self.page.tell(type="event", kind="move", seq=seq, x=1, y=1)
            time.sleep(1 / RATE)


def memory_used():
    """MiB of the first GPU that are taken, by all programs."""
    asked = subprocess.run(["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                           capture_output=True, text=True, check=True)
    return int(asked.stdout)


def measure(test, seconds):
    """The report, the pages, MiB of the GPU that were taken from second to second, and the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        pipeline = pathlib.Path(folder) / "p.yaml"
        pipeline.write_text(PIPELINE)
        view = View(test, pipeline, "--devices", "cuda:0,cpu")
    listeners = [Listener(view, n == 0) for n in range(PAGES)]
    for listener in listeners:
        listener.start()
    time.sleep(WARM_UP_S)
    for listener in listeners:
        listener.measures = True
    begun, memory = time.monotonic(), []
    while time.monotonic() - begun < seconds:
        memory.append(memory_used())
        time.sleep(1)
    took = time.monotonic() - begun
    for listener in listeners:
        listener.ends = True
    return view.end(), listeners, memory, took


def quantiles(values):
    cuts = statistics.quantiles(values, n=100)
    return f"{cuts[49]:.1f} / {cuts[98]:.1f}"


def table(report, listeners, memory, took):
    ticks, turned = report["ticks"], report["handlers"]["turned"]
    rates = [listener.pictures / took for listener in listeners]
    copies = {one["edge"]: one for one in report["transfers"]}
    up, down = copies["data.volume → turned.volume"], copies["turned.video → show.picture"]
    rows = [
        ("ticks, late, skipped", f"{ticks['run']}, {ticks['late']}, {ticks['skipped']}", "none late"),
        ("pictures made; one on the GPU, µs, p50 / p99", f"{turned['calls']}; {turned['p50_us']:.0f} / {turned['p99_us']:.0f}", ""),
        ("pictures a second of each page", ", ".join(f"{rate:.1f}" for rate in rates), ""),
        ("MB a second of each page", f"{listeners[0].bytes / took / 1e6:.1f}", ""),
        ("from the hand to the picture that answers, ms, p50 / p99", quantiles(listeners[0].waits), ""),
        ("memory of the GPU, MiB, least and most", f"{min(memory)}, {max(memory)}", "flat"),
        ("copies of the volume to the GPU", f"{up['count']}", "1"),
        ("copies of pictures to the host", f"{down['count']}", "one a tick"),
    ]
    print(f"### viewer: a volume of {SIDE}³ bytes, turned at {WIDTH} × {HEIGHT} and {RATE}/s, shown to {PAGES} pages for {took:.0f} s\n")
    print("| what | measured | goal |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def main():
    client.MILLRACE = str(pathlib.Path(sys.argv[1]).resolve())
    if not client.has_viewer():
        return print("viewer: left out: view.remote is not there: libturbojpeg is missing", file=sys.stderr)
    test = unittest.TestCase()
    try:
        table(*measure(test, float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS))
    finally:
        test.doCleanups()
    return 0


if __name__ == "__main__":
    sys.exit(main())
