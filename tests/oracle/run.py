#!/usr/bin/env python3
"""Runs random pipelines, and compares every firing of every handler with what rules.py expects of it.

    python3 tests/oracle/run.py build/millrace build/oracle_plugins --graphs 1000 --seed 7
    python3 tests/oracle/run.py build/millrace build/oracle_plugins --file out/oracle/7-12.json

Each pipeline runs on 1, 2 or 8 threads, as its seed draws, and, where simulated devices are there, once more with some
handlers on `sim:0`. With --every-width, and if they once failed, pipelines run on 1, 2 and 8 threads. A run that stands
still, crashes, is refused wrongly or not refused, fires otherwise or reads something else has failed. Then its seed is
printed, the pipeline is made smaller as long as it fails in the same way, and both are left in --keep with what was
expected and what came. What was mended is kept in the folder `found` and run first.
MILLRACE_SEED and MILLRACE_ORACLE_GRAPHS stand in for the options.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import graphs
import rules
import smaller

REFUSED = 3  # exit code of a pipeline that is invalid
# The warning that nothing has moved for 2 s. On a very busy machine it may be wrong, but not for this long.
STANDS_STILL = b"MR0603"
STANDS_STILL_S = 5
FOUND = pathlib.Path(__file__).resolve().parent / "found"
WIDTHS = (1, 2, 8)  # numbers of threads
ON_DEVICE = ("oracle.mix", "oracle.any", "oracle.stateless")


@dataclasses.dataclass
class Way:
    """How a pipeline is run."""

    threads: int
    on_sim: tuple = ()  # handlers that are pinned there

    def arguments(self):
        words = ["--threads", str(self.threads), "--devices", "cpu,sim:0" if self.on_sim else "cpu"]
        for name in self.on_sim:
            words += ["--set", f"{name}.device=sim:0"]
        return words


# How a run may fail: it stands still, is refused though legal, runs though it is not, fails, fires otherwise, or counts
# otherwise what became of the values of its queues.
KINDS = ("hangs", "refused", "not refused", "fails", "differs", "counts")


@dataclasses.dataclass
class Failure:
    kind: str  # one of KINDS
    way: Way
    words: list


class Command:
    """millrace with the plugin of this folder."""

    def __init__(self, arguments):
        self.plugins = str(pathlib.Path(arguments.plugins).resolve())
        self.timeout_s = arguments.timeout
        self.counts_nothing = arguments.no_counts
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oracle-"))
        # A copy of the command has no plugins beside it. To load those takes ten times as long as a run here.
        self.millrace = shutil.copy(pathlib.Path(arguments.millrace).resolve(), self.folder)
        self.runs = 0

    def run(self, document, way):
        """(exit code or None where it stood still, what it wrote to stderr, the record, the report's edges)"""
        self.runs += 1
        place = self.folder / f"{os.getpid()}-{self.runs}-{random.randrange(10**9)}"
        pipeline, record, report = (place.with_suffix(suffix) for suffix in (".json", ".record", ".report"))
        pipeline.write_text(text_of(document))
        words = [self.millrace, "run", str(pipeline), "--plugin-path", self.plugins, "--quiet", "--json", str(report)]
        words += way.arguments()
        environment = dict(os.environ, MILLRACE_ORACLE_RECORD=str(record), MILLRACE_MACHINE="")
        with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:  # fmt: skip
            code, told = self._wait(process)
        lines = record.read_text().splitlines() if record.exists() else []
        edges = json.loads(report.read_text())["edges"] if code == 0 else []
        for path in (pipeline, record, report):
            path.unlink(missing_ok=True)
        return code, told.decode(errors="replace"), lines, edges

    def _wait(self, process):
        """(exit code, or None where it stood still and was killed; what it told)"""
        begun, stands_since = time.monotonic(), None
        while True:
            try:
                _, told = process.communicate(timeout=1)
                return process.returncode, told
            except subprocess.TimeoutExpired as waited:
                now = time.monotonic()
                if stands_since is None and STANDS_STILL in (waited.stderr or b""):
                    stands_since = now
                if now - begun > self.timeout_s or (stands_since and now - stands_since > STANDS_STILL_S):
                    process.kill()  # a signal that drains would wait for what it waits for
                    return None, process.communicate()[1]


def text_of(document):
    """The pipeline as a file: a handler a line. It is JSON, and so YAML too."""
    handlers = ",\n".join(f"    {json.dumps(name)}: {json.dumps(keys)}" for name, keys in document["handlers"].items())
    others = [(key, value) for key, value in document.items() if key != "handlers"]
    top = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in others)
    return f'{{\n{top}  "handlers": {{\n{handlers}\n  }}\n}}\n'


def records_of(lines, document):
    """The record by handler, as rules.py has it. Instances of a stateless handler may overtake each other."""
    records = {name: [] for name in document["handlers"]}
    for line in lines:
        name, _, rest = line.partition(" ")
        if document["handlers"].get(name, {}).get("type") == "oracle.source":
            rest = f"{rest.split(' ')[0]} | | {rest.rsplit(' | ', 1)[1]}"
        records.setdefault(name, []).append(rest)
    for name, found in records.items():
        if document["handlers"].get(name, {}).get("type") == "oracle.stateless":
            found.sort(key=lambda rest: int(rest.split(" ")[0]))
    return records


def differences(expected, foretold, found):
    words = []
    for name in sorted(set(expected) | set(found)):
        wanted, came = expected.get(name, []), found.get(name, [])
        if name not in foretold:
            came = [line.removesuffix(" reset") for line in came]
        for number in range(max(len(wanted), len(came))):
            want = wanted[number] if number < len(wanted) else "nothing more"
            got = came[number] if number < len(came) else "nothing more"
            if want != got:
                words.append(f"{name}, call {number}: expected {want}")
                words.append(f"{name}, call {number}: came     {got}")
                break
    return words


def miscounted(expected, edges):
    """Of queues: what the report says became of their values, where it is not what did."""
    words = []
    for edge in edges:
        wanted = expected.get((edge["from"], edge["to"]))
        if not wanted:
            continue
        came = edge["delivered"] + sum(edge["dropped"].values())
        if not wanted.matches(came, edge["delivered"], edge["dropped"]):
            name = f"{edge['from']} → {edge['to']}"
            words.append(f"{name}: expected {wanted}")
            words.append(f"{name}: counted  {edge['delivered']} delivered, dropped {edge['dropped']}")
    return words


def check(command, document, expectation, way):
    """The failure of one run, or None."""
    code, told, lines, edges = command.run(document, way)
    told = told.strip().splitlines()
    if code is None:
        return Failure("hangs", way, ["it did not end", *told[-8:]])
    if expectation.must_refuse:
        words = [f"exit code {code}", *expectation.must_refuse, *told[-6:]]
        return None if code == REFUSED else Failure("not refused", way, words)
    if code == REFUSED:
        return None if expectation.may_refuse else Failure("refused", way, told)
    if code != 0:
        return Failure("fails", way, [f"exit code {code}", *told])
    words = differences(expectation.records, expectation.foretold, records_of(lines, document))
    if words:
        return Failure("differs", way, words)
    # On a device a reader is at issue before it is known whether there is a value: there it counts as delivered.
    words = [] if way.on_sim or command.counts_nothing else miscounted(expectation.counts, edges)
    return Failure("counts", way, words) if words else None


def ways_of(document, expectation, seed, every_width, with_sim):
    if expectation.must_refuse:
        return [Way(2)]
    ways = [Way(threads) for threads in WIDTHS] if every_width else [Way(random.Random(f"{seed} wide").choice(WIDTHS))]
    able = [name for name, keys in document["handlers"].items() if keys["type"] in ON_DEVICE]
    draw = random.Random(f"{seed} on devices")
    chosen = tuple(document.get("x-on-sim", [name for name in able if draw.random() < 0.5]))
    if with_sim and chosen:
        ways.append(Way(draw.choice(WIDTHS), chosen))
    return ways


def expect(document):
    sys.setrecursionlimit(100_000)
    return rules.expect(document)


def compare(command, document, seed, every_width, with_sim):
    """(the failure or None, how many firings were expected)"""
    expectation = expect(document)
    firings = sum(map(len, expectation.records.values()))
    for way in ways_of(document, expectation, seed, every_width, with_sim):
        failure = check(command, document, expectation, way)
        if failure:
            return failure, firings, bool(expectation.must_refuse)
    return None, firings, bool(expectation.must_refuse)


def fails_alike(command, failure):
    """Whether a smaller pipeline fails as the first one did: for smaller.py."""

    def test(document):
        expectation = expect(document)
        way = dataclasses.replace(failure.way, on_sim=tuple(n for n in failure.way.on_sim if n in document["handlers"]))
        again = check(command, document, expectation, way)
        return bool(again) and again.kind == failure.kind

    return test


def keep(command, arguments, seed, document, failure):
    """Makes the pipeline smaller and leaves it with what came; returns the lines to print."""
    if arguments.shrink_s > 0:
        document = smaller.smallest(document, fails_alike(command, failure), time.monotonic() + arguments.shrink_s)
        expectation = expect(document)
        way = dataclasses.replace(failure.way, on_sim=tuple(n for n in failure.way.on_sim if n in document["handlers"]))
        failure = check(command, document, expectation, way) or failure
    folder = pathlib.Path(arguments.keep)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed.replace(':', '-')}.json"
    notes = {"x-seed": seed, "x-run": " ".join(failure.way.arguments()), "x-failure": [failure.kind, *failure.words]}
    path.write_text(text_of({**document, **notes}))
    return [f"FAILED: seed {seed}: {failure.kind} with {' '.join(failure.way.arguments())}", *failure.words[:8],
            f"the pipeline{', made smaller' if arguments.shrink_s > 0 else ''}: {path}"]  # fmt: skip


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace", help="the command")
    parser.add_argument("plugins", help="the folder of oracle.so")
    parser.add_argument("--graphs", type=int, default=int(os.environ.get("MILLRACE_ORACLE_GRAPHS", 500)))
    parser.add_argument("--seed", default=os.environ.get("MILLRACE_SEED", "1"))
    parser.add_argument("--first", type=int, default=0, help="the number of the first graph")
    parser.add_argument("--clocks", type=int, help="draw only pipelines of so many clocks")
    parser.add_argument("--leave-out", nargs="*", default=[], help="late, align, led or every")
    parser.add_argument("--file", nargs="*", default=[], help="compare these pipelines in place of random ones")
    parser.add_argument("--every-width", action="store_true", help="each on 1, 2 and 8 threads, in place of one of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=120, help="seconds after which a run has not ended")
    parser.add_argument("--failures", type=int, default=5, help="end after so many")
    parser.add_argument("--shrink-s", type=float, default=60, help="how long what fails is made smaller; 0: not")
    parser.add_argument("--keep", default="oracle_failures", help="the folder for pipelines that failed")
    parser.add_argument("--no-sim", action="store_true", help="no runs on simulated devices")
    parser.add_argument("--no-counts", action="store_true", help="the report's counts are not looked at")
    return parser.parse_args()


def pipelines(arguments):
    """(seed, pipeline, on every width) of all that are to be compared: those that once failed come first."""
    for path in arguments.file or sorted(FOUND.glob("*.json")):
        document = json.loads(pathlib.Path(path).read_text())
        yield document.get("x-seed", pathlib.Path(path).stem), document, True
    if arguments.file:
        return
    for number in range(arguments.first, arguments.first + arguments.graphs):
        seed = f"{arguments.seed}:{number}" + (f":{arguments.clocks}" if arguments.clocks else "")
        yield seed, graphs.pipeline(seed, arguments.clocks, arguments.leave_out), arguments.every_width


def main():
    arguments = options()
    command = Command(arguments)
    print(f"MILLRACE_SEED={arguments.seed}", flush=True)
    begun, counts, failed = time.monotonic(), collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        waiting, to_come = {}, pipelines(arguments)
        while True:
            while len(waiting) < 2 * arguments.jobs and len(failed) < arguments.failures:
                seed, document, every_width = next(to_come, (None, None, None))
                if seed is None:
                    break
                future = pool.submit(compare, command, document, seed, every_width, not arguments.no_sim)
                waiting[future] = (seed, document)
            if not waiting:
                break
            done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                seed, document = waiting.pop(future)
                failure, firings, refused = future.result()
                counts.update(graphs=1, firings=firings, illegal=refused)
                if failure:
                    failed.append(seed)
                    counts[failure.kind] += 1
                    print("\n".join(keep(command, arguments, seed, document, failure)), flush=True)
    shutil.rmtree(command.folder)
    length = time.monotonic() - begun
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    print(f"{counts['graphs']} pipelines ({counts['illegal']} to be refused), {counts['firings']} firings, "
          f"{command.runs} runs in {length:.1f} s ({command.runs / length:.0f}/s); "
          f"{len(failed)} failed{': ' if kinds else ''}{kinds}")  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
