#!/usr/bin/env python3
"""Scrapes a run as Prometheus does, reads every line of the answer, and shows that bad peers do not hurt the run.

usage: metrics.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

MILLRACE = ""
SECONDS_MAX = 60
SEED = int(os.environ.get("MILLRACE_SEED", 1))
CONNECTIONS_MAX = 16  # as the server's own

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"')


def parse(text):
    """{(name, labels): value} and {family: type}; raises where the text is not format 0.0.4."""
    samples, types = {}, {}
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            if word == "TYPE":
                if name in types:
                    raise ValueError(f"{name} comes twice")
                types[name] = rest
            continue
        match = SAMPLE.fullmatch(line)
        if not match:
            raise ValueError(f"not a sample: {line}")
        family = re.sub(r"_(sum|count)$", "", match[1]) if types.get(match[1]) is None else match[1]
        if family not in types:
            raise ValueError(f"{match[1]} has no type")
        labels = tuple(sorted(LABEL.findall(match[2] or "")))
        if (match[1], labels) in samples:
            raise ValueError(f"twice: {line}")
        samples[match[1], labels] = float(match[3])
    return samples, types


def scrape(url):
    with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
        return answer.headers, answer.read().decode()


class Metrics(unittest.TestCase):
    def start(self, pipeline, *arguments):
        """A run that goes on until it is stopped; (process, url of its metrics)."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.report = pathlib.Path(folder.name) / "report.json"
        address = [] if "--metrics" in arguments else ["--metrics", "127.0.0.1:0"]
        process = subprocess.Popen([MILLRACE, "run", pipeline, *address, "--json", self.report, *arguments],
                                   stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stderr.readline()
        self.assertRegex(line, r"^metrics: http://(127\.0\.0\.1|0\.0\.0\.0):[1-9]\d*/metrics$")
        return process, line.split()[1]

    def stop(self, process):
        """Ends the run; its own report."""
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS_MAX), 130, process.stderr.read())
        return json.loads(self.report.read_text())

    def test_a_scrape_is_what_the_run_has_done_so_far(self):
        process, url = self.start("test.pattern name=video width=64 height=48 ! image.blur name=blur ! null.sink",
                                  "--clock", "realtime", "--rate", "1000")
        blur = (("domain", "cpu"), ("handler", "blur"), ("type", "image.blur"))
        calls, scrapes = 0, 0
        while calls < 300:  # the first sampled ticks are 0 and 256
            headers, text = scrape(url)
            samples, types = parse(text)
            scrapes += 1
            self.assertGreaterEqual(samples["millrace_handler_calls_total", blur], calls)
            calls = samples["millrace_handler_calls_total", blur]
        self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(headers["Connection"], "close")
        for name, kind in types.items():
            self.assertTrue(name.startswith("millrace_"), name)
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
            self.assertRegex(name, r"_(total|seconds|bytes)$")
        edge = (("from", "blur.video"), ("policy", "sync"), ("to", "sink.in"))
        self.assertGreater(samples["millrace_edge_delivered_total", edge], 0)
        self.assertGreater(samples["millrace_path_latency_seconds_count", (("sink", "sink"),)], 0)
        self.assertGreater(samples["millrace_pool_allocated_bytes", (("domain", "cpu"),)], 64 * 48 * 3)
        self.assertLess(samples["millrace_latency_seconds", (("quantile", "0.5"),)], 10)
        report = self.stop(process)
        self.assertGreaterEqual(report["ticks"]["run"], calls)

    def test_only_two_things_can_be_got(self):
        process, url = self.start("test.pattern width=16 height=16 ! null.sink", "--clock", "realtime", "--rate", "50")
        self.assertEqual(scrape(url.replace("/metrics", "/healthz"))[1], "ok\n")
        self.assertIn("millrace_ticks_total", scrape(url + "?name=x")[1])
        for path, method, code in (("/", "GET", 404), ("/metricsx", "GET", 404), ("/metrics", "POST", 405),
                                   ("/healthz", "DELETE", 405)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url.replace("/metrics", path), method=method),
                                       timeout=SECONDS_MAX)
            self.assertEqual(refused.exception.code, code, path)
            refused.exception.close()
        self.stop(process)

    def ask(self, url, method="GET", head=("Host: localhost",), version="1.1"):
        """The status, the head and the body of one answer to a request with these lines."""
        with socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)/", url)[1])), timeout=SECONDS_MAX) as peer:
            peer.sendall("\r\n".join([f"{method} /metrics HTTP/{version}", *head, "", ""]).encode())
            answer = b""
            while part := peer.recv(65536):
                answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), head.decode(), body.decode()

    def test_head_is_answered_as_get_is_without_a_body(self):
        process, url = self.start("test.pattern width=16 height=16 ! null.sink", "--clock", "realtime", "--rate", "50")
        status, head, body = self.ask(url, "HEAD")
        self.assertEqual((status, body), (200, ""))
        self.assertGreater(int(re.search(r"Content-Length: (\d+)", head)[1]), 100)
        self.assertIn("Content-Type: text/plain; version=0.0.4", head)
        self.stop(process)

    def test_a_page_of_another_name_gets_no_answer(self):
        """A browser sends the name of the page: a name that resolves to this machine must not be enough."""
        here = ("localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.9.9.9:80", "[::1]:80", "a.localhost")
        pages = ("evil.example", "evil.example:9090", "127.0.0.1.evil.example", "localhost.evil.example", "10.1.2.3",
                 "", "[evil", "127.0.0.1@evil.example", "evil.example#127.0.0.1", "[::2]")
        given, all_there = ["--metrics-host", "cam.example", "--metrics-host", "Other:1"], ["--metrics", ":0"]
        pipeline = ("test.pattern width=16 height=16 ! null.sink", "--clock", "realtime", "--rate", "50")
        for options, answered, refused in (([], here, pages + ("cam.example",)),
                                           (given, here + ("CAM.example:5", "other"), pages),
                                           (all_there, here + ("10.1.2.3", "[::2]"),
                                            [page for page in pages if page not in ("10.1.2.3", "[::2]")])):
            process, url = self.start(*pipeline, *options)
            for host in answered:
                self.assertEqual(self.ask(url, head=[f"Host: {host}"])[0], 200, (options, host))
            for host in refused:
                status, _, body = self.ask(url, head=[f"Host: {host}"])
                self.assertEqual(status, 421, (options, host))
                self.assertIn("--metrics-host", body)
                self.assertNotIn("millrace_", body)
            for head, status in (([], 400), (["Host: localhost", "Host: evil.example"], 400)):
                self.assertEqual(self.ask(url, head=head)[0], status, head)
            self.assertEqual(self.ask(url, head=[], version="1.0")[0], 200)
            self.stop(process)

    def test_a_flood_of_garbage_does_not_hurt_the_run(self):
        print(f"seed {SEED}", file=sys.stderr)
        rng = random.Random(SEED)
        process, url = self.start("test.pattern width=16 height=16 ! null.sink", "--clock", "realtime", "--rate", "200")
        address = ("127.0.0.1", int(re.search(r":(\d+)/", url)[1]))
        for i in range(300):
            with socket.create_connection(address, timeout=SECONDS_MAX) as peer:
                garbage = (rng.randbytes(rng.randrange(1, 400)), b"GET /metrics HTTP/1.1\r\n" + b"x: " + b"y" * 20000,
                           b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + rng.randbytes(100),
                           b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n", b"")[i % 5]
                try:
                    peer.sendall(garbage)
                except OSError:  # it was closed before all of it was sent
                    pass
        idle = [socket.create_connection(address, timeout=SECONDS_MAX) for _ in range(3 * CONNECTIONS_MAX)]
        turned_away = 0
        for peer in idle[:2 * CONNECTIONS_MAX]:  # those that were silent for longest have made way for the others
            try:
                turned_away += peer.recv(1) == b""
            except ConnectionResetError:
                turned_away += 1
        self.assertEqual(turned_away, 2 * CONNECTIONS_MAX)
        for peer in idle:
            peer.close()
        while True:  # until the server has seen that they are gone
            try:
                samples, _ = parse(scrape(url)[1])
                break
            except (urllib.error.URLError, ConnectionError, ValueError):
                self.assertIsNone(process.poll())
        report = self.stop(process)
        self.assertTrue(report["ok"])
        self.assertGreaterEqual(report["ticks"]["run"], samples["millrace_ticks_total", (("outcome", "run"),)])

    def refused(self, address, *words):
        result = subprocess.run([MILLRACE, "run", "test.pattern ! null.sink", "--metrics", address],
                                capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertNotIn("ticks", result.stderr)

    def test_an_address_that_cannot_be_used_is_refused_before_anything_runs(self):
        for address in ("9090", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:9090", "[]:1", ":-1"):
            self.refused(address, "error MR0105", address, "127.0.0.1:9090")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = f"127.0.0.1:{other.getsockname()[1]}"
            self.refused(taken, "error MR0113", taken, "in use")


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
