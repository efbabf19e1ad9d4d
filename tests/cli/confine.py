#!/usr/bin/env python3
"""`--confine DIR`: no file outside of the folder is read or written, whatever way leads there.

usage: confine.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

MILLRACE = ""
SECONDS_MAX = 120
SOURCE = "test.pattern width=16 height=16 format=gray8 count=2"
PIXELS = b"\x80" * 256


class Confine(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()
        self.inside, self.outside = self.folder / "in", self.folder / "out"
        (self.inside / "sub").mkdir(parents=True)
        self.outside.mkdir()
        for folder in (self.inside, self.outside):
            (folder / "a.gray").write_bytes(PIXELS)
        self.before = self.names()
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.folder)}

    def names(self):
        return {str(path): path.read_bytes() for path in self.outside.rglob("*") if path.is_file()}

    def call(self, command, *arguments, folder=None):
        return subprocess.run([MILLRACE, command, *map(str, arguments)], cwd=folder or self.inside,
                              env=self.environment, capture_output=True, text=True, errors="replace",
                              timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)

    def refused(self, code, *arguments, commands=("run", "plan", "check"), words=()):
        for command in commands:
            result = self.call(command, *arguments, "--confine", ".")
            said = result.stdout + result.stderr
            self.assertIn(f"error MR0{code}", said, (command, arguments))
            self.assertEqual(result.returncode, 2 if code == 122 else 3, said)
            for word in words:
                self.assertIn(word, said)
        self.assertEqual(self.names(), self.before)

    def runs(self, *arguments):
        result = self.call("run", *arguments, "--confine", ".")
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))

    def read(self, path):
        return f"file.raw_reader path={path} width=16 height=16 format=gray8 ! null.sink"

    def write(self, path):
        return f"{SOURCE} ! file.raw_writer path={path}"

    def test_files_of_the_folder_are_read_and_written(self):
        (self.inside / "link.gray").symlink_to("a.gray")
        (self.inside / "far").symlink_to("sub")
        (self.inside / "round").symlink_to("../in/sub")
        for path in ("a.gray", "./a.gray", "sub/../a.gray", self.inside / "a.gray", "link.gray", "far/../a.gray",
                     f"file://{self.inside}/a.gray", "../in/a.gray"):
            self.runs(self.read(path))
        for path in ("b.gray", "sub/c.gray", "far/d.gray", "round/e.gray", "-"):
            self.runs(self.write(path))
        self.runs(self.write("f.gray"), "--json", "r.json", "--trace", "sub/t.json", "--log-file", "l.txt")
        self.assertEqual(len((self.inside / "sub" / "e.gray").read_bytes()), 512)

    def test_paths_that_leave_are_refused_before_anything_is_opened(self):
        (self.inside / "link.gray").symlink_to("../out/a.gray")
        (self.inside / "far").symlink_to(self.outside)
        (self.inside / "far2").symlink_to("far")
        (self.inside / "ring").symlink_to("ring")
        (self.inside / "proc").symlink_to("/proc/self/cwd/..")
        for path in (self.outside / "a.gray", "../out/a.gray", "sub/../../out/a.gray", "link.gray", "far/a.gray",
                     "far2/a.gray", "new/../../out/a.gray", "ring/a.gray", "proc/out/a.gray",
                     f"file://{self.outside}/a.gray", "/dev/zero", "/proc/self/fd/0", "/dev/stdin"):
            self.refused(422, self.read(path), words=("--confine keeps all files",))
        (self.inside / "to_come.gray").symlink_to("../out/new.gray")  # its target is not there yet
        for path in (self.outside / "b.gray", "../b.gray", "to_come.gray", "far/b.gray", "far2/new/b.gray", "/dev/null",
                     "link.gray"):
            self.refused(422, self.write(path), words=("would write",))
        sibling = self.folder / "in2"  # its name begins as the folder's does
        sibling.mkdir()
        self.refused(422, self.write("../in2/b.gray"))
        self.assertEqual(list(sibling.iterdir()), [])

    def test_addresses_and_lists_are_refused(self):
        for address in ("http://127.0.0.1:9/a", "rtsp://me:pw@127.0.0.1/a", "file:a.gray", "concat:a.gray|b.gray",
                        "subfile,,start,0,end,9,,:a.gray", "pipe:0", "data:abc", "unix:/tmp/a"):
            self.refused(422, self.read(f'"{address}"'), words=("it is an address",))
        for begin in ("#EXTM3U\n/etc/passwd\n", "\ufeff#EXTM3U\n", "ffconcat version 1.0\n", "file '/etc/passwd'\n",
                      "<?xml version='1.0'?><MPD>", "v=0\n"):
            (self.inside / "list.gray").write_text(begin)
            self.refused(422, self.read("list.gray"), commands=("check",), words=("is a list",))
            self.refused(422, self.read("."), commands=("check",), words=("is a list",))

    def test_patterns_and_folders_stand_for_all_that_they_may_name(self):
        shots = self.inside / "shots"
        shots.mkdir()
        (shots / "p-1.npy").write_bytes(b"")
        for path in ("shots/p-{index}.npy", "shots/p-%03d.npy"):
            self.runs(f"{SOURCE} ! image.normalize ! tensor.to_npy path={path}")
        (shots / "p-000001.npy").unlink(missing_ok=True)
        (shots / "p-7.npy").symlink_to("../../out/p.npy")
        for path in ("shots/p-{index}.npy", "shots/p-%03d.npy", "sh*/p-{index}.npy"):
            self.refused(422, f"{SOURCE} ! image.normalize ! tensor.to_npy path={path}", words=("out/p.npy",))
            self.refused(422, f"tensor.from_npy path={path} ! null.sink", words=("out/p.npy",))
        (self.inside / "sub" / "x").symlink_to(self.outside)
        self.refused(422, self.read("sub/*/a.gray"))
        self.refused(422, self.read("s*/../../out/a.gray"))
        self.refused(422, self.read("sub"), words=("leads to",))  # a folder is read with all files in it
        (self.inside / "film.part.gray").symlink_to("../out/part")  # names under which a writer begins
        self.refused(422, self.write("film.gray"))
        self.refused(422, f"{SOURCE} ! draw.text text=a font=../out/a.ttf ! null.sink")

    def test_devices_and_sockets_are_no_files_and_a_fifo_is_one(self):
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        here = os.getcwd()
        os.chdir(self.inside)  # the name of a socket is short
        server.bind("s")
        os.chdir(here)
        self.refused(422, self.read("s"), words=("a device or a socket",))
        os.mkfifo(self.inside / "f")
        reader = subprocess.Popen(["cat", self.inside / "f"], stdout=subprocess.PIPE)
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        self.runs(self.write("f"))
        self.assertEqual(len(reader.stdout.read()), 512)

    def test_files_of_options_have_to_be_inside(self):
        (self.inside / "link").symlink_to("../out/a.gray")
        (self.inside / "l.1.txt").symlink_to("../out/l")
        for path in ("../out/x", self.outside / "x", "link"):
            for option in ("--json", "--trace", "--log-file", "--plan", "--facts", "--machine"):
                commands = {"--facts": ("plan", "check"), "--machine": ("run", "plan", "check")}.get(option, ("run", ))
                self.refused(122, f"{SOURCE} ! null.sink", option, path, commands=commands, words=(option,))
        self.refused(122, f"{SOURCE} ! null.sink", "--log-file", "l.txt", commands=("run",))
        for folder in ("nowhere", "a.gray"):
            result = self.call("run", f"{SOURCE} ! null.sink", "--confine", folder)
            self.assertEqual((result.returncode, "error MR0122" in result.stderr), (2, True), result.stderr)

    def test_a_pipeline_file_from_elsewhere_gets_nothing(self):
        (self.outside / "p.yaml").write_text(
            "version: 1\nhandlers:\n  a: { type: file.raw_reader, path: a.gray, width: 16, height: 16, format: gray8 }\n"
            "  b: { type: file.raw_writer, path: b.gray, input: a }\n")
        self.before = self.names()
        self.refused(422, "../out/p.yaml", words=("p.yaml:3:", "out/a.gray"))
        result = self.call("check", "../out/p.yaml", "--confine", ".")
        self.assertEqual(result.stderr.count("error MR0422"), 2, result.stderr)  # all mistakes
        self.runs("../out/p.yaml", "--set", "a.path=a.gray", "--set", "b.path=b.gray")
        (self.outside / "glob.yaml").write_text(
            "version: 1\nstreams: { films: { items: { glob: '*.gray' } } }\nhandlers:\n"
            "  a: { type: file.raw_reader, for_each: films, path: '{path}', width: 16, height: 16, format: gray8 }\n"
            "  b: { type: null.sink, for_each: films, input: a }\n")
        self.before = self.names()
        self.refused(422, "../out/glob.yaml", words=("looks into a folder outside",))

    def test_streams_that_come_later_have_to_be_inside(self):
        (self.inside / "doors.yaml").write_text(
            "version: 1\nname: doors\nclock: { mode: realtime, rate: 100 }\n"
            "streams: { doors: { max: 2, items: { gate: { font: '' } } } }\nhandlers:\n"
            "  video: { type: test.pattern, for_each: doors, width: 32, height: 24 }\n"
            "  text: { type: draw.text, for_each: doors, input: video, text: a, font: '{font}' }\n"
            "  end: { type: null.sink, for_each: doors, input: text }\n")
        run = subprocess.Popen([MILLRACE, "run", "doors.yaml", "--confine", ".", "--quiet"], cwd=self.inside,
                               env=self.environment, stdin=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        which = ("-p", str(run.pid), "--json")
        while self.call("streams", "list", *which).returncode != 0:
            self.assertIsNone(run.poll())
        refused = self.call("streams", "add", "hall", f"font={self.outside}/a.ttf", *which)
        self.assertIn("error MR0422", refused.stderr)
        self.assertEqual(self.call("streams", "add", "hall", "font=", *which).returncode, 0)
        listed = json.loads(self.call("streams", "list", *which).stdout)["streams"]["doors"]
        self.assertEqual(sorted(listed), ["gate", "hall"])
        run.send_signal(signal.SIGINT)
        run.wait(SECONDS_MAX)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
