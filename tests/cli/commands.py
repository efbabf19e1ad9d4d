#!/usr/bin/env python3
"""Runs the command as scripts do: exit codes, what is printed where, files, signals.

usage: commands.py MILLRACE [unittest arguments]

Most tests run a copy of the command without its plugins: to load OpenCV takes longer than most of these runs.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

MILLRACE = WITH_PLUGINS = ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 60
NODES = """version: 1
nodes: { edge: {}, gpu: { coordinator: true } }
handlers:
  video: { type: test.number, count: 5, node: edge }
  mix: { type: test.mix, input: video, node: gpu }
  end: { type: null.sink, input: mix, node: edge }
"""
# Each picture has two readers that want to write over it, so one of them copies it first, and the plan has a note.
WALL = """version: 1
streams: { cameras: { items: [c1, c2, c3, c4, c5, c6, c7, c8] } }
clocks: { cameras: { mode: free }, wall: { mode: free, rate: 10 } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 32, height: 24, count: 5, fps: 10 }
  boxes: { type: draw.text, for_each: cameras, input: video, text: a, size: 8 }
  name:  { type: draw.text, for_each: cameras, input: video, text: '{stream}', size: 8 }
  mark:  { type: draw.text, for_each: cameras, input: name, text: b, size: 8 }
  wall:  { type: image.composite, clock: wall, input: { from: mark, policy: latest }, layout: grid, width: 96, height: 72 }
  other: { type: image.composite, clock: wall, input: { from: boxes, policy: latest }, layout: grid, width: 96, height: 72 }
  end:   { type: null.sink, input: wall }
  more:  { type: null.sink, input: other }
"""


def read_to_the_end(terminal):
    """All that is written to a terminal until its other end is closed."""
    seen = b""
    try:
        while piece := os.read(terminal, 4096):
            seen += piece
    except OSError:  # it is closed
        pass
    return seen.decode()


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def said_on_a_terminal(self, *arguments):
        """The standard error of a command that ends with 0, where that is a terminal."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        with subprocess.Popen([MILLRACE, *arguments], cwd=self.folder, stderr=theirs,
                              stdin=subprocess.DEVNULL) as process:
            os.close(theirs)
            seen = read_to_the_end(ours)
        self.assertEqual(process.returncode, 0)
        return seen

    def program(self):
        return MILLRACE

    def run_it(self, *arguments, code=0, environment=None, cwd=None):
        result = subprocess.run([self.program(), *map(str, arguments)], cwd=cwd or self.folder, capture_output=True, text=True,
                                timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
                                env={**os.environ, "MILLRACE_MACHINE": "", **(environment or {})})
        self.assertEqual(result.returncode, code, f"{arguments}\n{result.stdout}{result.stderr}")
        return result

    def refused(self, *arguments, code, error, **options):
        """The one error on stderr, which must be its first line."""
        result = self.run_it(*arguments, code=code, **options)
        self.assertTrue(result.stderr.startswith(f"error {error}: "), result.stderr)
        self.assertEqual(result.stderr.count("error MR"), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr


class Options(Command):
    def test_an_option_with_an_empty_value_is_never_as_if_it_were_not_given(self):
        for option in ("--devices", "--threads", "--clock", "--rate", "--set", "--json", "--trace", "--progress", "--plan",
                       "--plugin-path", "--machine", "--metrics", "--log-file", "--log-format", "--ticks", "--duration"):
            said = self.refused("run", "test.number count=2 ! null.sink", option, "", code=2, error="MR0105")
            self.assertIn(option, said)

    def test_numbers_that_do_not_fit_are_refused_and_those_that_fit_are_kept_to(self):
        line = "test.number count=5 ! null.sink"
        for option, number in (("--ticks", 2**63), ("--ticks", 2**64), ("--ticks", 10**30), ("--ticks", 0),
                               ("--ticks", -1), ("--duration", 10**10), ("--duration", 2**64), ("--threads", 2**32 + 1)):
            self.assertIn(str(number), self.refused("run", line, option, number, code=2, error="MR0105"))
        for ticks, seen in ((3, 3), (2**32 + 3, 5)):
            self.assertIn(f"{seen} ticks", self.run_it("run", line, "--ticks", ticks).stderr)
        self.assertIn("5 ticks", self.run_it("run", line, "--duration", 8 * 10**9).stderr)

    def test_a_wrong_value_is_told_with_what_is_expected_and_one_that_works(self):
        line = "test.pattern width=16 height=16 count=2 ! null.sink"
        for given, what, expected, edit in (
                (["--ticks", "ten"], '--ticks cannot be "ten"', "a whole number above 0", "--ticks 100"),
                (["--ticks", "0"], '--ticks cannot be "0"', "a whole number above 0", "--ticks 100"),
                (["--ticks=-3"], '--ticks cannot be "-3"', "a whole number above 0", "--ticks 100"),
                (["--ticks", "1e3"], '--ticks cannot be "1e3"', "a whole number above 0", "--ticks 1000"),
                (["--ticks", "10x"], '--ticks cannot be "10x"', "a whole number above 0", "--ticks 10"),
                (["--threads", "many"], '--threads cannot be "many"', "a whole number from 1 to 1024", "--threads 2"),
                (["--threads", "5000"], '--threads cannot be "5000"', "a whole number from 1 to 1024", "--threads 2"),
                (["--log-level", "inof"], '--log-level cannot be "inof"', "debug, info, warning or error", "--log-level info"),
                (["--log-level", "loud"], '--log-level cannot be "loud"', "debug, info, warning or error", "--log-level info"),
                (["--log-format", "xml"], '--log-format cannot be "xml"', "text or json", "--log-format json"),
                (["--control", "maybe"], '--control cannot be "maybe"', "on or off", "--control off"),
                (["--ticks"], "--ticks needs a value", "--ticks: stop after so many ticks", "--ticks 100"),
                (["--json"], "--json needs a value", "--json: write the report", "--json report.json")):
            said = self.refused("run", line, *given, code=2, error="MR0105")
            self.assertIn(what, said.partition("\n")[0])
            self.assertIn(expected, said)
            self.assertTrue(said.endswith(f"\n  try: {edit}\n"), said)
            self.run_it("run", line, "--quiet", *edit.split())

    def test_what_a_command_needs_is_told_with_a_whole_command(self):
        for given, needs, edit in ((["new", "my plugin"], "--name", "millrace new 'my plugin' --name my_plugin.invert"),
                                   (["new", "my", "plugin"], "--name", "millrace new my_plugin --name my_plugin.invert"),
                                   (["new"], "DIR", "millrace new mine --name acme.invert"),
                                   (["inspect"], "TYPE", "millrace inspect image.blur"),
                                   (["run"], "PIPELINE", "millrace run 'test.pattern count=100 ! null.sink'"),
                                   (["plan", "--threads", "2"], "PIPELINE",
                                    "millrace plan --threads 2 'test.pattern count=100 ! null.sink'"),
                                   (["set"], "CHANGE", "millrace set blur.sigma=2")):
            said = self.refused(*given, code=2, error="MR0105")
            self.assertIn(f" needs {needs}\n", said)
            self.assertTrue(said.endswith(f"\n  try: {edit}\n"), said)
            if given[0] != "set":  # there is no run
                self.run_it(*shlex.split(edit)[1:])

    def test_options_that_need_or_exclude_another_say_so(self):
        line = "null.source count=2 ! null.sink"
        self.assertIn("--patience is for a run with --node, and there is none",
                      self.refused("run", line, "--patience", "3", code=2, error="MR0105"))
        self.assertIn("exclude each other",
                      self.refused("run", line, "--plan", "x", "--devices", "cpu", code=2, error="MR0105"))

    def test_a_project_is_not_named_after_a_built_in_handler(self):
        self.assertIn("test.number", self.refused("new", "there", "--name", "test.number", code=2, error="MR0105"))
        self.assertFalse((self.folder / "there").exists())


class Outputs(Command):
    def test_a_pipeline_gives_the_same_bytes_whatever_threads_and_devices_it_runs_on(self):
        hashes = set()
        for devices in ("cpu", "cpu,sim:0", "sim:0,cpu", "sim:0"):
            for threads in (1, 2, 8):
                self.run_it("run", "test.pattern width=64 height=48 count=10 ! image.blur sigma=2 ! "
                            "file.raw_writer path=out.rgb", "--threads", threads, "--devices", devices)
                written = (self.folder / "out.rgb").read_bytes()
                self.assertEqual(len(written), 10 * 64 * 48 * 3)
                hashes.add(hashlib.sha256(written).hexdigest())
        self.assertEqual(len(hashes), 1)

    def test_the_report_has_what_scripts_rely_on(self):
        self.run_it("run", "test.pattern name=video width=64 height=48 count=40 ! image.blur ! null.sink device=cpu", "--devices",
                    "sim:0,cpu", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["version"], 1)
        self.assertEqual(report["ticks"], {"run": 40, "late": 0, "skipped": 0})
        self.assertGreater(report["duration_s"], 0)
        self.assertEqual(report["handlers"]["blur"]["domain"], "sim:0")
        for key in ("type", "domain", "calls", "errors", "sampled", "p50_us", "p99_us", "max_us"):
            self.assertIn(key, report["handlers"]["video"])
        self.assertEqual(report["handlers"]["video"]["type"], "test.pattern")
        for edge in report["edges"]:
            self.assertEqual(set(edge), {"from", "to", "policy", "delivered", "empty", "dropped"})
        self.assertEqual([transfer["count"] for transfer in report["transfers"]], [40, 40])
        for key in ("from", "to", "edge", "count", "bytes", "p50_us"):
            self.assertIn(key, report["transfers"][0])
        self.assertEqual(set(report["pools"]), {"cpu", "sim:0"})
        for pool in report["pools"].values():
            self.assertLessEqual({"allocated_bytes", "high_water_bytes", "steady_allocations"}, set(pool))
        self.assertEqual(set(report["latency_us"]), {"p50", "p99", "max", "first", "sampled"})

    def test_the_report_may_go_to_stdout(self):
        result = self.run_it("run", "null.source count=5 ! null.sink", "--json", "-")
        self.assertEqual(json.loads(result.stdout)["ticks"]["run"], 5)

    def test_a_report_or_a_trace_that_cannot_be_written_is_refused_before_the_run(self):
        for option in ("--json", "--trace"):
            said = self.refused("run", "test.pattern count=5 ! file.raw_writer path=out.raw", option, "no/such/folder.json",
                                code=2, error="MR0111")
            self.assertIn("cannot write no/such/folder.json: No such file or directory", said)
            self.assertFalse((self.folder / "out.raw").exists())

    def test_a_file_that_may_not_be_written_is_refused_before_all_else(self):
        (self.folder / "folder").mkdir()
        for option in ("--json", "--trace", "--log-file"):
            for path in ("no/such/file", "folder"):
                said = self.refused("run", "no.such ! handler", option, path, code=2, error="MR0111")
                self.assertIn(path, said)

    def test_a_report_that_cannot_be_written_when_the_run_is_over_is_an_error(self):
        for option in ("--json", "--trace"):
            result = self.run_it("run", "test.pattern width=64 height=48 count=5 ! file.raw_writer path=out.raw", option,
                                 "/dev/full", code=6)
            self.assertIn("error MR0606: cannot write /dev/full: No space left on device\n", result.stderr)
            self.assertEqual((self.folder / "out.raw").stat().st_size, 5 * 64 * 48 * 3)

    def test_an_earlier_report_is_never_taken_for_that_of_this_run(self):
        report = self.folder / "report.json"
        report.write_text("an earlier one")
        self.run_it("run", "null.source count=3 ! file.raw_writer path=/proc/no/such", "--json", report, code=1)
        self.assertEqual(report.read_text(), "")
        report.unlink()
        self.run_it("run", "null.source count=3 ! file.raw_writer path=/proc/no/such", "--json", report, code=1)
        self.assertFalse(report.exists())

    def test_report_and_trace_do_not_share_a_file(self):
        self.refused("run", "null.source count=3 ! null.sink", "--json", "x", "--trace", "x", code=2, error="MR0105")

    def test_the_trace_may_go_to_stdout(self):
        told = json.loads(self.run_it("run", "null.source count=5 ! null.sink", "--trace", "-").stdout)
        self.assertIn("traceEvents", told)

    def test_ticks_limits_a_run(self):
        self.run_it("run", "test.pattern width=8 height=8 ! file.raw_writer path=out.rgb", "--ticks", 7)
        self.assertEqual((self.folder / "out.rgb").stat().st_size, 7 * 8 * 8 * 3)

    def test_duration_ends_an_endless_run(self):
        result = self.run_it("run", "null.source ! null.sink", "--duration", 0.1, "--json", "-")
        self.assertGreaterEqual(json.loads(result.stdout)["duration_s"], 0.1)

    def test_set_reaches_parameters_and_reserved_keys(self):
        self.run_it("run", "test.pattern name=in width=8 height=8 count=9 ! file.raw_writer name=out path=x", "--set",
                    "in.width=16", "--set", "out.path=other", "--set", "out.every=3")
        self.assertEqual((self.folder / "other").stat().st_size, 3 * 16 * 8 * 3)

    def test_clock_and_rate_override_the_pipeline(self):
        result = self.run_it("plan", "null.source ! null.sink", "--clock", "realtime", "--rate", "30000/1001", "--json")
        clock = json.loads(result.stdout)["clocks"][0]
        self.assertEqual((clock["mode"], clock["rate"]), ("realtime", [30000, 1001]))

    def test_quiet_says_nothing_and_else_the_end_is_told(self):
        pipeline = "null.source count=5 ! null.sink"
        self.assertEqual(self.run_it("run", pipeline, "--quiet").stderr, "")
        told = self.run_it("run", pipeline)
        self.assertTrue(told.stderr.startswith("5 ticks in "), told.stderr)
        self.assertEqual(told.stdout, "")
        self.assertNotIn("\r", told.stderr)  # no terminal, no progress

    def test_the_plans_notes_are_told_once_as_the_run_begins_and_kept_in_its_log(self):
        given = ("test.pattern width=16 height=16 count=5 ! draw.boxes ! image.blur ! null.sink", "--threads", 2, "--devices",
                 "cpu,sim:0")
        planned = self.run_it("plan", *given).stdout.partition("\nnotes\n")[2]
        notes = ["note: " + line.strip() for line in planned.splitlines()]
        costs = [note for note in notes if note.startswith("note: costs not known: ")]
        others = [note for note in notes if note not in costs]
        self.assertEqual(len(costs), 1)
        self.assertIn("note: boxes (draw.boxes) does nothing: its input boxes (Records<Box>) is not connected", others)
        told = self.run_it("run", *given, "--log-file", "notes.log").stderr.splitlines()
        self.assertEqual(told[:len(others)], others)  # guessed costs are for those who look at the plan, or ask by -v
        self.assertEqual([line for line in told if line.startswith("note: ")], others)
        self.assertEqual([line for line in self.run_it("run", *given, "-v").stderr.splitlines() if line.startswith("note: ")],
                         notes)
        log = (self.folder / "notes.log").read_text(encoding="utf-8")
        for note in notes:
            self.assertEqual(log.count(note), 1, log)
        self.assertEqual(self.run_it("run", *given, "--quiet").stderr, "")

    def test_a_wall_of_eight_cameras_says_at_most_three_lines_before_its_first_picture(self):
        (self.folder / "wall.yaml").write_text(WALL)
        planned = self.run_it("plan", "wall.yaml", "--threads", 2).stdout.partition("\nnotes\n")[2]
        self.assertRegex(planned, r"boxes@cameras copies its input before it writes: .*\(8 streams\)")
        told = self.run_it("run", "wall.yaml", "--threads", 2).stderr
        before = told[:told.index(" ticks in ")].splitlines()[:-1]
        self.assertTrue(0 < len(before) <= 3, told)
        self.assertFalse([line for line in before if "@c1" in line], told)
        written = self.run_it("run", "wall.yaml", "--threads", 2, "--quiet", "--log-file", "wall.log")
        self.assertEqual(written.stderr, "")
        notes = re.findall(r"note: .*", (self.folder / "wall.log").read_text(encoding="utf-8"))
        self.assertEqual(len(notes), len(planned.splitlines()), notes)

    def test_progress_is_rewritten_in_one_line_of_a_terminal(self):
        seen = self.said_on_a_terminal("run", "null.source ! null.sink", "--duration", "0.4")
        progress, _, end = seen.rpartition("\x1b[K")
        self.assertIn("ticks", progress)
        self.assertNotIn("\n", progress)
        self.assertRegex(end, r"^\d+ ticks in ")


    def test_the_line_fits_its_terminal(self):
        for columns in (30, 60):
            ours, theirs = pty.openpty()
            self.addCleanup(os.close, ours)
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 16, columns, 0, 0))
            pipeline = self.folder / "busy.yaml"
            pipeline.write_text("version: 1\nhandlers:\n  cam: { type: test.pattern, width: 64, height: 48, fps: 100, live: true }\n"
                                "  slow: { type: test.work, cpu_us: 50000, input: { from: cam, policy: latest } }\n")
            with subprocess.Popen([MILLRACE, "run", pipeline, "--duration", "1.2"], stderr=theirs,
                                  stdin=subprocess.DEVNULL) as process:
                os.close(theirs)
                seen = read_to_the_end(ours)
            drawn = [line for line in seen.rpartition("\x1b[K")[0].split("\r") if "ticks" in line]
            self.assertGreater(len(drawn), 3)
            for line in drawn:
                self.assertLess(len(line.replace("\x1b[K", "")), columns, line)

    def test_progress_is_lines_bar_or_none(self):
        self.refused("run", "null.source count=5 ! null.sink", "--progress", "dots", code=2, error="MR0105")
        for kind in ("lines", "none"):
            self.assertNotIn("\x1b", self.run_it("run", "null.source ! null.sink", "--duration", 0.4, "--progress", kind).stderr)
        drawn = self.run_it("run", "null.source ! null.sink", "--duration", 1, "--progress", "bar").stderr
        self.assertRegex(drawn, r"  \d+ ticks  \d+\.\d ticks/s.*\x1b\[K")

    def test_what_was_predicted_is_told_on_request(self):
        line = "null.source count=50 ! test.work cpu_us=100 ! null.sink"
        self.assertNotIn("predicted", self.run_it("run", line).stderr)
        self.assertIn("; predicted ", self.run_it("run", line, "--explain").stderr)


class Errors(Command):
    def test_an_unknown_type_is_an_invalid_pipeline_and_the_nearest_is_named(self):
        for command in ("run", "plan", "check"):
            said = self.refused(command, "test.patern ! null.sink", code=3, error="MR0304")
            self.assertIn("did you mean 'test.pattern'?", said)

    def test_an_error_in_a_file_has_its_line_and_column(self):
        (self.folder / "wrong.yaml").write_text(
            "version: 1\nhandlers:\n  in:  { type: test.number }\n  end: { type: null.sink, input: im }\n")
        said = self.refused("check", "wrong.yaml", code=3, error="MR0301")
        self.assertRegex(said, r"wrong\.yaml:4:\d+")
        self.assertIn("did you mean 'in'?", said)

    def test_a_file_that_is_not_there_is_wrong_usage(self):
        self.refused("run", "nothere.yaml", code=2, error="MR0104")

    def test_what_the_command_line_has_wrong_is_answered_with_the_nearest_name(self):
        for arguments, nearest in ((["rnu", "x"], "run"), (["handler"], "handlers"),
                                   (["run", "a", "--tick", "3"], "--ticks"), (["plan", "a", "--jsn"], "--json")):
            self.assertIn(f"did you mean '{nearest}'?", self.refused(*arguments, code=2, error="MR0105"))

    def test_wrong_usage_is_2(self):
        source = "null.source ! null.sink"
        for arguments in ([], ["run"], ["run", "a", "!", "b"], ["run", source, "--ticks", "0"],
                          ["run", source, "--threads", "0"], ["run", source, "--ticks", "many"],
                          ["run", source, "--clock", "fast"], ["run", source, "--rate", "often"],
                          ["run", source, "--devices", "gpu"], ["run", source, "--devices", "cpu,cpu"],
                          ["run", source, "--set", "x"], ["run", source, "--set", "nobody.x=1"],
                          ["run", source, "--plugin-path", "nowhere"], ["plan", source, "--json", "--dot"],
                          ["plan", source, "--facts", "nowhere.json"], ["inspect", "image.blurr"], ["explain", "MR9999"],
                          ["calibrate", source, "--clock", "realtime"], ["calibrate", source, "--ticks", "0"],
                          ["run", source, "--plan", "x", "--devices", "cpu"], ["run", source, "--plan", "x", "--threads", "2"]):
            result = self.run_it(*arguments, code=2)
            self.assertEqual(result.stdout, "", arguments)
            self.assertNotEqual(result.stderr, "", arguments)

    def test_a_node_that_the_pipeline_does_not_have_is_refused(self):
        self.assertIn("it has no 'nodes:'", self.refused("run", "null.source ! null.sink", "--node", "edge", code=2,
                                                         error="MR0105"))
        (self.folder / "p.yaml").write_text(NODES)
        self.assertIn("did you mean 'edge'?", self.refused("run", "p.yaml", "--node", "egde", code=2, error="MR0105"))
        self.refused("run", "p.yaml", "--node", "edge", "--plan", "x", code=2, error="MR0105")
        self.refused("run", "p.yaml", "--patience", "5", code=2, error="MR0105")
        self.refused("run", "p.yaml", "--wait", "5", code=2, error="MR0105")
        self.refused("run", "p.yaml", "--node", "edge", "--wait", "0", code=2, error="MR0105")

    def test_a_gpu_that_is_not_there_is_refused_with_the_reason(self):
        for module, reason in (({}, "cuda:63 is not available\n  "),
                               ({"MILLRACE_CUDA_MODULE": ""}, "the CUDA module was not built"),
                               ({"MILLRACE_CUDA_MODULE": "no/such.so"}, "the CUDA module could not be loaded: no/such.so")):
            self.assertIn(reason, self.refused("run", "null.source ! null.sink", "--devices", "cuda:63", code=3,
                                               error="MR0408", environment=module))

    def test_a_run_that_fails_is_1_and_only_its_first_cause_is_told(self):
        pipeline = "test.number fail_at=5 ! null.sink"
        said = self.refused("run", pipeline, "--quiet", code=1, error="MR0601")
        self.assertIn("number (test.number) failed at tick 5", said)
        self.run_it("run", pipeline, "--json", "report.json", code=1)
        self.assertEqual(json.loads((self.folder / "report.json").read_text())["error"]["code"], "MR0601")

    def test_a_handler_that_cannot_start_is_1(self):
        self.refused("run", "null.source count=3 ! file.raw_writer path=/proc/no/such/file", "--quiet", code=1, error="MR0605")

    def test_check_says_only_what_is_wrong(self):
        result = self.run_it("check", "test.pattern ! image.blur ! null.sink")
        self.assertEqual(result.stdout + result.stderr, "")


class Nodes(Command):
    def setUp(self):
        super().setUp()
        (self.folder / "p.yaml").write_text(NODES)

    def test_a_run_of_all_nodes_here_says_so(self):
        said = self.run_it("run", "p.yaml", "--json", "report.json").stderr
        self.assertTrue(said.startswith("nodes: all of gpu, edge run here; "), said)
        self.assertEqual(json.loads((self.folder / "report.json").read_text())["ticks"]["run"], 5)
        self.assertEqual(self.run_it("run", "p.yaml", "--quiet").stderr, "")
        (self.folder / "p.yaml").write_text(NODES.replace("edge: {}, ", "").replace("edge", "gpu"))
        self.assertNotIn("nodes:", self.run_it("run", "p.yaml").stderr)

    def test_a_plan_is_that_of_the_node_which_is_named(self):
        for node, has, lacks in (("edge", "video", "mix"), ("gpu", "mix", "video")):
            segments = self.run_it("plan", "p.yaml", "--node", node).stdout.split("segments\n")[1].split("\n\n")[0]
            self.assertRegex(segments, fr"(?m)^    {has} ")
            self.assertNotRegex(segments, fr"(?m)^    {lacks} ")
        said = self.refused("plan", "p.yaml", "--node", "egde", code=2, error="MR0105")
        self.assertIn("did you mean 'edge'?", said)
        self.assertIn("nodes: gpu, edge", said)
        self.assertIn("no 'nodes:'", self.refused("plan", "null.source", "--node", "edge", code=2, error="MR0105"))

    def test_each_mistake_of_nodes_is_told_once(self):
        for nodes, told in (("[ edge, gpu ]", ["MR0208"]), ("{}", ["MR0208"]), ("{ edge: {}, gpu: { adress: x } }", ["MR0206"]),
                            ("{ edge: gpu.local, gpv: {} }", ["MR0208", "MR0318"])):
            (self.folder / "p.yaml").write_text(NODES.replace("{ edge: {}, gpu: { coordinator: true } }", nodes))
            self.assertEqual(re.findall(r"error (MR\d+)", self.run_it("check", "p.yaml", code=3).stderr), told, nodes)

    def test_check_finds_what_only_nodes_make_wrong(self):
        self.run_it("check", "p.yaml")
        wrong = NODES.replace("input: video,", "input: [ video, other ],") + "  other: { type: test.number, node: gpu }\n"
        (self.folder / "p.yaml").write_text(wrong)
        self.refused("check", "p.yaml", code=3, error="MR0814")
        self.refused("plan", "p.yaml", "--node", "edge", code=3, error="MR0814")
        self.run_it("plan", "p.yaml")
        self.run_it("run", "p.yaml", "--ticks", "3")


class Checks(Command):
    MISTAKES = ("version: 1\nclock: 30\nhandlers:\n  v: { type: test.pattern, widht: 3, every: 0 }\n"
                "  b: { type: image.blur, input: vv, sigma: x }\n  s: { type: null.sink, input: b }\n")


    def test_a_right_pipeline_is_ok_on_a_terminal_and_nothing_elsewhere(self):
        line = "test.pattern ! image.blur ! null.sink"
        self.assertEqual(self.said_on_a_terminal("check", line), "ok, 3 handlers\r\n")
        self.assertEqual(self.said_on_a_terminal("check", "null.source"), "ok, 1 handler\r\n")
        result = self.run_it("check", line)
        self.assertEqual((result.stdout, result.stderr), ("", ""))

    def test_check_tells_all_mistakes_in_their_order_and_run_the_first(self):
        (self.folder / "p.yaml").write_text(self.MISTAKES)
        told = re.findall(r"error (MR\d+): .*\n  at p\.yaml:(\d+):", self.run_it("check", "p.yaml", code=3).stderr)
        self.assertEqual(told, [("MR0208", "2"), ("MR0310", "4"), ("MR0211", "4"), ("MR0301", "5"), ("MR0311", "5")])
        for command in ("run", "plan"):
            self.refused(command, "p.yaml", code=3, error="MR0208")

    def test_what_follows_from_a_mistake_is_not_told(self):
        (self.folder / "p.yaml").write_text("version: 1\nhandlers:\n  v: { type: test.patern }\n"
                                            "  b: { type: image.blur, inptu: v }\n  s: { type: null.sink, input: b }\n")
        self.assertEqual(re.findall(r"error (MR\d+)", self.run_it("check", "p.yaml", code=3).stderr), ["MR0304", "MR0310"])

    def test_of_many_mistakes_the_first_twenty_are_told(self):
        (self.folder / "p.yaml").write_text("version: 1\nhandlers:\n" +
                                            "".join(f"  v{i}: {{ type: null.source, no: 1 }}\n" for i in range(30)))
        said = self.run_it("check", "p.yaml", code=3).stderr
        self.assertEqual(said.count("error MR0310"), 20)
        self.assertTrue(said.endswith("\nand 10 more mistakes\n"), said)

    def test_all_sources_that_cannot_be_opened_are_told(self):
        said = self.run_it("check", "file.raw_reader path=a width=4 height=4 ! null.sink ; "
                           "file.raw_reader path=b width=4 height=4 ! null.sink", code=3).stderr
        self.assertEqual(re.findall(r"error MR0604: .*'([ab])'", said), ["a", "b"])

    def test_foreign_names_lead_to_types_that_there_are(self):
        table = (ROOT / "runtime" / "plugin" / "foreign_names.cpp").read_text()
        rows = re.findall(r'\{"([^"]+)", k(?:Gst|Filter), "([^"]*)", (.*)\},', table)
        self.assertGreater(len(rows), 50)
        self.assertEqual(len({name for name, _, _ in rows}), len(rows))
        listed = subprocess.run([WITH_PLUGINS, "handlers", "--json"], capture_output=True, check=True, timeout=SECONDS_MAX).stdout
        known = [handler["type"] for handler in json.loads(listed)["handlers"]]
        pattern = re.compile(r"(video|view|detect|track)\.|image\.(file|writer)$")  # of plugins, which may not be built
        for name, here, words in rows:
            self.assertNotIn(name, known)
            self.assertTrue(here in known or pattern.match(here) or (not here and words != '""'), name)

    def test_durations_are_read_as_a_pipeline_file_writes_them(self):
        for given in ("0.05", "50ms", "0.05s", "50000us"):
            self.run_it("run", "null.source ! null.sink", "--quiet", "--duration", given)
        for given, meant in (("10sec", "10s"), ("10 s", "10s"), ("1h", "3600s"), ("2min", "2m"), ("0", "10s"), ("-5", "10s"),
                             ("ten", "10s")):
            said = self.refused("run", "null.source ! null.sink", "--duration", given, code=2, error="MR0105")
            self.assertTrue(said.endswith(f"  try: --duration {meant}\n"), said)


class Plugins(Command):
    def setUp(self):
        super().setUp()
        self.plugins = self.folder / "plugins"
        self.plugins.mkdir()
        (self.plugins / "acme.so").write_bytes(b"this is no library")

    def test_a_type_that_is_missing_because_its_plugin_failed_is_4(self):
        for command in (["run", "null.source ! acme.invert"], ["check", "null.source ! acme.invert"]):
            said = self.refused(*command, "--plugin-path", self.plugins, code=4, error="MR0304")
            self.assertIn("acme.so", said)
        self.refused("inspect", "acme.invert", "--plugin-path", self.plugins, code=4, error="MR0106")

    def test_a_plugin_that_failed_and_is_not_needed_is_a_warning(self):
        result = self.run_it("run", "null.source count=1 ! null.sink", "--plugin-path", self.plugins)
        self.assertIn("warning MR0501", result.stderr)
        self.assertIn("acme.so", result.stderr)
        from_environment = self.run_it("run", "null.source count=1 ! null.sink", "--quiet",
                                       environment={"MILLRACE_PLUGIN_PATH": str(self.plugins)})
        self.assertEqual(from_environment.stderr, "")

    def test_a_pipe_among_the_plugins_is_told_and_not_waited_for(self):
        os.mkfifo(self.folder / "x.so")
        said = self.run_it("run", "test.number count=2 ! null.sink", "--plugin-path", ".").stderr
        self.assertIn("MR0501", said)
        self.assertIn("it is no regular file", said)

    def test_a_typing_error_stays_one_where_a_plugin_failed(self):
        said = self.refused("check", "test.patern ! null.sink", "--plugin-path", self.plugins, code=3, error="MR0304")
        self.assertIn("did you mean 'test.pattern'?", said)

    def test_handlers_lists_failures_first_with_the_loaders_words(self):
        lines = self.run_it("handlers", "--plugin-path", self.plugins).stdout.splitlines()
        self.assertTrue(lines[0].startswith("failed ") and lines[0].endswith("acme.so"), lines[0])
        self.assertIn("the loader said: ", "\n".join(lines[:4]))
        listed = json.loads(self.run_it("handlers", "--json", "--plugin-path", self.plugins).stdout)
        self.assertIn("acme.so", listed["failed"][0]["path"])
        self.assertIn("image.blur", [handler["type"] for handler in listed["handlers"]])


class Descriptions(Command):
    said = {}  # what was said of each type: several tests look at all of them, and most of a process is its start

    def program(self):
        return WITH_PLUGINS

    def says_of(self, *arguments):
        if arguments not in self.said:
            self.said[arguments] = self.run_it(*arguments).stdout
        return self.said[arguments]

    def types(self):
        return [handler["type"] for handler in json.loads(self.says_of("handlers", "--json"))["handlers"]]

    def inspected(self, kind):
        return json.loads(self.says_of("inspect", kind, "--json"))

    def test_every_type_is_described_and_its_example_compiles(self):
        compiled = 0
        for handler in json.loads(self.says_of("handlers", "--json"))["handlers"]:
            described = self.inspected(handler["type"])
            self.assertEqual(described["summary"], handler["summary"])
            text = self.says_of("inspect", handler["type"])
            for port in described["inputs"] + described["outputs"] + described["parameters"]:
                self.assertIn(f"\n  {port['name']} ", text)
            self.assertIn(handler["type"], described["example"])
            if "media/" in described["example"] or "camera" in described["example"]:
                continue  # what a machine may not have
            if "!" in described["example"]:
                self.run_it("check", described["example"], cwd=ROOT)  # where the data of examples is
                compiled += 1
        self.assertGreater(compiled, 5)

    def test_a_parameter_is_described_by_type_default_range_unit_and_life(self):
        described = json.loads(self.run_it("inspect", "image.blur", "--json").stdout)
        sigma = next(parameter for parameter in described["parameters"] if parameter["name"] == "sigma")
        self.assertEqual((sigma["type"], sigma["default"], sigma["min"], sigma["unit"], sigma["live"]),
                         ("float", 2.0, 0.0, "px", True))
        self.assertIn("cpu", described["bodies"])
        self.assertIn("gray8", described["inputs"][0]["formats"])

    def test_codes_are_explained_in_any_spelling(self):
        texts = {self.run_it("explain", spelling).stdout for spelling in ("MR0304", "mr304", "304")}
        self.assertEqual(len(texts), 1)
        self.assertTrue(texts.pop().startswith("MR0304: "))
        glossary = re.search(r"docs/guide/\w+\.md", self.run_it("explain", "--help").stdout).group()
        self.assertTrue((ROOT / glossary).exists())

    def test_without_a_plugin_the_doctor_and_the_error_name_the_packages_that_bring_it(self):
        packages = "apt-get install libavformat-dev libavcodec-dev libswscale-dev, then build again"
        environment = {**os.environ, "MILLRACE_PLUGIN_PATH": "", "MILLRACE_MACHINE": ""}
        told = json.loads(subprocess.run([MILLRACE, "doctor", "--json"], capture_output=True, env=environment,
                                         timeout=SECONDS_MAX, check=True).stdout)["findings"]
        missing = {found["name"]: found for found in told if found["part"] == "codecs"}
        self.assertEqual(set(missing), {"FFmpeg", "OpenCV"})
        self.assertEqual(missing["FFmpeg"]["remedy"], packages)
        for kind in ("video.file", "video.writer"):
            said = subprocess.run([MILLRACE, "check", f"{kind} path=x ! null.sink"], capture_output=True, env=environment,
                                  text=True, timeout=SECONDS_MAX)
            self.assertEqual(said.returncode, 3)
            self.assertIn(f"error MR0304: the handler type \"{kind}\" is not known", said.stderr)
            self.assertIn(f"{kind} is in the plugin media", said.stderr)
            self.assertIn(f"try: {packages}", said.stderr)
            self.assertNotIn("did you mean", said.stderr)

    def test_what_types_offer_on_this_machine_is_shown_and_stays_out_of_the_reference(self):
        for kind in self.types():
            offers, text = self.inspected(kind)["offers"], self.says_of("inspect", kind)
            self.assertEqual("\non this machine\n" in text, bool(offers), kind)
            for offer in offers:
                self.assertEqual(set(offer), {"part", "name", "words"})
                self.assertRegex(text, rf"(?m)^    {re.escape(offer['name'])} +{re.escape(offer['words'])}".rstrip(" +"))
        self.assertNotIn("on this machine\n", (ROOT / "docs" / "reference" / "handlers.md").read_text())

    def test_the_doctor_tells_of_every_part_what_is_there_or_why_not(self):
        findings = json.loads(self.run_it("doctor", "--json").stdout)["findings"]
        offering = {f"{kind} {offer['part']}" for kind in self.types() for offer in self.inspected(kind)["offers"]}
        self.assertEqual({found["part"] for found in findings}, {"devices", "plugins", "codecs", "fonts", *offering})
        for found in findings:
            self.assertTrue(found["detail"] or found["part"] in offering, found)
            self.assertTrue(found["there"] or found["remedy"] or found["name"] == "cuda", found)
        cuda = [found for found in findings if found["part"] == "devices" and found["name"].startswith("cuda")]
        self.assertTrue(cuda)
        without = self.run_it("doctor", environment={"MILLRACE_CUDA_MODULE": ""}).stdout
        self.assertRegex(without, "no   cuda +the CUDA module was not built")
        there = {found["name"]: found["there"] for found in findings}
        self.assertTrue(there["cpu"] and there["sim"] and there["built in"])
        if any(name.endswith("opencv.so") and loaded for name, loaded in there.items()):
            self.assertTrue(there["picture .png"])
        if {"video.file", "video.writer"} <= set(self.types()):
            self.assertTrue(there["video .mp4"])
        text = self.run_it("doctor").stdout
        for found in findings:
            self.assertIn(found["name"], text)

    def test_the_doctor_names_a_plugin_that_cannot_be_loaded_in_the_loaders_words(self):
        (self.folder / "broken.so").write_text("no library")
        findings = json.loads(self.run_it("doctor", "--json", "--plugin-path", self.folder).stdout)["findings"]
        broken = next(found for found in findings if found["name"].endswith("broken.so"))
        self.assertFalse(broken["there"])
        self.assertIn("MR0501", broken["detail"])
        self.assertIn("file too short", broken["detail"])
        self.assertEqual(broken["remedy"], "millrace explain MR0501")

    def test_a_code_that_is_not_there_is_answered_with_the_nearest(self):
        for typed, meant in (("MRO304", "MR0304"), ("MR0309", "MR0308"), ("MR4O1", "MR0401"), ("M0304", "MR0304"),
                             ("299", "MR0223")):
            said = self.refused("explain", typed, code=2, error="MR0107")
            self.assertIn(f"did you mean '{meant}'?\n  try: millrace explain {meant}", said)

    def test_without_a_code_all_are_listed_and_each_is_explained(self):
        listed = self.run_it("explain").stdout.splitlines()
        codes = json.loads(self.run_it("explain", "--json").stdout)["codes"]
        self.assertEqual([f"{code['code']}  {code['title']}" for code in codes], listed)
        self.assertGreater(len(codes), 60)
        self.assertEqual(len({code["name"] for code in codes}), len(codes))
        for code in codes:
            self.assertIn(code["exit_code"], (1, 2, 3, 4, 5))

    def test_a_benchmark_may_be_called_as_a_command(self):
        said = self.refused("bench", "plan", "chian", code=2, error="MR0105")
        self.assertIn("did you mean 'chain'?", said)

    def test_a_benchmark_runs_in_a_program_that_is_found_beside_the_command(self):
        alone = pathlib.Path(shutil.copy(MILLRACE, self.folder))
        call = lambda *words: subprocess.run([alone, "bench", *words], capture_output=True, text=True, timeout=SECONDS_MAX,
                                             stdin=subprocess.DEVNULL)
        missing = call("plan")
        self.assertEqual((missing.returncode, missing.stdout), (4, ""))
        self.assertRegex(missing.stderr, r"\Aerror MR0507: the program millrace-bench is not installed\n  it was looked for in "
                         rf"{self.folder} and in \S+/libexec/millrace\n  the package millrace-dev has it; ")
        program = self.folder / "millrace-bench"
        program.write_text("#!/bin/sh\nprintf '%s|' \"$@\"; echo told >&2\n[ \"$1\" = clock ] && kill -TERM $$\nexit 7\n")
        program.chmod(0o755)
        done = call("plan", "bench", "--json", "a b.json")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "plan|bench|--json|a b.json|", "told\n"))
        self.assertEqual(call("clock").returncode, -signal.SIGTERM)
        self.assertIn("measures the runtime itself", call("--help").stdout)  # by the command, which has its own errors too
        self.assertTrue(call("--jsno").stderr.startswith("error MR0105: there is no option --jsno"))

    def test_the_program_of_the_benchmarks_has_the_help_and_the_errors_of_the_command(self):
        program = pathlib.Path(MILLRACE).parent / "millrace-bench"
        for words in (["--help"], ["--jsno", "a"], ["--json", ""], ["--json"], ["chian"]):
            both = [subprocess.run([*one, *words], capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
                    for one in ([MILLRACE, "bench"], [program])]
            self.assertEqual(*((one.returncode, one.stdout, one.stderr) for one in both))

    def test_what_measures_a_device_runs_on_those_that_are_named(self):
        self.run_it("bench", "gpu", "transfer", "--devices", "sim:0", "--json", "rows.json")
        rows = json.loads((self.folder / "rows.json").read_text())
        for bench, metrics in (("gpu", {"submit", "launch_to_host"}), ("transfer", {"frame", "by_hand", "ratio"})):
            mine = [row for row in rows if row["bench"] == bench]
            self.assertEqual({row["metric"] for row in mine}, metrics)
            for row in mine:
                self.assertIn("sim:0", row["case"])
                self.assertGreater(row["n"], 0)
                self.assertGreater(row["p50"], 0)

    def test_what_measures_a_device_says_that_there_is_none(self):
        said = self.refused("bench", "transfer", "--devices", "cpu", code=3, error="MR0408")
        self.assertIn("transfer measures a device, and there is none\n  --devices names the host alone", said)
        self.assertIn("try: millrace bench transfer --devices sim:0", said)

    def test_help_and_version_are_no_errors(self):
        self.assertIn("millrace", self.run_it("--version").stdout)
        for arguments in (["--help"], ["run", "--help"], ["bench", "--help"]):
            self.assertIn("Usage", self.run_it(*arguments).stdout)


class Facts(Command):
    PIPELINE = "test.pattern name=video ! image.blur ! null.sink"

    def plan_with(self, facts, *more, **options):
        (self.folder / "facts.json").write_text(facts if isinstance(facts, str) else json.dumps(facts))
        return self.run_it("plan", self.PIPELINE, "--facts", "facts.json", *more, **options)

    def test_facts_stand_in_for_probing(self):
        facts = {"video": {"rate": "30000/1001", "live": True, "tick_count": 90,
                           "outputs": {"video": {"pixel_format": "bgr8", "width": 1920, "height": 1080}}}}
        text = self.plan_with(facts, "--no-probe").stdout
        self.assertIn("bgr8 1920×1080", text)
        self.assertIn("30000/1001 per s, live", text)

    def test_what_is_not_named_is_probed(self):
        self.assertIn("rgb8 640×480", self.plan_with({}).stdout)

    def test_without_facts_and_probing_a_size_is_not_known(self):
        self.refused("plan", self.PIPELINE, "--no-probe", code=3, error="MR0403")

    def test_facts_that_say_something_else_are_refused(self):
        picture = {"pixel_format": "bgr8", "width": 8, "height": 8}
        for facts, code, error in (("no json", 2, "MR0110"), ([], 2, "MR0110"), ({"vidoe": {}}, 3, "MR0301"),
                                   ({"video": {"rat": 3}}, 2, "MR0110"), ({"video": {"rate": "fast"}}, 2, "MR0110"),
                                   ({"video": {"live": 1}}, 2, "MR0110"), ({"video": {"outputs": {}}}, 2, "MR0110"),
                                   ({"video": {"outputs": {"vid": picture}}}, 2, "MR0110"),
                                   ({"video": {"outputs": {"video": {**picture, "width": 0}}}}, 2, "MR0110"),
                                   ({"video": {"outputs": {"video": {**picture, "pixel_format": "bgr9"}}}}, 2, "MR0110")):
            result = self.plan_with(facts, code=code)
            self.assertTrue(result.stderr.startswith(f"error {error}"), f"{facts}: {result.stderr}")


class Machine(Command):
    """Simulated devices as a file declares them, what calibrate measures, and plans that were saved."""

    BLUR = "test.pattern name=video width=64 height=48 count=10 ! image.blur name=blur{} ! null.sink name=end"
    TWO_DEVICES = ("test.pattern name=video width=64 height=48 count=10 ! image.blur name=a device=sim:0 ! "
                   "image.flip name=b device=sim:1 ! file.raw_writer path=out.rgb device=cpu")

    def machine(self, text=None, **parts):
        path = self.folder / "machine.json"
        path.write_text(text if text is not None else json.dumps({"version": 1, **parts}))
        return path

    def kept(self):
        return json.loads((self.folder / "machine.json").read_text())

    def plan(self, pipeline, *options):
        return json.loads(self.run_it("plan", pipeline, "--json", *options).stdout)

    def test_what_calibrate_measures_is_what_the_plan_prices_with(self):
        pipeline, on_device = self.BLUR.format(""), self.BLUR.format(" device=sim:0")
        devices, machine = ["--devices", "cpu,sim:0"], ["--machine", "machine.json"]
        guessed = self.plan(on_device, *devices)["transfers"][0]["predicted_us"]
        told = self.run_it("calibrate", pipeline, *devices, *machine, "--ticks", 20).stdout
        self.assertIn("kept in machine.json", told)
        kept = self.kept()
        hops = {(hop["from"], hop["to"]): hop for hop in kept["hops"]}
        self.assertEqual(set(hops), {("cpu", "sim:0"), ("sim:0", "cpu")})
        bodies = {(body["type"], body["domain"]): body for body in kept["bodies"]}
        self.assertLessEqual({("image.blur", "cpu"), ("image.blur", "sim:0")}, set(bodies))

        transfer = self.plan(on_device, *devices, *machine)["transfers"][0]
        self.assertNotEqual(transfer["predicted_us"], guessed)
        at_4k, at_64k = hops["cpu", "sim:0"]["us"][:2]
        between = at_4k + (at_64k - at_4k) * (transfer["bytes"] - 4096) / (65536 - 4096)
        self.assertAlmostEqual(transfer["predicted_us"], between, delta=0.02 * between)

        plan = self.plan(pipeline, *devices, *machine)
        self.assertIn("placed by price: 2 of 3 handlers", "\n".join(plan["notes"]))
        blur = plan["handlers"]["blur"]
        self.assertAlmostEqual(blur["cost_us"], bodies["image.blur", blur["domain"]]["mean_us"], delta=1)

    def test_calibrate_keeps_what_was_declared_and_measures_no_less(self):
        declared = {"sim:0": {"latency_us": 3000, "up_bytes_per_us": 1000, "host_access_ns_per_byte": 1},
                    "sim:1": {"peers": {"sim:0": {"latency_us": 700, "bytes_per_us": 2000, "access_ns_per_byte": 2}}}}
        self.machine(simulated=declared)
        self.run_it("calibrate", "--devices", "cpu,sim:0,sim:1", "--machine", "machine.json")
        kept = self.kept()
        self.assertEqual(kept["simulated"]["sim:0"]["latency_us"], 3000)
        self.assertEqual(kept["simulated"]["sim:1"]["peers"], declared["sim:1"]["peers"])
        hops = {(hop["from"], hop["to"]): hop for hop in kept["hops"]}
        self.assertGreaterEqual(hops["cpu", "sim:0"]["us"][2], 3000 + (1 << 20) / 1000)
        self.assertGreaterEqual(hops["sim:0", "sim:1"]["us"][2], 700 + (1 << 20) / 2000)
        self.assertEqual(hops["sim:0", "sim:1"]["access_ns_per_byte"], 2)
        plan = self.plan(self.TWO_DEVICES, "--devices", "cpu,sim:0,sim:1", "--machine", "machine.json")
        self.assertEqual([access["edge"] for access in plan["accesses"]], ["video.video → a.video", "a.video → b.video"])

    def test_calibrate_without_anything_to_measure_says_so_and_writes_nothing(self):
        self.assertIn("nothing to measure", self.run_it("calibrate", "--machine", "machine.json").stdout)
        self.assertFalse((self.folder / "machine.json").exists())
        self.refused("calibrate", "--devices", "cpu,sim:0", code=2, error="MR0111")  # no file was named

    def test_the_machines_own_file_is_that_of_the_environment(self):
        path = self.machine(simulated={"sim:0": {"latency_us": 5000}})
        result = self.run_it("plan", self.BLUR.format(" device=sim:0"), "--devices", "cpu,sim:0", "--json",
                             environment={"MILLRACE_MACHINE": str(path)})
        self.assertGreater(json.loads(result.stdout)["transfers"][0]["predicted_us"], 5000)
        home = self.folder / "settings"
        (home / "millrace").mkdir(parents=True)
        (home / "millrace" / f"{os.uname().nodename}.json").write_text("broken")
        without = {name: value for name, value in os.environ.items() if name != "MILLRACE_MACHINE"}
        result = subprocess.run([MILLRACE, "plan", "null.source ! null.sink"], capture_output=True, text=True,
                                timeout=SECONDS_MAX, env={**without, "XDG_CONFIG_HOME": str(home)})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("error MR0114", result.stderr)

    def test_peers_shorten_a_route_and_memory_that_a_device_reads_in_place_is_not_copied(self):
        devices = ["--devices", "cpu,sim:0,sim:1"]
        routes = lambda plan: {transfer["edge"]: transfer["route"] for transfer in plan["transfers"]}
        by_host = routes(self.plan(self.TWO_DEVICES, *devices))
        self.assertNotIn(["sim:0", "sim:1"], by_host.values())
        self.machine(simulated={"sim:1": {"peers": {"sim:0": {"latency_us": 5, "bytes_per_us": 50000}}}})
        plan = self.plan(self.TWO_DEVICES, *devices, "--machine", "machine.json")
        self.assertEqual(routes(plan)["a.video → b.video"], ["sim:0", "sim:1"])
        self.assertEqual(plan["accesses"], [])
        self.machine(simulated={"sim:0": {"latency_us": 500, "host_access_ns_per_byte": 0.001}})
        plan = self.plan(self.TWO_DEVICES, *devices, "--machine", "machine.json")
        read = {access["edge"]: access for access in plan["accesses"]}["video.video → a.video"]
        self.assertEqual(read["domain"], "cpu")
        self.assertLess(read["predicted_us"], read["copy_us"])
        self.assertNotIn("video.video → a.video", routes(plan))

    def test_peers_reading_in_place_and_slow_hops_change_no_byte(self):
        devices, out = ["--devices", "cpu,sim:0,sim:1"], self.folder / "out.rgb"
        self.run_it("run", self.TWO_DEVICES.replace("device=sim:0", "").replace("device=sim:1", ""), "--quiet")
        expected = out.read_bytes()
        self.assertEqual(len(expected), 10 * 64 * 48 * 3)
        peer = {"latency_us": 5, "bytes_per_us": 50000}
        for simulated in ({}, {"sim:1": {"peers": {"sim:0": peer}}},
                          {"sim:0": {"host_access_ns_per_byte": 0.001, "latency_us": 500},
                           "sim:1": {"peers": {"sim:0": {"access_ns_per_byte": 0.001}}}},
                          {"sim:0": {"latency_us": 3000, "down_bytes_per_us": 50}}):
            for threads in (1, 4):
                out.unlink()
                self.machine(simulated=simulated)
                self.run_it("run", self.TWO_DEVICES, *devices, "--machine", "machine.json", "--threads", threads, "--quiet")
                self.assertEqual(out.read_bytes(), expected, simulated)

    def test_a_device_that_fails_ends_the_run_with_5_and_one_without_memory_with_1(self):
        for fault in ("lose_device", "fail_copy", "fail_run"):
            for nth in (1, 2, 5):
                for threads in (1, 4):
                    self.machine(simulated={"sim:0": {"faults": {fault: nth}}})
                    said = self.refused("run", self.TWO_DEVICES, "--devices", "cpu,sim:0,sim:1", "--machine",
                                        "machine.json", "--threads", threads, "--quiet", code=5, error="MR0703")
                    self.assertIn("sim:0 is lost", said)
        self.machine(simulated={"sim:0": {"faults": {"out_of_memory": 1}}})
        self.refused("run", self.TWO_DEVICES, "--devices", "cpu,sim:0,sim:1", "--machine", "machine.json", "--quiet",
                     code=1, error="MR0701")
        self.machine(simulated={"sim:0": {"memory_bytes": 10000}})
        self.refused("run", self.TWO_DEVICES, "--devices", "cpu,sim:0,sim:1", "--machine", "machine.json", "--quiet",
                     code=3, error="MR0404")

    def test_a_machine_file_that_is_wrong_is_refused_with_the_nearest_name(self):
        hop = {"from": "cpu", "to": "sim:0"}
        for text, meant in (("no json", ""), ("[]", ""), ('{"version": 2}', ""), ('{"version": 1, "simulatd": {}}', "simulated"),
                            ({"simulated": {"sim:0": {"latncy_us": 1}}}, "latency_us"),
                            ({"simulated": {"cuda:0": {}}}, ""), ({"simulated": {"sim:0": {"latency_us": -1}}}, ""),
                            ({"simulated": {"sim:0": {"peers": {"cpu": {}}}}}, ""),
                            ({"simulated": {"sim:0": {"faults": {"lose_devic": 1}}}}, "lose_device"),
                            ({"hops": [{"from": "cpu"}]}, ""), ({"hops": [{**hop, "latency_us": 1}]}, ""),
                            ({"hops": [{**hop, "latency_us": 1, "us": [1, 2, 3]}]}, ""),
                            ({"hops": [{**hop, "latncy_us": 1}]}, "latency_us"),
                            ({"bodies": [{"type": "x", "domain": "cpu", "bytes": 1}]}, ""),
                            ({"bodies": [{"type": "x", "domain": "cpu", "bytes": 1, "p50us": 1}]}, "p50_us")):
            self.machine(*([text] if isinstance(text, str) else []), **({} if isinstance(text, str) else text))
            said = self.refused("run", "null.source count=1 ! null.sink", "--machine", "machine.json", code=2, error="MR0114")
            self.assertIn("the file is machine.json", said)
            if meant:
                self.assertIn(f"did you mean '{meant}'?", said)
        self.refused("run", "null.source count=1 ! null.sink", "--machine", "nowhere.json", code=2, error="MR0104")

    def test_a_saved_plan_is_run_again_or_refused(self):
        saved = self.folder / "plan.json"
        pipeline = self.BLUR.format(" device=sim:0")
        saved.write_text(self.run_it("plan", pipeline, "--devices", "cpu,sim:0", "--threads", 3, "--json").stdout)
        report = json.loads(self.run_it("run", pipeline, "--plan", "plan.json", "--json", "-").stdout)
        self.assertEqual(report["ticks"]["run"], 10)
        self.assertEqual(report["handlers"]["blur"]["domain"], "sim:0")
        said = self.refused("run", pipeline.replace("width=64", "width=128"), "--plan", "plan.json", code=3, error="MR0412")
        self.assertRegex(said, r"saved: .*\n.*now: ")
        self.refused("run", pipeline + "  blur. ! null.sink", "--plan", "plan.json", code=3, error="MR0412")
        for text in ("no json", "{}", '{"version": 1}', '{"version": 9, "workers": 1}'):
            saved.write_text(text)
            self.refused("run", pipeline, "--plan", "plan.json", code=2, error="MR0115")
        self.refused("run", pipeline, "--plan", "nowhere.json", code=2, error="MR0104")

    def test_a_plan_that_was_made_by_prices_is_run_where_the_prices_are_others(self):
        pipeline = self.BLUR.format("")
        body = {"type": "image.blur", "bytes": 9216}
        costs = lambda cpu, sim: [{**body, "domain": "cpu", "p50_us": cpu}, {**body, "domain": "sim:0", "p50_us": sim}]
        self.machine(bodies=costs(5000, 10))
        options = ["--devices", "cpu,sim:0", "--machine", "machine.json"]
        text = self.run_it("plan", pipeline, *options, "--json").stdout
        self.assertEqual(json.loads(text)["handlers"]["blur"]["domain"], "sim:0")
        (self.folder / "plan.json").write_text(text)
        self.machine(bodies=costs(10, 5000))
        self.assertEqual(self.plan(pipeline, *options)["handlers"]["blur"]["domain"], "cpu")
        for machine in ([], ["--machine", "machine.json"]):
            report = json.loads(self.run_it("run", pipeline, "--plan", "plan.json", *machine, "--json", "-").stdout)
            self.assertEqual(report["handlers"]["blur"]["domain"], "sim:0")

    def test_what_took_another_time_than_was_predicted_is_a_surprise(self):
        self.machine(bodies=[{"type": "image.blur", "domain": "cpu", "bytes": 640 * 480 * 3, "p50_us": 2}])
        result = self.run_it("run", "test.pattern count=20 ! image.blur name=blur ! null.sink", "--machine", "machine.json",
                             "--json", "-")
        surprises = {one["what"]: one for one in json.loads(result.stdout)["surprises"]}
        self.assertEqual(surprises["blur"]["predicted_us"], 2)
        self.assertGreater(surprises["blur"]["measured_us"], 2.4)


class Signals(Command):
    """Pictures go through a pipe, so that the test is told by its bytes, and not by time, that the run is under way."""

    PICTURE = 256 * 256 * 3  # more than a pipe takes, so the writer of one that is begun waits for its reader
    BEGUN = 10 * PICTURE + 1

    def launch(self, *arguments, ignored=(), **options):
        def as_from_a_terminal():  # whoever runs this test may ignore signals, and that is inherited
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        process = subprocess.Popen([MILLRACE, *map(str, arguments)], cwd=self.folder, preexec_fn=as_from_a_terminal,
                                   **{"stdin": subprocess.DEVNULL, **options})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def begin(self, ignored=(), quiet=True, **options):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        process = self.launch("run", f"test.pattern width=256 height=256 ! file.raw_writer path={pipe}", "--json",
                              self.folder / "report.json", *(["--quiet"] if quiet else []), ignored=ignored, **options)
        reader = open(pipe, "rb")
        self.addCleanup(reader.close)
        self.assertEqual(len(reader.read(self.BEGUN)), self.BEGUN)
        return process, reader

    def test_the_first_signal_drains_and_every_tick_that_ran_is_in_the_file(self):
        for sent, code in ((signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(sent=sent):
                process, reader = self.begin()
                process.send_signal(sent)
                rest = len(reader.read())
                self.assertEqual(process.wait(SECONDS_MAX), code)
                report = json.loads((self.folder / "report.json").read_text())
                self.assertEqual(self.BEGUN + rest, report["ticks"]["run"] * self.PICTURE)
                (self.folder / "pipe").unlink()

    def test_a_signal_that_was_ignored_from_the_start_stays_ignored(self):
        process, reader = self.begin(ignored=(signal.SIGHUP, signal.SIGINT))
        for ignored in (signal.SIGHUP, signal.SIGINT):
            process.send_signal(ignored)
        self.assertEqual(len(reader.read(10 * self.BEGUN)), 10 * self.BEGUN)  # it goes on, as nohup promises
        process.send_signal(signal.SIGTERM)
        reader.read()
        self.assertEqual(process.wait(SECONDS_MAX), 143)

    def test_a_signal_ends_a_start_that_waits(self):
        pipe, other = self.folder / "pipe", self.folder / "other"
        os.mkfifo(pipe)
        (self.folder / "two.yaml").write_text(
            "version: 1\nname: two\nhandlers:\n"
            "  pattern: {type: test.pattern, width: 256, height: 256}\n"
            f"  other: {{type: file.raw_writer, input: pattern, path: {other}}}\n"
            f"  waits: {{type: file.raw_writer, input: pattern, path: {pipe}}}\n")
        for sent, code in ((signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(sent=sent):
                process = self.launch("run", "two.yaml")
                begun = time.monotonic()
                while not other.exists():  # the first writer has started, and the second one's start waits for a reader
                    self.assertLess(time.monotonic() - begun, SECONDS_MAX)
                    time.sleep(0.01)
                process.send_signal(sent)
                self.assertEqual(process.wait(SECONDS_MAX), code)
                self.assertFalse(other.exists())  # nothing was written

    def test_the_second_signal_ends_a_run_that_cannot_drain_and_leaves_a_report(self):
        process, _ = self.begin()  # nobody reads on: the writer waits for ever
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(SECONDS_MAX), 143)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["error"]["code"], "MR0610")

    def test_a_closed_terminal_ends_a_run_as_a_hangup_and_what_was_written_is_whole(self):
        ours, theirs = pty.openpty()
        process, reader = self.begin(quiet=False, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        os.close(ours)  # from here on each of its writes to the terminal fails
        process.send_signal(signal.SIGHUP)
        rest = len(reader.read())
        self.assertEqual(process.wait(SECONDS_MAX), 129)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(self.BEGUN + rest, report["ticks"]["run"] * self.PICTURE)


class Pipes(Command):
    """Raw frames through standard input and output, as between two programs."""

    FRAME = 64 * 48 * 3
    READER = "file.raw_reader path=- width=64 height=48 ! "

    def pictures(self, count):
        self.run_it("run", f"test.pattern width=64 height=48 count={count} ! file.raw_writer path=all.rgb")
        return (self.folder / "all.rgb").read_bytes()

    def through(self, line, data, *arguments):
        return subprocess.run([MILLRACE, "run", line, *arguments], cwd=self.folder, input=data, capture_output=True,
                              timeout=SECONDS_MAX)

    def test_two_runs_are_joined_by_a_pipe_and_the_bytes_are_those_of_a_file(self):
        writer = subprocess.Popen([MILLRACE, "run", "test.pattern width=64 height=48 count=200 ! file.raw_writer path=-"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False)
        self.addCleanup(writer.kill)
        reader = subprocess.Popen([MILLRACE, "run", self.READER + "file.raw_writer path=out.rgb"], stdin=writer.stdout,
                                  cwd=self.folder, stderr=subprocess.PIPE)
        self.addCleanup(reader.kill)
        writer.stdout.close()
        summary = reader.communicate(timeout=SECONDS_MAX)[1]
        self.assertEqual((writer.wait(SECONDS_MAX), reader.returncode), (0, 0), summary)
        self.assertIn(b"200 ticks", writer.stderr.read())  # the summary is no part of the film
        writer.stderr.close()
        self.assertEqual((self.folder / "out.rgb").read_bytes(), self.pictures(200))

    def test_standard_output_that_is_a_file_keeps_what_it_held_before(self):
        with open(self.folder / "both", "ab") as both:
            both.write(b"first")
            both.flush()
            subprocess.run([MILLRACE, "run", "test.pattern width=64 height=48 count=3 ! file.raw_writer path=-"],
                           stdout=both, check=True, timeout=SECONDS_MAX, stderr=subprocess.DEVNULL)
        self.assertEqual((self.folder / "both").read_bytes(), b"first" + self.pictures(3))

    def test_a_stream_that_is_cut_off_or_empty_is_said(self):
        data = self.pictures(4)
        for sent, words in ((data[:-1], "after 3 whole pictures are 9215 bytes of another"),
                            (b"", "cannot read '-': it has 0 bytes, and one picture 9216")):
            result = self.through(self.READER + "file.raw_writer path=out.rgb", sent)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr.decode())
        result = self.through(self.READER.replace(" !", " truncated=drop !") + "file.raw_writer path=out.rgb", data[:-1])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.folder / "out.rgb").read_bytes(), data[:3 * self.FRAME])

    def test_a_reader_that_has_seen_enough_is_an_error_of_the_write(self):
        writer = subprocess.Popen([MILLRACE, "run", "test.pattern width=64 height=48 ! file.raw_writer path=-"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(writer.kill)
        writer.stdout.buffer.read(3 * self.FRAME)
        writer.stdout.close()
        said = writer.communicate(timeout=SECONDS_MAX)[1]
        self.assertEqual(writer.returncode, 1)
        self.assertRegex(said, r"cannot write '-': Broken pipe \(at byte \d+\)")

    def test_a_signal_ends_a_run_that_waits_for_its_input(self):
        ours, theirs = os.pipe()
        self.addCleanup(os.close, theirs)
        for sent, code in ((signal.SIGHUP, 129), (signal.SIGTERM, 143)):
            process = subprocess.Popen([MILLRACE, "run", self.READER + "null.sink", "--metrics", "127.0.0.1:0"], stdin=ours,
                                       stderr=subprocess.PIPE, text=True,
                                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
            self.addCleanup(process.kill)
            self.assertIn("metrics", process.stderr.readline())  # it runs
            process.send_signal(sent)
            said = process.communicate(timeout=SECONDS_MAX)[1]
            self.assertEqual(process.returncode, code, said)
        os.close(ours)

    def test_the_report_and_a_film_do_not_share_standard_output(self):
        said = self.refused("run", "test.pattern count=1 ! file.raw_writer path=-", "--json", "-", code=2, error="MR0105")
        self.assertIn("--json - and raw_writer would both write to standard output", said)


class BrokenOutputs(Command):
    """What the command says cannot be said; what a run writes elsewhere is written all the same."""

    LINE = "test.pattern width=64 height=48 count=20 ! file.raw_writer path=out.rgb"
    BYTES = 20 * 64 * 48 * 3

    def run_with(self, *arguments, **streams):
        process = subprocess.Popen([MILLRACE, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, **streams)
        self.addCleanup(process.kill)
        return process.wait(SECONDS_MAX)

    def broken_pipe(self):
        ours, theirs = os.pipe()
        os.close(ours)
        self.addCleanup(os.close, theirs)
        return theirs

    def test_a_broken_or_closed_stderr_ends_no_run(self):
        streams = {"a broken pipe": {"stdout": self.broken_pipe(), "stderr": self.broken_pipe()},
                   "closed": {"preexec_fn": lambda: os.closerange(0, 3)}}
        for name, stream in streams.items():
            with self.subTest(name):
                self.assertEqual(self.run_with("run", self.LINE, "--json", "report.json", **stream), 0)
                # Closed: the file could have become number 2, and have the summary in it.
                self.assertEqual((self.folder / "out.rgb").stat().st_size, self.BYTES)
                self.assertEqual(json.loads((self.folder / "report.json").read_text())["ticks"]["run"], 20)
                self.assertEqual(self.run_with("run", "no.such ! null.sink", **stream), 3)
                (self.folder / "out.rgb").unlink()

    def test_a_report_that_stdout_does_not_take_is_an_error(self):
        result = subprocess.run([MILLRACE, "run", "null.source count=3 ! null.sink", "--json", "-", "--quiet"],
                                stdout=self.broken_pipe(), stderr=subprocess.PIPE, text=True, timeout=SECONDS_MAX)
        self.assertEqual(result.returncode, 6)
        self.assertIn("error MR0606: cannot write -: Broken pipe", result.stderr)

    def test_a_file_that_may_not_grow_is_an_error_and_no_signal(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        result = subprocess.run([MILLRACE, "run", self.LINE], cwd=self.folder, preexec_fn=limited, capture_output=True,
                                text=True, timeout=SECONDS_MAX)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("cannot write 'out.rgb': File too large", result.stderr)


if __name__ == "__main__":
    built, alone = pathlib.Path(sys.argv.pop(1)).resolve(), tempfile.TemporaryDirectory()
    WITH_PLUGINS, MILLRACE = str(built), shutil.copy(built, alone.name)
    for file in [built.parent / "millrace-bench", *built.parent.glob("millrace_cuda.so")]:
        shutil.copy(file, alone.name)
    unittest.main(verbosity=1)
