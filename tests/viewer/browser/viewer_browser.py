#!/usr/bin/env python3
"""The page of a viewer in a headless Chromium: the right pictures are drawn, the pointer comes back in the picture, and
the page says what a person has to know.

usage: viewer_browser.py MILLRACE EXAMPLES [--screenshots FOLDER] [unittest arguments]

No test asks for a time: numbers are read back from pictures, counts of one run are compared, and waits are patient. Without
a browser the test is left out (exit code 77), but in CI it fails.
"""
import array
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
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
STATE = """
return globalThis.millraceView && {
  ...millraceView.figures.now, hidden: document.hidden, focus: document.hasFocus(), waiting: millraceView.screen.waiting?.picture.seq,
  control: document.getElementById('control').textContent, notice: document.getElementById('notice').textContent,
  sent: millraceView.input.seq, heard: window.heard, open: millraceView.socket.socket.readyState === 1, lastMs: performance.now() - millraceView.figures.arrivals.at(-1)?.ms};
"""
# Counts what the browser passes on to the page.
LISTEN = """
window.heard ??= {};
for (const name of ['pointerdown', 'pointerup', 'wheel'])
  document.getElementById('stage').addEventListener(name, () => { heard[name] = (heard[name] ?? 0) + 1; }, true);
"""
DRAG = ("pointerdown", "pointerup")
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
            if time.monotonic() > end:
                self.fail(f"{words}; the page: {self.script(STATE)}")
            time.sleep(0.02)
        return value

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def open(self, view, name="main", host="127.0.0.1", watches=False, scheme="http"):
        place = view.pages[name]
        token = place["watch"] + "&role=watch" if watches else place["token"]
        self.driver.get("about:blank")  # another fragment alone would load nothing
        self.driver.get(f"{scheme}://{host}:{place['port']}/view/{name}/#token={token}")

    def act(self, actions, *names):
        """Does it; again where the browser has passed on nothing of it, as it does at times on a busy machine."""
        heard = lambda: [self.script("return heard[arguments[0]] ?? 0", name) for name in names]
        for _ in range(3):
            before = heard()
            actions.perform()
            now = heard()
            if all(one > other for one, other in zip(now, before)):
                return
            print(f"the browser passed on {now} after {before} of {names}", file=sys.stderr)
        self.fail(f"the browser passes on none of {names}; the page: {self.script(STATE)}")

    def await_drawn(self, count):
        return self.await_(lambda: (figures := self.script(FIGURES))["drawn"] >= count and figures, f"{count} pictures are drawn")

    def no_errors(self):
        self.assertEqual([entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"], [])

    def shoot(self, name):
        if SCREENSHOTS:
            self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))

    def numbers_of(self, codec, width, height, rate, count, every):
        """The numbers that were read back from pictures of such a film."""
        view = View(self, f"test.pattern width={width} height={height} ! view.remote name=view still=0 codec={codec}", "--clock",
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

    def volume(self):
        """The example with what a person chose in files, and its page once the volume is shown."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        kept = "".join(f"  kept_{name}: {{ type: record.to_json, input: hand.{name}, path: {name}.jsonl, flush: true }}\n"
                       for name in ("events", "camera", "look"))
        self.kept = pathlib.Path(folder.name)
        pipeline = self.kept / "volume.yaml"
        pipeline.write_text((EXAMPLES / "volume.yaml").read_text() + kept)
        view = View(self, pipeline)
        self.open(view)
        self.front = self.await_(lambda: max(shown := self.picture()) > 50 and shown, "the volume is shown")
        self.await_(lambda: self.driver.find_element("id", "open").is_displayed(), "there are controls")
        self.script(LISTEN)
        return view

    def open_panel(self):
        self.driver.find_element("id", "open").click()
        return {label.text: control for control in self.driver.find_elements("css selector", "#controls > .control")
                for label in control.find_elements("tag name", "span")}

    def picture(self):  # one channel of every seventh pixel
        return self.script("""
            const canvas = document.getElementById('screen');
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            return Array.from({length: data.length / 28 | 0}, (_, i) => data[28 * i]);""")

    def await_change(self, words):  # by more than what JPEG changes
        def differs():
            now = self.picture()
            return sum(abs(one - other) > 20 for one, other in zip(self.front, now)) > len(now) / 50 and now
        self.front = self.await_(differs, words)

    def records(self, name):
        path = self.kept / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [record for line in lines if line.endswith("}") for record in json.loads(line)["records"]]

    def at_rest(self, zoom):
        """The camera once it has moved and come to rest with about that zoom."""
        def is_there():
            cameras = self.records("camera")
            return len(cameras) > 1 and not cameras[-1]["moving"] and abs(cameras[-1]["zoom"] - zoom) < 0.2 * zoom and cameras[-1]
        return self.await_(is_there, f"it rests at zoom {zoom}")

    def test_a_drag_and_the_wheel_move_the_volume_of_the_example(self):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
        from selenium.webdriver.common.keys import Keys
        view = self.volume()
        canvas = self.driver.find_element("id", "screen")
        turn = ActionChains(self.driver).move_to_element(canvas).key_down(Keys.ALT).click_and_hold()
        self.act(turn.move_by_offset(120, 30).release().key_up(Keys.ALT), *DRAG)
        self.await_change("it turns with Alt")
        self.act(ActionChains(self.driver).move_to_element(canvas).click_and_hold().move_by_offset(-90, 40).release(), *DRAG)
        self.await_change("it turns without")
        self.act(ActionChains(self.driver).scroll_from_origin(ScrollOrigin.from_element(canvas), 0, -300), "wheel")
        self.await_change("it comes nearer")
        camera = self.at_rest(zoom=1.0015 ** 300)
        self.assertAlmostEqual(camera["angles"][0], 30 * 0.2, delta=2)
        # The pipeline gets all of it as well.
        self.await_(lambda: {0, 1, 2, 3} <= {event["kind"] for event in self.records("events")}, "there are events")
        self.open_panel()
        if SCREENSHOTS:  # of the refined picture, after which none comes
            self.await_(lambda: self.script("return performance.now() - millraceView.figures.arrivals.at(-1).ms > 500"))
        self.shoot("turn_volume")
        self.driver.find_element("id", "reset-camera").click()
        self.await_(lambda: (camera := self.records("camera")[-1])["zoom"] == 1 and camera["angles"] == [0, 0, 0])
        self.no_errors()
        view.end()

    def rendered(self, camera, look):
        """What volume.render makes for that camera and look, a number from 0 to 255 for each colour of each pixel."""
        for name, schema, record in (("eye", "millrace.ViewCamera", camera), ("colours", "millrace.ViewLook", look)):
            (self.kept / f"{name}.jsonl").write_text(json.dumps({"tick": 0, "schema": schema, "records": [record]}) + "\n")
        line = ("volume.test width=96 height=96 depth=96 name=data ; record.from_json name=eye path=eye.jsonl ; "
                "record.from_json name=look path=colours.jsonl ; volume.render name=turned width=480 height=270 ; "
                "data.volume ! turned.volume ; eye.out ! turned.camera ; look.out ! turned.look ; "
                "turned.video ! image.normalize layout=nhwc ! tensor.to_npy path=asked.npy")
        done = subprocess.run([client.MILLRACE, "run", line, "--quiet"], cwd=self.kept, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers = array.array("f")
        numbers.frombytes((self.kept / "asked.npy").read_bytes()[-480 * 270 * 3 * 4:])
        return [round(255 * number, 2) for number in numbers]

    def psnr(self, name):
        """Of what is on the page's canvas beside window[name], in decibels."""
        error = self.script("""
            const canvas = document.getElementById('screen'), asked = window[arguments[0]];
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let sum = 0;
            for (let i = 0; i < asked.length; ++i) sum += (data[4 * Math.floor(i / 3) + i % 3] - asked[i]) ** 2;
            return data.length / 4 * 3 === asked.length ? sum / asked.length : null;""", name)
        self.assertIsNotNone(error, "the canvas has another size")
        return 10 * math.log10(255 ** 2 / max(error, 1e-6))

    def test_a_picture_at_rest_is_the_one_that_its_camera_asks_for(self):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
        view = self.volume()
        canvas = self.driver.find_element("id", "screen")
        self.script("window.first = arguments[0]", self.rendered(self.records("camera")[0], self.records("look")[-1]))
        self.await_(lambda: self.psnr("first") >= 45, "the first one is as it was made")
        self.act(ActionChains(self.driver).move_to_element(canvas).click_and_hold().move_by_offset(80, -50).release(), *DRAG)
        self.act(ActionChains(self.driver).scroll_from_origin(ScrollOrigin.from_element(canvas), 0, -200), "wheel")
        self.script("window.turned = arguments[0]", self.rendered(self.at_rest(zoom=1.0015 ** 200), self.records("look")[-1]))
        found = self.await_(lambda: (found := self.psnr("turned")) >= 45 and found, "the turned one is as it was made")
        print(f"{found:.1f} dB")
        self.assertLess(self.psnr("first"), 30)
        self.assertGreater(self.script(FIGURES)["stills"], 0)
        self.no_errors()
        self.assertGreater(view.end()["handlers"]["show"]["counts"]["encoded_stills"], 0)

    def test_fingers_turn_move_and_zoom_the_volume(self):
        from selenium.webdriver.common.actions import interaction
        from selenium.webdriver.common.actions.action_builder import ActionBuilder
        from selenium.webdriver.common.actions.pointer_input import PointerInput
        view = self.volume()
        canvas = self.driver.find_element("id", "screen")

        def touch(*ways):  # each finger's way, in pixels from the middle of the picture
            actions = ActionBuilder(self.driver, mouse=PointerInput(interaction.POINTER_TOUCH, "finger 0"), duration=50)
            fingers = [actions.pointer_action.source] + [
                actions.add_pointer_input(interaction.POINTER_TOUCH, f"finger {n}") for n in range(1, len(ways))]
            for finger, way in zip(fingers, ways):
                for step, (x, y) in enumerate(way):
                    finger.create_pointer_move(duration=50, x=x, y=y, origin=canvas)
                    if step == 0:
                        finger.create_pointer_down(button=0)
                finger.create_pointer_up(button=0)
            actions.perform()

        touch([(0, 0), (60, 10), (120, 20)])
        self.await_change("it turns")
        turned = self.at_rest(zoom=1)
        self.assertAlmostEqual(turned["angles"][0], 24, delta=4)
        touch([(-40, 0), (-80, 20), (-120, 40)], [(40, 0), (80, 20), (120, 40)])
        self.await_change("it comes nearer")
        near = self.at_rest(zoom=3)
        self.assertEqual(near["angles"], turned["angles"])
        self.assertNotEqual(near["center"], turned["center"])
        self.no_errors()
        view.end()

    def test_a_choice_in_the_panel_changes_the_picture(self):
        from selenium.webdriver.support.select import Select
        view = self.volume()
        controls = self.open_panel()
        self.assertEqual(list(controls), ["Mode", "Colours", "Contrast", "Gamma", "Opacity", "Surface level",
                                          "Crop x", "Crop y", "Crop z"])
        mode = Select(controls["Mode"].find_element("tag name", "select"))
        self.assertEqual(mode.first_selected_option.text, "translucent")
        mode.select_by_visible_text("maximum")
        self.await_change("another mode is shown")
        Select(controls["Colours"].find_element("tag name", "select")).select_by_visible_text("viridis")
        self.await_change("other colours are shown")
        chosen = lambda: [self.records("look")[-1][name] for name in ("mode", "map")]
        self.await_(lambda: chosen() == ["maximum", "viridis"])
        self.driver.find_element("id", "reset-look").click()
        self.await_change("it is as it was")
        self.assertEqual(mode.first_selected_option.text, "translucent")
        self.no_errors()
        view.end()

    def test_the_thumbs_of_the_contrast_change_the_look_and_their_keys_stay_in_the_panel(self):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys
        view = self.volume()
        contrast = self.open_panel()["Contrast"]
        low, high = contrast.find_elements("tag name", "input")
        self.assertEqual([thumb.get_attribute("aria-label") for thumb in (low, high)], ["Contrast, low", "Contrast, high"])
        histogram = contrast.find_element("tag name", "canvas")
        drawn = "const {data} = arguments[0].getContext('2d').getImageData(0, 0, 128, 48); return data.some((byte) => byte > 0)"
        self.assertTrue(self.script(drawn, histogram))
        # The high thumb stands at three quarters of the way.
        ActionChains(self.driver).move_to_element_with_offset(high, high.size["width"] // 4 - 3, 0).click_and_hold() \
            .move_by_offset(-40, 0).release().perform()
        self.await_(lambda: self.records("look")[-1]["high"] < 0.8, "the high thumb moves")
        self.assertEqual(self.records("look")[-1]["low"], 0)
        low.send_keys(Keys.ARROW_RIGHT * 3)
        self.await_(lambda: self.records("look")[-1]["low"] > 0, "the low thumb moves by keys")
        low.send_keys(Keys.END)  # it goes as far as the other one
        look = self.await_(lambda: (look := self.records("look")[-1])["low"] == look["high"] and look)
        self.assertEqual(contrast.find_element("tag name", "output").text, f"{look['low']:.3g} … {look['high']:.3g}")
        self.driver.find_element("id", "stage").send_keys("a")
        keys = self.await_(lambda: [event["name"] for event in self.records("events") if event["kind"] in (4, 5)])
        self.assertEqual(set(keys), {"a"})
        self.no_errors()
        view.end()

    def test_a_control_comes_back_if_it_is_refused_and_follows_other_pages(self):
        from selenium.webdriver.support.select import Select
        view = self.volume()
        controls = self.open_panel()
        select = controls["Mode"].find_element("tag name", "select")
        answer = self.driver.find_element("id", "answer")
        self.script("""
            arguments[0].append(new Option('fogg'));
            arguments[0].value = 'fogg';
            arguments[0].dispatchEvent(new Event('change'));""", select)
        self.await_(lambda: "may be maximum, translucent" in answer.text, "it is refused")
        mode = Select(select)
        self.assertEqual(mode.first_selected_option.text, "translucent")
        mode.select_by_visible_text("average")
        self.await_(lambda: answer.text == "", "it counts")
        other = view.page(codecs=())
        values = {control["key"]: control["value"] for control in other.text("controls")["controls"]}
        self.assertEqual(values["look.mode"], "average")
        other.tell(type="take")
        other.tell(type="look", seq=1, mode="iso", gamma=2, crop_z=[0.25, 1])
        other.text("ack")
        self.await_(lambda: mode.first_selected_option.text == "iso", "it follows the other page")
        gamma = controls["Gamma"].find_element("tag name", "input")
        self.assertEqual(gamma.get_property("valueAsNumber"), 2)
        self.assertEqual(controls["Crop z"].find_element("tag name", "output").text, "0.25 … 1")
        mode.select_by_visible_text("maximum")  # the other page has control
        self.await_(lambda: "has control" in answer.text, "it is refused")
        self.assertEqual(mode.first_selected_option.text, "iso")
        self.driver.find_element("id", "take").click()
        self.driver.find_element("id", "reset-camera").click()
        self.await_(lambda: answer.text == "", "the camera's reset counts")
        other.tell(type="take")
        self.await_(lambda: "has control" in self.driver.find_element("id", "control").text, "the other page took control")
        self.driver.find_element("id", "reset-camera").click()
        self.await_(lambda: "has control" in answer.text, "the camera's reset is refused")
        self.driver.find_element("id", "take").click()
        mode.select_by_visible_text("maximum")
        while other.text("values")["values"]["look.mode"] != "maximum":
            pass
        self.no_errors()
        view.end()

    def test_a_slider_sends_at_most_once_a_refresh_and_an_old_answer_does_not_move_it(self):
        view = self.volume()
        gamma = self.open_panel()["Gamma"].find_element("tag name", "input")
        sent = self.driver.execute_async_script("""
            const [slider, done] = arguments, {socket} = millraceView, sent = [];
            const say = socket.say.bind(socket);
            socket.say = (message) => { if (message.type === 'look') sent.push(message); say(message); };
            const move = (value) => { slider.value = value; slider.dispatchEvent(new Event('input')); };
            for (let n = 0; n < 100; ++n) move(1 + n / 100);
            move(3);
            requestAnimationFrame(() => {
              move(3.5);
              millraceView.panel.ledger.answered(1, {'look.gamma': 3}); // of the wish before
              done(sent.concat(slider.valueAsNumber));
            });""", gamma)
        self.assertEqual([sent[0]["gamma"], len(sent), sent[-1]], [3, 2, 3.5])
        self.await_(lambda: abs(self.records("look")[-1]["gamma"] - 3.5) < 1e-6)
        self.assertEqual(gamma.get_property("valueAsNumber"), 3.5)
        self.no_errors()
        view.end()

    def test_controls_of_slices_speak_of_axes_and_whole_steps(self):
        view = self.volume()
        self.open_panel()
        sent = self.driver.execute_async_script("""
            const [done] = arguments, {socket, panel} = millraceView, sent = [];
            socket.say = ({seq, ...message}) => sent.push(message);
            const step = (key, label) => ({kind: 'number', key, label, low: 0, high: 9, step: 1, value: 4});
            panel.offer([{kind: 'choice', key: 'dims.axis', label: 'axis', choices: ['z', 'y', 'x'], value: 'z'},
                         step('dims.step', 'position'), step('dims.step_2', 'on x'), step('dims.level', 'level')]);
            const [axis, ...sliders] = document.querySelectorAll('#controls select, #controls input');
            axis.value = 'x';
            axis.dispatchEvent(new Event('change'));
            for (const slider of sliders) {
              slider.value = 7;
              slider.dispatchEvent(new Event('input'));
            }
            requestAnimationFrame(() => done(sent));""")
        self.assertEqual(sent, [{"type": "dims", "axis": 2}, {"type": "dims", "step": 7},
                                {"type": "dims", "step": 7, "axis": 2}, {"type": "dims", "level": 7}])
        self.no_errors()
        view.end()

    def test_the_panel_stays_open_while_a_lost_connection_comes_back(self):
        view = self.volume()
        self.open_panel()
        self.script("millraceView.socket.socket.close(); millraceView.panel.list.textContent = ''")
        self.await_(lambda: len(self.driver.find_elements("css selector", "#controls > .control")) == 9, "the controls are told again")
        self.assertTrue(self.driver.find_element("id", "panel").is_displayed())
        self.no_errors()
        view.end()

    def test_a_watcher_sees_the_controls_and_cannot_move_them(self):
        view = self.volume()
        self.open(view, watches=True)
        self.await_(lambda: self.driver.find_element("id", "open").is_displayed(), "there are controls")
        controls = self.open_panel()
        self.assertFalse(controls["Mode"].find_element("tag name", "select").is_enabled())
        self.assertEqual(controls["Opacity"].find_element("tag name", "output").text, "1")
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
        view = View(self, "test.pattern width=320 height=240 ! view.remote name=view still=0 codec=jpeg", "--clock", "realtime", "--rate", 100)
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

    def test_pictures_are_acknowledged_in_order_where_one_fails_before_another_is_drawn(self):
        view = View(self, "test.pattern width=320 height=240 ! view.remote name=view still=0 codec=jpeg", "--clock", "realtime", "--rate", 30)
        self.open(view)
        self.await_drawn(1)
        self.script("""
            const {screen, socket} = millraceView, decode = ImageDecoder.prototype.decode;
            let count = 0;
            ImageDecoder.prototype.decode = async function() {
              if (++count % 2) throw new Error('told to fail');
              return decode.call(this);
            };
            screen.refresh = () => setTimeout(() => screen.draw(), 100);
            window.told = [];
            const bytes = socket.sendBytes.bind(socket);
            socket.sendBytes = (ack) => { told.push(new DataView(ack).getUint32(0)); bytes(ack); };""")
        told = self.await_(lambda: len(told := self.script("return told")) >= 20 and told)
        self.assertEqual(told, sorted(told))
        self.assertNotIn("cut_off", view.end()["handlers"]["view"]["counts"])


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
