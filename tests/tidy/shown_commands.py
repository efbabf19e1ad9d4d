#!/usr/bin/env python3
"""Runs every command that the README and the guides show, page by page, or knows why it is not run.

usage: shown_commands.py BUILD_FOLDER [PAGE…]

Commands stand in ```sh blocks, in indented blocks, and as code within a sentence. Those of a page are run in their order
by one shell in a folder of the page's own: the pipelines of the page lie there by their names, and the sample videos, cut
to their first pictures. A run of a test pattern without an end is ended after some ticks. What a sentence shows with a word in its place (FILE, TYPE, …), or without what it works on, is a
form: its command and options must be those of --help. The commands of ```console blocks are run, and their output is
compared, by readme_test.py and tests/cli/transcripts.py; those of ./dev by dev_commands.py.
"""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "tidy"), str(ROOT / "tests" / "cli")]
import dev_commands  # noqa: E402: found by the line above
import readme_test  # noqa: E402
import transcripts  # noqa: E402

SECONDS_MAX = 120
PICTURES = 20  # of each sample video
PAGES = ("README.md", "docs/examples.md", "docs/reference/machine_file.md",
         *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "guide").glob("*.md")))
COMPARED = {"README.md", *transcripts.PAGES, transcripts.VIDEO, transcripts.ENCODE}
COMMAND = r"(?:build/millrace|millrace|\./dev|cmake|ctest|cp|apt|apt-get|podman|docker|man|ffmpeg)\b"
IN_PLACE_OF_A_WORD = re.compile(r"\b[A-Z]{3,}\b|…|\.example\b")

WINDOW = "opens a window; tests/opencv does on a display of its own"
NETWORK = "needs a camera or a server of that name; tests/media/network.py and targets.py have their own"
GPU = "needs a GPU; ./dev gpu-test runs such pipelines"
MINUTES = "takes minutes; ./dev bench runs each benchmark, and dev_commands.py one"
# A part of the command → why it is not run here.
NOT_RUN = {
    "view.window": WINDOW,
    "camera.example": NETWORK,
    "server.example": NETWORK,
    "udp://0.0.0.0": NETWORK,
    "--devices cuda:0": GPU,
    "bench gpu transfer": GPU,
    "millrace bench": MINUTES,
    "net.path=FILE": "takes a file of the user's; tests/examples/objects.py gives it one",
    "nodes --watch": "goes on until a signal; tests/cli/node_runs.py runs it",
    "apt-get install": "changes the system; ./dev package --try does it in a bare one",
    "podman": "needs a container tool; tests/package/try_container.py carries the Containerfile out",
    "docker": "needs a container tool; tests/package/try_container.py carries the Containerfile out",
}
MODELS = ROOT / "media" / "models"
if not list(MODELS.glob("libonnxruntime.so*")):
    NOT_RUN["text.yaml"] = "needs what ./dev models fetches"
if len(sys.argv) > 1 and not (pathlib.Path(sys.argv[1]) / "make_network").exists():
    NOT_RUN |= dict.fromkeys(("make_network", "disc.yaml"), "needs libtorch")


def logical_lines(block):
    """Commands without their comments; one that ends within quotes or with a backslash goes on."""
    command = ""
    for line in block.splitlines():
        command += re.sub(r"\s{2,}# .*$", "", line).strip() if not command else "\n" + line
        if command.count("'") % 2 == 0 and not command.endswith("\\"):
            if command:
                yield command
            command = ""


def commands(page):
    """(command, whether it stands in a sentence) in the order of the page."""
    token = r"^```(\w*)\n(.*?)^```$|((?:^    \S[^\n]*\n)+)|`([^`\n]+)`"
    for match in re.finditer(token, page, re.MULTILINE | re.DOTALL):
        if match[2] is not None and match[1] == "sh":
            yield from ((command, False) for command in logical_lines(match[2]))
        elif match[3] and re.match(rf"(?:cd |{COMMAND})", match[3].strip()):
            yield from ((command, False) for command in logical_lines(re.sub(r"(?m)^    ", "", match[3])))
        elif match[4] and re.match(rf"{COMMAND} \S", match[4]):
            yield match[4], True


class Help:
    """What --help says of each command."""

    def __init__(self, millrace):
        self.millrace, self.texts = millrace, {}

    def text(self, *command):
        if command not in self.texts:
            self.texts[command] = subprocess.run([self.millrace, *command, "--help"], capture_output=True, text=True,
                                                 timeout=60).stdout
        return self.texts[command]

    def complaints(self, command):
        """A form names a command that there is, with options that it has."""
        words = re.sub(r"^(build/)?millrace ", "", re.sub(r"'[^']*'", "", command)).split()
        verb = [] if words[0].startswith("-") else [words[0]]
        if verb and not re.search(rf"(?m)^  {re.escape(verb[0])} ", self.text()):
            yield f"`{command}`: millrace has no command {verb[0]}"
            return
        # A plugin's command may have commands of its own.
        if words[1:] and "Subcommands:" in self.text(*verb) and re.search(rf"(?m)^  {re.escape(words[1])} ", self.text(*verb)):
            verb.append(words[1])
        for option in (word for word in words if word.startswith("-") and word != "-"):
            if not re.search(rf"{re.escape(option.split('=')[0])}\b", self.text(*verb)):
                yield f"`{command}`: {' '.join(verb)} has no option {option}"


def is_form(command):
    """A name (`millrace plan`), or what has a word in the place of something."""
    words = command.split()
    if words[1] == "new" and "--name" not in words:
        return True
    needs_pipeline = words[1] in ("plan", "check", "run") and "'" not in command and ".yaml" not in command
    return bool(IN_PLACE_OF_A_WORD.search(command)) or len(words) == 2 or needs_pipeline


def as_run(command):
    """The command, with an end if it has none; one that configures builds from the tree, into the page's own folder."""
    if command.startswith("cmake --preset "):
        return f"{command} -S {ROOT} -B configured"
    runs, bounded = "millrace run" in command, re.search(r"--ticks|count=[1-9]", command)
    endless = runs and not bounded and any(word in command for word in ("test.pattern", "pattern.count=0", "remote_draw", "volume.yaml", "slices.yaml"))
    return f"{command} --ticks {PICTURES}" if endless else command


@functools.cache
def cut_films():
    """A folder with the first pictures of each sample video, which goes when the script ends."""
    folder = tempfile.TemporaryDirectory()
    for film in (ROOT / "media").glob("*.avi"):
        cut = ["ffmpeg", "-loglevel", "error", "-i", str(film), "-frames:v", str(PICTURES), "-c:v", "copy", "-an"]
        subprocess.run([*cut, str(pathlib.Path(folder.name) / film.name)], check=True, timeout=60, stdin=subprocess.DEVNULL)
    return folder


def lay_out(page, build, folder):
    """The folder that the commands of a page are run in."""
    (folder / "out").mkdir()
    shutil.copytree(cut_films().name, folder / "media")
    if MODELS.exists():
        (folder / "media" / "models").symlink_to(MODELS)
    for name in ("examples", "dev"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").symlink_to(build)
    (folder / "film.mkv").symlink_to("media/vtest.avi")
    (folder / "vtest.avi").symlink_to("media/vtest.avi")
    for block in readme_test.blocks(page, "yaml"):
        if name := re.search(r"(?m)^name: (\w+)$", block):
            (folder / f"{name[1]}.yaml").write_text(block, encoding="utf-8")
    if "acme/" in page and readme_test.blocks(page, "cmake"):  # the README's plugin, by its two files
        (folder / "acme").mkdir()
        for language, name in (("cpp", "acme.cpp"), ("cmake", "CMakeLists.txt")):
            (folder / "acme" / name).write_text(readme_test.blocks(page, language)[0], encoding="utf-8")


def run_page(name, shown, page, build):
    """Complaints about the commands of one page, which one shell runs."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        lay_out(page, build, folder)
        script = 'set -eo pipefail; trap \'echo "failed: $BASH_COMMAND"\' ERR\n' + "\n".join(shown)
        script = script.replace("/path/to/millrace/build", str(build))
        environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}", "HOME": scratch,
                       "MILLRACE_MACHINE": str(folder / "machine.json"),
                       "CMAKE_BUILD_TYPE": "Debug"}  # plugin_project builds the same projects with optimization
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
    if done.returncode:
        yield f"{name}: exit code {done.returncode}\n{done.stdout[-3000:]}"


def complaints(build, pages):
    told, used, ran = Help(str(build / "millrace")), set(), 0
    for name in pages:
        page = (ROOT / name).read_text(encoding="utf-8")
        if "```console" in page and name not in COMPARED:
            yield f"{name} shows outputs that nobody compares: tests/cli/transcripts.py lists the pages"
        shown = []
        for command, in_sentence in commands(page):
            if command.startswith("./dev "):
                words = re.sub(r" [A-Z…\[].*", "", command.removeprefix("./dev ")).split()
                if not any(" ".join(words[:n]) in dev_commands.SHORT for n in (1, 2, 3)) and words != ["help"]:
                    yield f"{name}: {command} is no command of ./dev help"
                continue
            if re.match(r"(build/)?millrace ", command):
                yield from (f"{name}: {said}" for said in told.complaints(command))
            reasons = [part for part in NOT_RUN if part in command]
            used.update(reasons)
            if not reasons and not (in_sentence and is_form(command)):
                shown.append(as_run(command))
        ran += len(shown)
        if shown:
            yield from run_page(name, shown, page, build)
    if pages == PAGES:
        yield from (f"no page shows {part} any longer: {NOT_RUN[part]}" for part in NOT_RUN if part not in used)
    print(f"{ran} commands were run")


def main():
    if not shutil.which("ffmpeg"):
        print("left out: there is no ffmpeg, which cuts the sample videos")
        return 0
    found = list(complaints(pathlib.Path(sys.argv[1]).resolve(), tuple(sys.argv[2:]) or PAGES))
    print("\n".join(found) if found else "every command that a page shows was run, or is known not to be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
