#!/usr/bin/env python3
"""Passwords and tokens of addresses: many kinds of address through all that the command says and writes.

usage: secrets.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

MILLRACE = ""
SECONDS_MAX = 120
SECRET = "s3cr7"  # in every secret, and nowhere else
HERE = "127.0.0.1:9"  # nobody listens there
ADDRESSES = {
    "password": f"rtsp://admin:{SECRET}@{HERE}/x",
    "capitals": f"RTSP://admin:{SECRET}@{HERE}/x",
    "user_alone": f"http://{SECRET}@{HERE}/x",
    "encoded": f"http://admin:{SECRET}%40x@{HERE}/x",
    "at": f"http://admin:p@{SECRET}@{HERE}/x",
    "slash": f"http://admin:p/{SECRET}@{HERE}/x",
    "hash": f"http://admin:p#{SECRET}@{HERE}/x",
    "blank": f"rtsp://admin:my {SECRET}@{HERE}/x",
    "ipv6": f"http://admin:{SECRET}@[::1]:9/x",
    "token": f"http://{HERE}/x?token={SECRET}&a=1",
    "signature": f"http://{HERE}/x?X-Amz-Signature={SECRET}",
    "passphrase": f"srt://{HERE}?passphrase={SECRET}12345",
    "stream_key": f"rtmp://{HERE}/app/{SECRET}",
    "in_the_path": f"rtsp://{HERE}/user=admin_password={SECRET}_channel=1.sdp",
    "nested": f"http://{HERE}/?url=rtsp%3A%2F%2Fme%3A{SECRET}%40{HERE}%2Fx",
    "no_scheme": f"admin:{SECRET}@{HERE}/x",
}
# Of these loops try a part where MILLRACE_PART says so (tests/part.h): under sanitizers, where each start of the command
# takes long, six kinds go through all that the command says.
PART = int(os.environ.get("MILLRACE_PART", 100))
TRIED = {kind: address for n, (kind, address) in enumerate(ADDRESSES.items()) if n * PART // 100 != (n + 1) * PART // 100}


def quoted(address):
    return f'"{address}"'


class Secrets(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.environment = os.environ | {"XDG_RUNTIME_DIR": str(self.runtime)}

    def call(self, *arguments):
        return subprocess.run([MILLRACE, *arguments], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)

    def said(self, *arguments):
        """All that a command says, which has no secret."""
        result = self.call(*arguments)
        said = result.stdout + result.stderr
        self.assertNotIn(SECRET, said, arguments)
        return said

    def assert_no_file_tells(self, *but):
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name not in but:
                self.assertNotIn(SECRET.encode(), path.read_bytes(), path.name)

    def need_media(self):
        if "media" not in self.call("handlers").stdout and "video.file" not in self.call("handlers").stdout:
            self.skipTest("the media plugin is not built")

    def test_errors_show_no_secret(self):
        self.need_media()
        for kind, address in TRIED.items():
            with self.subTest(kind):
                outputs = ("--log-file", f"{kind}.log", "--json", f"{kind}.json", "--trace", f"{kind}.trace")
                line = f"video.file path={quoted(address)} timeout=1s ! null.sink"
                said = self.said("run", line, "-vv", *outputs)
                self.assertIn("error MR0604", said)
                self.assertIn("[::1]" if kind == "ipv6" else "127.0.0.1", said)
                self.said("check", line)
                self.said("plan", line, "--no-probe")
                (self.folder / "film.yaml").write_text(
                    "version: 1\nhandlers:\n" + f"  film: {{ type: video.file, path: {quoted(address)}, timeout: 1s }}\n"
                    "  sink: { type: null.sink, input: film }\n")
                self.said("check", "film.yaml")
        self.assert_no_file_tells("film.yaml")

    def test_what_a_person_typed_comes_back_without_the_secret(self):
        for kind, address in TRIED.items():
            with self.subTest(kind):
                for arguments in (("run", "test.pattern ! null.sink", f"--set=sink.pathh={address}"),
                                  ("run", "test.pattern ! null.sink", f"--set=pattern.width={address}"),
                                  ("run", "test.pattern ! null.sink", f"--set=nobody.path={address}"),
                                  ("run", "test.pattern ! null.sink", f"--{address}"),
                                  ("run", "test.pattern", "!", quoted(address)),
                                  ("run", f"test.pattern ! null.sink path={quoted(address)}"),
                                  ("run", f"test.pattern width={quoted(address)} ! null.sink"),
                                  ("run", f"{quoted(address)} ! null.sink"), ("run", address), (address, ),
                                  ("set", f"a.b={address}"), ("streams", "add", "x", f"path={address}"),
                                  ("stop", "-p", address), ("inspect", address)):
                    self.assertIn("error", self.said(*arguments), arguments)
                for text in (f"  a: {{ type: test.pattern, width: {quoted(address)} }}",
                             f"  a: {{ type: test.pattern, {quoted(address)}: 3 }}", f"  a: {quoted(address)}",
                             f"  a: {{ type: null.sink, input: {quoted(address)} }}",
                             f"  {quoted(address)}: {{ type: test.pattern }}", f"  a: {{ type: {quoted(address)} }}"):
                    (self.folder / "wrong.yaml").write_text("version: 1\nhandlers:\n" + text + "\n")
                    self.assertIn("error", self.said("check", "wrong.yaml"), text)

    def test_plans_reports_and_traces_show_none_and_a_saved_plan_runs(self):
        for kind, address in TRIED.items():
            with self.subTest(kind):
                line = f"test.pattern width=64 height=48 count=3 ! draw.text text={quoted(address)} ! null.sink"
                self.assertIn("draw.text", self.said("plan", line))
                self.said("plan", line, "--dot")
                saved = self.said("plan", line, "--json")
                (self.folder / "saved.plan").write_text(saved)
                result = self.call("run", line, "--plan", "saved.plan", "--json", "r.json", "--trace", "t.json", "-vv")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotIn(SECRET, result.stdout + result.stderr)
                self.assertEqual(json.loads((self.folder / "r.json").read_text())["ticks"]["run"], 3)
                self.assert_no_file_tells()

    def test_a_run_that_goes_on_shows_none_to_those_who_ask_it(self):
        """Cameras that are not there, one of each kind, beside a film: they are tried again and again."""
        self.need_media()
        self.assertEqual(self.call("run", "test.pattern width=64 height=48 count=600 fps=25 ! "
                                   "video.writer path=f.mkv codec=ffv1", "--quiet").returncode, 0)
        items = "".join(f"    {kind}: {{ path: {quoted(address)} }}\n" for kind, address in ADDRESSES.items()
                        if kind != "no_scheme")
        (self.folder / "wall.yaml").write_text(
            "version: 1\nclock: { mode: realtime, rate: 25 }\nstreams:\n"
            f"  cameras: {{ on_error: restart, max: 20, items: {{\n    film: {{ path: f.mkv }},\n"
            + items.replace("}\n", "},\n") + "  } }\nhandlers:\n"
            "  video: { type: video.file, for_each: cameras, path: '{path}', timeout: 1s, loop: true }\n"
            "  sink: { type: null.sink, for_each: cameras, input: video }\n")
        errors = open(self.folder / "said.txt", "w+")
        self.addCleanup(errors.close)
        run = subprocess.Popen([MILLRACE, "run", "wall.yaml", "--metrics", "127.0.0.1:0", "--json", "r.json", "--trace",
                                "t.json", "--log-file", "l.txt", "-vv"], cwd=self.folder, env=self.environment,
                               stdin=subprocess.DEVNULL, stderr=errors, stdout=errors,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        url = None
        while not url:
            self.assertIsNone(run.poll(), (self.folder / "said.txt").read_text())
            url = next((line.split()[1] for line in (self.folder / "said.txt").read_text().splitlines()
                        if line.startswith("metrics: http") and line.endswith("/metrics")), None)
        listed = {}
        while len([one for one in listed.values() if one["state"] == "down"]) < len(ADDRESSES) - 1:
            answer = self.said("streams", "list", "-p", str(run.pid), "--json")
            listed = json.loads(answer)["streams"].get("cameras", {}) if answer.startswith("{") else {}
            self.assertIsNone(run.poll(), (self.folder / "said.txt").read_text())
        self.said("streams", "-p", str(run.pid))
        self.said("get", "video", "-p", str(run.pid), "--json")
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
            self.assertNotIn(SECRET, answer.read().decode())
        for kind in ("password", "token"):
            self.said("streams", "add", "more", f"path={ADDRESSES[kind]}", "-p", str(run.pid))
            self.said("set", f"video.path={ADDRESSES[kind]}", "-p", str(run.pid))
        run.send_signal(signal.SIGINT)
        run.wait(SECONDS_MAX)
        self.assertTrue((self.folder / "r.json").stat().st_size > 0)
        self.assert_no_file_tells("wall.yaml")

    def test_a_line_that_is_its_own_name_is_told_without_the_secret(self):
        address = ADDRESSES["password"]
        line = f"test.pattern width=64 height=48 fps=25 ! draw.text text={quoted(address)} ! null.sink"
        run = subprocess.Popen([MILLRACE, "run", line, "--clock", "realtime", "--quiet"], cwd=self.folder,
                               env=self.environment, stdin=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        while "error" in (said := self.said("streams", "list", "-p", str(run.pid), "--json")):
            self.assertIsNone(run.poll())
        self.assertIn("rtsp://***@", json.loads(said)["pipeline"])
        self.assertIn("rtsp://***@", self.said("get", "text.text", "-p", str(run.pid)))
        self.assert_no_file_tells()
        self.assertIn("takes no more ticks", self.said("stop", "-p", line))
        self.assertEqual(run.wait(SECONDS_MAX), 0)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
