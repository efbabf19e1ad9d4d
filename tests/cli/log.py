#!/usr/bin/env python3
"""The command's log: what goes to the terminal and what to a file, at which level and in which form.

usage: log.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MILLRACE = ""
SECONDS_MAX = 60
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (debug|info|warning|error)( [\w.]+)?( \(.*?\))?: \S.*")
FIELDS = {"time", "level", "code", "handler", "clock", "tick", "stream", "text"}


class Log(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # Two pictures of 8x8 gray and a part of another, of which the reader warns.
        (self.folder / "in.gray").write_bytes(bytes(64 * 2 + 5))
        self.pipeline = "file.raw_reader path=in.gray width=8 height=8 format=gray8 truncated=drop ! null.sink"
        self.words = "'in.gray': after 2 whole pictures are 5 bytes of another, which are left out"
        self.warning = "warning raw_reader: " + self.words

    def run_it(self, *arguments, code=0):
        result = subprocess.run([MILLRACE, "run", *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                                timeout=SECONDS_MAX, stdin=subprocess.DEVNULL, env={**os.environ, "MILLRACE_MACHINE": ""})
        self.assertEqual(result.returncode, code, f"{arguments}\n{result.stdout}{result.stderr}")
        return result

    def records(self, lines):
        records = [json.loads(line) for line in lines]
        for record in records:
            self.assertLessEqual(set(record), FIELDS)
            self.assertLessEqual({"time", "level", "text"}, set(record))
        return records

    def test_without_options_the_terminal_has_warnings_and_the_words_of_handlers(self):
        self.assertEqual(self.run_it(self.pipeline, "--quiet").stderr, self.warning + "\n")

    def test_v_tells_what_the_runtime_does_and_vv_more(self):
        once = self.run_it(self.pipeline, "--quiet", "-v").stderr.splitlines()
        twice = self.run_it(self.pipeline, "--quiet", "-vv").stderr.splitlines()
        self.assertIn(self.warning, once)
        for words in ("info: plan: 2 handlers in ", "info: the clock begins: ", "info: the clock has ended: ",
                      "info: the run is over: 2 ticks in "):
            self.assertTrue(any(line.startswith(words) for line in once), (words, once))
        self.assertFalse(any(line.startswith("debug") for line in once))
        self.assertIn("debug sink: null.sink runs on cpu", twice)

    def test_a_level_is_the_least_that_is_shown(self):
        self.assertEqual(self.run_it(self.pipeline, "--quiet", "--log-level", "error").stderr, "")
        self.assertEqual(self.run_it(self.pipeline, "--quiet", "--log-level", "warning").stderr, self.warning + "\n")
        shown = self.run_it(self.pipeline, "--quiet", "--log-level", "info").stderr
        self.assertEqual(self.run_it(self.pipeline, "--quiet", "-v").stderr.count("\n"), shown.count("\n"))

    def test_a_file_has_the_log_with_times_and_the_terminal_what_it_has_without(self):
        self.assertEqual(self.run_it(self.pipeline, "--quiet", "--log-file", "run.log").stderr, self.warning + "\n")
        lines = (self.folder / "run.log").read_text().splitlines()
        for line in lines:
            self.assertRegex(line, LINE)
        self.assertTrue(any(" warning raw_reader" in line and line.endswith(": " + self.words) for line in lines))
        self.assertFalse(any(" debug" in line for line in lines))
        self.run_it(self.pipeline, "--quiet", "--log-file", "run.log", "--log-level", "debug")  # appended
        both = (self.folder / "run.log").read_text().splitlines()
        self.assertEqual(both[:len(lines)], lines)
        self.assertTrue(any(" debug sink: null.sink runs on cpu" in line for line in both))

    def test_json_is_a_record_a_line_in_the_file_or_on_stderr(self):
        self.run_it(self.pipeline, "--quiet", "--log-file", "run.json", "--log-format", "json")
        for lines in ((self.folder / "run.json").read_text().splitlines(),
                      self.run_it(self.pipeline, "--quiet", "-v", "--log-format", "json").stderr.splitlines()):
            records = self.records(lines)
            said = [record for record in records if record.get("handler") == "raw_reader"]
            self.assertEqual([(record["level"], record["text"]) for record in said],
                             [("warning", self.words)])
            self.assertTrue(any(record["text"].startswith("the run is over") for record in records))

    def test_a_failure_keeps_its_form_on_the_terminal_and_is_in_the_file(self):
        result = self.run_it("test.number fail_at=5 ! null.sink", "--quiet", "--log-file", "run.json", "--log-format",
                             "json", code=1)
        self.assertTrue(result.stderr.startswith("error MR0601: number (test.number) failed at tick 5"), result.stderr)
        self.assertEqual(result.stderr.count("MR0601"), 1)
        errors = [record for record in self.records((self.folder / "run.json").read_text().splitlines())
                  if record["level"] == "error"]
        self.assertEqual([record["code"] for record in errors], ["MR0601"])
        self.run_it("test.patern ! null.sink", "--log-file", "wrong.json", "--log-format", "json", code=3)
        wrong = self.records((self.folder / "wrong.json").read_text().splitlines())
        self.assertEqual([record["code"] for record in wrong], ["MR0304"])

    def test_values_that_are_dropped_are_told_with_their_edge_and_cause(self):
        (self.folder / "lost.yaml").write_text(
            "version: 1\nclock: { mode: realtime, rate: 100 }\nhandlers:\n"
            "  video: { type: test.pattern, width: 1920, height: 1080 }\n"
            "  blur:  { type: image.blur, sigma: 20, input: { from: video, policy: queue, full: drop_oldest } }\n"
            "  sink:  { type: null.sink, input: blur }\n")
        told = self.run_it("lost.yaml", "--quiet", "--duration", "0.7", "-v", "--json", "report.json").stderr
        self.assertIn("info blur: values of video.video are dropped (queue_full)\n", told)
        report = json.loads((self.folder / "report.json").read_text())
        edge = next(edge for edge in report["edges"] if edge["to"] == "blur.video")
        over = re.findall(r"info blur: (\d+) values of video\.video were dropped \(queue_full\)", told)
        self.assertEqual([int(count) for count in over], [edge["dropped"]["queue_full"]])
        self.assertEqual(report["log"], {"lost": 0})

    def test_what_cannot_be_used_is_refused(self):
        for arguments in (["--log-level", "loud"], ["--log-format", "xml"], ["--log-file", ""],
                          ["--log-file", "no/such/run.log"], ["--log-file", "."]):
            result = self.run_it(self.pipeline, *arguments, code=2)
            self.assertRegex(result.stderr, r"\Aerror MR01(05|11): ")


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
