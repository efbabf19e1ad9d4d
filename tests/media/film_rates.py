#!/usr/bin/env python3
"""Plays films of twelve rates, in four containers, on clocks of their rate and faster: each picture is shown once.

The clocks are `free` with a rate: they show what is due by media time, as `realtime` does, and wait for no wall clock.

usage: film_rates.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import fractions

import rig
from rig import FFMPEG, Media, call

RATES = ["10", "12", "15", "24000/1001", "24", "25", "30", "30000/1001", "50", "60000/1001", "60", "120"]
CONTAINERS = ["mp4", "mkv", "ts", "avi"]
PICTURES = 75


class FilmRates(Media):
    """One test for each film, made below."""

    def film(self, rate, container):
        path = self.folder / f"film.{container}"
        # Raw pictures of 120 a second are more than one in a period of MPEG-TS's smallest buffer; H.264 fits everywhere.
        call([*FFMPEG, "-f", "lavfi", "-i", f"testsrc=s=64x48:r={rate}", "-frames:v", PICTURES, "-c:v", "libx264",
              "-preset", "ultrafast", "-bf", "0", path])
        return path

    def edge(self, path, rate):
        told = self.report(f"video.file path={path} ! null.sink", "--clock", "free", "--rate", rate)
        return told["edges"][0]

    def shows_each_once(self, path, rate, empty=None):
        edge = self.edge(path, rate)
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
                half = self.edge(path, str(exact / 2))
                self.assertEqual(half["delivered"] + half["dropped"]["rate"], PICTURES)
                self.assertEqual(half["empty"], 0)
            name = f"test_{rate.replace('/', '_')}_in_{container}"
            setattr(FilmRates, name, test)


add_films()
if __name__ == "__main__":
    rig.main(cases=len(RATES) * len(CONTAINERS) + 1, side_by_side=2)
