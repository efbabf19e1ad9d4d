#!/usr/bin/env python3
"""Faults of processes and of a link, crossed with the ways that ticks may travel: what is lost, and who ends.

usage: faults.py MILLRACE CHAOS [--all | --turns N] [--only WORDS] [--at-once N]

Without an option it runs cells of each class, as the tests do. --all runs every cell (`./dev faults`). --only runs
those of all cells whose names have these words. --turns runs a camera with a recorder, and a detector on another node,
N times with and N times without a kill of that node, in turns, and prints the medians. CHAOS is the proxy
tests/net/chaos.

A cell is a fleet of three processes. Its link between edge and gpu goes through the proxy:

    edge (coordinator, home of the clock): camera, record, overlay, screen  <-proxy->  gpu: detect  ->  wall: panel

What each cell has to show follows from the fault, the delivery and the clock by the rules 7.5 to 7.11, in expect_*().
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fleet  # noqa: E402: found by the line above

CHAOS = ""

PIPELINE = """
version: 1
nodes: { edge: {}, gpu: {}, wall: {} }
handlers:
  camera:  { type: test.pattern, width: 64, height: 48, node: edge }
  record:  { type: file.raw_writer, path: record.raw, index: true, node: edge, input: camera }
  detect:  { type: image.blur, node: gpu, input: { from: camera, delivery: DELIVERY } }
  overlay: { type: image.composite, node: edge, input: [camera, { from: detect, delivery: DELIVERY }] }
  show:    { type: null.sink, node: edge, input: overlay }
  screen:
    { type: file.raw_writer, path: screen.raw, index: true, node: edge, input: { from: detect, delivery: DELIVERY } }
  panel:
    { type: file.raw_writer, path: panel.raw, index: true, node: wall, input: { from: detect, delivery: DELIVERY } }
"""
CROSSED = {"main/0>1": "detect.video", "main/1>2": "screen.in", "main/1>3": "panel.in"}  # crossing: an edge over it
PICTURE_BYTES = 64 * 48 * 3
RATE = 20  # ticks a second, of realtime; without a rate the proxy lets about as many pass
FREE_TICKS = 10 * RATE
REFERENCE_TICKS = 70 * RATE

BEGIN_S = 2  # from the start of the run to the fault
SCRIPT_AT_S = 6  # from the start of the proxy to a fault of its script
TAIL_S = 5  # from the last time at which all have to be back to the end
AWAY_S, UNHEARD_S = 3.0, 0.6  # rule 7.9; the last sign of life was at most so long before the fault
RESUME_S = 30  # rule 7.9: so long a reliable edge waits
BUSY_S = 1.0  # a busy machine stands still for so long
# Places of a crossing at these rates, more where a busy machine was slow to answer when the plan was made; of a pace.
DEPTH_LEAST, DEPTH_MOST, WINDOW_MOST = 2, 6, 3
PART_S = 4  # from the end of the clock to the end of the run


# Faults that the proxy makes by itself, at a time after its start. Deaf: gpu hears nothing, but edge hears gpu. Slow: a
# hundredth of what the ticks need.
SCRIPTS = {"half-open": "half-open for {0}s", "deaf": "half-open down for {0}s",
           "slow": f"bandwidth {PICTURE_BYTES * RATE // 100}B/s for {{0}}s", "reset": "reset"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """`seconds`: how long it lasts. `again`: after that time another process of the node is started."""

    role: str  # edge, gpu, wall: a node's process; link: between edge and gpu
    kind: str  # kill, stop, cut, or one of SCRIPTS
    seconds: float = 0
    again: bool = False
    patience: int = 30

    def __str__(self):
        words = f"{self.kind} {self.role}" + (", again" if self.again else "")
        lasts = f" {self.seconds:g} s" if self.seconds else "" if self.kind == "reset" else " for good"
        words += " at once" if self.again and not self.seconds else lasts
        return words + (f", patience {self.patience} s" if self.patience != 30 else "")

    @property
    def is_scripted(self):
        return self.kind in SCRIPTS

    @property
    def mend_s(self):
        """From the end of the fault to the first tick that passes, at most. The redialling side waits for up to 5 s,
        with jitter. A dial into a half-open line is given up after 5 s. A process that died closes its connections, so
        another one may take its place at once; it may also count as there for 3 s."""
        if self.kind == "cut":
            return 0.8 if self.seconds <= 1 else 6
        return {"half-open": 11, "deaf": 11, "kill": AWAY_S + 6 if self.again else 0}.get(self.kind, 0.8)

    @property
    def is_back(self):
        """Every process that is to take part at the end can."""
        return self.again or (self.kind != "kill" and self.seconds < self.patience)


FAULTS = [
    Fault("gpu", "kill", again=True), Fault("gpu", "kill", 5, again=True), Fault("gpu", "kill", patience=5),
    Fault("gpu", "stop", 1), Fault("gpu", "stop", 5), Fault("gpu", "stop", 20),
    Fault("link", "cut", 1), Fault("link", "cut", 5), Fault("link", "cut", 40), Fault("link", "cut", 40, patience=60),
    Fault("link", "half-open", 5), Fault("link", "deaf", 5), Fault("link", "slow", 5), Fault("link", "reset"),
    Fault("wall", "kill", again=True), Fault("wall", "kill", patience=5), Fault("wall", "stop", 5),
    Fault("edge", "kill", patience=5), Fault("edge", "kill", again=True),
    Fault("edge", "stop", 1), Fault("edge", "stop", 5),
]


def all_cells():
    """(fault, delivery, clock, rate) of each."""
    crossed = [(fault, delivery, clock, RATE) for fault in FAULTS for delivery in ("live", "reliable")
               for clock in ("realtime", "free")]
    # So slow that a crossing has room for all that the fault keeps back.
    slow = [fault for fault in FAULTS if fault.seconds == 1 and fault.role != "edge"]
    return crossed + [(fault, "reliable", "realtime", 1) for fault in slow]


def short_cells():
    """Of each class: kill, stop, cut."""
    return [(Fault("gpu", "kill", 5, again=True), "live", "realtime", RATE),
            (Fault("gpu", "kill", patience=5), "reliable", "realtime", RATE),
            (Fault("gpu", "stop", 5), "reliable", "free", RATE),
            (Fault("link", "cut", 5), "live", "realtime", RATE)]


class Reference:
    """What one machine makes of each tick."""

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "pipeline.yaml").write_text(PIPELINE.replace("DELIVERY", "live"))
            subprocess.run([fleet.MILLRACE, "run", "pipeline.yaml", "--clock", "free", "--ticks", str(REFERENCE_TICKS),
                            "--quiet"], cwd=folder, check=True, timeout=120)
            self.of = {name: [digest for _, digest in read_ticks(pathlib.Path(folder) / f"{name}.raw")]
                       for name in ("record", "screen")}
        self.of["panel"] = self.of["screen"]


REFERENCE = None


def read_ticks(path):
    """(index, digest) of each value that was written; the last one may be a part, where its writer was killed."""
    size = 8 + PICTURE_BYTES
    bytes_ = path.read_bytes() if path.exists() else b""
    whole = len(bytes_) // size * size
    return [(struct.unpack_from("<Q", bytes_, at)[0], hashlib.md5(bytes_[at + 8:at + size]).digest())
            for at in range(0, whole, size)]


class Cell(fleet.Fleet):
    """One fault at one fleet. `expected` and `found` are its line in the table, `wrong` what did not hold."""

    count = 0

    def __init__(self, fault, delivery, clock, rate):
        super().__init__("carry_out")
        self.fault, self.delivery, self.clock, self.rate = fault, delivery, clock, rate
        self.expected, self.found, self.wrong = "", "", []
        Cell.count += 1
        # An address of its own: the ports of cells that run side by side do not meet.
        self.host = f"127.{1 + os.getpid() % 254}.{os.getpid() // 254 % 256}.{Cell.count}"

    def __str__(self):
        return f"{self.fault}; {self.delivery}; {self.clock}" + (f"; {self.rate}/s" if self.rate != RATE else "")

    @property
    def is_realtime(self):
        return self.clock == "realtime"

    @property
    def seconds(self):
        """Of a run under realtime."""
        begin = SCRIPT_AT_S if self.fault.is_scripted else BEGIN_S
        waits = self.fault.patience + AWAY_S + 1 if not self.fault.is_back else 0
        return math.ceil(begin + max(self.fault.seconds + self.fault.mend_s, waits) + TAIL_S)

    # ---- the fleet

    def start_proxy(self):
        script = []
        if not self.is_realtime:  # it goes at the pace of this line
            script.append(f"bandwidth {PICTURE_BYTES * RATE}B/s down")
        if self.fault.is_scripted:
            script.append(f"at {SCRIPT_AT_S}s " + SCRIPTS[self.fault.kind].format(self.fault.seconds))
        self.proxy = subprocess.Popen([CHAOS, "--listen", f"{self.host}:7500", "--to", f"{self.host}:7433",
                                       "--print-port", "-e", "; ".join(script) or "clear"], stdout=subprocess.PIPE,
                                      text=True)
        self.addCleanup(self.proxy.stdout.close)
        self.addCleanup(self.proxy.wait)
        self.addCleanup(self.proxy.kill)
        self.assertTrue(self.proxy.stdout.readline(), "the proxy does not listen")
        self.proxy_since = time.monotonic()

    def start(self, node, *arguments):
        where = {"edge": ["--listen", f"{self.host}:7433"],
                 "gpu": ["--listen", f"{self.host}:7434", "--coordinator", f"{self.host}:7500"],
                 "wall": ["--coordinator", f"{self.host}:7433"]}[node]
        if node == "edge":
            where += ["--clock", self.clock]
            where += ["--rate", self.rate, "--duration", self.seconds] if self.is_realtime else ["--ticks", FREE_TICKS]
        return fleet.Process(self, node, node, *where, "--patience", self.fault.patience, *arguments)

    def start_all(self):
        self.write(PIPELINE.replace("DELIVERY", self.delivery), "edge", "gpu", "wall")
        gpu = json.loads(self.call("gpu", "identity", "--json"))["id"]
        self.call("wall", "nodes", "add", "gpu", gpu, f"{self.host}:7434")
        self.nodes = {"edge": self.start("edge")}
        self.nodes["edge"].until("listening at")
        self.start_proxy()
        self.nodes.update({node: self.start(node) for node in ("gpu", "wall")})
        self.nodes["edge"].until("all nodes are ready")

    def strike(self):
        if self.fault.is_scripted:
            left = SCRIPT_AT_S - (time.monotonic() - self.proxy_since)
            self.assertGreater(left, 0, "the machine was too busy to start the fleet before the fault")
            return time.sleep(left + self.fault.seconds)
        time.sleep(BEGIN_S)
        if self.fault.kind == "cut":
            self.proxy.kill()
            self.proxy.wait()
            time.sleep(self.fault.seconds)
            return self.start_proxy()
        node = self.nodes[self.fault.role]
        if self.fault.kind == "stop":
            node.process.send_signal(signal.SIGSTOP)
            time.sleep(self.fault.seconds)
            return node.process.send_signal(signal.SIGCONT)
        node.process.kill()
        node.process.wait()
        if self.fault.again:
            time.sleep(self.fault.seconds)
            self.nodes[self.fault.role] = self.start(self.fault.role)
        else:
            del self.nodes[self.fault.role]

    def carry_out(self):
        self.start_all()
        self.strike()
        begins_anew = self.nodes.pop("edge") if self.fault.role == "edge" and self.fault.again else None
        for node in self.nodes.values():
            node.code = node.end(self.seconds + self.fault.patience + fleet.SECONDS_MAX)
        if begins_anew:
            begins_anew.process.send_signal(signal.SIGINT)
            begins_anew.end()
        self.ticks = {name: read_ticks(self.folder / f"{name}.raw") for name in ("record", "screen", "panel")}
        self.expect_true_values()
        if self.ends_by():
            self.expect_an_end_by(*self.ends_by())
        elif self.is_realtime:
            self.expect_realtime()
        else:
            self.expect_nothing_lost()
        self.assertFalse(self.wrong, "\n".join(self.wrong))

    # ---- what has to hold

    def holds(self, is_so, what):
        if not is_so:
            self.wrong.append(what)

    def equal(self, found, wanted, what):
        self.holds(found == wanted, f"{what}: {found}, expected {wanted}")

    def within(self, found, least, most, what):
        self.holds(least <= found <= most, f"{what}: {found}, expected {least} to {most}")

    def ends_by(self):
        """The error by which the run of all ends (7.9 to 7.11), as (code, words); None: it goes on."""
        if self.fault.kind == "kill" and (self.fault.role == "edge" or not self.is_realtime):
            if self.fault.again:
                return "MR0806", f"{self.fault.role} began again"
            return "MR0804", f"{self.fault.role} has been away"
        if not self.is_realtime and not self.fault.is_back:
            return "MR0804", "has been away"
        return None

    def expect_true_values(self):
        """7.1, 7.10: every value that was written is that of its tick, and none is doubled or out of order."""
        for name, ticks in self.ticks.items():
            indices = [index for index, _ in ticks]
            self.holds(all(a < b for a, b in zip(indices, indices[1:])), f"{name}: doubled or out of order: {indices}")
            differ = [index for index, digest in ticks if digest != REFERENCE.of[name][index]]
            self.holds(not differ, f"{name}: ticks {differ} have other bytes than on one machine")

    def expect_an_end_by(self, code, words):
        self.expected = f"all end, {code}"
        said = {}
        for node in self.nodes.values():
            self.equal(node.code, 1, f"exit code of {node.node}: {node.said}")
            self.holds(f"error {code}: " in node.said, f"{node.node} did not say {code}: {node.said}")
            said[node.node] = next((line for line in node.said.splitlines() if line.startswith("error MR")), "nothing")
        self.holds(any(words in line for line in said.values()), f"nobody said '{words}': {said}")
        codes = sorted({line.split(":")[0].removeprefix("error ") for line in said.values()})
        self.found = f"{len(said)} end, {', '.join(codes)}"
        if self.is_realtime:
            return
        written_by = {"record": "edge", "screen": "edge", "panel": "wall"}
        for name, ticks in self.ticks.items():  # until then nothing was left out
            is_anew = self.fault.again and written_by[name] == self.fault.role
            if not is_anew:
                self.equal([index for index, _ in ticks], list(range(len(ticks))), f"ticks of {name}")

    def expect_nothing_lost(self):
        """7.13: under a clock that waits."""
        self.expected = f"{FREE_TICKS} ticks on all, the bytes of one machine"
        self.expect_good_ends()
        for name, ticks in self.ticks.items():
            self.equal([index for index, _ in ticks], list(range(FREE_TICKS)), f"ticks of {name}")
        report = self.nodes["edge"].report()
        for crossing in report["crossings"]:
            self.equal((crossing["parcels"], crossing["left_out"]), (FREE_TICKS, {}),
                       f"{crossing['name']} on {crossing['on']}")
        self.equal(len(report["crossings"]), 6, "crossings in the report")
        for edge in report["edges"]:
            self.equal((edge["delivered"], edge["empty"], edge["dropped"]), (FREE_TICKS, 0, {}),
                       f"edge to {edge['to']}")
        self.found = " / ".join(f"{name} {len(ticks)}" for name, ticks in self.ticks.items())

    def expect_good_ends(self):
        # For a node that hears nothing of the coordinator for the patience, the run is over.
        alone = "gpu" if self.fault.kind == "cut" and not self.fault.is_back else None
        for node in self.nodes.values():
            self.equal(node.code, 1 if node.node == alone else 0, f"exit code of {node.node}: {node.said}")
        if alone:
            self.holds("error MR0804: edge has been away" in self.nodes["gpu"].said, self.nodes["gpu"].said)
        if not self.fault.is_back:
            left = f"{alone or self.fault.role} has been away for {self.fault.patience} s: nobody waits for it"
            self.holds(left in self.nodes["edge"].said, f"edge did not say '{left}': {self.nodes['edge'].said}")

    # Bounds of the ticks that a fault leaves out of a crossing, by the time for which nothing passes.
    def bounds(self):
        fault, rate = self.fault, self.rate
        if (fault.seconds + fault.mend_s) * rate <= DEPTH_LEAST and fault.kind != "kill":
            return 0, 0
        if not fault.is_back:
            return int((self.seconds - BEGIN_S - 1) * rate) - DEPTH_MOST - self.no_ticks, math.inf
        return (max(0, math.floor(fault.seconds * rate) - DEPTH_MOST - 1 - self.no_ticks),
                math.ceil((fault.seconds + fault.mend_s + BUSY_S) * rate))

    def expect_realtime(self):
        self.expect_good_ends()
        report = self.nodes["edge"].report()
        self.ran = report["ticks"]["run"]
        self.no_ticks = report["ticks"]["late"] + report["ticks"]["skipped"]  # beats of a busy machine
        self.edges = {edge["to"]: edge for edge in report["edges"]}
        self.crossings = {(crossing["name"], crossing["on"]): crossing for crossing in report["crossings"]}
        self.within(report["duration_s"], 0, self.seconds + PART_S, "seconds of the run")
        self.expect_the_home_goes_on(report["ticks"])
        struck = {"gpu": "main/0>1", "link": "main/0>1", "wall": "main/1>3", "edge": None}[self.fault.role]
        self.expect_left_out("main/0>1", "edge", self.ran, struck == "main/0>1")
        if "gpu" in self.nodes and ("main/0>1", "gpu") in self.crossings:
            came = self.crossings["main/0>1", "gpu"]["parcels"]
            self.expect_left_out("main/1>2", "gpu", came, False)
            self.expect_left_out("main/1>3", "gpu", came, struck == "main/1>3")
        self.expect_equal_counts("main/0>1", "edge", "gpu")
        self.expect_equal_counts("main/1>2", "gpu", "edge")
        self.expect_equal_counts("main/1>3", "gpu", "wall")
        self.expect_all_counted("screen", "main/1>2", "edge")
        self.expect_all_counted("panel", "main/1>3", "wall")
        least, most = self.bounds() if struck else (0, math.ceil(BUSY_S * self.rate))
        self.expected = f"record all; left out {least} to {most}" if most else "record all; nothing left out"
        left_out = self.left_out(struck, "gpu" if struck == "main/1>3" else "edge") if struck else {}
        causes = ", ".join(f"{cause} {count}" for cause, count in sorted(left_out.items()))
        self.found = f"record {len(self.ticks['record'])} of {self.ran}; {causes or 'nothing left out'}; " \
                     f"screen {len(self.ticks['screen'])}, panel {len(self.ticks['panel'])}"

    def left_out(self, name, node):
        return self.crossings[name, node]["left_out"] if (name, node) in self.crossings else {}

    def expect_the_home_goes_on(self, ticks):
        """An edge that needs no other node has every tick, and the clock has its beats."""
        self.equal([index for index, _ in self.ticks["record"]], list(range(self.ran)), "ticks of record")
        record = self.edges["record.in"]
        self.equal((record["delivered"], record["empty"], record["dropped"]), (self.ran, 0, {}), "edge to record")
        beats = self.seconds * self.rate
        self.within(sum(ticks.values()), beats - 1, beats + 1, f"beats {ticks}")
        stopped = self.fault.seconds if self.fault.role == "edge" else 0
        # The overlay takes what the camera gave it, with a detection or without, or it is counted.
        overlay = self.edges["overlay.layers[0]"]
        self.equal(overlay["delivered"] + sum(overlay["dropped"].values()), self.ran, f"overlay: {overlay}, ticks")
        self.within(self.ran, beats * 0.9 - (stopped + 0.5) * self.rate, beats + 1, f"beats that ran, {ticks}")

    def expect_left_out(self, name, sender, came, is_struck):
        """7.7, 7.9: ticks that came to the crossing are sent or counted by cause, exactly."""
        crossing = self.crossings[name, sender]
        left_out = crossing["left_out"]
        total = sum(left_out.values())
        # What waits at the end for a node that is gone is counted at the edge.
        waited = self.edges[CROSSED[name]]["dropped"].get("end", 0)
        self.within(waited, 0, DEPTH_MOST if is_struck and not self.fault.is_back else 0, f"{name} on {sender}: waited")
        self.equal(crossing["parcels"] + total + waited, came,
                   f"{name} on {sender}: {crossing['parcels']} sent, left out {left_out}, {waited} waited; that came")
        self.holds(set(left_out) <= {"link", "away"}, f"{name}: causes {left_out}")
        if not is_struck:
            # A stop of the home is a cut for all.
            most = BUSY_S + (self.fault.seconds if self.fault.role == "edge" else 0)
            return self.within(total, 0, math.ceil(most * self.rate), f"{name} on {sender}: left out")
        self.within(total, *self.bounds(), f"{name} on {sender}: left out")
        # Until the node is away the cause is `link`. Then it is `away`, of a reliable edge once the time to resume is
        # over.
        away_after = AWAY_S + (min(RESUME_S, self.fault.patience) if self.delivery == "reliable" else 0)
        if self.fault.kind == "slow":  # pings pass
            away_after = math.inf
        lasts = self.fault.seconds if self.fault.is_back else self.seconds - BEGIN_S - 1
        at_most = self.fault.seconds + self.fault.mend_s if self.fault.is_back else math.inf
        if at_most < away_after - UNHEARD_S:
            self.equal(left_out.get("away", 0), 0, f"{name}: left out as away")
        least_away = 0 if lasts < away_after else math.floor((lasts - away_after) * self.rate) - 1 - self.no_ticks
        self.within(left_out.get("away", 0), least_away, math.inf, f"{name}: left out as away")
        least_link = math.floor((min(lasts, away_after) - UNHEARD_S) * self.rate) - DEPTH_MOST - 1 - self.no_ticks
        self.within(left_out.get("link", 0), min(least_link, self.bounds()[1]), math.inf, f"{name}: left out as link")

    def killed_at(self, *nodes):
        return self.fault.kind == "kill" and self.fault.role in nodes

    def is_cut_off(self, node):
        """The node's report is missing at the end, or is not that of the whole run."""
        return not self.fault.is_back and node == ("gpu" if self.fault.role == "link" else self.fault.role)

    def expect_equal_counts(self, name, sender, reader):
        if self.is_cut_off(sender) or self.is_cut_off(reader):
            return
        sent, came = (self.crossings[name, node]["parcels"] for node in (sender, reader))
        if self.killed_at(sender):  # what its first process sent is not in its report
            self.within(came - sent, 0, self.ran, f"{name}: {sent} sent by the second process, {came} came")
        elif self.killed_at(reader):
            self.within(sent - came, 0, self.ran, f"{name}: {sent} sent, {came} came to the second process")
        else:
            self.equal(came, sent, f"{name}: came, of those sent")

    def expect_all_counted(self, name, crossing, reader):
        """Each tick that ran has come, or is counted by its cause; but for what was in a process that died, which is
        at most what it had taken in (design, what is lost)."""
        ticks = [index for index, _ in self.ticks[name]]
        if self.fault.is_back:
            self.holds(ticks and ticks[-1] >= self.ran - 1 - BUSY_S * self.rate,
                       f"{name}: its last tick is {ticks[-1:]} of {self.ran}: it did not get them again")
        if reader not in self.nodes or self.killed_at(reader):
            return
        late = self.left_out(crossing, reader).get("late", 0)
        counted = sum(self.left_out("main/0>1", "edge").values()) + sum(self.left_out(crossing, "gpu").values()) + late
        is_gone = self.is_cut_off("gpu")
        in_process = 0
        if self.killed_at("gpu") or is_gone:
            in_process = 2 * DEPTH_MOST + WINDOW_MOST + (DEPTH_MOST if is_gone else 0)
        self.within(self.ran - len(ticks) - counted, 0, in_process,
                    f"{name}: {len(ticks)} ticks of {self.ran}, {counted} counted as left out; the others")
        if self.delivery == "reliable" and self.fault.seconds < RESUME_S and self.fault.is_back:
            self.equal(late, 0, f"{name}: late")
        if not is_gone:
            path = f"{name}.in"
            self.equal(self.edges[path]["delivered"], len(ticks), f"edge to {path}: delivered")
            if not self.killed_at("gpu"):
                dropped = sum(self.edges[path]["dropped"].values())
                self.equal(dropped, sum(self.left_out(crossing, "gpu").values()) + late, f"edge to {path}: dropped")


# ---- the matrix ------------------------------------------------------------------------------------------------------


def run_cells(wanted, at_once):
    """Prints a line for each as it ends, then what is wrong; true if all hold."""
    lock = threading.Lock()

    def carry_out(cell):
        result = unittest.TestResult()
        begin = time.monotonic()
        cell.run(result)
        cell.ok = result.wasSuccessful()
        said = [text for _, text in result.failures + result.errors]
        cell.wrong = cell.wrong or said
        with lock:
            print(f"{str(cell):<58} {cell.expected:<44} {cell.found:<60} {'ok' if cell.ok else 'WRONG'}"
                  f" {time.monotonic() - begin:4.0f} s", flush=True)

    cells = sorted(wanted, key=lambda cell: -cell.seconds)
    print(f"{'cell':<58} {'expected':<44} {'found':<60}")
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(carry_out, cells))
    for cell in cells:
        if not cell.ok:
            print(f"\n{cell}:\n  " + "\n  ".join(cell.wrong))
    print(f"\n{sum(cell.ok for cell in cells)} of {len(cells)} cells hold")
    return all(cell.ok for cell in cells)


# ---- with and without a kill, in turns ------------------------------------------------------------------------------

LIVE = """
version: 1
nodes: { edge: {}, gpu: {} }
handlers:
  camera:  { type: test.pattern, width: 320, height: 240, fps: 30, live: true, node: edge }
  record:  { type: file.raw_writer, path: /dev/null, node: edge, input: camera }
  detect:  { type: image.blur, node: gpu, input: camera }
  overlay: { type: image.composite, node: edge, missing: skip, layout: inset, input: [camera, detect] }
  small:   { type: image.resize, node: edge, width: 8, height: 8, input: overlay }
  screen:  { type: file.raw_writer, path: screen.fifo, node: edge, input: small }
"""
TURN_S, KILL_AT_S, DEAD_S = 16, 4, 5
# Both nodes share this machine, so the start of a process costs the camera beats that it would not on another one.
# `beside`: nobody is killed, and at the same time a process starts that takes no part.
KINDS = ("alone", "beside", "killed")


class Turn(fleet.Fleet):
    """A camera with a recorder and a detection on another node; an overlay is shown where both are there."""

    def __init__(self, kind):
        super().__init__("carry_out")
        self.kind = kind

    def start_beside(self):
        address, self.address = self.address, "127.0.0.1:9"  # nobody listens there
        beside = self.other("gpu")
        self.address = address
        time.sleep(1)
        beside.process.kill()

    def watch(self):
        """Notes when something was shown."""
        with open(self.folder / "screen.fifo", "rb", buffering=0) as screen:
            while screen.read(8 * 8 * 3):
                self.shown.append(time.monotonic())

    def carry_out(self):
        self.write(LIVE)
        os.mkfifo(self.folder / "screen.fifo")
        self.shown = []
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        self.addCleanup(watcher.join)
        edge, gpu = self.both("--duration", TURN_S)
        self.back_s = None
        if self.kind == "beside":
            time.sleep(KILL_AT_S + DEAD_S)
            self.start_beside()
        if self.kind == "killed":
            time.sleep(KILL_AT_S)
            killed = time.monotonic()
            gpu.process.kill()
            gpu.process.wait()
            time.sleep(DEAD_S)
            gpu = self.other("gpu")
            edge.until("gpu is back")
            back = time.monotonic()
            dead = [at for at in self.shown if killed + 1 < at < back - 0.1]
            self.assertFalse(dead, "something was shown while gpu was dead")
        self.ends(edge, 0)
        self.ends(gpu, 0)
        if self.kind == "killed":
            # It is back once its process was met. Its part is made only then, so it is READY later than that.
            shown = [at - back for at in self.shown if at > back]
            self.assertTrue(shown, "nothing was shown after the kill")
            self.back_s = shown[0]
        report = edge.report()
        self.ticks = report["ticks"]
        [record] = [one for one in report["edges"] if one["to"] == "record.in"]
        self.missed = self.ticks["run"] - record["delivered"]


def median_words(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def take_turns(count):
    """Prints the figures of each turn, and the medians; true if a kill costs the recorder nothing."""
    turns = []
    for kind in KINDS * count:
        turn = Turn(kind)
        result = unittest.TestResult()
        turn.run(result)
        for _, text in result.failures + result.errors:
            print(text)
            return False
        turns.append(turn)
        back = "" if turn.back_s is None else f"; shown {turn.back_s:.3f} s after gpu is back"
        print(f"{kind:<6}  {turn.ticks}; the recorder missed {turn.missed}{back}", flush=True)
    print("medians (least to most)")
    for kind in KINDS:
        of_kind = [turn for turn in turns if turn.kind == kind]
        late = median_words([turn.ticks["late"] for turn in of_kind])
        missed = median_words([turn.missed for turn in of_kind])
        print(f"{kind:<6}  late beats {late}; the recorder missed {missed}")
    back = [turn.back_s for turn in turns if turn.back_s is not None]
    print(f"shown again {median_words(back)} s after gpu is back")
    return not any(turn.missed for turn in turns) and max(back) < 1


def main():
    global CHAOS, REFERENCE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("chaos", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--at-once", type=int, default=12)
    asked = parser.parse_args()
    fleet.MILLRACE, CHAOS = asked.millrace, asked.chaos
    if asked.turns:
        return 0 if take_turns(asked.turns) else 1
    REFERENCE = Reference()
    cells = [Cell(*cell) for cell in (all_cells() if asked.all or asked.only else short_cells())]
    wanted = [cell for cell in cells if asked.only in str(cell)]
    return 0 if run_cells(wanted, asked.at_once) else 1


if __name__ == "__main__":
    sys.exit(main())
