#!/usr/bin/env python3
"""Commands that plugins bring: which program is run, with what, how it is listed, and what is refused.

usage: plugin_commands.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

MILLRACE = ""
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "write_a_handler.md"
SECONDS_MAX = 60
HEADING = "\nCommands of plugins:\n"
SAYS_ALL = """#!/bin/sh
printf '%s|' "$@"
echo "$MILLRACE_COMMAND"
cat
echo told >&2
exit 7
"""


class Commands(unittest.TestCase):
    """A copy of the command in bin of a prefix, so that nothing else is beside it, and one more plugin folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = pathlib.Path(folder.name).resolve()
        self.beside, self.apart = self.prefix / "bin", self.prefix / "libexec" / "millrace"
        self.installed = self.prefix / "lib" / "millrace" / "plugins"
        self.of_program, self.plugins = self.beside / "plugins", self.prefix / "more"
        for place in (self.beside, self.apart, self.installed, self.of_program, self.plugins):
            place.mkdir(parents=True)
        self.millrace = pathlib.Path(shutil.copy(MILLRACE, self.beside))

    def put(self, name, folder=None, text=SAYS_ALL, mode=0o755):
        program = (folder or self.plugins) / f"millrace-{name}"
        program.write_text(text)
        program.chmod(mode)
        return program

    def call(self, *words, code=0, given="", **options):
        result = subprocess.run([self.millrace, *words], capture_output=True, text=True, timeout=SECONDS_MAX, input=given,
                                env={**os.environ, "MILLRACE_PLUGIN_PATH": str(self.plugins), "MILLRACE_MACHINE": ""},
                                **options)
        self.assertEqual(result.returncode, code, f"{words}\n{result.stdout}{result.stderr}")
        return result

    def refused(self, *words, code=2, error="MR0105"):
        result = self.call(*words, code=code)
        self.assertTrue(result.stderr.startswith(f"error {error}: "), result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def listed(self):
        """The part of the help that lists the commands of plugins: [[name, program]]."""
        return [line.split() for line in self.call("--help").stdout.partition(HEADING)[2].splitlines()]

    # ---- which program, and with what

    def test_a_program_gets_all_words_after_its_name_and_its_streams_and_exit_code_are_the_commands(self):
        self.put("hello")
        for words in ([], ["a b", "", "c"], ["--help"], ["-v", "--version"], ["run", "--plugin-path", "x"], ["--", "-"], [""]):
            done = self.call("hello", *words, code=7, given="read\n")
            self.assertEqual(done.stdout, "".join(f"{word}|" for word in words or [""]) + f"{self.millrace}\nread\n")
            self.assertEqual(done.stderr, "told\n")

    def test_a_program_calls_the_millrace_that_was_called(self):
        self.put("version", text='#!/bin/sh\nexec "$MILLRACE_COMMAND" --version\n')
        self.assertEqual(self.call("version").stdout, self.call("--version").stdout)

    def test_the_program_of_the_guide_says_how_many_handlers_there_are(self):
        self.put("hello", text=re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1])
        handlers = json.loads(self.call("handlers", "--json").stdout)["handlers"]
        self.assertEqual(self.call("hello").stdout, f"{len(handlers)}\n")

    def test_a_program_gets_the_signals_as_the_command_got_them(self):
        self.put("first", text="#!/bin/sh\nyes | head -n 1\n")  # `yes` ends by SIGPIPE, or else complains
        first = self.call("first")
        self.assertEqual((first.stdout, first.stderr), ("y\n", ""))
        self.put("end", text="#!/bin/sh\nkill -TERM $$\necho still here\n")
        self.call("end", code=-signal.SIGTERM)
        ignored = self.call("end", preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
        self.assertEqual(ignored.stdout, "still here\n")

    def test_programs_beside_the_command_come_first_then_those_of_plugin_folders_in_their_order(self):
        second = self.prefix / "second"
        second.mkdir()
        places = [self.beside, self.apart, self.of_program, self.installed, self.plugins, second]
        self.plugins = f"{self.plugins}:{second}"
        for place in reversed(places):
            program = self.put("where", folder=place, text='#!/bin/sh\necho "$0"\n')
            self.assertEqual(self.call("where").stdout, f"{program}\n")
            self.assertEqual(self.listed(), [["where", str(program)]])

    def test_a_command_of_millrace_is_never_a_plugins(self):
        for name in ("run", "help", "bench"):
            for folder in (self.plugins, self.beside):
                self.put(name, folder=folder, text="#!/bin/sh\necho of a plugin\n")
        self.assertNotIn(HEADING, self.call("--help").stdout)
        self.assertIn("1 tick", self.call("run", "null.source count=1 ! null.sink").stderr)
        self.assertIn("runs a pipeline", self.call("help", "run").stdout)
        self.assertIn("measures the runtime itself", self.call("bench", "--help").stdout)
        self.assertEqual(self.call("bench", "clock").stdout, "of a plugin\n")  # beside the command it is the program of bench

    # ---- the help

    def test_the_help_lists_the_commands_with_their_programs_and_runs_none(self):
        mark = self.prefix / "mark"
        programs = [self.put(name, text=f"#!/bin/sh\ntouch {mark}\n") for name in ("hello", "a.b", "zoo")]
        expected = [["a.b", str(programs[1])], ["hello", str(programs[0])], ["zoo", str(programs[2])]]
        self.assertEqual(self.listed(), expected)
        whole = self.call("--help").stdout
        self.assertEqual(self.call("help").stdout, whole)
        self.assertEqual(self.call(code=2).stderr, whole)
        self.assertNotIn("hello", self.call("run", "--help").stdout + self.call("help", "run").stdout)
        self.assertFalse(mark.exists())

    def test_the_help_has_no_list_where_there_is_no_program(self):
        self.assertNotIn("ommands of plugins", self.call("--help").stdout)
        self.assertTrue(self.call("--help").stdout.endswith("what a command takes\n\n"))

    def test_help_of_a_plugins_command_is_the_programs(self):
        self.put("hello")
        self.assertEqual(self.call("help", "hello", code=7).stdout, f"--help|{self.millrace}\n")

    # ---- what is refused

    def test_a_name_that_nothing_has_is_answered_with_the_nearest(self):
        for words in (["hello"], ["help", "hello"], ["hello", "--help"], ["hello", "run"]):
            self.assertTrue(self.refused(*words).startswith('error MR0105: there is no command "hello"\n'))
        self.put("hello")
        for words in (["helo"], ["help", "helo"]):
            self.assertIn("did you mean 'hello'?\n  try: millrace hello --help\n", self.refused(*words))
        self.assertIn("did you mean 'run'?\n", self.refused("rnu", "x"))

    def test_a_file_that_cannot_be_executed_is_an_error_with_its_path(self):
        for text, mode, reason in ((SAYS_ALL, 0o644, "Permission denied"), ("no program", 0o755, "Exec format error")):
            program = self.put("hello", text=text, mode=mode)
            for words in (["hello"], ["help", "hello"]):
                self.assertIn(f"cannot run {program}: {reason}\n", self.refused(*words, code=4, error="MR0507"))
        program.chmod(0o644)
        self.assertEqual(self.listed(), [])
        self.assertNotIn("hello", self.refused("hallo"))

    def test_words_that_name_no_file_of_a_folder_name_no_program(self):
        (self.plugins / "millrace-folder").mkdir()
        (self.plugins / "millrace-gone").symlink_to("nowhere")
        self.put("x", folder=self.plugins / "millrace-folder")
        shutil.copy(self.put("hello"), self.plugins / "millrace-")
        for name in ("-x", ".x", "--help"):
            self.put(name)
        for name in ("", "folder", "gone", "folder/millrace-x", "./hello", "../more/millrace-hello",
                     str(self.plugins / "millrace-hello"), ".x", ".."):
            self.assertIn(f'there is no command "{name}"\n', self.refused(name))
        self.assertIn("there is no option -x", self.refused("-x"))
        self.assertIn("Usage: millrace ", self.call("--help").stdout)
        self.assertEqual([name for name, _ in self.listed()], ["hello"])

    # ---- plugins

    def test_programs_are_no_plugins_and_plugins_no_programs(self):
        self.put("hello")
        library = self.put("acme.so", text="no library")
        self.assertEqual([name for name, _ in self.listed()], ["hello"])
        self.refused("acme.so")
        handlers = self.call("handlers").stdout
        self.assertIn(f"failed  {library}", handlers)
        self.assertNotIn("millrace-hello", handlers)


if __name__ == "__main__":
    MILLRACE = sys.argv.pop(1)
    unittest.main(verbosity=1)
