#!/usr/bin/env python3
"""How runs end that do not end well: by signals at random moments, by handlers that hang, crash or leave.

usage: endings.py MILLRACE FOLDER [unittest arguments]

FOLDER has the plugin tests/plugin/modules/trouble.cpp. MILLRACE_SIGNALS=300 sends as many signals, and holds the
messages to their time; 40 are sent else.
"""
import json
import os
import pathlib
import pty
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ending_table  # noqa: E402: found by the line above
from under_way import SECONDS_MAX, UnderWay  # noqa: E402: found by the line above

MILLRACE = TROUBLE = ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
SIGNALS = int(os.environ.get("MILLRACE_SIGNALS", "40"))
TAKEN = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


def bad(**params):
    words = " ".join(f"{key}={value}" for key, value in params.items())
    return f"test.pattern width=64 height=48 ! trouble.bad name=bad {words} ! null.sink"


class Run(UnderWay):
    """The command under way, with what it says and when."""

    def __init__(self, test, line, *arguments, report=None, **options):
        def as_from_a_terminal():  # whoever runs this test may ignore signals, and that is inherited
            for number in TAKEN:
                signal.signal(number, signal.SIG_DFL)

        super().__init__(test, "the run", report or test.folder / f"report-{random.random()}.json",
                         [MILLRACE, "run", line, "--plugin-path", TROUBLE, *arguments],
                         preexec_fn=as_from_a_terminal, env={**os.environ, "MILLRACE_MACHINE": ""}, **options)

    def takes_signals(self):
        """Waits until the command has taken the signals from the system, which is the first thing it does."""
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end and self.process.poll() is None:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
            if int(re.search(r"SigBlk:\s*(\w+)", status).group(1), 16) >> (signal.SIGTERM - 1) & 1:
                return
        raise AssertionError("it takes no signals")

    def until(self, words, seconds=SECONDS_MAX):
        """Reads until it said the words; how long that took."""
        begin = time.monotonic()
        super().until(re.escape(words), seconds)
        return time.monotonic() - begin


class Ending(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fifo(self):
        path = self.folder / f"pipe-{random.random()}"
        os.mkfifo(path)
        return path


class RandomSignals(Ending):
    """A report and the right code, whenever a signal comes and whatever the run is at."""

    def runs(self):
        return Run(self, "test.pattern width=64 height=48 fps=200 live=true ! file.raw_writer path=out.rgb")

    def starts(self):
        return Run(self, f"test.pattern width=64 height=48 ! file.raw_writer path={self.fifo()}")

    def hangs(self):
        return Run(self, bad(does="hang", **{"in": "process"}))

    def hangs_at_start(self):
        return Run(self, bad(does="hang", **{"in": random.choice(["probe", "configure", "start"])}))

    def hangs_at_the_end(self):
        return Run(self, bad(does="hang", **{"in": random.choice(["drain", "stop"])}), "--ticks", "20")

    def drains(self):
        path = self.fifo()
        run = Run(self, f"test.pattern width=256 height=256 ! file.raw_writer path={path}")
        reader = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, reader)
        os.read(reader, 1 << 16)  # and no more: the writer waits
        return run

    def test_8_8_a_signal_at_any_moment_leaves_a_report_and_the_right_code(self):
        kinds = [self.runs, self.starts, self.hangs, self.hangs_at_start, self.hangs_at_the_end, self.drains]
        ends_at_the_first = (self.runs, self.starts)
        seed = int(os.environ.get("MILLRACE_SEED", random.randrange(1 << 30)))
        random.seed(seed)
        told = []
        for number in range(SIGNALS):
            kind, sent = kinds[number % len(kinds)], random.choice(TAKEN)
            with self.subTest(seed=seed, number=number, kind=kind.__name__, sent=sent.name):
                run = kind()
                run.takes_signals()
                time.sleep(random.choice([random.uniform(0, 0.02), random.uniform(0, 0.5)]))
                run.process.send_signal(sent)
                last = sent
                if sent != signal.SIGQUIT:
                    told.append(run.until(f"{sent.name}: no more ticks", SECONDS_MAX))
                    if kind not in ends_at_the_first:
                        time.sleep(random.uniform(0, 0.1))
                        last = random.choice(TAKEN)
                        run.process.send_signal(last)
                begin = time.monotonic()
                code = run.end()
                # A second signal that meets a run which has just ended, and written all, ends the process as a signal
                # does: for a shell that is the same code.
                self.assertIn(code if code >= 0 else 128 - code, {128 + last, 128 + sent}, run.said)
                self.assertEqual(run.report()["version"], 1)
                if "MR0610" in run.said and SIGNALS >= 300:
                    self.assertLess(time.monotonic() - begin, 1.5)
        if SIGNALS >= 300:  # the figures of a machine that has nothing else to do
            self.assertLess(max(told), 1)
            self.assertLessEqual(sum(t > 0.1 for t in told), len(told) * 0.05)

    def test_8_7_the_first_signal_says_what_is_waited_for_and_the_second_leaves_the_report_and_the_trace(self):
        trace = self.folder / "trace.json"
        run = Run(self, bad(does="hang", budget="100ms"), "--trace", trace)
        run.until("MR0602")  # it hangs
        run.process.send_signal(signal.SIGINT)
        run.until("SIGINT: no more ticks; waiting for bad (trouble.bad) in process of tick 3")
        run.until("; a second signal ends it at once\n")
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.end(), 143)
        self.assertIn("error MR0610: the run was ended by SIGTERM before it had drained", run.said)
        self.assertIn("bad (trouble.bad) in process of tick 3", run.said)
        report = run.report()
        self.assertFalse(report["ok"])
        self.assertEqual(report["error"]["code"], "MR0610")
        self.assertEqual(report["handlers"]["bad"]["calls"], 4)
        self.assertIn("pattern", {event["name"] for event in json.loads(trace.read_text())["traceEvents"]})

    def test_8_7_a_third_signal_ends_a_run_whose_report_nobody_takes(self):
        run = Run(self, bad(does="hang"), report=self.fifo())  # opening it waits for a reader
        time.sleep(0.3)
        run.takes_signals()
        for sent in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            run.process.send_signal(sent)
            time.sleep(0.1)
        self.assertIn(run.end(5), (130, 143))

    def test_8_7_on_a_terminal_the_line_is_gone_before_the_prompt_comes(self):
        ours, theirs = pty.openpty()
        hangs = bad(does="hang", at=20, budget="100ms")
        process = subprocess.Popen([MILLRACE, "run", hangs, "--plugin-path", TROUBLE], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True)
        self.addCleanup(process.kill)
        os.close(theirs)
        said = b""
        sent = 0
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                got = os.read(ours, 65536)
            except OSError:
                break
            said += got
            hang_told = said.find(b"MR0602")
            line_is_drawn = hang_told >= 0 and b" ticks" in said[hang_told:]
            if sent == 0 and line_is_drawn or sent == 1 and b"second signal" in said:  # a run that hangs ends by no first one
                process.send_signal(signal.SIGINT)
                sent += 1
        os.close(ours)
        self.assertEqual(process.wait(SECONDS_MAX), 130)
        lines = said.decode().split("\n")
        self.assertEqual(lines[-1], "", said)  # the prompt begins a line
        for line in lines:
            if "MR0610" in line or "no more ticks" in line:
                self.assertTrue(line.split("\x1b[K")[-1].startswith(("error", "SIGINT")), line)


class Hangs(Ending):
    def test_2_6_a_call_over_its_budget_is_named_interrupted_and_ends_the_command_with_a_report(self):
        run = Run(self, bad(does="hang", budget="100ms"))
        begin = time.monotonic()
        self.assertEqual(run.end(), 1)
        ending_table.check(self, "a call does not return", 1, run.report_path, run.said)
        self.assertLess(9, time.monotonic() - begin)
        sentence = ("a call over its budget is named, interrupted 5 s later and given up after another 5 s; the command then "
                    "ends with exit code 1")
        self.assertIn("warning MR0602: bad (trouble.bad) is in process for longer than its budget of 0.1 s (tick 3); " +
                      sentence, run.said)
        explained = subprocess.run([MILLRACE, "explain", "MR0602"], capture_output=True, text=True, check=True).stdout
        guide = (ROOT / "docs/guide/troubleshooting.md").read_text()
        for text in (explained, guide):  # the same sentence, with the same numbers
            self.assertIn(sentence[1:], " ".join(text.split()))
        self.assertRegex(run.said, r"error MR0602: bad \(trouble.bad\) did not return from process of tick 3 for 1\d\.\d s")
        self.assertEqual(run.report()["error"]["code"], "MR0602")
        self.assertIn("is in process for longer than its budget of 0.1 s",
                      [said["sentence"] for said in run.report()["handlers"]["bad"]["messages"]])

    def test_8_7_every_other_function_is_named_after_its_patience_and_not_ended(self):
        for function in ("probe", "configure", "start", "drain", "stop"):
            with self.subTest(function):
                run = Run(self, bad(does="hang", budget="10s/200ms", **{"in": function}), "--ticks", 5)
                run.until(f"warning MR0607: bad (trouble.bad) is in {function} for longer than 0.2 s")
                self.assertIsNone(run.process.poll())
                run.process.send_signal(signal.SIGQUIT)
                self.assertEqual(run.end(), 131)
                self.assertIn(f"it waited for bad (trouble.bad) in {function}", run.said)

    def test_4_9_a_body_that_never_ends_loses_its_simulated_device_and_the_command_leaves(self):
        run = Run(self, bad(does="hang", device="sim:0"), "--devices", "cpu,sim:0")
        begin = time.monotonic()
        run.until("MR0603")
        run.until("bad is in process (tick 3)")
        self.assertEqual(run.end(), 5)
        ending_table.check(self, "a device is lost", 5, run.report_path, run.said)
        self.assertLess(time.monotonic() - begin, 15 if SIGNALS >= 300 else SECONDS_MAX)
        self.assertRegex(run.said, r"error MR0703: sim:0 is lost: .*; under way was bad \(trouble.bad\) \(tick 3\)")
        self.assertEqual(run.report()["error"]["code"], "MR0703")


    def test_4_9_devices_that_are_synchronised_give_the_same_bytes(self):
        written = []
        for options in ([], ["--sync-devices"]):
            run = Run(self, "test.pattern width=64 height=48 count=20 ! image.blur ! file.raw_writer path=out.rgb", "--devices",
                      "sim:0,cpu", *options)
            self.assertEqual(run.end(), 0, run.said)
            written.append((self.folder / "out.rgb").read_bytes())
        self.assertEqual(len(written[0]), 20 * 64 * 48 * 3)
        self.assertEqual(written[0], written[1])


class Crashes(Ending):
    def test_a_crash_names_the_handler_the_call_and_the_tick_and_the_process_dies_of_it(self):
        words = {"segv": (signal.SIGSEGV, "Segmentation fault"), "abort": (signal.SIGABRT, "Aborted"),
                 "fpe": (signal.SIGFPE, "Floating point exception"), "stack": (signal.SIGSEGV, "Segmentation fault")}
        for does, (number, word) in words.items():
            for device in ("cpu", "sim:0"):
                if (does, device) == ("stack", "sim:0"):
                    continue  # a simulated device's threads have no second stack
                with self.subTest(does=does, device=device):
                    run = Run(self, bad(does=does, device=device), "--devices", "cpu,sim:0")
                    self.assertEqual(run.end(), -number, run.said)
                    self.assertIn(f"error MR0608: bad (trouble.bad) in process of tick 3 died: {word}", run.said)

    def test_a_crash_outside_of_process_names_the_function(self):
        for function in ("probe", "configure", "start", "drain", "stop"):
            with self.subTest(function):
                run = Run(self, bad(does="segv", **{"in": function}), "--ticks", 5)
                self.assertEqual(run.end(), -signal.SIGSEGV, run.said)
                self.assertIn(f"error MR0608: bad (trouble.bad) in {function} died: Segmentation fault", run.said)

    def test_a_plugin_that_calls_exit_is_no_success(self):
        for function, where in (("process", "process of tick 3"), ("start", "start"), ("stop", "stop")):
            with self.subTest(function):
                run = Run(self, bad(does="exit", **{"in": function}), "--ticks", 5)
                self.assertEqual(run.end(), 1, run.said)
                self.assertIn(f"error MR0609: bad (trouble.bad) in {where} ended the process by exit()", run.said)


class Table(Ending):
    """A row of the table in docs/guide/troubleshooting.md each."""

    ENDLESS = "test.pattern width=64 height=48 fps=200 live=true ! null.sink"
    # It says that it has begun.
    FAILS_ONCE = "test.pattern width=64 height=48 fps=200 live=true ! trouble.bad does=fail on_error=skip ! null.sink"
    STREAMS = """version: 1
streams: {{ cams: {{ {settings} items: {{ {items} }} }} }}
handlers:
  video: {{ type: test.pattern, for_each: cams, width: 64, height: 48, count: 20 }}
  bad:   {{ type: trouble.bad, for_each: cams, input: video, does: "{{does}}", in: "{in_function}" }}
{more}
"""
    SINK = "  end:   { type: null.sink, for_each: cams, input: bad }"

    def streams(self, settings="", items="a: { does: fails }, b: { does: fails }", more=SINK, in_function="process"):
        """The path of a pipeline whose streams do what they say."""
        path = self.folder / "streams.yaml"
        path.write_text(self.STREAMS.format(settings=settings, items=items, more=more, in_function=in_function))
        return path

    def ends(self, how, pipeline, *arguments, sent=(), once=(), report=None, says=""):
        """Runs it, sends it the signals once it has said these words, and compares its end with the row."""
        with self.subTest(how, pipeline=str(pipeline), sent=sent):
            run = Run(self, pipeline, *arguments, report=report)
            for words in once:
                run.until(words)
            for number in sent:
                run.process.send_signal(number)
                if number != sent[-1]:
                    run.until(f"{signal.Signals(number).name}: no more ticks")
            ending_table.check(self, how, run.end(), run.report_path, run.said)
            self.assertIn(says, run.said)

    def test_one_that_is_well(self):
        self.ends("its sources have ended", "test.pattern width=64 height=48 count=9 ! null.sink")
        self.ends("`--ticks` or `--duration` is over", self.ENDLESS, "--ticks", "9")
        self.ends("`--ticks` or `--duration` is over", self.ENDLESS, "--duration", "0.1")

    def test_one_that_is_stopped(self):
        rooms = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder)}
        self.folder.chmod(0o700)
        with unittest.mock.patch.dict(os.environ, rooms):
            run = Run(self, self.ENDLESS)
            stop = [MILLRACE, "stop", "-p", str(run.process.pid)]
            end = time.monotonic() + SECONDS_MAX
            while subprocess.run(stop, capture_output=True).returncode and time.monotonic() < end:
                time.sleep(0.05)  # its socket is not there yet
        ending_table.check(self, "`millrace stop`", run.end(), run.report_path, run.said)

    def test_signals(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            self.ends("SIGHUP, SIGINT or SIGTERM, and what was in flight is done", self.FAILS_ONCE, sent=[number],
                      once=["told to fail"])
        hangs = bad(does="hang", budget="100ms")
        self.ends("a second signal before that, or SIGQUIT", hangs, sent=[signal.SIGINT, signal.SIGTERM], once=["MR0602"])
        self.ends("a second signal before that, or SIGQUIT", hangs, sent=[signal.SIGQUIT], once=["MR0602"])

    def test_files_that_cannot_be_written(self):
        short, full = "test.pattern width=64 height=48 count=5 ! null.sink", pathlib.Path("/dev/full")
        report, others = "the run is well, and its report cannot be written", "the run is well, and its trace or its log cannot be written"
        self.ends(report, short, report=full, says="error MR0606: ")
        for option in ("--trace", "--log-file"):
            self.ends(others, short, option, full, says="error MR0606: ")
            self.ends(others, self.FAILS_ONCE, option, full, sent=[signal.SIGINT], once=["told to fail"], says="error MR0606: ")
        fails = Run(self, bad(does="fail"), "--trace", "/dev/full")
        self.assertEqual(fails.end(), 1)
        self.assertIn("error MR0606: cannot write /dev/full", fails.said)
        self.assertRegex(fails.said, r"error MR0601: (.*\n)+error MR0606: (.*\n)+\d+ ticks in ")

    def test_handlers_that_fail(self):
        self.ends("a handler fails, with `on_error: fail`", bad(does="fail"))
        for policy in ("skip", "bypass", "restart"):
            self.ends("a handler fails, with `on_error: skip`, `bypass` or `restart`, however often",
                      bad(does="fails", on_error=policy), "--ticks", "30")
        self.ends("a handler cannot start", bad(does="fails", **{"in": "start"}))
        for function in ("drain", "stop"):
            for policy in ("fail", "skip"):
                self.ends("`drain` or `stop` of a handler fails, whatever its `on_error`",
                          bad(does="fails", on_error=policy, **{"in": function}), "--ticks", "5")
        drains = self.FAILS_ONCE.replace("null.sink", "trouble.bad name=last does=fails in=drain ! null.sink")
        self.ends("a handler fails after a signal", drains, sent=[signal.SIGINT], once=["told to fail"])

    def test_streams_that_fail(self):
        one, shared = "a: { does: fails }, b: { does: nothing }", """  blur:  { type: image.blur, input: bad }
  end:   { type: null.sink, for_each: cams, input: blur }"""
        self.ends("a stream of a set fails, another one does not", self.streams(items=one))
        self.ends("all streams of a set fail", self.streams())
        self.ends("all streams of a set fail", self.streams(items="a: { does: fails }"))
        for function in ("drain", "stop"):  # a recording that cannot be completed
            self.ends("all streams of a set fail", self.streams(in_function=function))
            self.ends("`max`, and all streams that there were have failed", self.streams("max: 2,", in_function=function))
        reads_all = "all streams of a set fail, and a shared handler reads them"
        self.ends(reads_all, self.streams(more=shared))
        self.ends(reads_all, self.streams(items="a: { does: fails }", more=shared))
        self.ends(reads_all, self.streams("max: 3,", more=shared))
        self.ends("a stream of a set fails, another one does not", self.streams(items=one, more=shared))
        set_of_another = self.streams()
        set_of_another.write_text(set_of_another.read_text().replace("streams: { ", "streams: { doors: { items: { c: {} } }, ") + """
  door: { type: test.pattern, for_each: doors, width: 64, height: 48, count: 20 }
  shut: { type: null.sink, for_each: doors, input: door }
""")
        self.ends("all streams of one set fail, those of another do not", set_of_another)
        self.ends("a stream fails, and its set says `on_error: fail` or `clock: shared`", self.streams("on_error: fail,", one))
        self.ends("a stream fails, and its set says `on_error: fail` or `clock: shared`", self.streams("clock: shared,", one))

    def test_handlers_outside_the_streams_that_fail(self):
        for outside in ("  more:  { type: trouble.bad, input: bad, does: fails }\n  end:   { type: null.sink, for_each: cams, input: more }",
                        """  wall:  { type: image.composite, input: { from: bad, policy: latest } }
  more:  { type: trouble.bad, input: wall, does: fails, at: 0 }
  end:   { type: null.sink, input: more }"""):
            self.ends("a shared handler fails, or another one outside the streams",
                      self.streams(items="a: { does: nothing }, b: { does: nothing }", more=outside))

    def test_streams_that_begin_anew(self):
        runs = "`on_error: restart`, and a stream of the set runs or has ended"
        self.ends(runs, self.streams("on_error: restart,", "a: { does: fail }"))
        self.ends(runs, self.streams("on_error: restart,", "a: { does: fails }, b: { does: nothing }"), "--duration", "0.5")
        down = "`on_error: restart`, and all streams of the set are down when the run is ended"
        self.ends(down, self.streams("on_error: restart,"), "--duration", "0.5")
        self.ends(down, self.streams("on_error: restart,"), sent=[signal.SIGINT],
                  once=[f"stream {name} has failed and begins anew" for name in "ab"])

    def test_places(self):
        well = "`max`, and a stream that is there, or was, has not failed"
        self.ends(well, self.streams("max: 3,", "a: { does: fails }, b: { does: nothing }"))
        failed = "`max`, and all streams that there were have failed"
        self.ends(failed, self.streams("max: 3,"))
        self.ends(failed, self.streams("max: 1,", "a: { does: fails }"))

    def test_a_process_that_dies(self):
        self.ends("a handler crashes, here by a segmentation fault", bad(does="segv"))
        self.ends("a handler calls `exit()`", bad(does="exit"))

    def test_runs_that_do_not_begin(self):
        self.ends("the command line is wrong", self.ENDLESS, "--tiks", "3")
        self.ends("the pipeline is invalid, or a source cannot be opened", "test.pattern ! null.snik")
        self.ends("the pipeline is invalid, or a source cannot be opened",
                  "file.raw_reader path=nowhere.raw width=4 height=4 ! null.sink")
        (self.folder / "plug").mkdir()
        (self.folder / "plug" / "acme.so").write_text("acme.source")
        self.ends("a plugin that is needed cannot be loaded", "acme.source ! null.sink", "--plugin-path", self.folder / "plug")

    def test_each_row_is_asked_for_by_a_test(self):
        here = pathlib.Path(__file__).resolve().parent
        asked = "".join(path.read_text() for path in (here / "endings.py", here / "node_runs.py", here / "control.py"))
        self.assertEqual([how for how in ending_table.rows() if f'"{how}"' not in asked], [])


class CheckHandler(Ending):
    def check(self, *arguments):
        result = subprocess.run([MILLRACE, "check-handler", "trouble.bad", "--plugin-path", TROUBLE, *arguments],
                                cwd=self.folder, capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        return result.stdout

    def test_a_write_past_an_output_is_found_as_such(self):
        said = self.check("--set", "does=overrun", "--set", "at=0")
        self.assertIn("the handler wrote past the end of", said)
        self.assertNotIn("it died", said)
        said = self.check("--set", "does=before", "--set", "at=0")
        self.assertIn("the handler wrote before the beginning of", said)
        self.assertNotIn("it died", said)

    def test_a_handler_that_hangs_costs_one_time_limit_and_the_checks_not_made_are_named(self):
        said = self.check("--set", "does=hang", "--set", "at=0", "--seconds", "2")
        self.assertEqual(said.count("it did not return within 2 s, even when interrupted"), 1, said)
        self.assertIn("not made, because 'works' did not return", said)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    TROUBLE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
