#!/usr/bin/env python3
"""The page of a viewer in a headless Chromium: the right pictures are drawn, the pointer comes back in the picture, and
the page says what a person has to know.

usage: viewer_browser.py MILLRACE EXAMPLES [--screenshots FOLDER] [unittest arguments]

No test asks for a time: numbers are read back from pictures, counts of one run are compared, and waits are patient. Without
a browser the test is left out (exit code 77), but in CI it fails.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import client  # noqa: E402: found by the line above
from client import View  # noqa: E402

SKIPPED = 77
SECONDS_MAX = 60
EXAMPLES = pathlib.Path()
SCREENSHOTS = None
FLAGS = ["--headless=new", "--no-sandbox", "--no-proxy-server", "--disable-background-networking",
         "--disable-component-update", "--force-color-profile=srgb", "--window-size=1280,800",
         "--host-resolver-rules=MAP foreign.test 127.0.0.1", "--ignore-certificate-errors"]
# Reads the number that test.pattern writes along the top edge of each picture that is drawn; null: there is none.
READ_NUMBERS = """
window.numbers = [];
const every = arguments[0];
const screen = millraceView.screen;
const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const draw = screen.draw.bind(screen);
let count = 0;
screen.draw = () => {
  const had = screen.waiting?.picture;
  draw();
  if (!had || count++ % every) return;
  const {canvas} = screen;
  const row = Math.max(Math.floor(canvas.height / 16), 1) >> 1;
  Object.assign(copy.canvas, {width: canvas.width, height: 1});
  copy.drawImage(canvas, 0, row, canvas.width, 1, 0, 0, canvas.width, 1);
  const {data} = copy.getImageData(0, 0, canvas.width, 1);
  const level = (block) => data[4 * Math.floor((block + 0.5) * canvas.width / 44) + 1];
  const middle = (level(0) + level(1)) / 2;
  const bit = (block) => (level(block) > middle ? 1 : 0);
  let number = 0, check = 0;
  for (let i = 4; i < 36; ++i) number = number * 2 + bit(i);
  for (let i = 36; i < 44; ++i) check = check * 2 + bit(i);
  const expected = ((Math.imul(number, 2654435761) >>> 24) ^ 0xa5) & 255;
  numbers.push(level(0) - level(1) > 100 && check === expected ? number : null);
};
"""
FIGURES = "return millraceView.figures.now"


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


class Browser(unittest.TestCase):
    driver = None

    @classmethod
    def setUpClass(cls):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.driver = webdriver.Chrome(options=options, service=Service("chromedriver"))

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()

    def setUp(self):
        self.addCleanup(self.driver.get, "about:blank")
        self.driver.get_log("browser")  # those of the test before

    def await_(self, holds, words="it never held"):
        end = time.monotonic() + SECONDS_MAX
        while not (value := holds()):
            self.assertLess(time.monotonic(), end, words)
            time.sleep(0.02)
        return value

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def open(self, view, name="main", host="127.0.0.1", watches=False, scheme="http"):
        place = view.pages[name]
        token = place["watch"] + "&role=watch" if watches else place["token"]
        self.driver.get("about:blank")  # another fragment alone would load nothing
        self.driver.get(f"{scheme}://{host}:{place['port']}/view/{name}/#token={token}")

    def await_drawn(self, count):
        return self.await_(lambda: (figures := self.script(FIGURES))["drawn"] >= count and figures, f"{count} pictures are drawn")

    def no_errors(self):
        self.assertEqual([entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"], [])

    def shoot(self, name):
        if SCREENSHOTS:
            self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))

    def numbers_of(self, codec, width, height, rate, count, every):
        """The numbers that were read back from pictures of such a film."""
        view = View(self, f"test.pattern width={width} height={height} ! view.remote name=view codec={codec}", "--clock",
                    "realtime", "--rate", rate)
        self.open(view)
        self.await_drawn(1)
        self.script(READ_NUMBERS, every)
        self.await_(lambda: self.script("return numbers.length") >= count, "numbers are read")
        numbers, figures = self.script("return numbers"), self.script(FIGURES)
        self.no_errors()
        counts = view.end()["handlers"]["view"]["counts"]
        self.assertGreater(counts[f"encoded_{codec}"], 0)
        self.assertEqual(figures["failed"], 0)
        return numbers

    def test_the_number_in_each_picture_is_read_back(self):
        for codec in ("jpeg", "h264"):
            for width, height, rate, every in ((1920, 1080, 30, 10), (1280, 720, 60, 10), (320, 240, 60, 1)):
                with self.subTest(codec=codec, width=width):
                    numbers = self.numbers_of(codec, width, height, rate, 10 if every > 1 else 100, every)
                    self.assertNotIn(None, numbers)
                    self.assertEqual(numbers, sorted(set(numbers)))  # none twice, none older than one before

    def test_the_ring_of_the_example_follows_the_pointer(self):
        from selenium.webdriver import ActionChains
        view = View(self, EXAMPLES / "remote_draw.yaml")
        self.open(view)
        self.await_drawn(1)
        canvas = self.driver.find_element("id", "screen")
        for x, y in ((-200, 100), (150, -80), (0, 0)):
            ActionChains(self.driver).move_to_element_with_offset(canvas, x, y).perform()

            def ring_is_there():  # white, 24 pixels of the picture to the right of the pointer, and not where it points
                return self.script("""
                    const canvas = document.getElementById('screen'), box = canvas.getBoundingClientRect();
                    const x = Math.round(canvas.width / 2 + arguments[0] * canvas.width / box.width);
                    const y = Math.round(canvas.height / 2 + arguments[1] * canvas.height / box.height);
                    const at = (px) => canvas.getContext('2d').getImageData(px, y, 1, 1).data;
                    return Math.min(...at(x + 24).slice(0, 3)) > 200 && Math.min(...at(x).slice(0, 3)) < 200;""", x, y)

            self.await_(ring_is_there, f"the ring is at {x}, {y}")
        self.assertEqual(self.driver.find_element("id", "control").text, "You have control.")
        self.driver.find_element("id", "figures").click()
        self.await_(lambda: "ms" in self.driver.find_element("id", "overlay").text)
        ActionChains(self.driver).move_to_element_with_offset(canvas, 150, 80).perform()
        if SCREENSHOTS:
            self.await_(lambda: self.script(FIGURES)["rate"] > 25)
        self.shoot("view_from_afar")
        self.assertGreater(self.await_(lambda: self.script(FIGURES)["answer"]), 0)
        self.no_errors()
        view.end()

    def test_a_drag_with_alt_turns_the_volume_of_the_example(self):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys
        view = View(self, EXAMPLES / "turn_volume.yaml")
        self.open(view)
        self.await_drawn(1)
        canvas = self.driver.find_element("id", "screen")

        def picture():  # one channel of every seventh pixel
            return self.script("""
                const canvas = document.getElementById('screen');
                const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                return Array.from({length: data.length / 28 | 0}, (_, i) => data[28 * i]);""")

        front = self.await_(lambda: (shown := picture()) and max(shown) > 50 and shown, "the volume is shown")
        turn = ActionChains(self.driver).move_to_element(canvas).key_down(Keys.ALT).click_and_hold()
        turn.move_by_offset(120, 30).release().key_up(Keys.ALT).perform()

        def differs():  # by more than what JPEG changes
            return sum(abs(one - other) > 20 for one, other in zip(front, picture())) > len(front) / 50

        self.await_(differs, "it turns")
        self.shoot("turn_volume")
        self.no_errors()
        view.end()

    def test_keys_and_buttons_that_are_down_go_up_when_the_page_loses_the_focus(self):
        from selenium.webdriver import ActionChains
        view = View(self, "test.pattern width=64 height=48 ! view.remote ; view.events name=hand ; "
                    "hand.events ! record.to_json path=events.jsonl flush=true", "--clock", "realtime", "--rate", 30)
        self.open(view)
        self.await_drawn(1)
        canvas = self.driver.find_element("id", "screen")
        ActionChains(self.driver).move_to_element(canvas).click_and_hold().key_down("a").perform()
        self.script("window.dispatchEvent(new Event('blur'))")

        def events():
            path = view.folder / "events.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            return [event for line in lines if line.endswith("}") for event in json.loads(line)["records"]]

        self.await_(lambda: {2, 5} <= {event["kind"] for event in events()}, "both go up")
        self.assertEqual([event["name"] for event in events() if event["kind"] in (4, 5)], ["a", "a"])
        ActionChains(self.driver).key_up("a").release().perform()
        view.end()

    def test_a_page_of_a_foreign_name_says_why_it_has_jpeg_and_gives_the_command(self):
        view = View(self, "test.pattern width=64 height=48 ! view.remote name=view", "--clock", "realtime", "--rate", 30,
                    "--web-listen", "127.0.0.1:0", "--web-host", "foreign.test")
        self.open(view, host="foreign.test")
        self.await_drawn(10)
        line = self.driver.find_element("id", "insecure")
        self.assertTrue(line.is_displayed())
        port = view.pages["main"]["port"]
        self.assertEqual(line.find_element("tag name", "code").text, f"ssh -L {port}:127.0.0.1:{port} foreign.test")
        self.shoot("view_insecure")
        counts = view.end()["handlers"]["view"]["counts"]
        self.assertNotIn("encoded_h264", counts)

    def test_a_page_of_a_foreign_name_by_https_gets_h264(self):
        view = View(self, "test.pattern width=64 height=48 ! view.remote name=view", "--clock", "realtime", "--rate", 30,
                    "--web-listen", "127.0.0.1:0", "--web-host", "foreign.test", "--tls")
        self.open(view, host="foreign.test", scheme="https")
        self.await_drawn(10)
        self.assertFalse(self.driver.find_element("id", "insecure").is_displayed())
        counts = view.end()["handlers"]["view"]["counts"]
        self.assertGreater(counts["encoded_h264"], 0)

    def test_a_watcher_cannot_steer_and_a_second_page_takes_control_over(self):
        from selenium.webdriver import ActionChains
        view = View(self, EXAMPLES / "remote_draw.yaml")
        other = view.page(codecs=())
        other.event("move", x=1, y=1)
        self.open(view, watches=True)
        self.await_drawn(1)
        self.assertEqual(self.driver.find_element("id", "control").text, "You watch.")
        self.open(view)
        self.await_drawn(1)
        control = self.driver.find_element("id", "control")
        self.await_(lambda: control.text == f"Page {other.number} has control.")
        self.driver.find_element("id", "take").click()
        self.await_(lambda: control.text == "You have control.")
        ActionChains(self.driver).move_to_element(self.driver.find_element("id", "screen")).perform()
        other.event("move", x=2, y=2)
        self.assertIn("has control", other.text("refused")["message"])
        view.end()

    def test_the_page_says_that_the_run_is_over_and_comes_back_after_a_lost_connection(self):
        view = View(self, "test.pattern width=64 height=48 ! view.remote", "--clock", "realtime", "--rate", 30)
        self.open(view)
        drawn = self.await_drawn(5)["drawn"]
        self.script("millraceView.socket.socket.close()")
        self.await_drawn(drawn + 10)
        view.end()
        notice = self.driver.find_element("id", "notice")
        self.await_(lambda: "has ended" in notice.text)

    def test_a_slow_page_has_two_pictures_to_acknowledge_at_most(self):
        """The page decodes fewer pictures than are made: it gets fewer, and those are fresh."""
        view = View(self, "test.pattern width=320 height=240 ! view.remote name=view codec=jpeg", "--clock", "realtime", "--rate", 100)
        self.open(view)
        self.await_drawn(1)
        # The decoder takes 50 ms more than it did. A page that was sent all pictures would show ever older ones.
        self.script("""
            const decode = ImageDecoder.prototype.decode;
            ImageDecoder.prototype.decode = async function() {
              await new Promise((done) => setTimeout(done, 50));
              return decode.call(this);
            };
            window.left = [];
            const bytes = millraceView.socket.sendBytes.bind(millraceView.socket);
            let got = 0;
            millraceView.socket.addEventListener('picture', ({detail}) => { got = new DataView(detail).getUint32(0); });
            millraceView.socket.sendBytes = (ack) => {
              left.push(got - new DataView(ack).getUint32(0));
              bytes(ack);
            };""")
        self.await_(lambda: self.script("return left.length") >= 60)
        self.assertLessEqual(max(self.script("return left")), 1)
        self.assertGreater(view.end()["handlers"]["view"]["counts"]["no_credit"], 0)


def main():
    global EXAMPLES, SCREENSHOTS
    # Debian's selenium belongs to Debian's Python, and CMake may have found another one.
    system = pathlib.Path("/usr/bin/python3")
    is_other = system.exists() and not os.path.samefile(system, sys.executable)
    if missing() and is_other and "MILLRACE_TRIED" not in os.environ:
        os.execve(system, [str(system), *sys.argv], {**os.environ, "MILLRACE_TRIED": "1"})
    client.MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    EXAMPLES = pathlib.Path(sys.argv.pop(1)).resolve()
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        SCREENSHOTS = pathlib.Path(sys.argv[at + 1]).resolve()
        del sys.argv[at:at + 2]
    if not client.has_viewer():
        print("left out: view.remote is not there: a library of its encoders is missing", file=sys.stderr)
        return SKIPPED
    if reason := missing():
        print(f"left out: {reason} (./dev setup)", file=sys.stderr)
        return 1 if os.environ.get("CI") else SKIPPED
    unittest.main(verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
