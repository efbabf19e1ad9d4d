#!/usr/bin/env python3
"""Opens the page of a run as a browser does, without one, and shows that bad peers neither get in nor hurt the run.

usage: web.py MILLRACE [unittest arguments]
"""
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from web_socket import Closed, WebSocket  # noqa: E402: found by the line above

MILLRACE = ""
SECONDS_MAX = 60
SEED = int(os.environ.get("MILLRACE_SEED", 1))
PAGES_MAX, CONNECTIONS_MAX = 16, 64  # as the server's own
NOT_ADMITTED, NO_PLACE, GOING_AWAY = 4001, 4002, 1001
# AddressSanitizer keeps 256 MiB of what was freed, to find who uses it still: no memory would be seen to be flat.
FREES_AT_ONCE = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=16"
PIPELINE = "test.pattern name=video width=64 height=48 ! image.blur name=blur ! null.sink"


class PageSocket(WebSocket):
    """A client of the page of a run."""

    def __init__(self, port, **arguments):
        super().__init__(port, **arguments)
        self.samples = []  # that came before an answer

    def ask(self, method, params=None, number=7):
        """The answer to a request; events before it are passed over."""
        self.say(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}))
        while True:
            opcode, data = self.hear()
            if opcode == 2:
                self.samples.append(data)
            elif (answer := json.loads(data)).get("id") == number:
                return answer

    def hear_sample(self):
        """The number of the tap of the next sample, which is acknowledged; other messages are passed over."""
        while not self.samples:
            opcode, data = self.hear()
            if opcode == 2:
                self.samples.append(data)
        tap = struct.unpack_from("<I", self.samples.pop(0))[0]
        self.say(json.dumps({"jsonrpc": "2.0", "method": "ack", "params": {"tap": tap}}))
        return tap


class Web(unittest.TestCase):
    def start(self, *arguments, pipeline=PIPELINE, web=("--web",)):
        """A run that goes on until it is stopped; its process. Sets `port`, `token` and `watch_token`."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = pathlib.Path(folder.name) / "log"
        process = subprocess.Popen([MILLRACE, "run", pipeline, *web, "--clock", "realtime", "--rate", "50", "--log-file",
                                    self.log, "--log-level", "debug", *arguments],
                                   stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                   env=os.environ | {"XDG_RUNTIME_DIR": folder.name, "ASAN_OPTIONS": FREES_AT_ONCE},
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        page = re.match(r"page: http://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{32})$", process.stderr.readline())
        watch = re.match(r"to watch alone: http://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{32})&role=watch$",
                         process.stderr.readline())
        self.port, self.token, self.watch_token = int(page[1]), page[2], watch[2]
        self.assertNotEqual(self.token, self.watch_token)
        return process

    def end(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS_MAX), 130, process.stderr.read())

    def open(self, **arguments):
        client = PageSocket(self.port, **arguments)
        self.addCleanup(client.close)
        return client

    def greet(self, token=None, role="steer", protocol=3):
        """A client that has said hello, and the answer."""
        client = self.open()
        return client, client.ask("hello", {"protocol": protocol, "role": role, "name": "page",
                                            "token": self.token if token is None else token})

    def get(self, path, host=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        self.addCleanup(connection.close)
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{self.port}"})
        answer = connection.getresponse()
        return answer, answer.read().decode()

    def assert_closed(self, client, code, reason=""):
        with self.assertRaises(Closed) as closed:
            while True:
                client.hear()
        self.assertEqual(closed.exception.args[0], code)
        self.assertIn(reason, closed.exception.args[1])

    def test_the_page_and_all_that_it_names_come_from_the_binary(self):
        process = self.start()
        answer, page = self.get("/")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        named = set(re.findall(r'(?:src|href)="/?([^"#]+)"', page))
        self.assertIn("style.css", named)
        left, seen = list(named), set()
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            answer, text = self.get("/" + name)
            self.assertEqual(answer.status, 200, name)
            kind = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}[pathlib.Path(name).suffix]
            self.assertTrue(answer.headers["Content-Type"].startswith(kind), name)
            self.assertNotRegex(text, r"https?://(?!www\.w3\.org/(2000/svg|1999/))", name)  # nothing from elsewhere
            left += re.findall(r"""(?:from|import)\s*\(?["']\./([^"']+)["']""", text)
        self.assertGreater(len(seen), 5)
        self.assertEqual(self.get("/../run_command.cpp")[0].status, 404)
        self.assertEqual(self.get("/", method="POST")[0].status, 405)
        self.end(process)

    def test_every_answer_says_what_a_browser_may_do_with_it(self):
        process = self.start()
        for path in ("/", "/main.js", "/nothing"):
            headers = self.get(path)[0].headers
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertIsNone(headers["Access-Control-Allow-Origin"])
        self.end(process)

    def test_a_page_speaks_the_protocol_of_the_control_socket(self):
        process = self.start()
        client, hello = self.greet()
        self.assertEqual(hello["result"]["role"], "steer")
        described = client.ask("describe")["result"]
        boxes = described["picture"]["boxes"]
        self.assertEqual(sorted(box["name"] for box in boxes), ["blur", "sink", "video"])
        for box in boxes:
            for number in box["handlers"]:
                self.assertEqual(list(described["plan"]["handlers"])[number], box["name"])
        self.assertEqual(sorted(n for arrow in described["picture"]["arrows"] for n in arrow["edges"]), [0, 1])
        self.assertIn("columns", client.ask("subscribe", {"topics": ["counters", "state"], "hz": 20})["result"])
        counts = []
        while len(counts) < 3:
            event = json.loads(client.hear()[1])
            if event["method"] == "counters":
                counts.append(event["params"]["clocks"][0][0])
        self.assertEqual(counts, sorted(counts))
        ticks = client.ask("set", {"changes": {"blur.sigma": 5}})["result"]["ticks"]
        self.assertGreater(ticks["main"], counts[0])
        self.assertEqual(client.ask("get", {"handler": "blur"})["result"]["blur"]["parameters"]["sigma"]["by"],
                         "page")
        self.end(process)

    def test_without_a_token_of_this_run_nobody_gets_in(self):
        process = self.start()
        flipped = self.token[:-1] + ("0" if self.token[-1] != "0" else "1")
        for token in ("", "x", flipped, self.token + "0", self.token[:-1], self.token.upper() + " ", 17, None):
            client = self.open()
            hello = {"protocol": 3, "role": "steer"} | ({} if token is None else {"token": token})
            answer = client.ask("hello", hello)
            self.assertEqual(answer["error"]["data"]["code"], "MR0119", token)
            self.assert_closed(client, NOT_ADMITTED, "token")
        for first in ('{"jsonrpc":"2.0","id":1,"method":"stop"}', "stop", "[]", '{"method":"hello"}', "\0" * 100):
            client = self.open()
            client.say(first)
            self.assertIn("error", json.loads(client.hear()[1]), first)
            self.assert_closed(client, NOT_ADMITTED)
        self.assertIsNone(process.poll())
        self.end(process)
        for token in (self.token, self.watch_token):  # whoever reads the log may not steer, nor see the pictures
            self.assertNotIn(token, self.log.read_text())

    def test_a_link_to_watch_changes_nothing(self):
        process = self.start()
        client, hello = self.greet(self.watch_token)
        self.assertEqual(hello["result"]["role"], "watch")
        for again in ({}, {"token": self.token}):  # the role is that of the first hello's token
            client.ask("hello", {"protocol": 3, "role": "steer"} | again)
            for method, params in (("set", {"changes": {"blur.sigma": 9}}), ("stop", {}),
                                   ("streams.remove", {"name": "x", "set": "y"})):
                self.assertEqual(client.ask(method, params)["error"]["code"], -32002, method)
        sigma = client.ask("get", {"handler": "blur"})["result"]["blur"]["parameters"]["sigma"]
        self.assertEqual(sigma["value"], sigma["default"])
        self.assertIsNone(process.poll())
        self.assertEqual(self.greet(self.token, "watch")[1]["result"]["role"], "watch")
        self.end(process)

    def test_another_servers_page_gets_no_connection(self):
        process = self.start()
        here = f"127.0.0.1:{self.port}"
        for host, origin, status in ((here, f"http://{here}", 101), (here, "http://evil.example", 403), (here, "", 403),
                                     (here, "null", 403), (here, f"https://{here}", 403),
                                     ("evil.example", "http://evil.example", 421),  # a name that was made to lead here
                                     (f"evil.example:{self.port}", f"http://evil.example:{self.port}", 421),
                                     ("localhost:9000", "http://localhost:9000", 101)):  # a tunnel's end
            self.assertEqual(self.open(host=host, origin=origin).status, status, (host, origin))
        answer, words = self.get("/", host="evil.example")
        self.assertEqual(answer.status, 421)
        self.assertIn("MR0123", words)
        self.assertIn("--web-host", words)
        self.end(process)
        process = self.start("--web-host", "cam.example", web=("--web-listen", ":0"))
        self.assertIn("plain HTTP", process.stderr.readline())
        for host in ("cam.example", f"cam.example:{self.port}", "10.1.2.3:80"):
            self.assertEqual(self.open(host=host, origin=f"http://{host}").status, 101, host)
        self.assertEqual(self.open(host="evil.example", origin="http://evil.example").status, 421)
        self.end(process)

    def test_an_old_page_is_told_to_reload(self):
        process = self.start()
        for protocol in (1, 2, 4, "3", None):
            client, answer = self.greet(protocol=protocol)
            self.assertEqual(answer["error"]["data"]["code"], "MR0125", protocol)
            self.assert_closed(client, NOT_ADMITTED, "version")
        self.end(process)

    def test_more_pages_than_there_are_places_are_told_so(self):
        process = self.start()
        pages = [self.greet()[0] for _ in range(PAGES_MAX)]
        late, answer = self.greet()
        self.assertIn("MR0121", answer["error"]["message"])
        self.assert_closed(late, NO_PLACE, "16 pages")
        pages.pop().close()
        while "error" in self.greet()[1]:  # until the server has seen that it is gone
            pass
        self.assertEqual(pages[0].ask("get")["result"]["blur"]["type"], "image.blur")
        self.end(process)

    def test_a_page_is_told_that_the_run_is_over(self):
        process = self.start()
        client, _ = self.greet()
        other, _ = self.greet(self.watch_token)
        self.assertEqual(client.ask("stop")["result"]["state"], "draining")
        self.assert_closed(client, GOING_AWAY, "MR0124: the run is over")
        self.assert_closed(other, GOING_AWAY, "MR0124: the run is over")
        self.assertEqual(process.wait(SECONDS_MAX), 0)

    def memory_kib(self, process):
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def test_odd_messages_and_silent_connections_leave_the_memory_as_it_was(self):
        print(f"seed {SEED}", file=sys.stderr)
        rng = random.Random(SEED)
        process = self.start()
        client, _ = self.greet()
        letters = '{}[]":,0 \\u"methodidparams'

        def odd():
            kind = rng.randrange(6)
            if kind == 0:
                return "".join(rng.choice(letters) for _ in range(rng.randrange(200)))
            if kind == 1:
                return json.dumps({"jsonrpc": "2.0", "id": rng.randrange(9), "method": rng.choice(("set", "gte", "tap", ""))})
            if kind == 2:
                return "[" * rng.randrange(5000)
            if kind == 3:
                return json.dumps({"jsonrpc": "2.0", "id": "x" * rng.randrange(300), "method": "set",
                                   "params": {"changes": {"blur." + "y" * rng.randrange(900): rng.random()}}})
            if kind == 4:
                return json.dumps({"jsonrpc": "2.0", "method": "get", "params": {"handler": rng.randrange(9)}})
            return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"token": self.token}})

        def flood(count):
            said = 0
            for _ in range(count):
                client.say(odd())
                said += 1
                if said % 50 == 0:
                    client.ask("get", {"handler": "blur"}, number=99_999)  # reads what has come until then

        flood(5_000)
        before = self.memory_kib(process)
        flood(20_000)
        big = client.ask("set", {"changes": {"blur.sigma": "9" * (60 << 10)}})
        self.assertIn("error", big)
        for _ in range(10):
            silent = [socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX) for _ in range(100)]
            for one in silent:
                one.close()
        silent = [socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX) for _ in range(300)]
        self.assertEqual(self.greet()[1]["result"]["role"], "steer")  # they keep nobody out
        for one in silent:
            one.close()
        too_long = self.open()
        too_long.say("x" * ((64 << 10) + 1))
        self.assert_closed(too_long, 1009)
        self.assertLess(self.memory_kib(process) - before, 16 << 10, "KiB more")
        self.assertEqual(client.ask("get", {"handler": "blur"})["result"]["blur"]["type"], "image.blur")
        self.end(process)

    def test_refusals_are_counted_for_prometheus(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        process = subprocess.Popen([MILLRACE, "run", PIPELINE, "--web", "--metrics", "127.0.0.1:0", "--clock", "realtime",
                                    "--rate", "50"], stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                   env=os.environ | {"XDG_RUNTIME_DIR": folder.name},
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        lines = {line.split(":")[0]: line for line in (process.stderr.readline() for _ in range(3))}
        self.port = int(re.search(r":(\d+)/", lines["page"])[1])
        metrics_port = int(re.search(r":(\d+)/", lines["metrics"])[1])
        for _ in range(3):
            self.open(origin="http://evil.example")
        self.get("/", host="evil.example")
        client = self.open()
        client.ask("hello", {"protocol": 3, "token": "x"})
        self.assert_closed(client, NOT_ADMITTED)
        self.port = metrics_port
        text = self.get("/metrics")[1]
        for cause, count in (("origin", 3), ("host", 1), ("token", 1), ("no_place", 0)):
            self.assertIn(f'millrace_web_refused_total{{cause="{cause}"}} {count}\n', text)
        self.end(process)

    def refused(self, *arguments):
        result = subprocess.run([MILLRACE, "run", "test.pattern ! null.sink", *arguments], capture_output=True, text=True,
                                timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertNotIn("ticks", result.stderr)
        return result.stderr

    def test_an_address_that_cannot_be_used_is_refused_before_anything_runs(self):
        self.assertIn("error MR0105: --web-listen takes HOST:PORT", self.refused("--web-listen", "8080"))
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = f"127.0.0.1:{other.getsockname()[1]}"
            words = self.refused("--web-listen", taken)
        self.assertIn(f"error MR0113: --web-listen cannot listen on {taken}: Address already in use", words)
        self.assertIn("--web-listen 127.0.0.1:0", words)
        done = subprocess.run([MILLRACE, "run", PIPELINE, "--ticks", "3", "--web-host", "cam"], capture_output=True, text=True,
                              check=True, timeout=SECONDS_MAX)
        self.assertIn("warning: --web-host names the machine of a page, and there is none", done.stderr)

    def test_a_run_without_a_control_socket_has_its_page(self):
        process = self.start("--control", "off", pipeline=self.doors())
        client, _ = self.greet()
        client.ask("subscribe", {"topics": ["log"]})
        client.say(json.dumps({"jsonrpc": "2.0", "method": "streams.add", "params": {"name": "hall",
                                                                                   "fields": {"sigma": 4}}}))
        self.assertIn("the stream has begun", json.dumps(json.loads(client.hear()[1])["params"]["lines"]))
        self.assertEqual(client.ask("stop")["result"]["state"], "draining")
        self.assertEqual(process.wait(SECONDS_MAX), 0)

    def doors(self):
        """A pipeline with room for two streams, of which one is there: gate."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "doors.yaml"
        path.write_text("version: 1\nstreams: {cameras: {max: 2, items: {gate: {sigma: 2}}}}\nhandlers:\n"
                        "  video: {type: test.pattern, for_each: cameras, width: 64, height: 48}\n"
                        "  blur: {type: image.blur, for_each: cameras, input: video, sigma: '{sigma}'}\n"
                        "  show: {type: null.sink, for_each: cameras, input: blur}\n")
        return str(path)

    def test_a_preview_of_a_stream_that_has_gone_shows_no_other_stream(self):
        process = self.start(pipeline=self.doors())
        client, _ = self.greet()
        self.assertEqual(client.ask("streams.add", {"name": "hall", "fields": {"sigma": 4}}).get("error"), None)
        taps = {name: client.ask("tap", {"output": f"blur@{name}.video", "width": 16, "hz": 20})["result"]["tap"]
                for name in ("gate", "hall")}

        while client.hear_sample() != taps["gate"]:
            pass
        client.ask("streams.remove", {"name": "gate", "set": "cameras"})
        self.assertIn("error", client.ask("tap", {"output": "blur@gate.video"}))
        heard = 0
        while heard < 3:  # what gate has shown before it went has come by then
            heard += client.hear_sample() == taps["hall"]
        client.ask("streams.add", {"name": "yard", "fields": {"sigma": 1}})  # takes the place that gate has left
        yard = client.ask("tap", {"output": "blur@yard.video", "width": 16, "hz": 20})["result"]["tap"]
        seen = [client.hear_sample()]
        while seen.count(yard) < 3 or seen.count(taps["hall"]) < 3:
            seen.append(client.hear_sample())
        self.assertNotIn(taps["gate"], seen)
        self.end(process)


if __name__ == "__main__":
    MILLRACE = sys.argv.pop(1)
    unittest.main(verbosity=2)
