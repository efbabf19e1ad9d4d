#!/usr/bin/env python3
"""view.remote and view.events with pages that are programs: credits, newcomers, control, rubbish, counts.

usage: viewer.py MILLRACE [unittest arguments]

Nothing asks for a time: what comes is counted, and waits are patient.
"""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import client
from client import FAILED, H264, JPEG, View
from web_socket import SECONDS_MAX, Closed

SKIPPED = 77
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "pipelines"
RUBBISH, NO_CODEC, NOT_ADMITTED, GOING_AWAY = 4003, 4004, 4001, 1001
PATTERN = "test.pattern name=video width=64 height=48"
REALTIME = ["--clock", "realtime", "--rate", "100"]
STILL = f"{PATTERN} ! image.crop name=still y=24 width=64 height=24 ! view.remote name=view still=0"


def view_of_ticks(test, pipeline, ticks):
    """The report of a run of so many ticks that nobody looks at."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run([client.MILLRACE, "run", pipeline, *REALTIME, "--ticks", str(ticks), "--json", report], check=True,
                       stderr=subprocess.DEVNULL, timeout=SECONDS_MAX)
        return json.loads(report.read_text())


class BatchJob(unittest.TestCase):
    def test_the_log_of_a_job_of_slurm_has_the_tunnel_to_the_run_and_the_links(self):
        job = EXAMPLES.parent / "cluster" / "view.sbatch"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = {**os.environ, "MILLRACE": str(client.MILLRACE), "MILLRACE_PORT": str(port), "SLURM_SUBMIT_HOST": "login"}
        ran = subprocess.run(["bash", job, EXAMPLES / "volume.yaml", "--ticks", "5"], env=environment, timeout=SECONDS_MAX,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertTrue(ran.stdout.startswith(f"On your own machine: ssh -L {port}:127.0.0.1:{port} -J login "), ran.stdout)
        self.assertIn(f"http://127.0.0.1:{port}/view/main/#token=", ran.stdout)

    def test_a_job_without_a_pipeline_says_how_it_is_called(self):
        job = EXAMPLES.parent / "cluster" / "view.sbatch"
        ran = subprocess.run(["bash", job], capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("usage: sbatch view.sbatch PIPELINE", ran.stderr)


class Viewer(unittest.TestCase):
    def view(self, pipeline=f"{PATTERN} ! view.remote name=view still=0", *more, **options):
        return View(self, pipeline, *REALTIME, *more, **options)

    def counts(self, report, name="view"):
        return report["handlers"][name].get("counts", {})

    def get(self, view, path, host=None):
        place = view.pages["main"]
        connection = http.client.HTTPConnection("127.0.0.1", place["port"], timeout=SECONDS_MAX)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers={"Host": host or place["host"]})
        answer = connection.getresponse()
        return answer, answer.read()

    def test_the_link_leads_to_a_page_of_its_own_files(self):
        view = self.view()
        answer, page = self.get(view, "/view/main/")
        self.assertEqual(answer.status, 200)
        self.assertIn("frame-ancestors 'none'", answer.getheader("Content-Security-Policy"))
        self.assertIn(b"main.js", page)
        self.assertEqual(self.get(view, "/view/main/main.js")[0].getheader("Content-Type"), "text/javascript; charset=utf-8")
        for path in ("/view/main/none.js", "/view/main", "/view/other/", "/", "/view/main/../main/main.js"):
            self.assertEqual(self.get(view, path)[0].status, 404, path)
        self.assertEqual(self.get(view, "/view/main/", host="evil.example")[0].status, 421)
        view.end()

    def test_a_token_lets_a_page_in_and_says_what_it_may_do(self):
        view = self.view()
        self.assertEqual(view.page().welcome["steers"], True)
        self.assertEqual(view.page(watches=True).welcome["steers"], False)
        place = view.pages["main"]
        for token in ("", "0" * 32, place["token"][:-1]):
            page = client.Page(place, "main", token)
            self.addCleanup(page.close)
            page.hello()
            self.assertEqual(page.why_closed()[0], NOT_ADMITTED)
        view.end()

    def test_pictures_come_while_they_are_acknowledged(self):
        view = self.view()
        page = view.page()
        pictures = [page.picture() for _ in range(20)]
        self.assertEqual([picture.seq for picture in pictures], list(range(1, 21)))
        for picture in pictures:
            self.assertEqual((picture.width, picture.height, picture.codec, picture.is_key), (64, 48, JPEG, True))
            self.assertTrue(picture.bytes.startswith(b"\xff\xd8\xff") and picture.bytes.endswith(b"\xff\xd9"))
        self.assertEqual(sorted({picture.seconds for picture in pictures}), [picture.seconds for picture in pictures])
        counts = self.counts(view.end())
        self.assertGreaterEqual(counts["encoded_jpeg"], 20)
        self.assertEqual(counts["pages"], 1)

    def test_two_pictures_wait_for_an_acknowledgement_and_no_more(self):
        view = self.view()
        page = view.page()
        first, second = page.picture(fate=None), page.picture(fate=None)
        other = view.page()
        while other.picture().seq < 20:  # pictures go on
            pass
        page.pong()
        self.assertEqual(page.pictures, [])
        page.acknowledge(first)
        third = page.picture(fate=None)
        self.assertEqual(third.seq, 3)
        self.assertGreater(third.seconds, second.seconds)
        page.acknowledge(third)  # and the second with it
        self.assertEqual([page.picture().seq for _ in range(2)], [4, 5])
        view.end()

    def test_nothing_is_encoded_without_a_page(self):
        report = view_of_ticks(self, f"{PATTERN} ! view.remote name=view still=0", 50)
        counts = self.counts(report)
        self.assertNotIn("encoded_jpeg", counts)
        self.assertNotIn("encoded_h264", counts)
        self.assertEqual(counts["no_viewer"], report["handlers"]["view"]["calls"] - 1)  # the last one may yet be seen

    def test_a_picture_like_the_one_before_is_not_sent_again_and_a_newcomer_gets_it_at_once(self):
        view = self.view(STILL)
        pages = [view.page() for _ in range(3)]
        for page in pages:
            self.assertEqual(page.picture().seq, 1)
        for page in pages * 20:
            page.pong()
            self.assertEqual(page.pictures, [])
        late = view.page()
        self.assertEqual(late.picture(fate=FAILED).seq, 1)
        self.assertEqual(late.picture().seq, 2)  # the same picture again
        self.assertEqual(self.counts(view.end())["encoded_jpeg"], 1)

    def test_one_encoding_serves_all_and_one_that_stops_reading_holds_up_nobody(self):
        view = self.view()
        stopped = view.page()
        stopped.picture(fate=None)
        pages = [view.page() for _ in range(4)]
        got = {page.number: [page.picture()] for page in pages}
        for _ in range(100):
            for page in pages:
                got[page.number].append(page.picture())
        report = view.end()
        for seqs in ([picture.seq for picture in pictures] for pictures in got.values()):
            self.assertEqual(seqs, list(range(1, 102)))
        counts = self.counts(report)
        self.assertLessEqual(counts["encoded_jpeg"], report["handlers"]["view"]["calls"])  # each picture once
        self.assertGreaterEqual(counts["sent"], 4 * 101)

    def test_events_come_out_as_records_in_order(self):
        view = self.view(f"{PATTERN} ! view.remote ; view.events name=hand ; hand.events ! record.to_json path=events.jsonl flush=true")
        page = view.page(codecs=())
        page.event("move", x=10, y=20, buttons=0)
        page.event("down", x=10.5, y=20.5, buttons=1, modifiers=5)
        for step in range(100):  # moves that follow each other may be one
            page.event("move", x=11 + step, y=20, dx=1, buttons=1)
        page.event("up", x=110, y=20)
        page.event("wheel", x=110, y=20, dy=-120)
        page.event("key_down", key="ArrowLeft")
        page.event("key_up", key="ArrowLeft")
        page.event("leave", x=200, y=20)
        events = []
        while not events or events[-1]["kind"] != 6:
            time.sleep(0.02)
            lines = (view.folder / "events.jsonl").read_text().splitlines() if (view.folder / "events.jsonl").exists() else []
            events = [event for line in lines if line.endswith("}") for event in json.loads(line)["records"]]
        view.end()
        self.assertEqual([event["kind"] for event in events if event["kind"] != 0], [1, 2, 3, 4, 5, 6])
        self.assertEqual([event["seq"] for event in events], sorted(event["seq"] for event in events))
        down = next(event for event in events if event["kind"] == 1)
        self.assertEqual((down["x"], down["y"], down["buttons"], down["modifiers"]), (10.5, 20.5, 1, 5))
        dragged = [event for event in events if event["kind"] == 0 and event["buttons"] == 1]
        self.assertEqual(sum(event["dx"] for event in dragged), 100)  # nothing of a way is lost
        self.assertEqual(dragged[-1]["x"], 110)
        key = next(event for event in events if event["kind"] == 4)
        self.assertEqual(key["name"], "ArrowLeft")

    def test_a_picture_says_which_event_it_answers(self):
        view = self.view(f"{PATTERN} ! view.remote ; view.events name=hand ; hand.events ! null.sink")
        page = view.page()
        self.assertEqual(page.picture().answers, 0)
        for _ in range(5):
            seq = page.event("move", x=1, y=2)
            answers = 0
            while answers < seq:
                answers = page.picture().answers
                self.assertLessEqual(answers, seq)
        view.end()

    def test_camera_look_and_dims_are_records_that_come_first_and_when_they_change(self):
        view = self.view(f"{PATTERN} ! view.remote ; view.events name=hand ; hand.camera ! record.to_json path=camera.jsonl flush=true ; "
                         "hand.look ! record.to_json path=look.jsonl flush=true ; hand.dims ! record.to_json path=dims.jsonl flush=true")
        page = view.page(codecs=())

        def await_records(name, count):
            while True:
                path = view.folder / f"{name}.jsonl"
                lines = path.read_text().splitlines() if path.exists() else []
                found = [json.loads(line)["records"][0] for line in lines if line.endswith("}") and json.loads(line)["records"]]
                if len(found) >= count:
                    return found
                time.sleep(0.02)

        self.assertEqual(await_records("camera", 1)[0]["zoom"], 1)
        page.tell(type="camera", op="zoom", factor=2, x=10, y=0)
        moving, resting = await_records("camera", 3)[1:3]  # and once more when it has been at rest for a while
        self.assertEqual((moving["zoom"], moving["moving"]), (2, 1))
        self.assertEqual(resting, {**moving, "moving": 0})
        page.tell(type="camera", op="pan", dx=4, dy=-6)
        camera = await_records("camera", 4)[3]
        # What was 10 px from the middle stayed there; then the scene moved by 4 and -6 px, which are 2 and -3 of its own.
        self.assertEqual(camera["center"][:2], [10 - 5 - 2, 3])
        page.tell(type="look", gamma=0.5)
        look = await_records("look", 2)[1]
        self.assertEqual((look["low"], look["high"], look["gamma"], look["opacity"]), (0, 1, 0.5, 1))
        page.tell(type="dims", axis=3, step=17)
        self.assertEqual(await_records("dims", 2)[1]["steps"], [-1, -1, -1, 17, -1, -1, -1, -1])
        view.end()

    def test_controls_of_a_volume_are_on_every_page_with_the_values_that_count(self):
        view = View(self, EXAMPLES / "volume.yaml", "--set", "data.width=16", "--set", "data.height=16",
                    "--set", "data.depth=16", "--set", "show.still=0", "--set", "turned.mode=maximum")
        first = view.page()
        while not (controls := first.text("controls")["controls"]):  # until the volume is there
            pass
        self.assertEqual([control["key"] for control in controls],
                         ["look.mode", "look.map", "look.contrast", "look.gamma", "look.opacity", "look.iso",
                          "look.crop_x", "look.crop_y", "look.crop_z"])
        self.assertEqual((controls[0]["value"], controls[2]["value"], controls[5]["value"]), ("maximum", [0, 1], 0.5))
        self.assertEqual(len(controls[2]["histogram"]), 128)
        self.assertLessEqual(sum(controls[2]["histogram"]), 16 * 16)
        self.assertGreater(sum(controls[2]["histogram"]), 16 * 16 * 0.9)
        before = first.picture().bytes
        first.tell(type="look", seq=1, mode="iso", map="ice", contrast=[0, 0.8])
        self.assertEqual(first.text("ack")["values"]["look.mode"], "iso")
        while first.picture().bytes == before:
            pass
        second = view.page(codecs=())
        values = {control["key"]: control["value"] for control in second.text("controls")["controls"]}
        self.assertEqual((values["look.mode"], values["look.map"], values["look.contrast"]), ("iso", "ice", [0, 0.8]))
        first.tell(type="look", seq=2, crop_x=[0.5, 1])
        self.assertEqual(second.text("values")["values"]["look.crop_x"], [0.5, 1])
        first.tell(type="look", seq=3, map="fyre")
        refused = first.text("refused")
        self.assertIn('look.map is "fyre", and may be gray, red,', refused["message"])
        self.assertEqual((refused["seq"], refused["values"]["look.map"]), (3, "ice"))
        second.tell(type="look", seq=1, map="fire")
        self.assertEqual(second.text("refused")["values"]["look.map"], "ice")
        self.assertEqual(self.counts(view.end(), "show")["refused_input"], 2)

    def test_one_page_has_control_and_another_may_take_it_over(self):
        view = self.view(f"{PATTERN} ! view.remote ; view.events name=hand ; hand.events ! record.to_json path=events.jsonl flush=true")
        first, second, watcher = view.page(codecs=()), view.page(codecs=()), view.page(watches=True, codecs=())
        first.event("move", x=1, y=1)
        for page in (first, second, watcher):
            self.assertEqual(page.text("control")["control"], first.number)
        second.event("move", x=2, y=2)
        refused = second.text("refused")
        self.assertEqual(refused["control"], first.number)
        self.assertIn(f"page {first.number} has control", refused["message"])
        watcher.event("move", x=3, y=3)
        self.assertIn("watch", watcher.text("refused")["message"])
        watcher.tell(type="take")
        watcher.text("refused")
        second.tell(type="take")
        self.assertEqual(first.text("control")["control"], second.number)
        second.event("move", x=4, y=4)
        first.event("move", x=5, y=5)
        self.assertEqual(first.text("refused")["control"], second.number)
        second.pong()
        second.close()
        self.assertEqual(first.text("control")["control"], 0)
        first.event("move", x=6, y=6)
        first.pong()
        report = view.end()
        records = [record for line in (view.folder / "events.jsonl").read_text().splitlines()
                   for record in json.loads(line)["records"]]
        self.assertTrue({record["x"] for record in records} <= {1, 4, 6}, records)
        self.assertEqual(self.counts(report, "remote")["refused_input"], 4)

    def test_rubbish_closes_the_page_with_a_sentence_and_hurts_nobody_else(self):
        view = self.view()
        bystander = view.page()
        bystander.picture()
        cases = [
            (b"hello", 1, "JSON object"), (b"[]", 1, "JSON object"), (b"\xff\xfe", 2, "13 bytes"), (b"{}", 1, "no message"),
            (b'{"type": "resize", "width": 100000}', 1, "no message of the type"),
            (b'{"type": "event", "kind": "move", "seq": 1, "x": NaN}', 1, "JSON object"),
            (b'{"type": "event", "kind": "move", "seq": 1, "x": 100000}', 1, "x is no number from -65536 to 65536"),
            (b'{"type": "event", "kind": "move", "seq": 1, "x": "left"}', 1, "x is no number"),
            (b'{"type": "event", "kind": "move", "seq": 0}', 1, "seq"),
            (b'{"type": "event", "kind": "jump", "seq": 1}', 1, "not one of"),
            (b'{"type": "event", "kind": "key_down", "seq": 1, "key": "' + b"k" * 40 + b'"}', 1, "key"),
            (b'{"type": "camera", "op": "zoom", "factor": 0}', 1, "factor"),
            (b'{"type": "dims", "axis": 9, "step": 1}', 1, "axis"), (b'{"type": "start"}', 1, "codecs"),
            (b"\0\0\0\x63\x01" + b"\0" * 8, 2, "before start"), (b"\0\0\0\x01\x07" + b"\0" * 8, 2, "not 7"),
        ]
        for said, opcode, sentence in cases:
            with self.subTest(said=said):
                page = view.page(codecs=())
                page.say(said, opcode=opcode)
                error = page.text("error")["message"]
                code, reason = page.why_closed()
                self.assertEqual(code, RUBBISH)
                self.assertIn(sentence, error)
                self.assertTrue(error.startswith(reason[:40]))
        for seq in (1, 99):  # it is acknowledged already, and was never sent
            page = view.page()
            picture = page.picture()
            picture.seq = seq
            page.acknowledge(picture)
            self.assertIn(str(seq), page.text("error")["message"])
            self.assertEqual(page.why_closed()[0], RUBBISH)
        bystander.picture()
        bystander.picture()
        self.assertEqual(self.counts(view.end())["cut_off"], len(cases) + 2)

    def test_a_page_that_goes_lets_go_of_what_it_held(self):
        view = self.view(f"{PATTERN} ! view.remote ; view.events name=hand ; hand.events ! record.to_json path=events.jsonl flush=true")
        page = view.page(codecs=())
        page.event("down", x=5, y=5, buttons=1)
        page.event("key_down", key="a")
        page.pong()
        page.close()
        kinds = []
        while kinds[-1:] != [6]:
            time.sleep(0.02)
            path = view.folder / "events.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            kinds = [event["kind"] for line in lines if line.endswith("}") for event in json.loads(line)["records"]]
        view.end()
        self.assertEqual(kinds, [1, 4, 2, 5, 6])

    def test_what_is_no_text_is_refused_with_a_sentence_all_the_same(self):
        view = self.view()
        page = view.page(codecs=())
        page.say(b'{"type": "' + b"x" * 39 + "é".encode() + b'"}')
        self.assertIn("there is no message of the type", page.text("error")["message"])
        self.assertEqual(page.why_closed()[0], RUBBISH)
        odd = client.Page(view.pages["main"], "main", view.pages["main"]["token"])
        self.addCleanup(odd.close)
        self.assertEqual(odd.hello(role=7)["result"]["role"], "steer")
        view.end()

    def test_a_page_without_a_codec_is_told_so_and_one_that_fails_to_decode_goes_on(self):
        view = self.view()
        page = view.page(codecs=("av1",))
        self.assertEqual(page.why_closed()[0], NO_CODEC)
        page = view.page()
        page.picture(fate=FAILED)
        self.assertTrue(page.picture().is_key)
        view.end()

    def test_a_page_that_cannot_decode_h264_gets_jpeg_and_spoils_no_other(self):
        view = self.view()
        healthy = view.page(codecs=("h264", "jpeg"))
        if healthy.picture().codec == JPEG:
            self.skipTest("there is no encoder of H.264 here")
        failing = view.page(codecs=("h264", "jpeg"))
        codecs = [failing.picture(fate=FAILED).codec for _ in range(4)]
        self.assertEqual(codecs, [H264] * 4)
        while failing.picture().codec != JPEG:  # those that were on their way
            pass
        keys = [healthy.picture().is_key for _ in range(60)]
        self.assertLess(sum(keys[20:]), 10, keys)  # a busy machine may make a page lag, and begin a stream
        view.end()

    def test_pages_are_told_when_the_run_is_over(self):
        view = self.view()
        page = view.page()
        page.picture(fate=None)
        view.end()
        self.assertEqual(page.why_closed()[0], GOING_AWAY)

    def test_two_viewers_have_pages_of_their_own(self):
        view = self.view(f"{PATTERN} ! view.remote view=left ; video. ! image.crop width=32 height=32 ! view.remote view=right ; "
                         "view.events name=hand view=right ; hand.events ! record.to_json path=events.jsonl flush=true", viewers=2)
        left, right = view.page("left"), view.page("right")
        self.assertEqual((left.picture().width, right.picture().width), (64, 32))
        left.event("move", x=1, y=1)
        right.event("move", x=2, y=2)
        right.pong()
        left.pong()
        while not (view.folder / "events.jsonl").exists() or not (view.folder / "events.jsonl").read_text().endswith("\n"):
            time.sleep(0.02)
        view.end()
        records = [record for line in (view.folder / "events.jsonl").read_text().splitlines()
                   for record in json.loads(line)["records"]]
        self.assertEqual({record["x"] for record in records}, {2})

    def refusal(self, pipeline):
        done = subprocess.run([client.MILLRACE, "plan", pipeline], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_the_plan_refuses_two_viewers_of_one_name_and_events_of_none(self):
        self.assertIn("MR0423", self.refusal(f"{PATTERN} ! view.remote ; video. ! view.remote"))
        self.assertIn("did you mean 'left'?", self.refusal(f"{PATTERN} ! view.remote view=left ; view.events view=lefd name=hand ; hand.events ! null.sink"))
        self.assertIn("one can: view.remote", self.refusal("view.events name=hand ; hand.events ! null.sink"))

    def test_an_address_that_is_taken_is_said_with_its_handler(self):
        first = self.view()
        done = subprocess.run([client.MILLRACE, "run", f"{PATTERN} ! view.remote listen=127.0.0.1:{first.pages['main']['port']}"],
                              capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not start: MR0113", done.stderr)
        first.end()

    def test_with_a_page_of_the_run_the_viewer_is_told_in_its_description(self):
        view = self.view(f"{PATTERN} ! view.remote", "--web")
        while "page: " not in view.said:  # it comes after the viewer's
            time.sleep(0.02)
        self.assertIn("page: http://" + view.pages["main"]["host"], view.said)
        view.end()


if __name__ == "__main__":
    client.MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if not client.has_viewer():
        print("view.remote is not there: a library of its encoders is missing")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
