#!/usr/bin/env python3
"""Pages by https: a certificate of one's own, which is kept, and those of files; what cannot be used is refused.

usage: tls.py MILLRACE [unittest arguments]
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from web_socket import SECONDS_MAX, WebSocket  # noqa: E402: found by the line above

MILLRACE = ""
PIPELINE = ["run", "test.pattern name=video width=64 height=48 ! null.sink", "--clock", "realtime", "--rate", "50"]


class Tls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mr-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = os.environ | {"XDG_RUNTIME_DIR": folder.name, "XDG_CONFIG_HOME": str(self.folder / "config")}

    def start(self, *arguments):
        """A run with a page; sets `port` and `token`."""
        process = subprocess.Popen([MILLRACE, *PIPELINE, "--web", *map(str, arguments)], stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL, env=self.environment,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stderr.readline()
        page = re.match(r"page: https://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{32})$", line)
        self.assertTrue(page, line)
        self.port, self.token = int(page[1]), page[2]
        return process

    def end(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS_MAX), 130)

    def kept(self):
        return next(self.folder.glob("**/web.pem"))

    def trusting(self, file=None):
        return ssl.create_default_context(cafile=str(file or self.kept()))

    def get(self, context, name="127.0.0.1"):
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX) as plain:
            with context.wrap_socket(plain, server_hostname=name) as secure:
                secure.sendall(f"GET / HTTP/1.1\r\nHost: {name}:{self.port}\r\n\r\n".encode())
                answer = http.client.HTTPResponse(secure)
                answer.begin()
                return answer.status, answer.read().decode(), secure.getpeercert(binary_form=True)

    def refused(self, *arguments):
        done = subprocess.run([MILLRACE, *PIPELINE, "--web", *map(str, arguments)], capture_output=True, text=True, check=False,
                              timeout=SECONDS_MAX, env=self.environment)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_a_certificate_of_its_own_is_made_once_and_names_this_machine(self):
        process = self.start("--tls")
        self.assertEqual(stat.S_IMODE(self.kept().stat().st_mode), 0o600)
        status, page, certificate = self.get(self.trusting())
        self.assertEqual(status, 200)
        self.assertIn("<html", page)
        self.assertEqual(self.get(self.trusting(), "localhost")[0], 200)
        self.end(process)
        process = self.start("--tls")
        self.assertEqual(self.get(self.trusting())[2], certificate)
        self.end(process)
        process = self.start("--tls", "--web-host", "cam.example")
        _, _, newer = self.get(self.trusting(), "cam.example")
        self.assertNotEqual(newer, certificate)
        self.end(process)
        process = self.start("--tls")  # one that names more is good, too
        self.assertEqual(self.get(self.trusting())[2], newer)
        self.end(process)

    def test_a_page_by_https_speaks_as_one_by_http(self):
        process = self.start("--tls")
        client = WebSocket(self.port, tls=self.trusting())
        self.addCleanup(client.close)
        client.say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello",
                               "params": {"protocol": 3, "role": "steer", "token": self.token}}))
        self.assertEqual(json.loads(client.hear()[1])["result"]["role"], "steer")
        elsewhere = WebSocket(self.port, tls=self.trusting(), origin=f"http://127.0.0.1:{self.port}")
        self.addCleanup(elsewhere.close)
        self.assertEqual(elsewhere.status, 403)
        self.end(process)

    def test_who_speaks_no_tls_or_an_old_one_gets_no_answer(self):
        process = self.start("--tls")
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX) as plain:
            plain.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            self.assertNotIn(b"HTTP", plain.makefile("rb").read())
        old = self.trusting()
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.get(old)
        self.assertEqual(self.get(self.trusting())[0], 200)
        self.end(process)

    def test_a_certificate_of_files_is_used_and_one_that_cannot_be_used_is_refused(self):
        self.end(self.start("--tls"))
        mine = self.folder / "mine.pem"
        mine.write_bytes(self.kept().read_bytes())
        self.kept().unlink()
        process = self.start("--tls-cert", mine, "--tls-key", mine)
        self.assertEqual(self.get(self.trusting(mine))[0], 200)
        self.assertEqual(list(self.folder.glob("**/web.pem")), [])
        self.end(process)
        self.end(self.start("--tls"))  # another one
        text = self.folder / "text.pem"
        text.write_text("no certificate\n")
        self.assertIn("MR0126: the certificate's key cannot be used", self.refused("--tls-cert", mine, "--tls-key", self.kept()))
        self.assertIn("MR0126: the certificate cannot be used", self.refused("--tls-cert", text, "--tls-key", mine))
        self.assertIn("MR0126: the certificate's key cannot be used", self.refused("--tls-cert", mine, "--tls-key", text))
        words = self.refused("--tls-cert", self.folder / "none.pem", "--tls-key", mine)
        self.assertIn("--tls-cert names a file that cannot be read", words)
        self.assertIn("none.pem", words)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
