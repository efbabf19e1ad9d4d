"""A folder that looks like the tree's root to a pipeline, and whose out/ is its own."""
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS_MAX = 120  # far more than any of these takes, on a machine that is busy with other things


class Place:
    def __init__(self, millrace):
        self.millrace = str(pathlib.Path(millrace).resolve())
        self.folder = tempfile.TemporaryDirectory(prefix="millrace-examples-")
        self.path = pathlib.Path(self.folder.name)
        for shared in ("examples", "media"):
            if (ROOT / shared).exists():
                (self.path / shared).symlink_to(ROOT / shared)
        self.disc = self.path / "out" / "disc.pt"  # the network of disc.yaml
        maker = pathlib.Path(self.millrace).parent / "make_network"
        if maker.exists():
            self.disc.parent.mkdir()
            subprocess.run([maker, ROOT / "examples" / "model" / "disc.txt", self.disc], check=True, timeout=SECONDS_MAX)

    def run(self, *arguments):
        """The command's result; no window is opened, whatever the machine has."""
        environment = {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        return subprocess.run([self.millrace, *arguments], cwd=self.path, env=environment, capture_output=True,
                              text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)

    def close(self):
        self.folder.cleanup()


def missing_media(pipeline):
    """The sample videos and networks that a pipeline names and that nobody has fetched here, and who fetches them."""
    # A field of a stream may be a part of the name.
    missing = [f"{name}: ./dev setup" for name in ("media/vtest.avi", "media/Megamind.avi")
               if (name in pipeline or re.search(r"media/\{\w+\}\.avi", pipeline)) and not (ROOT / name).exists()]
    models = ROOT / "media" / "models"
    if "media/models/" in pipeline and not list(models.glob("libonnxruntime.so*")):
        missing.append("ONNX Runtime: ./dev models")
    missing += [f"{name}: ./dev models" for name in sorted(set(re.findall(r"media/models/([\w.-]+\.onnx)", pipeline)))
                if not (models / name).exists()]
    return missing
