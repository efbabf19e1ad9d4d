#!/usr/bin/env python3
"""Animated pictures are films: every picture with its time, or a sentence that says why not.

usage: animations.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import rig
from rig import FFMPEG, Media, call

MS = 10**6
COUNT = 8
UNEVEN_MS = [0, 100, 150, 700, 720, 760, 2000, 2040]  # GIF counts in hundredths


class Animations(Media):
    def make(self, name, *options, size="64x48", at=UNEVEN_MS):
        path = self.folder / name
        terms = "+".join(f"eq(N,{i})*{ms}" for i, ms in enumerate(at))
        call([*FFMPEG, "-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v", len(at), "-vf",
              f"settb=1/1000,setpts='{terms}'", "-vsync", "passthrough", "-enc_time_base", "1/1000",
              *options, path])
        return path

    def reads(self, path, at=UNEVEN_MS, **more):
        got = self.pictures(f"video.file path={path}", **more)
        self.assertEqual([round(picture["media_time"] / MS) for picture in got], at, path.name)
        return got

    def same_pictures(self, path):
        got = self.reads(path)
        pixels = {"bgra8": "bgra", "rgba8": "rgba", "rgb8": "rgb24"}[got[0]["format"]]
        self.assertEqual([picture["md5"] for picture in got], rig.frame_md5s(path, "-pix_fmt", pixels))

    def test_each_picture_of_a_gif_has_its_time(self):
        self.same_pictures(self.make("a.gif"))

    def test_each_picture_of_an_animated_png_has_its_time(self):
        for name in ("a.png", "a.apng"):
            self.same_pictures(self.make(name, "-f", "apng", "-plays", 0))

    def test_transparent_animations_keep_their_transparency(self):
        for name, options in (("a.gif", []), ("a.png", ["-f", "apng"])):
            path = self.folder / name
            call([*FFMPEG, "-f", "lavfi", "-i", "color=red:size=64x48:rate=10,format=rgba,colorchannelmixer=aa=0", "-frames:v", 3,
                  *options, path])
            got = self.reads(path, [0, 100, 200])
            self.assertIn(got[0]["format"], ("rgba8", "bgra8"))

    def test_an_animation_that_loops_is_read_once_unless_it_is_asked_for(self):
        path = self.make("a.gif", "-loop", 0)
        self.reads(path)
        got = self.pictures(f"video.file path={path} loop=true", "--ticks", 2 * COUNT + 1)
        self.assertEqual(len(got), 2 * COUNT + 1)
        self.assertEqual([picture["md5"] for picture in got[COUNT:2 * COUNT]], [picture["md5"] for picture in got[:COUNT]])

    def test_a_written_gif_is_read_back(self):
        path = self.folder / "b.gif"
        self.run_it("run", f"video.file path={self.make('a.gif')} ! video.writer path={path}")
        self.reads(path)

    def test_an_animated_webp_is_read_or_named(self):
        self.need_encoder("libwebp_anim")
        path = self.make("a.webp", "-c:v", "libwebp_anim", "-loop", 0)
        result = rig.subprocess.run([rig.millrace, "run", f"video.file path={path} ! null.sink"], capture_output=True, text=True,
                                    env=rig.environment(), timeout=rig.SECONDS_MAX)
        if result.returncode == 0:
            self.reads(path)
        else:
            self.assertEqual(result.returncode, 3)
            self.assertIn("it is an animated WebP", result.stderr)
            self.assertIn("an animated GIF or PNG, or a WebM, is read", result.stderr)
        still = self.folder / "still.webp"
        call([*FFMPEG, "-f", "lavfi", "-i", "testsrc2=size=64x48", "-frames:v", 1, "-c:v", "libwebp", still])
        self.reads(still, [0])


if __name__ == "__main__":
    rig.main(cases=6, side_by_side=2)
