#!/usr/bin/env python3
"""Runs the test programs round and round on a machine that is in the way: busy, and stopping them at random.

    python3 tests/stress/stress.py build --minutes 10 --seed 7

A round is one test program with some of its test cases in a random order, or some random pipelines of tests/oracle.
While rounds run, each of their process groups is stopped and continued at random (SIGSTOP, SIGCONT), and busy processes
keep every processor loaded in bursts: threads meet in orders that a quiet machine never has.

A stop lasts 300 ms at most, and a group runs at least as long as it was stopped before it is stopped again: the tests'
own time-outs, of seconds, hold on a machine that is twice as slow. Tests that measure a real time cannot hold on any
such machine and are left out (MEASURES_TIME). What fails is run once more undisturbed, so that one sees whether it takes
the disturbance. Its seed, its command and all that it wrote are left in a file; exit code 1 if something failed.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

STOP_S_MAX = 0.3
ROUND_S_MAX = 240  # a round that takes longer has not ended: undisturbed the slowest takes some 20 s
ROUNDS_AT_ONCE = 2

# Test cases that compare a real time with another, as doctest's -tce takes them.
MEASURES_TIME = ()


@dataclasses.dataclass
class Program:
    """A test as ctest knows it, and how a round of it is said."""

    name: str
    command: list
    environment: dict
    is_oracle: bool

    def round(self, draw):
        """(command, environment) of a round, as the seed has it."""
        seed = draw.randrange(10**6)
        environment = {**self.environment, "MILLRACE_SEED": str(seed), "MILLRACE_GRAPHS": "4"}
        if self.is_oracle:
            return [*self.command, "--graphs", "12", "--jobs", "1", "--timeout", "60", "--shrink-s", "0"], environment
        left_out = [f"-tce={','.join(MEASURES_TIME)}"] if MEASURES_TIME else []
        cases = draw.choice((3, 10, 30))
        return [*self.command, "-ob=rand", f"-rs={seed}", f"-l={cases}", *left_out], environment


def programs_of(build, chosen):
    """The test programs of the build folder, and the comparison with the oracle."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True)
    programs = []
    for test in json.loads(listed.stdout)["tests"]:
        command = test.get("command", [])
        if not command or (chosen and test["name"] not in chosen):
            continue
        is_program = pathlib.Path(command[0]).name.startswith("test_") and pathlib.Path(command[0]).exists()
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        environment = dict(words.split("=", 1) for words in properties.get("ENVIRONMENT", []))
        if is_program or test["name"] == "oracle":
            programs.append(Program(test["name"], command, environment, test["name"] == "oracle"))
    return programs


# ---- disturbance -----------------------------------------------------------------------------------------------------

# What a busy process runs; it ends with the process that began it.
BUSY_IN_BURSTS = """
import os, random, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + random.uniform(0.01, 0.5)
    while time.monotonic() < end:
        pass
    time.sleep(random.uniform(0.01, 0.5))
"""

class Disturbance:
    """Stops and continues process groups, and keeps the processors busy, until it is closed."""

    def __init__(self, seed):
        self.draw = random.Random(f"{seed} disturbance")
        self.groups = {}  # process group → when it may be stopped again
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.stops = 0
        self.busy = [subprocess.Popen([sys.executable, "-c", BUSY_IN_BURSTS]) for _ in range(os.cpu_count())]
        self.stopper = threading.Thread(target=self._stop_groups)
        self.stopper.start()

    @contextlib.contextmanager
    def of(self, process):
        """Disturbs the group of a process within the block."""
        with self.lock:
            self.groups[process.pid] = 0.0
        try:
            yield
        finally:
            with self.lock:
                del self.groups[process.pid]

    def close(self):
        self.ended.set()
        self.stopper.join()
        for process in self.busy:
            process.kill()
            process.wait()

    def kill(self):
        """Ends all that is disturbed."""
        with self.lock:
            for group in self.groups:
                send(group, signal.SIGKILL)

    def _stop_groups(self):
        while not self.ended.wait(self.draw.uniform(0, 0.05)):
            with self.lock:  # a group that is stopped stays in the list until it goes on
                ready = [group for group, since in self.groups.items() if since <= time.monotonic()]
                if not ready:
                    continue
                group = self.draw.choice(ready)
                length = self.draw.choice((0.001, 0.01, 0.05, STOP_S_MAX)) * self.draw.random()
                self._stop(group, length)

    def _stop(self, group, length):
        begun = time.monotonic()
        send(group, signal.SIGSTOP)
        try:
            time.sleep(length)
        finally:
            send(group, signal.SIGCONT)
        self.stops += 1
        self.groups[group] = 2 * time.monotonic() - begun


def send(group, number):
    """A signal to a process group that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


# ---- rounds ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Outcome:
    code: int  # None: it did not end
    output: str

    @property
    def words(self):
        return "did not end" if self.code is None else f"exit code {self.code}"


def run(command, environment, disturbance=None):
    """Runs a command in a process group and a folder of its own, disturbed or not."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory(prefix="stress-") as folder:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True, cwd=folder)  # fmt: skip
        with disturbance.of(process) if disturbance else contextlib.nullcontext():
            try:
                code = process.wait(ROUND_S_MAX)
            except subprocess.TimeoutExpired:
                code = None
        send(process.pid, signal.SIGKILL)  # with what it may have left
        process.wait()
        output.seek(0)
        return Outcome(code, output.read().decode(errors="replace"))


class Stress:
    def __init__(self, arguments, programs):
        self.arguments, self.programs = arguments, programs
        self.draw = random.Random(arguments.seed)
        self.until = time.monotonic() + 60 * arguments.minutes
        self.disturbance = Disturbance(arguments.seed)
        self.lock = threading.Lock()
        self.rounds, self.failed = 0, []

    def run(self):
        workers = [threading.Thread(target=self._work) for _ in range(ROUNDS_AT_ONCE)]
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            self.until = 0
            self.disturbance.kill()
            self.disturbance.close()
        for program, command, environment, outcome in self.failed:
            self._report(program, command, environment, outcome)

    def _work(self):
        while time.monotonic() < self.until:
            with self.lock:
                self.rounds += 1
                program = self.programs[self.draw.randrange(len(self.programs))]
                command, environment = program.round(self.draw)
            outcome = run(command, environment, self.disturbance)
            if outcome.code != 0:
                seed = environment["MILLRACE_SEED"]
                print(f"FAILED: {program.name}, {outcome.words}: MILLRACE_SEED={seed}", flush=True)
                with self.lock:
                    self.failed.append((program, command, environment, outcome))

    def _report(self, program, command, environment, outcome):
        """Runs what failed once more with nothing in its way, and leaves both in a file."""
        again = run(command, environment)
        folder = pathlib.Path(self.arguments.keep)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{program.name}-{environment['MILLRACE_SEED']}.txt"
        settings = " ".join(f"{key}={value}" for key, value in environment.items())
        path.write_text(f"{settings} {' '.join(command)}\n\n{outcome.words} while disturbed:\n{outcome.output}\n"
                        f"{again.words} undisturbed:\n{again.output}\n")  # fmt: skip
        print(f"{program.name}: {outcome.words} while disturbed, {again.words} undisturbed: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", default=os.environ.get("MILLRACE_SEED", str(random.SystemRandom().randrange(10**6))))
    parser.add_argument("--tests", nargs="*", default=[], help="names of ctest; default: all programs, the oracle")
    parser.add_argument("--keep", default="stress_failures", help="the folder for the output of what failed")
    arguments = parser.parse_args()
    print(f"MILLRACE_SEED={arguments.seed}", flush=True)
    programs = programs_of(arguments.build, arguments.tests)
    if not programs:
        print(f"no test program is built in {arguments.build}")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stress = Stress(arguments, programs)
    stress.run()
    names = ", ".join(sorted(program.name for program in programs))
    print(f"{stress.rounds} rounds of {names}; {stress.disturbance.stops} stops of at most {1000 * STOP_S_MAX:.0f} ms; "
          f"{len(stress.failed)} failed")  # fmt: skip
    return 1 if stress.failed else 0


if __name__ == "__main__":
    sys.exit(main())
