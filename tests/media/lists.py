#!/usr/bin/env python3
"""HLS lists from a server on 127.0.0.1 and from files, whole and with faults: each has a row that says what must be seen.

A row names the segments of which pictures come, the exit code, and what is said. The server follows a script: it never
looks at a clock, and a live list has one more segment each time that it is asked for.

usage: lists.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import dataclasses
import functools
import http.server
import json
import re
import shutil
import signal
import socket
import threading

import rig
from faults import Process, wait_for
from rig import FFMPEG, Media, call

RATE, SEGMENTS = 25, 6  # pictures of a segment, which lasts a second; segments of a film
PERIOD_NS = 1_000_000_000 // RATE
SECONDS_MAX = 120  # of a row; most take 1 s, the live ones 10 s
LOCK = threading.Lock()
KEY = bytes(range(16))


# ---- films

@functools.cache
def film(kind):
    """The files of a film in a list, by name. Asked for under LOCK: several rows use one film."""
    folder = rig.build_folder / "lists" / kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "secret.bin").write_bytes(KEY)
    (folder / "info").write_text(f"secret.bin\n{folder / 'secret.bin'}\n")
    options = {"ts": [], "sound": ["-f", "lavfi", "-i", f"sine=duration={SEGMENTS}", "-c:a", "aac"],
               "ranges": ["-hls_flags", "single_file"], "fmp4": ["-hls_segment_type", "fmp4"],
               "fmp4_ranges": ["-hls_segment_type", "fmp4", "-hls_flags", "single_file"],
               "locked": ["-hls_key_info_file", folder / "info"]}[kind]
    inputs = ["-f", "lavfi", "-i", f"testsrc2=size=64x48:rate={RATE}:duration={SEGMENTS}"]
    if kind == "sound":
        inputs, options = inputs + options[:4], options[4:]
    call([*FFMPEG, *inputs, "-c:v", "libx264", "-preset", "veryfast", "-g", RATE, *options, "-f", "hls", "-hls_time", "1",
          "-hls_playlist_type", "vod", "x.m3u8"], cwd=folder)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "info"}


@functools.cache
def pictures_of_film():
    """The MD5s of each segment's pictures; those of all films are the same."""
    with LOCK:
        film("ts")
    md5s = rig.frame_md5s(rig.build_folder / "lists" / "ts" / "x.m3u8", before=["-flags", "+bitexact"])
    assert len(md5s) == RATE * SEGMENTS, len(md5s)
    return [md5s[RATE * n:RATE * (n + 1)] for n in range(SEGMENTS)]


def lines_of(files):
    """What stands before each segment of a list, with the segment's name, and what stands before all."""
    head, segments, before = [], [], []
    for line in files["x.m3u8"].decode().splitlines():
        if line.startswith("#") and not segments and not line.startswith(("#EXTINF", "#EXT-X-BYTERANGE")):
            head.append(line)
        elif line.startswith("#EXT-X-ENDLIST"):
            continue
        elif line.startswith("#"):
            before.append(line)
        else:
            segments.append([*before, line])
            before = []
    return head, segments


def listed(files, order, first=0, end=True, breaks=(), rename=lambda name: name):
    """The text of a list of these segments; `breaks`: places in `order` at which times are said to begin again."""
    head, segments = lines_of(files)
    lines = [line for line in head if "SEQUENCE" not in line and "PLAYLIST-TYPE" not in line]
    lines.append(f"#EXT-X-MEDIA-SEQUENCE:{first}")
    for place, n in enumerate(order):
        lines += (["#EXT-X-DISCONTINUITY"] if place in breaks else []) + segments[n][:-1] + [rename(segments[n][-1])]
    return "\n".join(lines + (["#EXT-X-ENDLIST"] if end else [])) + "\n"


# ---- the server

class Server(http.server.ThreadingHTTPServer):
    """Answers by `say`: name and number of the request for it → status, or the body."""

    daemon_threads = True

    def __init__(self, say, ranges):
        super().__init__(("127.0.0.1", 0), Answers)
        self.say, self.ranges, self.asked, self.lock = say, ranges, {}, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that has gone is what some of these rows are about."""


@dataclasses.dataclass
class Cut:
    """A body of which a part is sent before the connection is closed."""
    body: bytes
    at: int


class Answers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        name, server = self.path.strip("/"), self.server
        with server.lock:
            number = server.asked[name] = server.asked.get(name, 0) + 1
            said = server.say(name, number)
        if isinstance(said, int):
            self.send_error(said)
            return
        body, sent = (said.body, said.body[:said.at]) if isinstance(said, Cut) else (said, said)
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if server.ranges else None
        begin, end = (int(asked[1]), int(asked[2] or len(body) - 1) + 1) if asked else (0, len(body))
        end = min(end, len(body))
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        self.wfile.write(sent[begin:end])
        self.wfile.flush()
        if sent is not body:
            self.connection.shutdown(socket.SHUT_RDWR)


# ---- what a row says

@dataclasses.dataclass
class Row:
    """One list, and what must be seen of it."""
    shows: list  # the segments whose pictures come, in order
    film: str = "ts"
    order: list = None  # the segments that the list names; None: all
    breaks: tuple = ()
    faults: dict = dataclasses.field(default_factory=dict)  # the segment's place in the list → see `answer`
    say: object = None  # (files, name, number) → answer, or None for the file itself
    rename: object = None
    local: bool = False
    options: str = ""
    more: str = ""  # handlers between source and check
    begins: list = None  # the second at which each of `shows` begins; None: they follow each other
    code: int = 0
    words: tuple = ()  # that are said, as regular expressions
    counts: dict = dataclasses.field(default_factory=dict)
    part: bool = False  # of the pictures some may be missing at the end
    path: str = "x.m3u8"
    ranges: bool = True
    ends: bool = True  # the list says its end
    skips: int = 0  # pictures of `shows` that are before its start


ALL = list(range(SEGMENTS))
NOT_FOUND = r"the server does not have it \(404, not found\)"
FAILED = r"the server has failed \(an answer of 5xx\)"
MISSING = r"segment {} of 6, 'x{}\.ts': {}; its 1\.000 s of pictures are missing"


def missing(place, why=NOT_FOUND):
    return MISSING.format(place + 1, place, why)


def live(order, shown, breaks=(), first=0, window=4, ends=True, fail=()):
    """A list that shows `shown` segments at first, and one more each time; `fail`: requests that get a 503."""
    def say(files, name, number):
        if not name.endswith(".m3u8"):
            return None
        if number in fail:
            return 503
        number -= sum(failed < number for failed in fail)
        end = min(shown + number - 1, len(order))
        begin = max(end - window, 0)
        here = [place - begin for place in breaks if place >= begin]
        return listed(files, order[begin:end], first + begin, ends and end == len(order), here).encode()
    return say


def broken(name_of, kind):
    """A segment that breaks off: always, or the first time alone."""
    def say(files, name, number):
        if name != name_of or (kind == "once" and number > 1):
            return None
        return Cut(files[name], len(files[name]) // 2)
    return say


def away(name_of, times, status=503):
    return lambda files, name, number: status if name == name_of and number <= times else None


def master(files, name, _):
    """Two lists whose segments have the same names, in two folders; most of the lesser one are not there."""
    if name == "all.m3u8":
        return (b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=100000,RESOLUTION=64x48\nx.m3u8\n"
                b"#EXT-X-STREAM-INF:BANDWIDTH=50000,RESOLUTION=64x48\nlow/x.m3u8\n")
    return files[name[4:]] if name in ("low/x.m3u8", "low/x1.ts") else None


def begins_again(files, name, number):
    """A live list whose server is started anew: its segments are counted from 0 again."""
    if not name.endswith(".m3u8"):
        return None
    if number <= 2:
        return listed(files, ALL[:3], 100, end=False).encode()
    return listed(files, [3, 4, 5], 0).encode()


def jumps(files, name, number):
    """A live list that moves on by three segments between two requests."""
    if not name.endswith(".m3u8"):
        return None
    return (listed(files, [0, 1], 0, end=False) if number == 1 else listed(files, [4, 5], 4)).encode()


ROWS = {
    "a_list_plays_and_ends": Row(ALL),
    "a_list_with_sound_plays_and_ends": Row(ALL, film="sound"),
    "a_list_of_files_plays_and_ends": Row(ALL, local=True),
    "a_list_of_byte_ranges_plays_and_ends": Row(ALL, film="ranges"),
    "a_list_of_byte_ranges_of_a_file_plays_and_ends": Row(ALL, film="ranges", local=True),
    "a_list_of_fragments_plays_and_ends": Row(ALL, film="fmp4"),
    "a_list_of_fragments_of_one_file_plays_and_ends": Row(ALL, film="fmp4_ranges"),
    "a_list_of_fragments_on_disk_plays_and_ends": Row(ALL, film="fmp4", local=True),
    "an_encrypted_list_plays_and_ends": Row(ALL, film="locked"),
    "a_list_of_lists_takes_the_best_and_says_nothing_of_the_other": Row(ALL, say=master, path="all.m3u8"),
    "times_go_on_where_they_begin_again": Row([0, 1, 2, 0, 1, 2], order=[0, 1, 2, 0, 1, 2], breaks=(3,),
                                              counts={"times_mended": None, "packets_damaged": None, "reconnects": None}),
    "times_go_on_where_they_begin_again_with_sound": Row([0, 1, 2, 0, 1, 2], film="sound", order=[0, 1, 2, 0, 1, 2], breaks=(3,)),
    "times_go_on_where_they_jump_ahead": Row([0, 1, 4, 5], order=[0, 1, 4, 5], breaks=(2,)),
    "times_go_on_where_they_begin_again_each_second": Row([0] * 6, order=[0] * 6, breaks=(1, 2, 3, 4, 5)),
    "times_go_on_where_they_begin_again_in_fragments": Row([2, 3, 0, 1, 0], film="fmp4", order=[2, 3, 0, 1, 0], breaks=(2, 4)),
    "times_go_on_where_they_begin_again_in_one_file": Row([2, 3, 0, 1], film="fmp4_ranges", order=[2, 3, 0, 1], breaks=(2,), local=True),
    "what_misses_where_fragments_begin_again_is_a_gap": Row([2, 0, 1, 0], film="fmp4", order=[2, 3, 0, 1, 0], breaks=(2, 4), faults={1: 404},
                                                            begins=[0, 2, 3, 4], words=("segment 2 of 5",)),
    "a_live_list_of_fragments_goes_on_where_times_begin_again": Row(
        [0, 1, 2, 0, 1, 2], film="fmp4", say=live([0, 1, 2, 0, 1, 2], 4, (3,))),
    "times_go_on_where_they_jump_ahead_in_fragments": Row([0, 1, 4, 5], film="fmp4", order=[0, 1, 4, 5], breaks=(2,)),
    "times_that_begin_again_unsaid_are_mended": Row([3, 4, 0, 1], order=[3, 4, 0, 1], counts={"times_mended": 1}),
    "a_pause_without_a_break_stays": Row([0, 1, 4, 5], order=[0, 1, 4, 5], begins=[0, 1, 4, 5]),
    "what_misses_at_the_first_is_told": Row(ALL[1:], faults={0: 404}, words=(missing(0), "lacks 1 of 6 segments, 1.000 s of 6.000 s"),
                                            counts={"segments_missing": 1}),
    "what_misses_in_the_middle_is_told_and_is_a_gap": Row([0, 1, 3, 4, 5], faults={2: 404}, begins=[0, 1, 3, 4, 5], words=(missing(2),),
                                                          counts={"segments_missing": 1}),
    "what_misses_at_the_end_is_told": Row([0, 1, 2], faults={3: 404, 4: 404, 5: 404}, words=(missing(3), missing(4), missing(5),
                                          "lacks 3 of 6 segments, 3.000 s of 6.000 s"), counts={"segments_missing": 3}),
    "what_misses_at_the_end_is_told_with_sound": Row([0, 1, 2], film="sound", faults={3: 404, 4: 404, 5: 404},
                                                     words=(missing(3), missing(4), missing(5)), counts={"segments_missing": 3}),
    "what_misses_on_disk_is_told": Row([0, 1, 2], film="sound", local=True, faults={3: 404, 4: 404, 5: 404},
                                       words=(missing(3, "there is no such file"), missing(5, "there is no such file"))),
    "what_is_refused_is_told": Row([0, 1, 3, 4, 5], faults={2: 403}, begins=[0, 1, 3, 4, 5], words=(missing(2, r"the server refuses it \(403, forbidden\)"),)),
    "what_is_empty_is_told": Row([0, 1, 3, 4, 5], faults={2: b""}, begins=[0, 1, 3, 4, 5], words=(missing(2, "it is empty"),)),
    "what_misses_before_times_begin_again_is_a_gap": Row([0, 1, 0, 1], order=[0, 1, 5, 0, 1], breaks=(3,), faults={2: 404},
                                                         begins=[0, 1, 3, 4], words=("segment 3 of 5, 'x5",)),
    "what_misses_fails_where_damage_does": Row([0, 1], faults={2: 404}, options="on_damage=fail", code=1, part=True,
                                               words=("error MR0601", r"segment 3 of 6, 'x2\.ts': " + NOT_FOUND)),
    "a_list_without_its_segments_is_refused": Row([], faults={n: 404 for n in ALL}, code=3, words=(missing(0),)),
    "a_segment_that_breaks_off_once_is_asked_for_again": Row(ALL, say=broken("x2.ts", "once"), words=(r"the connection for 'x2\.ts' is lost \(it broke off\)",),
                                                             counts={"reconnects": 1, "segments_missing": None}),
    "a_segment_that_always_breaks_off_is_told": Row(
        [0, 1, 2, 3, 4, 5], say=broken("x2.ts", "always"), part=True, counts={"segments_missing": 1},
        words=(r"segment 3 of 6, 'x2\.ts': it breaks off after \d+ of \d+ bytes", "the rest of its 1.000 s is missing")),
    "a_server_that_is_away_for_a_moment_is_asked_again": Row(ALL, say=away("x3.ts", 2), words=("is lost .* and is opened again",),
                                                             counts={"reconnects": 1, "segments_missing": None}),
    "a_server_that_does_not_come_back_ends_the_film": Row([0, 1, 2], say=away("x3.ts", 999), options="reconnect=1s", code=1, part=True,
                                                          words=("the connection is lost and does not come back: " + FAILED,)),
    "a_server_that_is_not_asked_again_lacks_a_segment": Row([0, 1, 2, 4, 5], say=away("x3.ts", 999), options="reconnect=0s",
                                                            begins=[0, 1, 2, 4, 5], words=("segment 4 of 6, 'x3.ts': " + FAILED,)),
    "a_start_is_exact_where_times_begin_again": Row([0, 1, 0, 1], order=[0, 1, 0, 1], breaks=(2,), options="start=2.4s", skips=60,
                                                    begins=[]),
    "a_start_is_exact_in_a_list": Row(ALL, options="start=2.4s", skips=60, begins=[]),
    "a_film_plays_from_a_server_without_ranges": Row(ALL, film="ranges", path="x.ts", ranges=False),
    "a_film_waits_for_a_slow_pipeline_where_a_server_has_no_ranges": Row(ALL, film="ranges", path="x.ts", ranges=False,
                                                                         more="! check.slow ms=20 "),
    "a_film_that_breaks_off_on_a_server_without_ranges_goes_on": Row(ALL, film="ranges", path="x.ts", ranges=False, say=broken("x.ts", "once"),
                                                                     part=True, words=("is opened again",), counts={"reconnects": 1}),
    "a_key_that_misses_is_told": Row([], film="locked", say=away("secret.bin", 999, 404), code=3,
                                     words=(r"the key of its segments, 'secret\.bin', cannot be read: " + NOT_FOUND,)),
    "a_header_that_misses_is_told": Row([], film="fmp4", say=away("init.mp4", 999, 404), code=3,
                                        words=(r"the header of its segments, 'init\.mp4', cannot be read: " + NOT_FOUND,)),
    "a_segment_named_as_a_picture_is_refused_with_the_remedy": Row(
        [], rename=lambda name: name.replace(".ts", ".jpeg"), code=3, words=("extension", "any_names=true")),
    "a_segment_named_as_a_picture_is_opened_on_demand": Row(ALL, rename=lambda name: name.replace(".ts", ".jpeg"), options="any_names=true"),
    "a_key_of_an_odd_name_is_refused_with_the_remedy": Row(
        [], film="locked", local=True, code=3, words=(r"the key of its segments, 'secret\.bin'", "any_names=true")),
    "a_key_of_an_odd_name_is_opened_on_demand": Row(ALL, film="locked", local=True, options="any_names=true"),
    "a_live_list_plays_and_ends": Row([1, 2, 3, 4, 5], say=live(ALL, 4), counts={"reconnects": None, "pictures_late": None}),
    "a_live_list_with_sound_plays_and_ends": Row([1, 2, 3, 4, 5], film="sound", say=live(ALL, 4)),
    "a_live_list_goes_on_where_times_begin_again": Row([1, 2, 0, 1, 2], order=[0, 1, 2, 0, 1, 2], say=live([0, 1, 2, 0, 1, 2], 4, (3,))),
    "a_live_list_that_cannot_be_read_for_a_moment_is_asked_again": Row([1, 2, 3, 4, 5], say=live(ALL, 4, fail=(2, 3)),
                                                                       words=("is lost .* and is opened again",)),
    "a_live_list_that_stops_is_told": Row([1, 2, 3, 4, 5], say=live(ALL, 4, ends=False), options="reconnect=1s", code=1, part=True,
                                          words=("the live list '.*' has stopped: it has had no new segment for \d",
                                                 "error MR0601.*the live list has stopped: no new segment for")),
    "a_live_list_of_files_that_stops_is_told": Row([3, 4, 5], local=True, ends=False, options="reconnect=1s", code=1, part=True,
                                                   words=("the live list has stopped",)),
    "a_live_list_that_moves_on_too_fast_is_told": Row([0, 1, 4, 5], say=jumps, begins=[0, 1, 4, 5], counts={"segments_missing": 2},
                                                      words=("segment 2: it left the list before it was read",)),
    "a_live_list_that_is_counted_anew_is_opened_again": Row([0, 1, 2, 3, 4, 5], say=begins_again, begins=[], counts={"reconnects": 1},
                                                            words=("the list counts its segments anew",)),
}


class Bench(Media):
    """Runs a row."""

    def answer(self, row, files):
        def say(name, number):
            said = row.say(files, name, number) if row.say else None
            if said is not None:
                return said
            return files.get(name, 404)
        return say

    def files_of(self, row):
        with LOCK:
            files = dict(film(row.film))
        order = ALL if row.order is None else row.order
        rename = row.rename or (lambda name: name)
        names = [lines[-1] for lines in lines_of(files)[1]]
        files["x.m3u8"] = listed(files, order, end=row.ends, breaks=row.breaks, rename=rename).encode()
        for name in set(names):
            if rename(name) != name:
                files[rename(name)] = files.pop(name)
        for place, fault in row.faults.items():
            name = names[order[place]]
            if fault == 404:
                del files[name]
            else:
                files[name] = fault
        return files

    def address(self, row):
        files = self.files_of(row)
        if row.local:
            for name, body in files.items():
                (self.folder / name).write_bytes(body)
            return self.folder / row.path
        self.server = Server(self.answer(row, files), row.ranges)
        self.addCleanup(self.server.end)
        return f"http://127.0.0.1:{self.server.server_port}/{row.path}"

    def seen(self, source, more, code):
        """The pictures, the report, and what was said."""
        pictures, report = self.folder / "pictures.jsonl", self.folder / "report.json"
        result = self.run_it("run", f"video.file name=in {source} {more}! check.pictures name=check path={pictures}", "--json", report,
                             code=code, seconds=SECONDS_MAX)
        lines = [json.loads(line) for line in pictures.read_text().splitlines()] if pictures.exists() else []
        return lines, json.loads(report.read_text()) if code != 3 else {}, result.stderr

    def look_at(self, row):
        pictures, report, said = self.seen(f"path={self.address(row)} {row.options}", row.more, row.code)
        for words in row.words:
            self.assertRegex(said, words)
        if row.code == 0 and not row.words:
            self.assertNotRegex(said, "warning|error", "nothing is wrong")
        for name, count in row.counts.items():
            self.assertEqual(rig.counts(report, "in").get(name), count, f"{name}\n{said}")
        expected = [md5 for n in row.shows for md5 in pictures_of_film()[n]][row.skips:]
        got = [picture["md5"] for picture in pictures]
        if row.part:
            self.assertGreater(len(got), 0)
            rest = iter(expected)
            self.assertTrue(all(md5 in rest for md5 in got), f"they are pictures of the film, in its order\n{said}")
        else:
            self.assertEqual(got, expected, f"{len(got)} of {len(expected)} pictures came\n{said}")
        times = [picture["media_time"] for picture in pictures]
        self.assertEqual(times, sorted(set(times)), "times rise")
        if not row.part and row.begins != []:
            begins = range(len(row.shows)) if row.begins is None else row.begins
            self.assertTimes(times, [second * 10**9 + n * PERIOD_NS for second in begins for n in range(RATE)])

    def assertTimes(self, times, expected):
        self.assertEqual(len(times), len(expected))
        for n, (time, wanted) in enumerate(zip(times, expected)):
            self.assertLess(abs(time - wanted), PERIOD_NS // 4, f"picture {n} is at {time}, {wanted} is its time")


class Lists(Bench):
    """The rows; see ROWS."""


def add_row(name, row):
    setattr(Lists, f"test_{name}", lambda self: self.look_at(row))


for each_name, each_row in ROWS.items():
    add_row(each_name, each_row)


class Live(Bench):
    """What is compared within one run, or looked at while it runs."""

    def test_a_live_list_gives_what_ffprobe_reads_of_it(self):
        row = Row([1, 2, 3, 4, 5], say=live(ALL, 4))
        address = self.address(row)
        read = json.loads(call(["ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json", address], seconds=SECONDS_MAX))
        self.server.asked.clear()  # from the same moment of the list
        pictures, _, said = self.seen(f"path={address}", "", 0)
        self.assertGreaterEqual(len(pictures), int(read["streams"][0]["nb_read_frames"]), said)

    def test_fragments_with_another_header_are_decoded_by_it(self):
        expected, text = [], ""
        for name, profile in (("a", "baseline"), ("b", "high")):
            call([*FFMPEG, "-f", "lavfi", "-i", f"testsrc2=size=64x48:rate={RATE}:duration=2", "-c:v", "libx264", "-profile:v", profile,
                  "-g", RATE, "-f", "hls", "-hls_time", "1", "-hls_playlist_type", "vod", "-hls_segment_type", "fmp4",
                  "-hls_fmp4_init_filename", f"{name}.mp4", f"{name}.m3u8"], cwd=self.folder)
            expected += rig.frame_md5s(self.folder / f"{name}.m3u8", before=["-flags", "+bitexact"])
            lines = (self.folder / f"{name}.m3u8").read_text().replace("#EXT-X-ENDLIST\n", "")
            text += "#EXT-X-DISCONTINUITY\n" + lines[lines.index("#EXT-X-MAP"):] if text else lines
        (self.folder / "x.m3u8").write_text(text + "#EXT-X-ENDLIST\n")
        pictures, _, said = self.seen("path=x.m3u8", "", 0)
        self.assertEqual([picture["md5"] for picture in pictures], expected, said)
        times = [picture["media_time"] for picture in pictures]
        self.assertTimes(times, [n * PERIOD_NS for n in range(4 * RATE)])

    def test_a_slow_pipeline_loses_what_is_later_than_the_buffer_and_says_so(self):
        row = Row([1, 2, 3, 4, 5], say=live(ALL, 4))
        pictures, report, said = self.seen(f"path={self.address(row)} buffer=0.5s", "! check.slow ms=80 ", 0)
        late = rig.counts(report, "in")["pictures_late"]
        self.assertGreater(late, 0)
        self.assertEqual(len(pictures) + late, 5 * RATE, "each picture is shown or counted")
        self.assertRegex(said, r"the pipeline is slower than the live list: after \S+ s a picture is \d+\.\d+ s late")

    def test_a_list_without_a_buffer_is_a_live_source_of_the_plan(self):
        address = self.address(Row(ALL, say=live(ALL, 4)))
        for options, is_live in (("", False), (" buffer=0s", True)):
            plan = self.run_it("plan", f"video.file path={address}{options} ! null.sink").stdout
            self.assertEqual(", live" in plan, is_live, plan)

    def test_an_interrupt_ends_the_wait_for_a_segment(self):
        address = self.address(Row(ALL, say=live(ALL, 4, ends=False)))
        process = Process(self, f"video.file path={address} ! check.pictures path=told.jsonl")
        told = self.folder / "told.jsonl"
        self.assertTrue(wait_for(lambda: told.exists() and told.read_text().count("}") > 4 * RATE), "it plays")
        self.assertEqual(process.end(signal.SIGINT), 130, process.said())


if __name__ == "__main__":
    rig.main(cases=len(ROWS) + 5, side_by_side=8)
