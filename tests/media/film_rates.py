#!/usr/bin/env python3
"""Plays films of twelve rates, in four containers, on clocks of their rate and faster: each picture is shown once.

The clocks are `free` with a rate: they show what is due by media time, as `realtime` does, and wait for no wall clock.

usage: film_rates.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]

MILLRACE_WALL=1 plays each film on a `realtime` clock as well, with and without `--rate`, in its own time. Such a run says
something only on an idle machine: a picture that comes too late for its beat is lost by right.
"""
import fractions
import os

import rig
from rig import FFMPEG, Media, call

RATES = ["10", "12", "15", "24000/1001", "24", "25", "30", "30000/1001", "50", "60000/1001", "60", "120"]
CONTAINERS = ["mp4", "mkv", "ts", "avi"]
PICTURES = 75
IN_WALL_TIME = bool(os.environ.get("MILLRACE_WALL"))
if IN_WALL_TIME:
    rig.PROGRAM_SECONDS_MAX = 3600


class FilmRates(Media):
    """One test for each film, made below."""

    def film(self, rate, container):
        path = self.folder / f"film.{container}"
        # Raw pictures of 120 a second are more than one in a period of MPEG-TS's smallest buffer; H.264 fits everywhere.
        call([*FFMPEG, "-f", "lavfi", "-i", f"testsrc=s=64x48:r={rate}", "-frames:v", PICTURES, "-c:v", "libx264",
              "-preset", "ultrafast", "-bf", "0", path])
        return path

    def edge(self, path, *clock):
        return self.report(f"video.file path={path} ! null.sink", *clock)["edges"][0]

    def edge_of_free_clock(self, path, rate):
        return self.edge(path, "--clock", "free", "--rate", rate)

    def shows_each_once(self, path, rate, empty=None):
        edge = self.edge_of_free_clock(path, rate)
        what = f"{path.name} at {rate}"
        self.assertEqual(edge["delivered"], PICTURES, what)
        self.assertEqual(edge.get("dropped", {}), {}, what)
        if empty is not None:
            self.assertEqual(edge["empty"], empty, what)

    def test_a_film_whose_times_vary_loses_no_picture_on_a_clock_of_its_rate(self):
        for container in CONTAINERS[:3]:
            path = self.folder / f"varies.{container}"
            # Every third picture is 12 ms late, as in films of telephones.
            call([*FFMPEG, "-f", "lavfi", "-i", "testsrc=s=64x48:r=30", "-frames:v", PICTURES, "-vf",
                  "settb=1/90000,setpts='PTS+1080*not(mod(N\\,3))*gt(N\\,0)'", "-vsync", "passthrough", "-c:v", "libx264",
                  "-preset", "ultrafast", "-bf", "0", path])
            self.shows_each_once(path, "29.9999")


def add_films():
    for rate in RATES:
        for container in CONTAINERS:
            def test(self, rate=rate, container=container):
                path = self.film(rate, container)
                exact = fractions.Fraction(rate)
                # At exactly the film's rate a free clock takes one picture after another, and looks at no time.
                self.shows_each_once(path, str(exact * 99999 / 100000), empty=0)
                self.shows_each_once(path, str(exact * 2), empty=PICTURES - 1)
                self.shows_each_once(path, str(exact * 3 / 2))
                half = self.edge_of_free_clock(path, str(exact / 2))
                self.assertEqual(half["delivered"] + half["dropped"]["rate"], PICTURES)
                self.assertEqual(half["empty"], 0)
            def test_in_wall_time(self, rate=rate, container=container):
                path = self.film(rate, container)
                for words in [], ["--rate", rate]:
                    edge = self.edge(path, "--clock", "realtime", *words)
                    told = {"delivered": edge["delivered"], "empty": edge["empty"], "dropped": edge.get("dropped", {})}
                    self.assertEqual(told, {"delivered": PICTURES, "empty": 0, "dropped": {}}, [path.name, *words])

            name = f"{rate.replace('/', '_')}_in_{container}"
            setattr(FilmRates, f"test_{name}", test)
            if IN_WALL_TIME:
                setattr(FilmRates, f"test_{name}_in_wall_time", test_in_wall_time)


add_films()
if __name__ == "__main__":
    rig.main(cases=len(RATES) * len(CONTAINERS) * (1 + IN_WALL_TIME) + 1, side_by_side=1 if IN_WALL_TIME else 2)
