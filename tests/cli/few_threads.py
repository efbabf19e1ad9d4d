#!/usr/bin/env python3
"""The command on a system that has too few threads for it: whichever is the first to be refused, it says so and ends.

usage: few_threads.py MILLRACE LIBRARY [unittest arguments]

LIBRARY is tests/cli/few_threads.cpp, which is preloaded.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

MILLRACE = LIBRARY = ""
SECONDS_MAX = 60
THREADS_MAX = 64
LINE = "test.pattern width=16 height=16 count={} ! flow.pass device=sim:0 ! null.sink"
EVERYTHING = ("--devices", "cpu,sim:0", "--threads", "3", "--metrics", "127.0.0.1:0", "--log-file", "log.txt")


class FewThreads(unittest.TestCase):
    def start(self, threads, count):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        environment = {**os.environ, "MILLRACE_MACHINE": "", "LD_PRELOAD": LIBRARY, "FEW_THREADS": str(threads)}
        return subprocess.Popen([MILLRACE, "run", LINE.format(count), *EVERYTHING], cwd=folder.name, env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def needed(self):
        for threads in range(THREADS_MAX):
            process = self.start(threads, 5)
            said = process.communicate(timeout=SECONDS_MAX)[1]
            if process.returncode == 0:
                return threads
            self.assertEqual(process.returncode, 1, said)
            self.assertRegex(said, r"(?m)^error MR0612: cannot start (the thread |worker \d of \d)", said)
            self.assertEqual(said.count("error MR"), 1, said)
            self.assertIn("this process has ", said)
            self.assertIn("ulimit -u", said)
        self.fail("it never ran")

    def test_whichever_thread_is_refused_the_command_names_it_and_ends(self):
        self.assertGreater(self.needed(), 6)

    def test_a_signal_that_finds_no_thread_to_work_in_still_ends_the_run(self):
        process = self.start(self.needed(), 1_000_000_000)
        for line in process.stderr:  # the address of --metrics, once it runs
            if "http://" in line:
                break
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=SECONDS_MAX)[1]
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, said)


if __name__ == "__main__":
    MILLRACE, LIBRARY = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
