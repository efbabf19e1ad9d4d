#!/usr/bin/env python3
"""What goes wrong while a film is written: full disks, permissions, pipes, signals, two of one path.

usage: faults.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]

MILLRACE_SIGNALS=N sends each of HUP, INT, TERM and KILL N times (else 15); MILLRACE_SEED repeats a run's moments.
"""
import array
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import termios
import time

import corpus
import rig
from rig import FFMPEG, Media, call, environment, said

SIGNALS = int(os.environ.get("MILLRACE_SIGNALS", "15"))  # three of each container
SEED = int(os.environ.get("MILLRACE_SEED", str(random.SystemRandom().randrange(10**9))))
if SIGNALS > 15:
    rig.PROGRAM_SECONDS_MAX += 12 * SIGNALS  # four signals, each of up to 4 s of recording and a look at it, four at a time
SECONDS_TO_END = 40  # after a signal; a machine that is busy with other things included
CONTAINERS = ["mp4", "mkv", "mov", "ts", "avi"]
LOST_MAX_S = 2.0  # of a film whose process was killed
FULL_SPEED = "test.pattern pattern=gradient width=320 height=240 fps=30 count=600 ! draw.text text=words"
RECORDING = """version: 1
handlers:
  cam:  {{ type: test.pattern, width: 96, height: 64, fps: 30, live: true }}
  told: {{ type: check.pictures, path: told.jsonl, pixels: false, input: cam }}
  save: {{ type: video.writer, path: {name}, input: cam }}
"""


def wait_for(condition, seconds=60, step=0.005):
    """Looks again and again, for a process that does not say when it is so far."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False


def pictures_in(path):
    """The time of each picture of a film that can be decoded; none where it cannot be opened."""
    # The kind of a transport stream of a few packets is not guessed.
    kind = ["-f", "mpegts"] if path.suffix == ".ts" else []
    result = subprocess.run(["ffprobe", "-v", "quiet", *kind, "-select_streams", "v:0", "-show_frames", "-show_entries",
                             "frame=best_effort_timestamp_time", "-of", "json", path], capture_output=True, timeout=rig.SECONDS_MAX)
    if result.returncode:
        return []
    return [float(frame["best_effort_timestamp_time"]) for frame in json.loads(result.stdout).get("frames", [])]


def waiting_in(pipe):
    """Bytes that were written to a pipe and not read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def settled(number, looks=20, step=0.02):
    """Whether a number stays the same for a while."""
    first = number()
    for _ in range(looks):
        time.sleep(step)
        if number() != first:
            return False
    return True


class Process:
    """A run of millrace in a folder that a test may signal."""

    def __init__(self, test, *arguments, folder=None, under=(), **options):
        """`under`: a command that becomes the run, after it has changed something of its process."""
        self.test, self.command = test, [*under, rig.millrace, "run", *map(str, arguments)]
        # Into a file, so that nothing that it prints can hold it up.
        self.folder = folder or test.folder
        self.errors = open(self.folder / f"stderr-{id(self)}.txt", "w+")
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdin=options.pop("stdin", subprocess.DEVNULL),
                                        stdout=options.pop("stdout", subprocess.DEVNULL), stderr=self.errors,
                                        env=environment(), **options)

    def end(self, signal_number=None, seconds=SECONDS_TO_END):
        """Its exit code, after a signal if one is given; what it said is in `text`."""
        if signal_number:
            self.process.send_signal(signal_number)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "still running"
        self.errors.seek(0)
        self.text = self.errors.read()
        self.errors.close()
        return code

    def said(self):
        return f"\n$ {' '.join(self.command)}\n{self.text[-3000:]}"


def heeds(process, signal_number):
    """Whether a process has got so far that it catches or awaits a signal."""
    status = pathlib.Path(f"/proc/{process.process.pid}/status").read_text()
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigCgt:", "SigBlk:"))]
    return any(mask >> (signal_number - 1) & 1 for mask in masks)


class Faults(Media):
    def films(self, folder=None):
        """Every file that is or may become a film."""
        return sorted(path for path in (folder or self.folder).iterdir() if path.suffix[1:] in CONTAINERS + ["webm", "nut"])

    def failed(self, process, code, *words, expected=1):
        self.assertEqual(code, expected, f"the exit code is {expected}{process.said()}")
        for word in words:
            self.assertIn(word, process.text, process.said())

    def as_nobody(self):
        """How a process is run that may not write everywhere."""
        if os.geteuid() != 0:
            return {}
        folders = [pathlib.Path(rig.millrace), *pathlib.Path(rig.millrace).parents]
        if not all(os.stat(folder).st_mode & stat.S_IXOTH for folder in folders):
            self.skipTest("run as root, and the command is in a folder that others may not enter")
        return {"user": 65534, "group": 65534, "extra_groups": []}


class FullDisk(Faults):
    def test_a_limit_of_the_files_size_ends_the_run_with_path_reason_and_byte(self):
        for name, codec in (("film.mp4", "mpeg4"), ("film.mov", "mjpeg"), ("film.mkv", "ffv1"), ("film.avi", "mpeg4"),
                            ("film.ts", "mpeg4"), ("film.nut", "ffv1"), ("film.webm", "vp8")):
            with self.subTest(name=name):
                limit = 100_000 if codec == "vp8" else 300_000  # which takes ten times as long as the others
                folder = self.folder / name.replace(".", "_")
                folder.mkdir()
                quality = "quality=95" if codec != "ffv1" else ""
                process = Process(self, f"{FULL_SPEED} ! video.writer path={name} codec={codec} {quality}", folder=folder,
                                  under=["prlimit", f"--fsize={limit}"])
                code = process.end(seconds=rig.SECONDS_MAX)
                self.failed(process, code, name, "File too large", "at byte")
                left = self.films(folder)
                self.assertEqual(len(left), 1, f"one file stays: {left}")
                self.assertLessEqual(left[0].stat().st_size, limit)
                self.assertGreater(len(pictures_in(left[0])), 5, f"what was written to {left[0].name} before can be played")

    def test_a_limit_that_the_policy_passes_over_is_told_once_and_what_was_written_is_known_as_its_own(self):
        limit = 300_000
        for policy in ("skip", "restart"):
            with self.subTest(policy=policy):
                folder = self.folder / policy
                folder.mkdir()
                process = Process(self, f"{FULL_SPEED} ! video.writer path=film.mkv codec=ffv1 on_error={policy}", folder=folder,
                                  under=["prlimit", f"--fsize={limit}"])
                self.assertEqual(process.end(seconds=rig.SECONDS_MAX), 0, process.said())
                told = [line for line in process.text.splitlines()
                        if line.startswith("error ") and "film.mkv': File too large (at byte 300000)" in line]
                self.assertEqual(len(told), 1, process.said())
                self.assertNotIn("an earlier run", process.text)
                if policy == "skip":
                    self.assertEqual([path.name for path in self.films(folder)], ["film.part.mkv"])
                else:
                    self.assertIn("the film that failed is kept as 'film.part-1.mkv'", process.text)
                    self.assertGreater(len(pictures_in(folder / "film.part-1.mkv")), 5)

    def test_a_small_disk_ends_the_run_with_path_reason_and_byte(self):
        small = self.folder / "small"
        small.mkdir()
        script = ("mount -t tmpfs -o size=300k tmpfs small || exit 77; cd small; "
                  "'{}' run '{} ! video.writer path=film.{} codec={} quality=95' 2>../said.txt; code=$?; cp film* ../; exit $code")
        for extension, codec in (("mp4", "mpeg4"), ("avi", "mpeg4"), ("mkv", "ffv1")):
            for film in self.films():
                film.unlink()
            command = ["unshare", "-m", "sh", "-c", script.format(rig.millrace, FULL_SPEED, extension, codec)]
            result = subprocess.run(command, cwd=self.folder, capture_output=True, env=environment(), timeout=rig.SECONDS_MAX)
            if result.returncode == 77 or b"unshare" in result.stderr:
                self.skipTest(f"no file system may be mounted here: {result.stderr.decode().strip()}")
            text = (self.folder / "said.txt").read_text()
            self.assertEqual(result.returncode, 1, f"{extension}: {text}")
            for word in (f"film.{extension}", "No space left on device", "at byte"):
                self.assertIn(word, text)
            left = self.films()
            self.assertEqual(len(left), 1, left)
            self.assertGreater(len(pictures_in(left[0])), 5, f"what was written to {left[0].name} before can be played")

    def test_a_device_that_is_full_is_an_error(self):
        process = Process(self, f"{FULL_SPEED} ! video.writer path=- container=matroska codec=ffv1", stdout=open("/dev/full", "wb"))
        self.failed(process, process.end(seconds=rig.SECONDS_MAX), "No space left on device")


class Permission(Faults):
    def test_a_folder_that_may_not_be_written_refuses_before_the_first_tick(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0o555)
        self.folder.chmod(0o755)
        options = self.as_nobody()
        process = Process(self, f"{FULL_SPEED} ! video.writer path={closed}/film.mp4", **options)
        code = process.end()
        self.assertIn(code, (1, 3), process.said())
        self.assertIn("Permission denied", process.text)
        self.assertIn("film.mp4", process.text)
        self.assertTrue(process.text.startswith("error MR"), "nothing ran before")

    def test_a_film_that_is_there_and_may_not_be_replaced_stays(self):
        closed = self.folder / "closed"
        closed.mkdir()
        (closed / "film.mp4").write_text("precious")
        closed.chmod(0o555)
        self.folder.chmod(0o755)
        process = Process(self, f"{FULL_SPEED} ! video.writer path={closed}/film.mp4", **self.as_nobody())
        self.assertIn(process.end(), (1, 3), process.said())
        self.assertEqual((closed / "film.mp4").read_text(), "precious")

    def test_a_path_that_is_a_folder_is_refused(self):
        (self.folder / "film.mp4").mkdir()
        process = Process(self, f"{FULL_SPEED} ! video.writer path=film.mp4")
        self.assertIn(process.end(), (1, 3), process.said())
        self.assertIn("film.mp4", process.text)

    def test_a_folder_that_goes_while_it_runs_is_an_error(self):
        gone = self.folder / "gone"
        gone.mkdir()
        process = Process(self, "test.pattern width=96 height=64 fps=30 live=true count=45 ! video.writer path=gone/film.mp4")
        self.assertTrue(wait_for(lambda: list(gone.glob("film*"))), "the film is begun")
        shutil.rmtree(gone)
        self.failed(process, process.end(seconds=60), "film.mp4")
        self.assertRegex(process.text, "No such file or directory|removed")


class Pipes(Faults):
    def test_a_pipe_that_is_closed_is_an_error_of_the_write(self):
        ours, theirs = os.pipe()
        process = Process(self, f"{FULL_SPEED} ! video.writer path=- container=matroska codec=ffv1", stdout=theirs)
        os.close(theirs)
        os.read(ours, 5000)
        os.close(ours)
        self.failed(process, process.end(seconds=rig.SECONDS_MAX), "Broken pipe")

    def test_a_fifo_whose_reader_goes_is_an_error_of_the_write(self):
        fifo = self.folder / "film.mkv"
        os.mkfifo(fifo)
        process = Process(self, f"{FULL_SPEED} ! video.writer path=film.mkv codec=ffv1")
        with open(fifo, "rb") as reader:
            reader.read(5000)
        self.failed(process, process.end(seconds=rig.SECONDS_MAX), "film.mkv", "Broken pipe")

    def test_a_slow_reader_of_a_fifo_gets_all(self):
        fifo = self.folder / "film.mkv"
        os.mkfifo(fifo)
        process = Process(self, "test.pattern pattern=gradient width=96 height=64 fps=30 count=90 ! video.writer path=film.mkv codec=ffv1")
        taken = bytearray()
        with open(fifo, "rb", buffering=0) as reader:
            while piece := reader.read(8000):
                taken += piece
                time.sleep(0.01)
        self.assertEqual(process.end(), 0, process.said())
        (self.folder / "taken.mkv").write_bytes(taken)
        self.assertEqual(len(pictures_in(self.folder / "taken.mkv")), 90)

    def test_a_reader_that_takes_nothing_holds_up_no_signal(self):
        fifo = self.folder / "film.mkv"
        os.mkfifo(fifo)
        process = Process(self, f"{FULL_SPEED} ! video.writer path=film.mkv codec=ffv1")
        with open(fifo, "rb") as reader:
            reader.read(1)
            # Full: what is in the pipe stays as much.
            self.assertTrue(wait_for(lambda: waiting_in(reader) > 0 and settled(lambda: waiting_in(reader))), "the pipe is full")
            # A call that is stuck is interrupted 10 s after the signal.
            code = process.end(signal.SIGINT, seconds=10 + SECONDS_TO_END)
        self.failed(process, code, "film.mkv", "its reader has taken nothing")

    def test_a_fifo_that_nobody_reads_holds_up_no_signal(self):
        os.mkfifo(self.folder / "film.mkv")
        process = Process(self, f"{FULL_SPEED} ! video.writer path=film.mkv codec=ffv1")
        self.assertTrue(wait_for(lambda: heeds(process, signal.SIGINT)))
        self.assertIn(process.end(signal.SIGINT), (130, 1), f"it ends{process.said()}")

    def test_standard_input_that_says_nothing_holds_up_no_signal(self):
        for signal_number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            ours, theirs = os.pipe()
            process = Process(self, "video.file path=- ! null.sink", stdin=ours)
            self.assertTrue(wait_for(lambda: heeds(process, signal_number)))
            os.write(theirs, b"\0")
            self.assertTrue(wait_for(lambda: waiting_in(ours) == 0), "it reads")
            os.close(ours)
            got = process.end(signal_number)
            os.close(theirs)
            self.assertEqual(got, code, process.said())

    def test_standard_input_that_stops_in_the_middle_holds_up_no_signal(self):
        data = call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-t", 2, "-c:v", "mpeg4", "-f", "matroska", "-"])
        ours, theirs = os.pipe()
        process = Process(self, "video.file path=- ! check.pictures path=told.jsonl", stdin=ours)
        os.close(ours)
        os.write(theirs, data[:len(data) * 2 // 3])
        told = self.folder / "told.jsonl"
        self.assertTrue(wait_for(lambda: told.exists() and told.read_text()), "pictures come before the pipe ends")
        got = process.end(signal.SIGINT)
        os.close(theirs)
        self.assertEqual(got, 130, process.said())


class OnePath(Faults):
    """What a graph reads and writes, by whatever name, is refused before anything runs."""

    def source(self, name="film.mkv"):
        path = self.folder / name
        call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, "-t", 1, "-c:v", "ffv1", path])
        return path

    def conflict(self, text, *names):
        (self.folder / "wrong.yaml").write_text(text)
        refused = self.run_it("run", "wrong.yaml", code=3).stderr
        self.assertEqual(refused.count("error MR"), 1, refused)
        for name in names:
            self.assertIn(name, refused, "both handlers are named")

    COPY = """version: 1
handlers:
  reader: {{ type: video.file, path: {source} }}
  turned: {{ type: image.flip, input: reader }}
  keeper: {{ type: video.writer, path: {target}, codec: ffv1, input: turned }}
"""

    def test_the_output_is_not_the_input_by_any_name(self):
        source = self.source()
        whole = source.read_bytes()
        (self.folder / "link.mkv").symlink_to("film.mkv")
        os.link(source, self.folder / "hard.mkv")
        (self.folder / "there").symlink_to(self.folder)
        for target in ("film.mkv", "./film.mkv", "there/film.mkv", str(source), "link.mkv", "hard.mkv", "there/../film.mkv"):
            if target == "there/../film.mkv":
                continue  # the parent of the folder that the link means, which is another file
            with self.subTest(target=target):
                self.conflict(self.COPY.format(source="film.mkv", target=target), "reader", "keeper")
                self.assertEqual(source.read_bytes(), whole, "the source is as it was")

    def test_a_link_as_the_input_is_the_same_file(self):
        source = self.source()
        (self.folder / "link.mkv").symlink_to("film.mkv")
        self.conflict(self.COPY.format(source="link.mkv", target="film.mkv"), "reader", "keeper")
        self.assertGreater(len(pictures_in(source)), 20)

    TWO = """version: 1
handlers:
  cam: {{ type: test.pattern, width: 96, height: 64, fps: 10, count: 5 }}
  one: {{ type: {first}, path: {a}, input: cam }}
  two: {{ type: {second}, path: {b}, input: cam }}
"""

    def test_two_writers_of_one_path_are_refused_whichever_they_are(self):
        (self.folder / "there").symlink_to(self.folder)
        for first, second, a, b in (("video.writer", "video.writer", "x.mp4", "x.mp4"),
                                    ("video.writer", "video.writer", "x.mp4", "there/x.mp4"),
                                    ("video.writer", "video.writer", "x.mp4", str(self.folder / "x.mp4")),
                                    ("video.writer", "file.raw_writer", "x.mp4", "./x.mp4"),
                                    ("file.raw_writer", "file.raw_writer", "x.raw", "x.raw"),
                                    ("check.pictures", "video.writer", "x.mkv", "x.mkv")):
            with self.subTest(first=first, second=second, b=b):
                self.conflict(self.TWO.format(first=first, second=second, a=a, b=b), "one", "two")
                self.assertFalse((self.folder / "x.mp4").exists())

    def test_the_sound_of_the_film_that_is_written_is_refused(self):
        path = self.folder / "film.mkv"
        call([*FFMPEG, "-f", "lavfi", "-i", corpus.SOURCE, *corpus.SOUND, "-t", 1, "-c:v", "ffv1", "-c:a", "flac", path])
        whole = path.read_bytes()
        result = self.run_it("run", f"test.pattern width=96 height=64 fps=10 count=5 ! video.writer path={path} sound={path}", code=3)
        self.assertIn("film.mkv", result.stderr)
        self.assertEqual(path.read_bytes(), whole)

    def test_two_films_beside_each_other_are_no_conflict(self):
        (self.folder / "two.yaml").write_text(self.TWO.format(first="video.writer", second="video.writer", a="x.mp4", b="y.mp4"))
        self.run_it("run", "two.yaml")

    def test_a_second_process_is_refused_before_its_first_tick_and_the_first_is_whole(self):
        for name in ("film.mp4", "film.mkv"):
            (self.folder / "first.yaml").write_text(RECORDING.format(name=name))
            told = self.folder / "told.jsonl"
            told.unlink(missing_ok=True)
            first = Process(self, "first.yaml")
            self.assertTrue(wait_for(lambda: told.exists() and told.read_text().count("\n") > 5), "it records")
            second = Process(self, f"test.pattern width=96 height=64 fps=10 count=5 ! video.writer path={name}")
            code = second.end()
            self.assertIn(code, (1, 3), second.said())
            self.assertIn(name, second.text)
            self.assertTrue(second.text.startswith("error MR"), f"it ran no tick{second.said()}")
            self.assertEqual(first.end(signal.SIGINT), 130, first.said())
            self.assertEqual(len(pictures_in(self.folder / name)), len(told.read_text().splitlines()), f"{name} is whole")
            self.assertEqual([path.name for path in self.films() if ".part" in path.name], [])


class Signals(Faults):
    """Recordings that end at random moments."""

    def record(self, number, signal_number, moment_s):
        """Starts a recording, ends it after `moment_s` of it; folder, container, exit code, what was said, pictures counted."""
        folder = self.folder / f"{signal.Signals(signal_number).name}-{number}"
        folder.mkdir()
        name = f"film.{CONTAINERS[number % len(CONTAINERS)]}"
        (folder / "recording.yaml").write_text(RECORDING.format(name=name))
        process = Process(self, "recording.yaml", folder=folder)
        told = folder / "told.jsonl"
        if not wait_for(lambda: told.exists() and told.stat().st_size > 0):
            process.end(signal.SIGKILL)
            raise AssertionError(f"it does not record{process.said()}")
        time.sleep(moment_s)
        code = process.end(signal_number)
        lines = [json.loads(line) for line in told.read_text().splitlines() if line.endswith("}")]
        return folder, name, code, process, lines

    def all_of(self, signal_number, longest_s, look):
        """Several at a time: each is a process that mostly waits for its clock. The moments come from the seed."""
        moments = random.Random(SEED + signal_number)
        jobs = [(i, signal_number, moments.uniform(0, longest_s)) for i in range(SIGNALS)]
        with concurrent.futures.ThreadPoolExecutor(4) as workers:
            for job, done in zip(jobs, workers.map(lambda job: self.record(*job), jobs)):
                with self.subTest(seed=SEED, number=job[0], moment_s=round(job[2], 3), name=done[1]):
                    look(*done)

    def test_hangup_interrupt_and_termination_leave_whole_films(self):
        for signal_number, expected in ((signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            def look(folder, name, code, process, told):
                self.assertEqual(code, expected, process.said())
                self.assertEqual(len(pictures_in(folder / name)), len(told), f"every picture that was counted is in it{process.said()}")
                self.assertEqual([path.name for path in self.films(folder)], [name])
            self.all_of(signal_number, 0.7, look)
            print(f"{signal.Signals(signal_number).name}: {SIGNALS} recordings ended, each a whole film", flush=True)

    def test_a_kill_leaves_all_but_two_seconds_and_the_next_run_keeps_them(self):
        lost_s = []

        def look(folder, name, code, process, told):
            self.assertEqual(code, -signal.SIGKILL, process.said())
            left = self.films(folder)
            self.assertEqual([path.name for path in left], [name.replace(".", ".part.")])
            recorded_s = told[-1]["media_time"] / 1e9 - told[0]["media_time"] / 1e9
            times = pictures_in(left[0])
            played_s = times[-1] - times[0] if times else 0
            lost_s.append(recorded_s - played_s)
            self.assertLessEqual(lost_s[-1], LOST_MAX_S, f"of {recorded_s:.2f} s {played_s:.2f} s can be played")
            whole = left[0].read_bytes()
            command = [rig.millrace, "run", f"test.pattern width=96 height=64 fps=30 count=5 ! video.writer path={name}"]
            result = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(), timeout=rig.SECONDS_MAX)
            self.assertEqual(result.returncode, 0, said(command, result))
            if not whole:  # killed before anything was worth writing
                return
            kept = folder / name.replace(".", ".part-1.")
            self.assertTrue(kept.exists(), [path.name for path in self.films(folder)])
            self.assertEqual(kept.read_bytes(), whole, "what the crash left is kept")
            self.assertIn(kept.name, result.stderr, "the next run says where it is")
            self.assertEqual(len(pictures_in(folder / name)), 5)
        self.all_of(signal.SIGKILL, 4.0, look)
        print(f"SIGKILL: {len(lost_s)} recordings killed, of which at most {max(lost_s):.2f} s cannot be played", flush=True)

    def test_a_second_crash_is_kept_beside_the_first(self):
        (self.folder / "film.part.mkv").write_text("the first")
        self.run_it("run", "test.pattern width=96 height=64 fps=30 count=5 ! video.writer path=film.mkv")
        (self.folder / "film.part.mkv").write_text("the second")
        result = self.run_it("run", "test.pattern width=96 height=64 fps=30 count=5 ! video.writer path=film.mkv")
        self.assertEqual((self.folder / "film.part-1.mkv").read_text(), "the first")
        self.assertEqual((self.folder / "film.part-2.mkv").read_text(), "the second")
        self.assertIn("film.part-2.mkv", result.stderr)

    def test_an_ignored_hangup_stays_ignored(self):
        (self.folder / "recording.yaml").write_text(RECORDING.format(name="film.mkv"))
        process = Process(self, "recording.yaml", under=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
        told = self.folder / "told.jsonl"
        self.assertTrue(wait_for(lambda: told.exists() and told.stat().st_size > 0))
        process.process.send_signal(signal.SIGHUP)
        lines = told.read_text().count("\n")
        self.assertTrue(wait_for(lambda: told.read_text().count("\n") > lines + 10), "nohup goes on recording")
        self.assertEqual(process.end(signal.SIGTERM), 143, process.said())


if __name__ == "__main__":
    print(f"MILLRACE_SEED={SEED}")
    rig.main(cases=25, side_by_side=3)
