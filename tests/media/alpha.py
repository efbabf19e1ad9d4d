#!/usr/bin/env python3
"""Transparent pictures into every container with every codec that it holds: the transparency comes out, or its loss is said.

usage: alpha.py MILLRACE FOLDER_OF_CHECK_PLUGIN FOLDER_TO_KEEP_THINGS_IN [TEST…]
"""
import rig
from rig import FFMPEG, Media, call

CONTAINERS = ("mp4", "mov", "mkv", "webm", "avi", "ts", "nut", "flv", "gif", "y4m")
CODECS = ("h264", "hevc", "vp9", "vp8", "av1", "mpeg4", "mpeg2", "mjpeg", "ffv1", "huffyuv", "ffvhuff", "png", "prores", "gif", "apng",
          "rawvideo", "qtrle")
# Those that have to keep it, in these containers; any other may say that it is lost.
KEEP = {("mkv", codec) for codec in ("vp9", "vp8", "ffv1", "huffyuv", "ffvhuff", "png", "prores")} | {
    ("webm", "vp9"), ("webm", "vp8"), ("mov", "prores"), ("mov", "png"), ("mov", "qtrle"), ("avi", "ffv1"), ("avi", "huffyuv"),
    ("avi", "rawvideo"), ("nut", "ffv1"), ("nut", "rawvideo"), ("gif", "gif")}
WIDTH, HEIGHT, COUNT = 64, 48, 4


class Alpha(Media):
    """One test for each container, made below."""

    def source(self):
        path = self.folder / "source.mkv"
        call([*FFMPEG, "-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=10,format=rgba,"
              "geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='255*gte(X,16+8*N)'", "-frames:v", COUNT, "-c:v", "png", path])
        return path

    def alpha_of(self, path, codec):
        """Of each picture the alpha of a row."""
        decoder = {"vp9": ["-c:v", "libvpx-vp9"], "vp8": ["-c:v", "libvpx"]}.get(codec, [])
        raw = call([*FFMPEG, *decoder, "-i", path, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgba", "-"])
        self.assertEqual(len(raw), COUNT * WIDTH * HEIGHT * 4)
        return [raw[(n * HEIGHT + 20) * WIDTH * 4:(n * HEIGHT + 21) * WIDTH * 4][3::4] for n in range(COUNT)]

    def keeps(self, alpha):
        """Edges of lossy codecs are soft, so the four columns around them are not looked at."""
        return all(all(abs(value - (255 if x >= 16 + 8 * n else 0)) < 24 for x, value in enumerate(row) if abs(x - 16 - 8 * n) > 3)
                   for n, row in enumerate(alpha))

    def try_all(self, container):
        source, held = self.source(), 0
        for codec in CODECS:
            with self.subTest(codec=codec):
                path = self.folder / f"{codec}.{container}"
                line = f"video.file path={source} ! video.writer path={path} codec={codec}"
                result = rig.subprocess.run([rig.millrace, "run", line], capture_output=True, text=True, env=rig.environment(),
                                            timeout=rig.SECONDS_MAX)
                if result.returncode == 3:  # this container cannot hold the codec
                    self.assertNotIn((container, codec), KEEP, result.stderr)
                    continue
                self.assertEqual(result.returncode, 0, result.stderr)
                held += 1
                said = result.stderr.count("no transparency")
                if (container, codec) in KEEP:
                    self.assertEqual(said, 0, result.stderr)
                self.assertLessEqual(said, 1, result.stderr)
                if not said:
                    self.assertTrue(self.keeps(self.alpha_of(path, codec)), f"it is kept or said{result.stderr}")
        self.assertGreater(held, 0, "the container holds one of the codecs")

    def test_what_is_left_out_on_purpose_is_not_said_and_gray_has_none(self):
        for options in ("pixels=yuv420p", "codec=ffv1 pixels=bgr0"):
            line = f"video.file path={self.source()} ! image.convert to=rgb8 ! video.writer path={self.folder}/a.mkv {options}"
            self.assertNotIn("transparency", self.run_it("run", line).stderr)


for name in CONTAINERS:
    setattr(Alpha, f"test_transparency_is_kept_or_its_loss_is_said_in_{name}", lambda self, name=name: self.try_all(name))
if __name__ == "__main__":
    rig.main(cases=len(CONTAINERS) + 1, side_by_side=2)
