#!/usr/bin/env python3
"""Memory and descriptors stay flat: films that go round, are opened and closed, and are begun at random places.

usage: long.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]

MILLRACE_LONG_S=7200 lets each film go round until two hours of it were shown, as fast as that goes (else for some
seconds); then there are 1,000 seeks, too.
"""
import os
import pathlib
import random
import signal
import subprocess
import time

import corpus
import rig
from faults import Process, heeds, wait_for
from rig import FFMPEG, Media, call, said

LONG_S = float(os.environ.get("MILLRACE_LONG_S", "2"))
IS_LONG = LONG_S > 60
WARM_S = 2.0  # caches, lazily loaded libraries and pools have filled by then, unless the machine is very busy
SETTLED_S, SETTLE_S_MAX = 0.5, 30
RSS_SLACK_KIB = 4096  # of what the allocator does; a picture leaked each round would be far more
SPANS_MAX = 4  # a leak grows in each span; a busy machine may still fill its caches in the first
OPENS, SEEKS = 100, 1000 if IS_LONG else 300
SEED = int(os.environ.get("MILLRACE_SEED", str(random.SystemRandom().randrange(10**9))))
if IS_LONG:
    rig.PROGRAM_SECONDS_MAX = int(LONG_S * 2 + 600)  # eight films, each at four times its own speed at least


def resident_kib(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Flat(Media):
    def corpus_file(self, name):
        path, reason = corpus.make(next(file for file in corpus.FILES if file.name == name), rig.build_folder / "corpus")
        if not path:
            self.skipTest(reason)
        return path

    @staticmethod
    def warm_up(process):
        """Waits until a process takes hardly any more memory. One that leaks never settles, and the looks after this find it."""
        time.sleep(WARM_S)
        end, before = time.monotonic() + SETTLE_S_MAX, 0
        while process.poll() is None and time.monotonic() < end:
            now = resident_kib(process.pid)
            if now - before < RSS_SLACK_KIB / 8:
                break
            before = now
            time.sleep(SETTLED_S)

    def look(self, process, seconds):
        """Growth of its memory since now (KiB) and descriptors that are open, look by look."""
        pid, before, grown, opened = process.pid, resident_kib(process.pid), [], []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2 if IS_LONG else LONG_S / 5)
            try:
                looked = resident_kib(pid) - before, descriptors(pid)
            except OSError:
                break
            if process.poll() is not None:  # it may have ended before the look
                break
            grown.append(looked[0])
            opened.append(looked[1])
        return grown, opened

    def flat(self, line, rate=25, **options):
        """Runs a line without an end of its own, and looks at its process after the start and again at the end."""
        length = ["--ticks", round(LONG_S * rate)] if IS_LONG else []
        process = Process(self, line, *length, **options)
        pid = process.process.pid
        self.assertTrue(wait_for(lambda: heeds(process, signal.SIGINT)), "the run catches signals")
        self.warm_up(process.process)
        before, spans, is_flat = resident_kib(pid), [], False
        for _ in range(1 if IS_LONG else SPANS_MAX):
            spans.append(self.look(process.process, rig.PROGRAM_SECONDS_MAX if IS_LONG else LONG_S))
            grown, opened = spans[-1]
            if not grown:  # it has ended
                break
            # On a machine that is busy with other things the start takes longer than said, which is little of a long run.
            warm = min(grown[len(grown) // 4:len(grown) // 2 + 1]) if IS_LONG else 0
            # A look may fall between two films or two segments: none is open then, or both are.
            is_flat = min(grown[-2:]) - warm < RSS_SLACK_KIB and min(opened[-3:]) <= max(opened[:2])
            if is_flat:
                break
        code = process.end(None if IS_LONG else signal.SIGINT)
        self.assertEqual(code, 0 if IS_LONG else 130, process.said())
        if IS_LONG:
            print(f"{LONG_S:.0f} s of video, {len(grown)} looks: {before} KiB, at most {max(grown)} more, {grown[-1]} more at the end; "
                  f"{opened[0]} descriptors, {opened[-1]} at the end: {line}", flush=True)
        self.assertTrue(is_flat, f"memory and descriptors are flat; (KiB more, descriptors) in each span: {spans}\n$ {line}")

    def test_a_signal_while_a_film_begins_again_is_no_failure(self):
        path = self.corpus_file("vp9.webm")  # it is short: most of the time it is being opened
        draw = random.Random(SEED)
        for _ in range(1 if IS_LONG else 12):
            process = Process(self, f"video.file path={path} loop=true ! null.sink")
            self.assertTrue(wait_for(lambda: heeds(process, signal.SIGINT)), "the run catches signals")
            time.sleep(draw.uniform(0, 0.2))
            self.assertEqual(process.end(signal.SIGINT), 130, process.said())

    def test_films_that_go_round_take_no_more_memory(self):
        for name in ("h264_b_frames.mp4", "vp9.webm", "mjpeg_422.mov"):
            with self.subTest(name=name):
                self.flat(f"video.file path={self.corpus_file(name)} loop=true ! null.sink")

    def test_a_film_that_is_written_for_long_takes_no_more_memory(self):
        for options in ("container=matroska codec=h264", "container=mp4 codec=mpeg4"):
            with self.subTest(options=options):
                self.flat(f"video.file path={self.corpus_file('h264_b_frames.mp4')} loop=true ! video.writer path=- {options}",
                          stdout=open(os.devnull, "wb"))

    def test_segments_that_are_written_for_long_take_no_more_memory_or_descriptors(self):
        rate = 25 if IS_LONG else 1000  # two hours are 7,200 segments, as some seconds are hundreds
        self.flat(f"test.pattern width=96 height=64 fps={rate} ! video.writer path=part-%06d.mkv segment=1s codec=mpeg4 list=all.txt")

    def again(self, lines):
        """Runs the lines one after another in one process: (resident KiB, descriptors) after each."""
        program = rig.build_folder / "media_again"
        if not program.exists():
            self.skipTest("media_again is not built: this build has no millrace_embed")
        command = [program, pathlib.Path(rig.millrace).parent / "plugins"]
        result = subprocess.run(list(map(str, command)), input="\n".join(lines) + "\n", capture_output=True, text=True,
                                env=rig.environment(), timeout=600)
        self.assertEqual(result.returncode, 0, said(command, result))
        held = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
        self.assertEqual(len(held), len(lines), said(command, result))
        return held, result.stderr

    def steady(self, held, line):
        """The last quarter holds no more than the second."""
        quarter = len(held) // 4
        early, late = held[quarter:2 * quarter], held[3 * quarter:]
        if IS_LONG:
            print(f"{len(held)} runs in one process: {held[quarter]} (KiB, descriptors) after a quarter, {held[-1]} at the end: {line}",
                  flush=True)
        self.assertLess(min(kib for kib, _ in late) - min(kib for kib, _ in early), RSS_SLACK_KIB, f"memory is flat: {held[::quarter]}")
        self.assertEqual(max(count for _, count in late), max(count for _, count in early), f"descriptors are flat: {held[::quarter]}")

    def test_a_hundred_opens_and_closes_leave_nothing(self):
        path = self.corpus_file("h264_b_frames.mp4")
        line = f"video.file path={path} ! null.sink"
        held, _ = self.again([line] * OPENS)
        self.steady(held, line)

    def test_a_hundred_films_that_are_written_leave_nothing(self):
        line = f"test.pattern width=96 height=64 fps=10 count=5 ! video.writer path={self.folder}/film.mp4"
        held, _ = self.again([line] * OPENS)
        self.steady(held, line)

    def test_a_hundred_files_that_are_refused_leave_nothing(self):
        broken = self.folder / "broken.mp4"
        broken.write_bytes(self.corpus_file("h264_b_frames.mp4").read_bytes()[:3000])
        line = f"video.file path={broken} ! null.sink"
        held, told = self.again([line] * OPENS)
        self.assertIn("broken.mp4", told)
        self.steady(held, line)

    def test_seeks_to_random_places_leave_nothing(self):
        path = self.folder / "long.mp4"
        call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-t", 60, "-c:v", "libx264" if "libx264" in rig.encoders() else "mpeg4",
              "-preset", "ultrafast", "-g", 50, path])
        places = random.Random(SEED)
        # To the end from near it, so that each is a seek and few pictures.
        lines = []
        for _ in range(SEEKS):
            start = places.uniform(0, 59)
            lines.append(f"video.file path={path} start={start:.3f} end={start + 0.1:.3f} threads=1 ! null.sink")
        held, told = self.again(lines)
        self.assertEqual(told, "", f"every place is found (MILLRACE_SEED={SEED})")
        self.steady(held, "seeks to random places")

    def test_a_pipe_that_is_read_for_long_takes_no_more_memory(self):
        sender = subprocess.Popen([*FFMPEG, "-stream_loop", "-1", "-i", self.corpus_file("h264_b_frames.mkv"), "-c", "copy", "-f",
                                   "mpegts", "-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.flat("video.file path=- ! null.sink", stdin=sender.stdout)
        finally:
            sender.stdout.close()
            sender.kill()
            sender.wait()


if __name__ == "__main__":
    print(f"MILLRACE_SEED={SEED}")
    rig.main(cases=9, side_by_side=4)
