#!/usr/bin/env python3
"""The page of a run in a browser: a headless Chromium looks at it, moves its sliders and loses its connection.

usage: browser.py MILLRACE [--screenshots FOLDER] [unittest arguments]

With a folder, the pictures of the guide are written into it as well. No test asks for a time: counts and ratios of one
run are compared, and waits are patient. Without a browser the test is left out (exit code 77), but in CI it fails.
"""
import itertools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from door import Door  # noqa: E402: found by the line above

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIVE_HANDLERS = ROOT / "examples" / "pipelines" / "five_handlers.yaml"
HANDLERS = ["pattern", "marker", "waveform", "fps", "sink"]
ENDLESS = ["--set", "pattern.count=0", "--clock", "realtime"]
STILL = ["--set", "marker.path=still", "--set", "marker.pulse=0"]  # its picture changes with its parameters alone
MILLRACE = ""
SCREENSHOTS = None  # a folder
SKIPPED = 77
SECONDS_MAX = 60
PAGES_MAX = 16  # as the server's own
FLAGS = ["--headless=new", "--no-sandbox", "--no-proxy-server", "--disable-background-networking",
         "--disable-component-update", "--force-color-profile=srgb", "--window-size=1440,900"]
MARKUP = "<script>alert(\"1\")</script>'&amp;<img src=x onerror=alert(2)>"
# Counts what the page gets from its WebSocket and what it sends, and what the content policy refuses. Acknowledgements
# wait for `ackDelayMs`; below 0 they are never sent. `rewrites` are words of the run that the page is told
# otherwise, and `saysInstead` those of the page.
WATCHED = """
window.violations = [];
addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));
window.samples = 0;
window.acks = 0;
window.sets = 0;
window.ackDelayMs = 0;
window.rewrites = [];
window.saysInstead = [];
const Plain = WebSocket;
window.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', ({data}) => { if (typeof data !== 'string') ++samples; });
  }
  set onmessage(take) {
    super.onmessage = (event) => {
      if (typeof event.data !== 'string') return take(event);
      take({data: rewrites.reduce((text, [from, to]) => text.replaceAll(from, to), event.data)});
    };
  }
  send(said) {
    const text = saysInstead.reduce((text, [from, to]) => text.replaceAll(from, to), said);
    if (text.includes('"set"')) ++sets;
    if (!text.includes('"ack"')) return super.send(text);
    const acknowledge = () => {
      ++acks;
      super.send(text);
    };
    if (ackDelayMs === 0) acknowledge();
    else if (ackDelayMs > 0) setTimeout(acknowledge, ackDelayMs);
  }
};
"""
# Notes the tick of each picture that a preview draws, with a sum of its pixels. The pattern writes the picture's number
# along the top edge, which is left out.
NOTE_PICTURES = """
const card = arguments[0];
window.seen = [];
const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
new MutationObserver(() => {
  const canvas = card.querySelector('canvas');
  Object.assign(copy.canvas, {width: canvas.width, height: canvas.height});
  copy.drawImage(canvas, 0, 0);
  const top = canvas.height >> 2;
  const {data} = copy.getImageData(0, top, canvas.width, canvas.height - top);
  let sum = 0;
  for (const level of data) sum = (sum * 31 + level) % 4294967291;
  seen.push([Number(card.dataset.tick), sum]);
}).observe(card, {attributes: true, attributeFilter: ['data-tick']});
"""


def missing():
    """The reason why there can be no test here, or nothing."""
    try:
        import selenium.webdriver  # noqa: F401: tried
    except ImportError:
        return "python3-selenium is not installed"
    for program in ("chromium", "chromedriver"):
        if not any((pathlib.Path(folder) / program).exists() for folder in os.get_exec_path()):
            return f"{program} is not installed"
    return None


class Run:
    """A run under way with a page, and its Unix socket."""

    def __init__(self, test, *arguments, environment=None):
        folder = tempfile.TemporaryDirectory(prefix="mr-")
        test.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        environment = {**os.environ, **(environment or {}), "XDG_RUNTIME_DIR": folder.name, "TMPDIR": folder.name, "MILLRACE_MACHINE": ""}
        self.process = subprocess.Popen([MILLRACE, "run", *map(str, arguments), "--web"], cwd=test.folder,
                                        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.terminate)
        self.said = ""
        self.link = self.watch_link = None
        while not self.watch_link:
            line = self.process.stderr.readline()
            test.assertTrue(line, f"it gave no link: {self.said}")
            self.said += line
            if match := re.search(r"page: (http://127\.0\.0\.1:\d+/#token=\w+)", line):
                self.link = match[1]
            if match := re.search(r"(http://127\.0\.0\.1:\d+/#token=\w+&role=watch)", line):
                self.watch_link = match[1]
        test.assertTrue(self.link)
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        try:
            for line in self.process.stderr:
                self.said += line
        except ValueError:  # it is closed
            pass

    @property
    def port(self):
        return urllib.parse.urlsplit(self.link).port


class Socket:
    """A client of the run's Unix socket."""

    def __init__(self, test, run, name="socket"):
        self.client = socket.socket(socket.AF_UNIX)
        test.addCleanup(self.client.close)
        self.client.settimeout(SECONDS_MAX)
        def is_connected():  # the socket is there a moment before anybody listens
            return any(self.client.connect_ex(str(path)) == 0 for path in (run.folder / "millrace").glob("*.sock"))
        test.await_(is_connected)
        self.lines = self.client.makefile("r")
        test.addCleanup(self.lines.close)
        self.ids = itertools.count(1)
        self.call("hello", protocol=3, role="steer", name=name)

    def call(self, method, **params):
        number = next(self.ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.client.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = json.loads(self.lines.readline())
            if answer.get("id") == number:
                return answer["result"]

    def counters(self):
        """The next event, which is newer than this call by nothing but what waits."""
        while True:
            event = json.loads(self.lines.readline())
            if event.get("method") == "counters":
                return event["params"]


class Browser(unittest.TestCase):
    driver = None

    @classmethod
    def setUpClass(cls):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(options=options, service=Service("chromedriver"))
        cls.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCHED})

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mr-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.loses_connection = False
        self.addCleanup(self.driver.get, "about:blank")
        self.addCleanup(self.look_at_the_logs)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # those of the test before

    def look_at_the_logs(self):
        """No error of the console, no report of the policy and no request off the loopback, whatever the test did."""
        self.assertEqual(self.driver.execute_script("return window.violations ?? []"), [])
        told = [entry["message"] for entry in self.driver.get_log("browser")]
        if self.loses_connection:
            told = [message for message in told if "WebSocket connection to" not in message]
        self.assertEqual(told, [])
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                params = message["params"]
                url = urllib.parse.urlsplit(params.get("url") or params["request"]["url"])
                self.assertTrue(url.hostname == "127.0.0.1" or url.scheme in ("about", "chrome", "data"), url.geturl())

    # ---- what a person does and sees

    def await_(self, holds, words=""):
        end = time.monotonic() + SECONDS_MAX
        while not (value := holds()):
            self.assertLess(time.monotonic(), end, words or "it never held")
            time.sleep(0.02)
        return value

    def open(self, link, is_ready=True):
        self.driver.get("about:blank")  # another fragment alone would load nothing
        self.driver.get(link)
        if is_ready:
            self.await_ready()

    def await_ready(self):
        self.await_(lambda: self.phase() == "ready" and self.numbers_are_there(), "the page is not ready")

    def phase(self):
        return self.driver.execute_script("return document.body.dataset.phase")

    def numbers_are_there(self):
        return "/s" in self.text(".node .rate")

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        """Text as it stands in the document; "" where there is no such element."""
        return self.driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def texts(self, selector):
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def click(self, selector):
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        self.find(selector).click()

    def open_panel(self, handler):
        self.click(f"[data-name='{handler}'] .node-head")
        self.await_(lambda: self.text(".panel h2") == handler)

    def open_preview(self, output):
        handler, port = output.split(".")
        self.click(f"[data-name='{handler}'] .outputs[data-port='{port}']")
        self.await_(lambda: self.shown_tick(output) is not None, f"nothing of {output} is shown")

    def shown_tick(self, output):
        tick = self.driver.execute_script("return document.querySelector(arguments[0])?.dataset.tick",
                                          f"[data-output='{output}']")
        return None if tick is None else int(tick)

    def enter(self, parameter, value):
        from selenium.webdriver.common.keys import Keys
        field = self.find(f"[data-param='{parameter}'] .field")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(value, Keys.ENTER)

    def field_value(self, parameter):
        return self.find(f"[data-param='{parameter}'] .field").get_property("value")

    def is_answered(self, parameter):
        """The answer to the change and the news of it come in either order."""
        return re.search(r"(from|changed at) tick \d+", self.text(f"[data-param='{parameter}'] .answer"))

    def ticks_on_the_page(self):
        return int(re.search(r"(\d+) ticks", self.text("#clocks li"))[1])

    # ---- the graph and its numbers

    def test_the_page_shows_every_handler_and_every_edge_of_the_run(self):
        self.open(Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30).link)
        self.assertEqual(self.texts(".node-name"), HANDLERS)
        self.assertEqual(self.text("#pipeline"), "five_handlers")
        self.assertEqual(len(self.texts("path.arrow")), 4)
        self.assertEqual(self.texts("[data-name='fps'] .port"), ["in", "out"])
        self.assertEqual(set(self.texts(".node .device")), {"cpu"})
        self.await_(lambda: self.text("#state") == "running")
        self.await_(lambda: len(self.texts(".slowest")) == 1)

    def test_the_numbers_on_the_page_are_those_that_the_socket_tells(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        client = Socket(self, run)
        client.call("subscribe", topics=["counters"], hz=10)
        before = client.counters()["clocks"][0][0]
        self.await_(lambda: self.ticks_on_the_page() >= before)
        shown = self.ticks_on_the_page()
        self.await_(lambda: client.counters()["clocks"][0][0] >= shown)
        self.await_(lambda: self.numbers_agree(client.counters()["handlers"]), "the numbers are others")

    def numbers_agree(self, rows):
        rates, p50s = self.texts(".node .rate"), self.texts(".node .p50")
        return all(self.is_near(rate, row[2]) for rate, row in zip(rates, rows, strict=True)) and \
            all(0.8 < microseconds(p50) / row[3] < 1.25 for p50, row in zip(p50s, rows, strict=True) if row[3] > 1)

    @staticmethod
    def is_near(rate, per_second):
        return per_second > 0 and 0.9 < float(rate.split()[0]) / per_second < 1.1

    def test_boxes_of_several_streams_add_their_rates(self):
        pipeline = self.folder / "doors.yaml"
        pipeline.write_text("""
version: 1
name: doors
clock: { mode: realtime, rate: 20 }
streams: { cameras: { items: { gate: { sigma: 2 }, hall: { sigma: 1 } } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 32, height: 24 }
  blur:  { type: image.blur, for_each: cameras, input: video, sigma: '{sigma}' }
  end:   { type: null.sink, for_each: cameras, input: blur }
""")
        run = Run(self, pipeline)
        self.open(run.link)
        self.assertEqual(set(self.texts(".node-count")), {"×2"})
        client = Socket(self, run)
        client.call("subscribe", topics=["counters"], hz=10)

        def told():
            return sum(row[2] for row in client.counters()["handlers"][:2])
        self.await_(lambda: self.is_near(self.text(".node .rate"), told()))
        name = self.text(".node:nth-of-type(2) .node-name")
        self.open_panel(name)
        self.await_(lambda: "gate 2, hall 1" in self.text("[data-param='sigma'] .answer"))
        self.enter("sigma", "5")
        self.await_(lambda: {one["parameters"]["sigma"]["value"] for one in Socket(self, run).call("get").values()
                             if "sigma" in one["parameters"]} == {5})

    # ---- parameters

    def test_the_tick_that_a_slider_is_answered_with_is_the_first_whose_picture_is_another(self):
        from selenium.webdriver.common.keys import Keys
        # Slower than previews are, so that most pictures are seen. The turn counts in which both neighbours were.
        run = Run(self, FIVE_HANDLERS, *ENDLESS, *STILL, "--rate", 4)
        self.open(run.link)
        self.open_panel("marker")
        self.open_preview("marker.video")
        row = "[data-param='radius']"
        for turn in range(20):
            self.driver.execute_script(NOTE_PICTURES, self.find("[data-output='marker.video']"))
            self.await_(lambda: len(self.seen()) >= 2)
            self.driver.execute_script("delete document.querySelector(arguments[0]).dataset.tick", row)
            self.find(f"{row} .slider").send_keys(Keys.PAGE_DOWN if turn % 2 else Keys.PAGE_UP)
            first = int(self.await_(lambda: self.find(row).get_attribute("data-tick")))
            self.await_(lambda: any(tick > first for tick, _ in self.seen()))
            seen = self.seen()
            old, new = ({look for tick, look in seen if (tick >= first) == is_new} for is_new in (False, True))
            self.assertEqual((len(old), len(new)), (1, 1), f"{first} of {seen}")
            self.assertNotEqual(old, new)
            if {first - 1, first} <= {tick for tick, _ in seen}:
                return
        self.fail("both neighbours were never seen in one turn")

    def seen(self):
        return self.driver.execute_script("return seen")

    def test_of_a_slider_that_is_dragged_the_first_and_the_newest_value_are_sent(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        self.open_panel("marker")
        self.driver.execute_script("""
const slider = document.querySelector('[data-param=radius] .slider');
for (let place = 500; place < 600; ++place) {
  slider.value = place;
  slider.dispatchEvent(new Event('input'));
}""")
        wanted = float(self.field_value("radius"))
        client = Socket(self, run)
        self.await_(lambda: client.call("get")["marker"]["parameters"]["radius"]["value"] == wanted)
        self.assertEqual(self.driver.execute_script("return sets"), 2)
        self.await_(lambda: self.is_answered("radius"))
        self.assertEqual(float(self.field_value("radius")), wanted)

    def test_a_refused_value_shows_the_sentence_and_the_edit_and_the_edit_does_it(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        self.open_panel("marker")
        self.enter("radius", "9999999")
        self.await_(lambda: "MR0312" in self.text("[data-param='radius'] .refusal"))
        said = self.text("[data-param='radius'] .refusal")
        self.assertIn("is not a number from 0.5 to 4096 px", said)
        self.assertIn("try: marker.radius=4096", said)
        self.click("[data-param='radius'] .edit")
        self.await_(lambda: Socket(self, run).call("get")["marker"]["parameters"]["radius"]["value"] == 4096)
        self.await_(lambda: self.text("[data-param='radius'] .refusal") == "")
        self.enter("radius", "wide")
        self.await_(lambda: "MR0311" in self.text("[data-param='radius'] .refusal"))

    def test_reset_gives_the_value_back_that_the_pipeline_declares(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        self.open_panel("marker")
        self.assertFalse(self.find("[data-param='radius'] .reset").is_enabled())
        self.enter("radius", "90")
        self.await_(lambda: self.is_answered("radius"))
        self.click("[data-param='radius'] .reset")
        self.await_(lambda: Socket(self, run).call("get")["marker"]["parameters"]["radius"]["value"] == 40)
        self.await_(lambda: self.field_value("radius") == "40")

    def test_parameters_that_are_not_live_are_shown_and_say_so(self):
        self.open(Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30).link)
        self.open_panel("pattern")
        self.assertEqual(self.field_value("width"), "1920")
        self.assertFalse(self.find("[data-param='width'] .field").is_enabled())
        self.assertIn("not live", self.text("[data-param='width']"))

    def test_what_others_change_is_shown_with_who_did_it(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        self.open_panel("marker")
        ticks = Socket(self, run, name="hand").call("set", changes={"marker.radius": 123})["ticks"]
        self.await_(lambda: self.field_value("radius") == "123")
        self.assertIn(f"changed at tick {ticks['main']} by hand", self.text("[data-param='radius'] .answer"))

    # ---- previews

    def test_an_output_that_nobody_reads_is_opened_from_the_panel_and_may_be_empty(self):
        self.open(Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30).link)
        self.open_panel("fps")
        self.click(".panel .output[data-port='rate']")
        self.await_(lambda: "no value on this tick" in self.text("[data-output='fps.rate'] .preview-age"))
        self.assertIn("nobody reads this output", self.text("[data-output='fps.rate'] .note"))

    def test_records_are_a_table(self):
        pipeline = self.folder / "rate.yaml"
        pipeline.write_text("""
version: 1
name: rate
clock: { mode: realtime, rate: 20 }
handlers:
  video: { type: test.pattern, width: 32, height: 24 }
  fps:   { type: stats.fps, input: video }
  end:   { type: null.sink, input: fps.rate }
""")
        self.open(Run(self, pipeline).link)
        self.open_preview("fps.rate")
        self.await_(lambda: self.texts("[data-output='fps.rate'] th") == ["per_second", "span_ns", "interval_count"])
        self.await_(lambda: self.texts("[data-output='fps.rate'] td"))

    def test_a_tensor_has_its_numbers_and_a_heat_map(self):
        self.open(Run(self, "test.pattern width=64 height=32 fps=20 live=true ! image.normalize ! null.sink").link)
        name = self.texts(".node-name")[1]
        self.open_preview(f"{name}.tensor")
        self.await_(lambda: "mean" in self.texts(".preview dt"))
        self.assertGreater(int(self.find(".preview .heat").get_property("width")), 1)

    def test_an_output_that_the_run_does_not_show_says_why(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.rewrite([["marker.video", "marker.nothing"]], whose="saysInstead")
        self.open(run.link)
        self.click("[data-name='marker'] .outputs[data-port='video']")
        self.await_(lambda: self.text("[data-output='marker.video'] .refusal p"))
        self.assertEqual(self.texts(".port.refused"), ["video"])
        said = self.text("[data-output='marker.video'] .refusal p")
        self.assertTrue(said.endswith(self.find(".port.refused").get_attribute("title")), said)

    def test_an_output_within_a_region_of_a_device_says_not_yet(self):
        run = Run(self, "test.pattern name=video width=64 height=48 ! image.blur name=blur device=sim:0 ! null.sink",
                  "--devices", "cpu,sim:0", "--clock", "realtime", "--rate", 30)
        self.open(run.link)
        self.click("[data-name='blur'] .outputs[data-port='video']")
        self.await_(lambda: "not shown yet" in self.text("[data-output='blur.video']"))
        self.assertIn("MR0319", self.text("[data-output='blur.video']"))
        self.assertIn("not shown yet", self.find("[data-name='blur'] .port.refused").get_attribute("title"))

    def test_several_previews_are_open_and_each_is_closed_by_its_port(self):
        self.open(Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30).link)
        for output in ("pattern.video", "marker.video", "waveform.video"):
            self.open_preview(output)
        first = self.shown_tick("pattern.video")
        self.await_(lambda: self.shown_tick("pattern.video") > first + 30)
        self.click("[data-name='marker'] .outputs[data-port='video']")
        self.assertEqual(len(self.texts(".preview")), 2)
        self.click("[data-name='sink'] .inputs[data-port='in']")  # what comes in is what fps gives
        self.await_(lambda: self.shown_tick("fps.out") is not None)

    def test_a_preview_gets_the_next_picture_once_it_has_drawn_the_last_one_however_busy_the_machine_is(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        for _ in range(2):
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(loop.wait)
            self.addCleanup(loop.kill)
        self.open_preview("marker.video")
        first = self.shown_tick("marker.video")
        self.await_(lambda: self.at_most_two_behind() and self.shown_tick("marker.video") > first + 90)
        self.driver.execute_script("ackDelayMs = 700")  # it acknowledges late
        first = self.shown_tick("marker.video")
        self.await_(lambda: self.at_most_two_behind() and self.shown_tick("marker.video") > first + 90)
        self.driver.execute_script("ackDelayMs = -1")  # never
        ticks, samples = self.ticks_on_the_page(), self.driver.execute_script("return samples")
        self.await_(lambda: self.ticks_on_the_page() > ticks + 90)
        self.assertLessEqual(self.driver.execute_script("return samples"), samples + 2)

    def at_most_two_behind(self):
        samples, acks = self.driver.execute_script("return [samples, acks]")
        self.assertLessEqual(samples - acks, 2)
        return True

    # ---- odd texts

    def test_names_are_shown_as_they_are_whatever_their_letters_and_their_length(self):
        # More than a pipeline may name: the page does not rely on what others check.
        odd = MARKUP + "x" * 10_000
        inside = json.dumps(odd)[1:-1]
        words = ("five_handlers", "marker", "video", "Draws a disc")
        self.rewrite([*([word, inside] for word in words), ['"cpu"', f'"{inside}"']])
        self.open(Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30).link)
        self.assertEqual(self.text("#pipeline"), odd)
        self.assertEqual(self.texts(".node-name")[1], odd)
        self.assertEqual(self.texts(".node-type")[1], f"draw.{odd}")
        self.assertEqual(self.text(".node .port.outputs"), odd)
        self.assertEqual(self.text(".node .device"), odd)
        self.assertEqual(self.text(".lane-name"), odd)
        self.click(".node:nth-of-type(2) .node-head")
        self.await_(lambda: self.text(".panel h2") == odd)
        self.assertTrue(self.text(".panel .summary").startswith(odd))
        self.is_plain()

    def test_texts_of_parameters_are_shown_as_they_are(self):
        text = MARKUP + "x" * 400  # more is refused
        pipeline = self.folder / "odd.yaml"
        pipeline.write_text(f"""
version: 1
name: odd
clock: {{ mode: realtime, rate: 20 }}
handlers:
  video: {{ type: test.pattern, width: 64, height: 32 }}
  words: {{ type: draw.text, input: video, size: 4, text: {json.dumps(text)} }}
  end:   {{ type: null.sink, input: words }}
""")
        self.open(Run(self, pipeline).link)
        self.open_panel("words")
        self.await_(lambda: self.field_value("text") == text)
        self.is_plain()

    def test_the_name_of_who_changed_a_value_is_shown_as_it_is(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        self.open_panel("marker")
        Socket(self, run, name=MARKUP).call("set", changes={"marker.radius": 77})
        self.await_(lambda: f"by {MARKUP}," in self.text("[data-param='radius'] .answer"))
        self.is_plain()

    def test_lines_of_the_log_are_shown_as_they_are(self):
        # A stream that fails and begins anew says so, with the name of the file that it cannot write.
        full = self.folder / "<script>alert(1)<" / "script>'&amp;.gray"
        full.parent.mkdir()
        full.symlink_to("/dev/full")
        name = str(full.relative_to(self.folder))
        (self.folder / "odd.yaml").write_text(f"""
version: 1
name: odd
clock: {{ mode: realtime, rate: 20 }}
streams:
  doors: {{ on_error: restart, items: {{ gate: {{ out: {json.dumps(name)} }}, hall: {{ out: /dev/null }} }} }}
handlers:
  video: {{ type: test.pattern, for_each: doors, width: 32, height: 24 }}
  save:  {{ type: file.raw_writer, for_each: doors, input: video, path: '{{out}}' }}
""")
        long = MARKUP + "y" * 10_000
        self.rewrite([["is closed", json.dumps(long)[1:-1]]])
        self.open(Run(self, self.folder / "odd.yaml").link)
        self.await_(lambda: any(name in line and line.endswith(long) for line in self.texts("#log-lines .text")),
                    "the line never came")
        self.click("#log summary")
        self.is_plain()

    def rewrite(self, words, whose="rewrites"):
        """Pages that are opened from now on are told these words in place of others, or say them."""
        script = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                                             {"source": f"window.{whose} = {json.dumps(words)};"})
        self.addCleanup(self.driver.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", script)

    def is_plain(self):
        """Nothing that came as text has become an element."""
        self.assertEqual(len(self.driver.find_elements("css selector", "body script, img")), 0)
        width = self.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(width, 0, "a long text has widened the page")

    # ---- roles and links

    def test_a_page_that_only_watches_changes_nothing_and_says_so(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.watch_link)
        self.assertEqual(self.text("#role"), "only watches")
        self.assertFalse(self.find("#stop").is_displayed())
        self.open_panel("marker")
        self.assertTrue(self.find(".role-note").is_displayed())
        self.assertEqual(self.driver.find_elements("css selector", ".panel input:enabled, .panel select:enabled"), [])
        self.open_preview("marker.video")
        # A person who enables the control by hand is refused by the run.
        self.driver.execute_script("document.querySelector('[data-param=radius] .field').disabled = false")
        self.enter("radius", "99")
        self.await_(lambda: "steer" in self.text("[data-param='radius'] .refusal"))
        self.assertEqual(Socket(self, run).call("get")["marker"]["parameters"]["radius"]["value"], 40)

    def test_the_watch_token_does_not_steer_whatever_the_link_says(self):
        self.open(Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30).watch_link.replace("watch", "steer"))
        self.assertEqual(self.text("#role"), "only watches")

    def test_a_link_with_a_wrong_token_or_none_says_so(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(re.sub("token=...", "token=000", run.link), is_ready=False)
        self.await_(lambda: self.phase() == "gone")
        self.assertIn("does not accept this link", self.text("#notice"))
        self.assertIn("MR0119", self.text("#notice"))
        self.open(run.link.split("#")[0], is_ready=False)
        self.await_(lambda: self.phase() == "gone")
        self.assertIn("has no token", self.text("#notice"))

    def test_a_server_that_is_full_says_so_and_lets_the_page_in_once_there_is_a_place(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        others = """
const [token, most, done] = arguments;
window.others = Array.from({length: most}, () => new WebSocket(`ws://${location.host}/control`));
let ready = 0;
for (const one of others) {
  one.onopen = () => one.send(JSON.stringify({jsonrpc: '2.0', id: 1, method: 'hello', params: {protocol: 3, token}}));
  one.onmessage = () => { if (++ready === most) done(); };
}"""
        token = re.search(r"token=(\w+)", run.link)[1]
        self.driver.set_script_timeout(SECONDS_MAX)
        self.driver.execute_async_script(others, token, PAGES_MAX - 1)
        first = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        second = self.driver.current_window_handle
        self.driver.get(run.link)
        self.await_(lambda: self.phase() == "gone")
        self.assertIn("All places of the run are taken", self.text("#notice"))
        self.assertIn("MR0121", self.text("#notice"))
        self.driver.switch_to.window(first)
        self.driver.execute_script("for (const one of others) one.close()")
        self.driver.switch_to.window(second)

        def is_let_in():
            if self.phase() == "gone":
                self.driver.execute_script("document.querySelector('#notice button')?.click()")
            return self.phase() == "ready"
        self.await_(is_let_in)
        self.driver.close()
        self.driver.switch_to.window(first)

    # ---- the connection and the end

    def test_the_connection_comes_back_by_itself_and_the_page_says_when_it_is_away(self):
        self.loses_connection = True
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        door = Door(run.port)
        self.addCleanup(door.shut)
        self.open(run.link.replace(str(run.port), str(door.port)))
        self.open_panel("marker")
        self.open_preview("marker.video")
        door.shut()
        self.await_(lambda: self.phase() == "away")
        self.assertIn("The page tries again by itself", self.text("#notice"))
        self.assertFalse(self.find("[data-param='radius'] .field").is_enabled())
        self.await_(lambda: "it has probably ended" in self.text("#notice"))
        Socket(self, run).call("set", changes={"marker.radius": 55})
        before = self.shown_tick("marker.video")
        door.open()
        self.await_ready()
        self.await_(lambda: self.field_value("radius") == "55")  # what has changed meanwhile is shown
        self.await_(lambda: self.shown_tick("marker.video") > before)
        self.assertFalse(self.find("#notice").is_displayed())
        self.assertEqual(len(self.texts(".node")), len(HANDLERS))

    def test_a_page_of_another_version_says_that_it_has_to_be_loaded_anew(self):
        self.loses_connection = True
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        version = Socket(self, run).call("hello", protocol=3)["version"]
        door = Door(run.port)
        self.addCleanup(door.shut)
        self.open(run.link.replace(str(run.port), str(door.port)))
        told = f'"version":"{version}"'
        door.change = (told.encode(), told.replace(version[-1], "x").encode())
        door.hang_up()
        self.await_(lambda: self.phase() == "gone")
        self.assertIn("Reload this page", self.text("#notice"))
        door.change = (b"", b"")
        self.click("#notice button:last-of-type")
        self.await_ready()

    def test_a_page_that_speaks_another_protocol_says_that_it_has_to_be_loaded_anew(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.rewrite([['"protocol":3', '"protocol":2']], whose="saysInstead")
        self.open(run.link, is_ready=False)
        self.await_(lambda: self.phase() == "gone")
        self.assertIn("Reload this page", self.text("#notice"))
        self.assertIn("MR0125", self.text("#notice"))

    def test_the_stop_button_asks_first_and_the_page_says_that_the_run_has_ended(self):
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        self.click("#stop")
        self.click("#stop-no")
        self.assertFalse(self.find("#stop-question").is_displayed())
        ticks = self.ticks_on_the_page()
        self.await_(lambda: self.ticks_on_the_page() > ticks)
        self.click("#stop")
        self.click("#stop-yes")
        self.await_(lambda: self.phase() == "over")
        self.assertIn("The run has ended", self.text("#notice"))
        self.assertEqual(self.text("#state"), "ended")
        self.assertEqual(run.process.wait(SECONDS_MAX), 0)
        self.assertEqual(self.texts(".node-name"), HANDLERS)  # its last numbers stay

    def test_a_run_that_is_killed_has_probably_ended(self):
        self.loses_connection = True
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.open(run.link)
        run.process.kill()
        self.await_(lambda: "it has probably ended" in self.text("#notice"))
        self.assertEqual(self.phase(), "away")

    def test_a_page_that_is_opened_before_the_nodes_have_met_shows_the_graph_once_they_have(self):
        pipeline = self.folder / "pair.yaml"
        pipeline.write_text("version: 1\nclock: {mode: realtime, rate: 30}\nnodes: {edge: {}, gpu: {}}\nhandlers:\n"
                            "  camera: {type: test.pattern, count: 0, node: edge}\n"
                            "  blur: {type: image.blur, node: gpu, input: camera}\n"
                            "  screen: {type: null.sink, node: edge, input: {from: blur, delivery: live}}\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
        homes = {node: {"XDG_CONFIG_HOME": str(self.folder / node)} for node in ("edge", "gpu")}

        def command(node, *words):
            return subprocess.run([MILLRACE, *words], env=os.environ | homes[node], capture_output=True, text=True,
                                  check=True).stdout.splitlines()[0]

        for node, other in (("edge", "gpu"), ("gpu", "edge")):
            command(node, "nodes", "add", other, command(other, "identity"))
        run = Run(self, pipeline, "--node", "edge", "--listen", place, environment=homes["edge"])
        self.open(run.link, is_ready=False)
        self.await_(lambda: "no plan yet" in self.text("#notice"))
        Run(self, pipeline, "--node", "gpu", "--coordinator", place, environment=homes["gpu"])
        self.await_ready()
        self.assertEqual(sorted(self.texts(".node .node-name")), ["blur", "camera", "screen"])

    def test_the_readme_leads_to_a_page_with_a_moving_picture(self):
        line = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.endswith(" --web"))
        words = line.split()
        self.assertEqual(words[:2], ["build/millrace", "run"])
        run = Run(self, ROOT / words[2], *words[3:-1])
        self.open(run.link)
        self.open_preview("waveform.video")
        first = self.shown_tick("waveform.video")
        self.await_(lambda: self.shown_tick("waveform.video") > first + 30)

    # ---- pictures of the guide

    def test_the_pictures_of_the_guide_are_taken_where_somebody_asks_for_them(self):
        if SCREENSHOTS is None:
            self.skipTest("nobody asks")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        run = Run(self, FIVE_HANDLERS, *ENDLESS, "--rate", 30)
        self.show_in("light")
        self.open(run.link)
        self.await_(lambda: self.ticks_on_the_page() > 90)  # the start's own times have left the window
        self.driver.set_window_size(1440, 480)
        self.take("see_graph")
        self.driver.set_window_size(1440, 900)
        self.open_panel("marker")
        for output in ("pattern.video", "fps.out"):
            self.open_preview(output)
        self.enter("radius", "160")
        self.await_(lambda: self.is_answered("radius"))
        first = self.shown_tick("fps.out")
        self.await_(lambda: self.shown_tick("fps.out") > first + 30)
        self.take("see_and_steer")
        self.show_in("dark")
        self.enter("radius", "9999")
        self.await_(lambda: self.text("[data-param='radius'] .refusal"))
        self.take("see_refused")
        self.show_in("light")

    def show_in(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def take(self, name):
        self.assertTrue(self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png")))


def microseconds(text):
    number, unit = text.split()
    return float(number) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]


def main():
    global MILLRACE, SCREENSHOTS
    # Debian's selenium belongs to Debian's Python, and CMake may have found another one.
    system = pathlib.Path("/usr/bin/python3")
    is_other = system.exists() and not os.path.samefile(system, sys.executable)
    if missing() and is_other and "MILLRACE_TRIED" not in os.environ:
        os.execve(system, [str(system), *sys.argv], {**os.environ, "MILLRACE_TRIED": "1"})
    if reason := missing():
        print(f"left out: {reason} (./dev setup)", file=sys.stderr)
        return 1 if os.environ.get("CI") else SKIPPED
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        SCREENSHOTS = pathlib.Path(sys.argv[at + 1]).resolve()
        del sys.argv[at:at + 2]
    unittest.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
