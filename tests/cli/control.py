#!/usr/bin/env python3
"""A run that is changed and stopped from outside: `millrace set`, `millrace stop`, and the socket that carries them.

usage: control.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ending_table  # noqa: E402: found by the line above
import fleet  # noqa: E402: the same
from fleet import THERE_AND_BACK, Fleet  # noqa: E402: the same

MILLRACE = ""
SECONDS_MAX = 60
PICTURE = 16 * 16  # bytes of one
# A gate that is shut until somebody opens it; the file has the tick of each picture that passed.
GATED = """
version: 1
name: gated
clock: { mode: realtime, rate: 200 }
handlers:
  pattern: { type: test.pattern, width: 16, height: 16, format: gray8 }
  gate:    { type: flow.gate, open: false, input: pattern }
  save:    { type: file.raw_writer, path: passed.gray, index: true, input: gate }
  blur:    { type: image.blur, input: pattern }
  end:     { type: null.sink, input: blur }
"""
# One camera, and room for another.
DOORS = """
version: 1
name: doors
clock: { mode: realtime, rate: 100 }
streams: { cameras: { max: 2, items: { gate: { sigma: 2 } } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 32, height: 24 }
  blur:  { type: image.blur, for_each: cameras, input: video, sigma: '{sigma}' }
  end:   { type: null.sink, for_each: cameras, input: blur }
"""
# A camera whose recording always fails.
FULL_DOORS = """
version: 1
name: doors
clock: { mode: realtime, rate: 100 }
streams: { cameras: { max: 2, on_error: restart, items: { gate: { out: /dev/full } } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 32, height: 24 }
  save:  { type: file.raw_writer, for_each: cameras, input: video, path: '{out}' }
"""


HELLO = b'{"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol": 1, "role": "steer"}}\n'
SET = b'{"jsonrpc": "2.0", "id": 2, "method": "set", "params": {"changes": {"blur.sigma": 5}}}\n'
SET_WITHOUT_AN_ANSWER = b'{"jsonrpc": "2.0", "method": "set", "params": {"changes": {"blur.sigma": 5}}}\n'


class Run:
    """A run under way, with what it says on stderr."""

    def __init__(self, test, *arguments, environment=None):
        self.report_path = test.folder / f"report{len(test.runs)}.json"
        self.said = ""
        self.process = subprocess.Popen([MILLRACE, "run", *map(str, arguments), "--json", str(self.report_path)],
                                        cwd=test.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env=environment or test.environment)
        test.runs.append(self)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        test.addCleanup(self.process.send_signal, signal.SIGCONT)

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        """Its exit code, with all that it said."""
        _, said = self.process.communicate(timeout=SECONDS_MAX)
        self.said = said.decode()
        return self.process.returncode

    def report(self):
        return json.loads(self.report_path.read_text())


class Control(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mr-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.sockets = self.folder / "millrace"
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "TMPDIR": str(self.folder),
                            "MILLRACE_MACHINE": ""}
        self.pipeline = self.folder / "gated.yaml"
        self.pipeline.write_text(GATED)
        self.runs = []

    def run_it(self, *arguments, **options):
        """A run, once it can be steered."""
        run = Run(self, *(arguments or (self.pipeline,)), **options)
        self.await_(lambda: self.listens(run) or run.process.poll() is not None)
        self.assertIsNone(run.process.poll(), "it has ended")
        return run

    def listens(self, run):
        """The socket is there a moment before anybody listens, and until then a command finds no run."""
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.sockets / f"{run.pid}.sock")) == 0

    def connect(self, client, run):
        client.connect(str(self.sockets / f"{run.pid}.sock"))

    def await_(self, holds):
        end = time.monotonic() + SECONDS_MAX
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def call(self, *arguments, code=0):
        result = subprocess.run([MILLRACE, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_MAX,
                                stdin=subprocess.DEVNULL, env=self.environment)
        self.assertEqual(result.returncode, code, f"{arguments}\n{result.stdout}{result.stderr}")
        return result

    def refused(self, *arguments, error, code=2):
        result = self.call(*arguments, code=code)
        self.assertTrue(result.stderr.startswith(f"error {error}: "), result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def tick_of(self, *arguments):
        said = json.loads(self.call("set", *arguments, "--json").stdout)
        self.assertEqual(said["version"], 1)
        return said["ticks"]["main"]

    def passed(self):
        """The ticks whose pictures passed the gate."""
        data = (self.folder / "passed.gray").read_bytes()
        return [struct.unpack_from("<Q", data, at)[0] for at in range(0, len(data), 8 + PICTURE)]

    # ---- set and stop

    def test_a_value_that_is_set_counts_from_the_very_tick_that_is_said(self):
        run = self.run_it()
        opened = self.tick_of("gate.open=true")
        time.sleep(0.1)
        closed = self.tick_of("gate.open=false", "blur.sigma=3")
        self.assertGreater(closed, opened)
        self.call("stop")
        self.assertEqual(run.end(), 0, run.said)
        self.assertGreater(run.report()["ticks"]["run"], closed)
        passed = self.passed()
        self.assertGreaterEqual(passed[0], opened)
        self.assertLess(passed[-1], closed)
        late = run.report()["ticks"].get("skipped", 0)
        self.assertGreaterEqual(len(passed), closed - opened - late)

    def test_a_stopped_run_drains_writes_its_report_and_ends_with_0(self):
        run = self.run_it()
        said = self.call("stop").stdout
        self.assertEqual(said, f"gated ({run.pid}) takes no more ticks and ends once it has drained\n")
        self.assertEqual(run.end(), 0, run.said)
        self.assertIn("stopped by `millrace stop` or another client: no more ticks", run.said)
        self.assertTrue(run.report()["ok"])
        self.assertEqual(list(self.sockets.iterdir()), [])

    def test_a_stop_is_said_as_json_too_and_a_quiet_run_says_nothing(self):
        run = self.run_it(self.pipeline, "--quiet")
        self.assertEqual(json.loads(self.call("stop", "--json").stdout),
                         {"version": 1, "pid": run.pid, "pipeline": "gated", "state": "draining"})
        self.assertEqual(run.end(), 0)
        self.assertEqual(run.said, "")

    def test_a_refused_change_changes_nothing_and_says_what_would_do(self):
        run = self.run_it()
        said = self.refused("set", "gate.open=true", "blur.sigm=3", error="MR0310")
        self.assertIn("these can be changed while it runs: sigma", said)
        self.assertIn("did you mean 'sigma'?", said)
        self.assertIn("did you mean 'blur'?", self.refused("set", "blr.sigma=3", error="MR0301"))
        self.assertIn("try: blur.sigma=50", self.refused("set", "blur.sigma=51", error="MR0312"))
        self.assertIn("`millrace inspect test.pattern`", self.refused("set", "pattern.width=8", error="MR0316"))
        self.refused("set", "blur.sigma=wide", error="MR0311")
        for text in ("blur", "blur.sigma", "blur=3", ".sigma=3", "blur.=3"):
            self.assertIn("expected handler.param=value", self.refused("set", text, error="MR0101"))
        self.assertIn("assigned twice", self.refused("set", "blur.sigma=1", "blur.sigma=2", error="MR0101"))
        self.refused("set", error="MR0105")
        self.call("stop")
        self.assertEqual(run.end(), 0)
        self.assertFalse((self.folder / "passed.gray").exists() and self.passed())

    # ---- streams

    def test_streams_are_added_listed_and_removed_while_the_run_goes_on(self):
        (self.folder / "doors.yaml").write_text(DOORS)
        run = self.run_it(self.folder / "doors.yaml")
        self.assertEqual(self.call("streams", "add", "hall", "sigma=4").stdout, "hall has begun\n")
        self.assertIn("cameras  hall  runs  ", self.call("streams", "list").stdout)
        listed = json.loads(self.call("streams", "--json").stdout)["streams"]["cameras"]
        self.assertEqual(list(listed), ["gate", "hall"])
        self.assertEqual(listed["gate"]["state"], "runs")
        self.assertIn("it has 2 places", self.refused("streams", "add", "yard", "sigma=4", error="MR0324"))
        self.assertIn("already", self.refused("streams", "add", "gate", "sigma=4", error="MR0303"))
        self.assertEqual(self.call("streams", "remove", "hall").stdout, "hall is gone\n")
        self.assertIn("streams: gate", self.refused("streams", "remove", "hall", error="MR0321"))
        self.assertIn("no such field", self.refused("streams", "add", "hall", error="MR0322"))
        self.refused("streams", "add", "hall", "sigma=400", error="MR0312")
        large = self.refused("streams", "add", "hall", "sigma=2", "video.width=640", error="MR0402")
        self.assertIn("the place is planned for", large)
        self.refused("streams", "add", "hall", "sigma=2", "video.width=16", error="MR0402")
        self.tick_of_stream("blur@gate.sigma=3")
        self.assertEqual(self.call("streams", "add", "hall", "sigma=2", "video.count=5").stdout, "hall has begun\n")
        self.await_(lambda: self.state_of("hall") == "ended")
        self.call("streams", "add", "yard", "sigma=2")
        for wrong in (["move"], ["add"], ["remove", "gate", "sigma=2"]):
            self.refused("streams", *wrong, error="MR0105")
        self.call("stop")
        self.assertEqual(run.end(), 0, run.said)
        self.assertEqual({name: one["state"] for name, one in run.report()["streams"]["cameras"].items()},
                         {"gate": "ended", "yard": "ended"})

    def test_a_stream_that_was_added_is_told_by_its_name_and_not_by_its_place(self):
        (self.folder / "doors.yaml").write_text(DOORS)
        log = self.folder / "run.jsonl"
        run = self.run_it(self.folder / "doors.yaml", "--log-file", log, "--log-level", "debug")
        self.call("streams", "add", "hall", "sigma=4")
        self.assertEqual(set(self.tick_of_stream("blur.sigma=3")), {"gate", "hall"})
        self.assertEqual(set(self.tick_of_stream("blur@hall.sigma=5")), {"hall"})
        self.assertIn("of gate and tick", self.call("set", "blur.sigma=3").stdout.replace("hall", "gate"))
        for wrong, error in (("blur@hall.sigm=5", "MR0310"), ("blur@hall.sigma=500", "MR0312"), ("video@hall.width=64", "MR0316"),
                             ("blur@hall.batch.budget=5ms", "MR0316"), ("blur@hal.sigma=5", "MR0301")):
            self.assertNotRegex(self.refused("set", wrong, error=error), r"\+\d", wrong)
        self.call("streams", "remove", "gate")
        self.call("streams", "add", "yard", "sigma=4")  # in the place of gate
        self.assertEqual(set(self.tick_of_stream("blur.sigma=3")), {"hall", "yard"})
        self.call("stop")
        self.assertEqual(run.end(), 0, run.said)
        told = (run.said + log.read_text() + run.report_path.read_text()).splitlines()
        of_the_run = [line for line in told if "note: " not in line and " runs on " not in line]  # the plan has places
        self.assertEqual([line for line in of_the_run if re.search(r"(@|cameras)\+\d", line)], [])
        segments = [name for segment in run.report()["segments"] for name in segment["handlers"]]
        self.assertIn("blur@yard", segments)
        self.assertNotIn("blur@gate", segments)

    def test_a_stream_that_is_down_and_removed_is_no_failure_of_the_run(self):
        (self.folder / "full.yaml").write_text(FULL_DOORS)
        run = self.run_it(self.folder / "full.yaml")
        self.await_(lambda: self.state_of("gate") == "down")
        self.call("streams", "remove", "gate")
        self.call("stop")
        ending_table.check(self, "`max`, and a stream that had failed is removed", run.end(), run.report_path, run.said)

    def test_streams_that_are_added_and_removed_by_two_clients_at_once_are_all_answered(self):
        (self.folder / "doors.yaml").write_text(DOORS)
        run = self.run_it(self.folder / "doors.yaml")
        for visit in range(15):
            adds = subprocess.Popen([MILLRACE, "streams", "add", "hall", "sigma=4"], env=self.environment, stdout=subprocess.PIPE)
            self.addCleanup(adds.stdout.close)
            self.addCleanup(adds.wait)
            self.addCleanup(adds.kill)
            removed = False
            while not removed:
                said = subprocess.run([MILLRACE, "streams", "remove", "hall"], env=self.environment, capture_output=True, text=True,
                                      timeout=SECONDS_MAX)
                removed = said.returncode == 0
                if not removed:
                    self.assertRegex(said.stderr, "is being added|there is no stream")
            self.assertEqual(adds.communicate(timeout=SECONDS_MAX)[0], b"hall has begun\n", f"visit {visit}")
        self.call("stop")
        self.assertEqual(run.end(), 0, run.said)

    def state_of(self, stream):
        return json.loads(self.call("streams", "--json").stdout)["streams"]["cameras"].get(stream, {}).get("state")

    def tick_of_stream(self, change):
        return json.loads(self.call("set", change, "--json").stdout)["ticks"]

    def test_streams_of_a_set_without_room_are_neither_added_nor_removed(self):
        (self.folder / "doors.yaml").write_text(DOORS.replace("max: 2, ", ""))
        run = self.run_it(self.folder / "doors.yaml")
        self.assertIn("a set with `max` has", self.refused("streams", "add", "hall", "sigma=2", error="MR0324"))
        self.assertIn("until they end", self.refused("streams", "remove", "gate", error="MR0324"))
        self.call("stop")
        self.assertEqual(run.end(), 0, run.said)

    # ---- which run

    def test_without_a_run_both_say_so(self):
        for arguments in (["stop"], ["set", "blur.sigma=3"], ["stop", "-p", "gated"]):
            said = self.refused(*arguments, error="MR0116")
            self.assertIn("no run of this user is on this machine", said)

    def test_of_several_runs_one_is_named_by_its_pipeline_or_its_process(self):
        first = self.run_it()
        line = "test.pattern width=16 height=16 ! image.blur ! null.sink"
        second = self.run_it(line, "--clock", "realtime", "--rate", "100")
        said = self.refused("stop", error="MR0116")
        self.assertRegex(said, rf"(?m)^  {first.pid}  gated  runs for \d+ s$")
        self.assertIn(f"  {second.pid}  {line}  runs for ", said)
        self.assertIn("did you mean 'gated'?", self.refused("set", "blur.sigma=3", "-p", "gatd", error="MR0116"))
        third = self.run_it()
        said = self.refused("stop", "-p", "gated", error="MR0116")
        self.assertIn("2 runs are called \"gated\"", said)
        self.assertNotIn(str(second.pid), said)
        self.tick_of("blur.sigma=3", "-p", second.pid)
        for run in (second, first):
            self.call("stop", "-p", run.pid)
            self.assertEqual(run.end(), 0, run.said)
        self.call("stop", "-p", "gated")
        self.assertEqual(third.end(), 0, third.said)

    def test_a_pipeline_without_a_name_is_called_as_its_file(self):
        (self.folder / "plain.yaml").write_text(GATED.replace("name: gated\n", ""))
        run = self.run_it(self.folder / "plain.yaml")
        self.call("stop", "-p", "plain")
        self.assertEqual(run.end(), 0)

    def test_a_run_that_the_system_has_stopped_is_listed_and_not_waited_for(self):
        run = self.run_it()
        run.process.send_signal(signal.SIGSTOP)
        self.assertIn("does not answer", self.refused("stop", error="MR0117", code=1))
        other = self.run_it()
        self.assertIn(f"{run.pid}  is stopped, as by Ctrl-Z, and does not answer", self.refused("stop", error="MR0116"))
        self.call("stop", "-p", other.pid)
        run.process.send_signal(signal.SIGCONT)
        self.assertEqual(other.end(), 0)

    def crowd(self, run, count, says=b""):
        """So many clients of the run, which say this and no more."""
        clients = []
        for _ in range(count):
            client = socket.socket(socket.AF_UNIX)
            self.addCleanup(client.close)
            self.connect(client, run)
            client.sendall(says)
            clients.append(client)
        return clients

    def test_a_name_is_not_clear_while_a_run_cannot_be_asked_for_its_own(self):
        first, second = self.run_it(), self.run_it()
        first.process.send_signal(signal.SIGSTOP)
        for command in (["stop"], ["set", "blur.sigma=3"], ["streams", "list"]):
            said = self.refused(*command, "-p", "gated", error="MR0116")
            self.assertIn('1 run is called "gated", and 1 run cannot be asked for its name: -p has to name a process', said)
            self.assertIn(f"{first.pid}  is stopped, as by Ctrl-Z, and does not answer", said)
            self.assertIn(f"-p {second.pid}", said)
        said = self.refused("stop", "-p", "other", error="MR0116")
        self.assertIn('no run that answers is called "other", and 1 run cannot be asked for its name', said)
        said = self.refused("stop", "-p", first.pid, error="MR0117", code=1)
        self.assertIn(f"kill -CONT {first.pid}", said)
        self.tick_of("blur.sigma=3", "-p", second.pid)  # a process has one number
        first.process.send_signal(signal.SIGCONT)
        self.assertIn('2 runs are called "gated", and -p has to name a process',
                      self.refused("stop", "-p", "gated", error="MR0116"))
        self.call("stop", "-p", second.pid)
        self.assertEqual(second.end(), 0)
        self.call("stop", "-p", "gated")
        self.assertEqual(first.end(), 0)

    def test_clients_that_say_nothing_or_no_more_keep_nobody_out(self):
        for says in (b"", b'{"jsonrpc": "2.0", "id"', b"\n", HELLO, HELLO + SET_WITHOUT_AN_ANSWER, b"nonsense\n"):
            run = self.run_it()
            self.crowd(run, 40, says)
            self.tick_of("blur.sigma=3", "-p", "gated")
            self.assertEqual(self.call("streams", "list").stdout, "the run has no streams\n")
            self.call("stop", "-p", "gated")
            self.assertEqual(run.end(), 0)

    def test_clients_that_wait_for_a_tick_keep_their_places_and_a_stop_comes_through(self):
        line = "test.pattern width=16 height=16 ! image.blur ! null.sink"
        run = self.run_it(line, "--clock", "realtime", "--rate", "0.001")  # the second tick never comes
        # A change that comes before the first tick is answered by it. One that comes later is given up after 5 s.
        self.call("set", "blur.sigma=2")
        waiting = self.crowd(run, 16, HELLO + SET)
        for client in waiting:
            self.assertIn(b'"role":"steer"', client.recv(4096))
        said = self.refused("set", "blur.sigma=3", error="MR0117", code=1)
        self.assertIn("the run is busy: 16 clients are connected, and none of them is idle", said)
        self.call("stop")
        self.assertEqual(run.end(), 0)

    def test_a_socket_that_a_dead_process_left_is_no_run(self):
        run = self.run_it()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(self.sockets / f"{os.getpid()}.sock"))  # that process lives, and nobody listens
        self.tick_of("blur.sigma=3", "-p", "gated")
        self.assertIn("no run here", self.refused("stop", "-p", os.getpid(), error="MR0116"))
        self.call("stop", "-p", "gated")
        self.assertEqual(run.end(), 0)

    def test_control_off_leaves_no_socket(self):
        Run(self, self.pipeline, "--control", "off", "--duration", "0.3").process.wait(SECONDS_MAX)
        self.assertFalse(self.sockets.exists())
        self.refused("run", self.pipeline, "--control", "maybe", error="MR0105")

    # ---- the socket's file

    def test_the_socket_is_its_users_alone(self):
        run = self.run_it()
        self.assertEqual(stat.S_IMODE(self.sockets.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((self.sockets / f"{run.pid}.sock").stat().st_mode), 0o600)

    def test_a_signal_that_comes_while_the_socket_is_opened_removes_it(self):
        for _ in range(30):
            run = Run(self, self.pipeline)
            socket = self.sockets / f"{run.pid}.sock"
            while not socket.exists() and run.process.poll() is None:
                pass  # without a pause: the signal is to come at that moment
            run.process.send_signal(signal.SIGQUIT)
            self.assertEqual(run.end(), 131)
            self.assertFalse(socket.exists())

    def test_signals_remove_the_socket_and_the_next_run_that_of_a_process_that_was_killed(self):
        run = self.run_it()
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.end(), 130)
        run = self.run_it()
        run.process.send_signal(signal.SIGQUIT)  # as a second signal
        self.assertEqual(run.end(), 131)
        self.assertEqual(list(self.sockets.iterdir()), [])
        for clean_up in (lambda: self.refused("stop", error="MR0116"), lambda: self.run_it().process.kill()):
            killed = self.run_it()
            killed.process.kill()
            killed.end()
            self.assertTrue((self.sockets / f"{killed.pid}.sock").exists())
            clean_up()
            self.assertFalse((self.sockets / f"{killed.pid}.sock").exists())

    def test_where_it_cannot_listen_one_line_says_so_and_the_run_goes_on(self):
        self.sockets.mkdir(mode=0o755)
        self.sockets.chmod(0o755)
        run = Run(self, self.pipeline, "--duration", "0.3", "--quiet")
        self.assertEqual(run.end(), 0)
        self.assertEqual(run.said, f"warning MR0118: no control socket: {self.sockets}: other users may enter the folder\n")

    # ---- values

    def test_get_says_what_is_declared_what_holds_now_and_who_changed_it(self):
        run = self.run_it()
        live = self.call("get").stdout
        self.assertIn("gate.open   false  default true", live)
        self.assertIn("blur.sigma  2.0  default 2.0\n", live)
        self.assertNotIn("not live", live)
        tick = int(re.search(r"tick (\d+)", self.call("set", "blur.sigma=4").stdout).group(1))
        self.assertEqual(self.call("get", "blur.sigma").stdout,
                         f"blur.sigma  4.0  default 2.0, changed at tick {tick} by millrace\n")
        values = json.loads(self.call("get", "gate", "blur.sigma", "--json").stdout)
        self.assertEqual(values["pid"], run.pid)
        self.assertEqual(values["values"]["blur.sigma"],
                         {"value": 4.0, "default": 2.0, "live": True, "tick": tick, "by": "millrace"})
        self.assertEqual(values["values"]["gate.open"], {"value": False, "default": True, "declared": False, "live": True})
        self.assertIn("pattern.width", self.call("get", "pattern").stdout)
        self.assertIn("did you mean 'sigma'?", self.refused("get", "blur.sigm", error="MR0310"))
        self.assertIn("did you mean 'blur'?", self.refused("get", "blr", error="MR0301"))
        self.call("stop")
        self.assertEqual(run.end(), 0)
        self.refused("get", error="MR0116")

    def test_a_stream_that_comes_has_none_of_the_values_of_the_one_before(self):
        self.pipeline.write_text(DOORS)
        run = self.run_it()
        self.await_(lambda: "gate  runs" in self.call("streams").stdout)
        self.call("set", "blur@gate.sigma=7")
        self.assertIn("7.0", self.call("get", "blur@gate.sigma").stdout)
        self.call("streams", "remove", "gate")
        self.assertNotIn("gate", self.call("get").stdout)
        self.call("streams", "add", "gate", "sigma=3")
        self.call("streams", "add", "hall", "sigma=4")
        known = json.loads(self.call("get", "blur", "--json").stdout)["values"]
        for name in ("blur@gate", "blur@hall"):
            self.assertEqual(known[f"{name}.sigma"], {"default": 2.0, "live": True})
        self.assertIn("not known", self.call("get", "blur@hall.sigma").stdout)
        self.call("set", "blur@hall.sigma=5")
        self.assertIn("5.0", self.call("get", "blur@hall.sigma").stdout)
        self.call("stop")
        self.assertEqual(run.end(), 0)

    def test_without_a_session_the_folder_is_in_the_temporary_one(self):
        environment = {**self.environment, "XDG_RUNTIME_DIR": str(self.folder / "nothing")}
        run = Run(self, self.pipeline, environment=environment)
        path = self.folder / f"millrace-{os.geteuid()}" / f"{run.pid}.sock"
        self.await_(path.exists)
        self.call("stop")  # which has a session, and finds it
        self.assertEqual(run.end(), 0)

    # ---- the protocol, as other programs speak it

    def test_any_program_may_speak_a_line_at_a_time(self):
        run = self.run_it()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SECONDS_MAX)
            self.connect(client, run)
            answers = client.makefile("r")

            def ask(method, **params):
                client.sendall(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
                answer = json.loads(answers.readline())
                self.assertEqual(answer["id"], method)
                return answer

            self.assertEqual(ask("set", changes={"gate.open": True})["error"]["code"], -32001)
            hello = ask("hello", protocol=1, role="steer")["result"]
            self.assertEqual((hello["pipeline"], hello["role"], hello["pid"]), ("gated", "steer", run.pid))
            self.assertGreaterEqual(ask("set", changes={"gate.open": True, "blur.sigma": 4})["result"]["ticks"]["main"], 0)
            self.assertEqual(ask("set", changes={"gate.opn": True})["error"]["data"]["nearest"], "open")
            described = ask("describe")["result"]
            self.assertEqual(list(described["plan"]["handlers"]), ["pattern", "gate", "save", "blur", "end"])
            parameters = {one["name"]: one for one in described["types"]["image.blur"]["parameters"]}
            self.assertTrue(parameters["sigma"]["live"])
            self.assertEqual(ask("get", handler="gate")["result"]["gate"]["parameters"]["open"]["value"], True)
            client.sendall(b"{nonsense\n")
            self.assertEqual(json.loads(answers.readline())["error"]["data"], {"at": "byte 3"})
            self.assertEqual(ask("stop")["result"], {"state": "draining"})
            self.assertEqual(answers.readline(), "")  # it hangs up at its end
        self.assertEqual(run.end(), 0)

    def test_a_client_that_subscribes_is_told_of_counters_changes_and_the_end(self):
        run = self.run_it()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SECONDS_MAX)
            self.connect(client, run)
            lines, events = client.makefile("r"), []

            def ask(method, **params):
                client.sendall(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
                while "id" not in (line := json.loads(lines.readline())):
                    events.append(line)
                return line["result"]

            def event(topic, holds=lambda params: True):
                while True:
                    one = events.pop(0) if events else json.loads(lines.readline())
                    if one["method"] == topic and holds(one["params"]):
                        return one["params"]

            ask("hello", protocol=3, role="steer", name="page")
            told = ask("subscribe", topics=["counters", "state", "params", "log"], hz=20)
            plan = ask("describe")["plan"]
            self.assertEqual(event("state"), {"state": "runs"})
            calls, per_s = (told["columns"]["handlers"].index(name) for name in ("calls", "per_s"))
            pattern = list(plan["handlers"]).index("pattern")
            first = event("counters")
            later = event("counters", lambda counters: counters["window_s"] > 1)
            self.assertEqual([len(later[what]) for what in ("handlers", "edges")], [len(plan["handlers"]), len(plan["edges"])])
            for counters in (first, later):
                for what, names in told["columns"].items():
                    for row in counters[what]:
                        self.assertEqual(len(row), len(names), what)
            self.assertGreater(later["handlers"][pattern][calls], first["handlers"][pattern][calls])
            self.assertGreater(later["handlers"][pattern][per_s], 0)
            tick = ask("set", changes={"gate.open": True})["ticks"]["main"]
            changed = event("params")["handlers"]
            self.assertEqual(list(changed), ["gate"])
            self.assertEqual({key: changed["gate"]["parameters"]["open"][key] for key in ("value", "tick", "by")},
                             {"value": True, "tick": tick, "by": "page"})
            ask("stop")
            for line in lines:  # until it hangs up at its end
                events.append(json.loads(line))
            counted = [one["params"]["handlers"][pattern][calls] for one in events if one["method"] == "counters"]
        self.assertEqual(run.end(), 0)
        self.assertEqual(counted, sorted(counted))
        for count in counted:
            self.assertLessEqual(count, run.report()["handlers"]["pattern"]["calls"])

    def test_a_client_that_never_reads_and_one_that_goes_do_not_hold_up_the_run(self):
        run = self.run_it()
        with socket.socket(socket.AF_UNIX) as deaf, socket.socket(socket.AF_UNIX) as gone:
            for client in (deaf, gone):
                self.connect(client, run)
            deaf.setblocking(False)
            while select.select([], [deaf], [], 0.3)[1]:
                deaf.send(b"{\n" * 4096)
            gone.sendall(b'{"jsonrpc": "2.0", "id"')
            gone.close()
            self.tick_of("gate.open=true")
            self.call("stop")
            self.assertEqual(run.end(), 0)
        report = run.report()["ticks"]
        self.assertGreater(report["run"], 0)


class ControlOfNodes(Fleet):
    def environment(self, machine):
        return {**super().environment(machine), "XDG_RUNTIME_DIR": str(self.folder)}

    def ask(self, node, *arguments, code=0):
        result = subprocess.run([MILLRACE, *arguments, "-p", str(node.process.pid)], capture_output=True, text=True,
                                timeout=SECONDS_MAX, env=self.environment("edge"))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def test_a_node_changes_its_own_handlers_and_a_stop_at_the_coordinator_ends_the_run_of_all(self):
        self.write(THERE_AND_BACK.replace(", count: 200", "").replace("save:", "tone:   { type: image.adjust, node: edge, input: camera }\n"
                   "  end:    { type: null.sink, node: edge, input: tone }\n  save:"))
        edge, gpu = self.both("--clock", "realtime", "--rate", 100)
        self.await_run(edge)
        self.assertRegex(self.ask(edge, "set", "tone.gamma=2"), r"^tone\.gamma=2 from tick \d+ on$")
        for node in (edge, gpu):
            self.assertRegex(self.ask(node, "set", "blur.sigma=3", "tone.gamma=1"), r"^blur\.sigma=3 from tick \d+ on\ntone")
        self.assertIn("pipeline (", self.ask(edge, "stop"))
        self.ends(edge, 0)
        self.ends(gpu, 0)

    def await_run(self, node):
        """Until its run has begun."""
        end = time.monotonic() + SECONDS_MAX
        while "has not begun" in self.ask_any(node):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def ask_any(self, node):
        result = subprocess.run([MILLRACE, "set", "tone.gamma=1", "-p", str(node.process.pid)], capture_output=True, text=True,
                                timeout=SECONDS_MAX, env=self.environment("edge"))
        return result.stdout + result.stderr

    def test_streams_come_and_go_on_the_coordinator(self):
        self.write("""
version: 1
nodes: { edge: {}, gpu: {} }
streams: { cameras: { max: 2, items: { gate: {} } } }
clocks: { cameras: { mode: realtime, rate: 100 }, side: { mode: realtime, rate: 100 } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 32, height: 24 }
  end:   { type: null.sink, for_each: cameras, input: video }
  tone:  { type: test.pattern, clock: side, width: 32, height: 24, node: gpu }
  seen:  { type: null.sink, input: tone }
""")
        edge = self.edge()
        self.assertIn("the nodes have not met yet", self.ask(edge, "streams", "add", "hall", code=2))
        gpu = self.other("gpu")
        edge.until("all nodes are ready")
        end = time.monotonic() + SECONDS_MAX
        while self.ask(edge, "streams", "list").find("cameras  gate  runs") < 0:
            self.assertLess(time.monotonic(), end)
        self.assertIn("streams come and go on node edge", self.ask(gpu, "streams", "add", "hall", code=2))
        self.assertEqual(self.ask(edge, "streams", "add", "hall"), "hall has begun\n")
        self.assertEqual(self.ask(edge, "streams", "remove", "gate"), "gate is gone\n")
        self.assertIn("cameras  hall  runs", self.ask(edge, "streams", "list"))
        self.ask(edge, "stop")
        self.ends(edge, 0)
        self.ends(gpu, 0)
        self.assertEqual({name: one["state"] for name, one in edge.report()["streams"]["cameras"].items()}, {"hall": "ended"})

    def test_a_node_that_waits_for_the_others_can_be_stopped(self):
        self.write(THERE_AND_BACK)
        edge = self.edge()
        said = self.ask(edge, "set", "blur.sigma=3", code=2)
        self.assertIn("the run has not begun: its nodes have not met", said)
        self.ask(edge, "stop")
        self.ends(edge, 0)
        self.assertEqual([path.name for path in (self.folder / "millrace").iterdir()], [])


if __name__ == "__main__":
    MILLRACE = fleet.MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
