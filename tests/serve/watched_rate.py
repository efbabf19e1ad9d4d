#!/usr/bin/env python3
"""Measures what a page costs a run: five_handlers.yaml as fast as it goes, alone and watched, in turns.

usage: watched_rate.py MILLRACE [TURNS [TICKS]]

`closed` has --web and nobody looks; `open` is a client that is told of all topics 5 times a second, as the page asks for
them; `preview` also shows the waveform's picture 10 times a second and acknowledges each. The client reads and throws
away, since a browser's own work is on the cores of whoever looks. What is printed is the median of each turn's rate to
that of the turn without --web beside it, and the same of the processor time that the run's process took for a tick.
It is no test: it asks a machine for its time.
"""
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from web import Closed, WebSocket  # noqa: E402: found by the line above

MODES = ("alone", "closed", "open", "preview")


def watch(link, mode, samples):
    client = WebSocket(int(re.search(r":(\d+)/", link)[1]))
    hello = {"protocol": 3, "role": "watch", "name": "page", "token": link.split("token=")[1].strip()}
    assert "result" in client.ask("hello", hello)
    client.ask("subscribe", {"topics": ["counters", "state", "params", "log"], "hz": 5})
    if mode == "preview":
        answer = client.ask("tap", {"output": "waveform.video", "width": 480, "hz": 10})
        acknowledgement = json.dumps({"jsonrpc": "2.0", "method": "ack", "params": {"tap": answer["result"]["tap"]}})
    try:
        while True:
            opcode, _ = client.hear()
            if opcode == 2:
                samples.append(1)
                client.say(acknowledgement)
    except (Closed, OSError):
        client.close()


def turn(millrace, mode, ticks):
    """(ticks a second, processor seconds a tick, samples of a tap) of a run in this mode."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen([millrace, "run", ROOT / "examples" / "pipelines" / "five_handlers.yaml", "--set",
                                    f"pattern.count={ticks}", "--json", report, *(["--web"] if mode != "alone" else [])],
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                   env=os.environ | {"XDG_RUNTIME_DIR": folder})
        samples, client = [], None
        if mode in ("open", "preview"):
            client = threading.Thread(target=watch, args=(process.stderr.readline(), mode, samples))
            client.start()
        process.stderr.read()
        assert process.wait() == 0
        if client:
            client.join()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(report.read_text())
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return told["ticks"]["run"] / told["duration_s"], spent / told["ticks"]["run"], len(samples)


def main():
    millrace = str(pathlib.Path(sys.argv[1]).resolve())
    turns, ticks = (int(word) for word in (sys.argv[2:] + ["15", "2000"][len(sys.argv) - 2:]))
    rates, costs, samples = ({mode: [] for mode in MODES} for _ in range(3))
    for _ in range(turns):
        for mode in MODES:
            rate, cost, shown = turn(millrace, mode, ticks)
            rates[mode].append(rate)
            costs[mode].append(cost)
            samples[mode].append(shown)
    print(f"five_handlers.yaml, {ticks} ticks, {turns} turns; alone {statistics.median(rates['alone']):.0f} ticks/s")
    for mode in MODES[1:]:
        of_rate, of_cost = ([one / alone for one, alone in zip(kept[mode], kept["alone"])] for kept in (rates, costs))
        print(f"{mode:8} rate {statistics.median(of_rate):.3f} ({min(of_rate):.2f} to {max(of_rate):.2f}), processor time "
              f"{statistics.median(of_cost):.3f} ({min(of_cost):.2f} to {max(of_cost):.2f}), samples "
              f"{statistics.median(samples[mode]):.0f}")


if __name__ == "__main__":
    main()
