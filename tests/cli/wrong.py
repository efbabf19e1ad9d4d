#!/usr/bin/env python3
"""Hands wrong pipelines to `millrace check`, and compares what it says with the .txt beside each, to the letter.

usage: wrong.py MILLRACE [--update]

wrong/ has those that need the real handlers or the plan to be found out; those of tests/graph/wrong are compared by the
parser's own test, and here only for what scripts see. A line `# options: …` in a pipeline gives the command's options;
`# newcomer: …` names a wrong input of a newcomer's trial. The command runs without its plugins: a wrong name of a type makes
it load all of them, which takes most of its time, and no message here names a type of a plugin. All suggested edits that can be made by a rule are made, and must
mend what they were suggested for.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from transcript import difference  # noqa: E402: found by the line above

TESTS = pathlib.Path(__file__).resolve().parents[1]
WRONG, TEXTS = TESTS / "cli" / "wrong", TESTS / "graph" / "wrong"
INVALID_PIPELINE = 3
PIPELINES_MIN = 85  # distinct ones, as the contract of the error messages asks
EDITED_MIN = 100  # pipelines whose suggested edits were made
ACCEPTED_MIN = 80  # of them, those with no mistake left then
EDITS_MAX = 10  # of one pipeline, one after another
PLACE = re.compile(r"(?m)^  at (.+):(\d+):(\d+)$")
TOP_KEYS = ("version", "name", "clock", "clocks", "handlers", "nodes")
ADDS_A_KEY = ("MR0306", "MR0314", "MR0323", "MR0325")  # the edit is a key of the handler at the place


def pipelines_in(folder):
    return sorted(path for path in folder.iterdir() if path.suffix != ".txt")


def check(millrace, pipeline):
    raw = pipeline.read_bytes()
    options = re.search(rb"(?m)^# options: (.*)$", raw)
    # A line is given as a script would, without the line break that ends its file.
    given = raw[:-1] if pipeline.suffix == ".line" else pipeline.name
    return ask(millrace, [given, *(options.group(1).decode().split() if options else [])], pipeline.parent)


def ask(millrace, arguments, folder, command="check"):
    result = subprocess.run([millrace, command, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)
    # Where plugins are looked for is another folder on each machine, and none where no plugin is built.
    result.stderr = re.sub(r"(looked among the built-in ones)(, in \S+/plugins)?", r"\1, in PLUGINS", result.stderr)
    return result


def complaints(pipeline, result):
    """What every refusal keeps to, whatever its words are."""
    name, said = pipeline.name, result.stderr
    if result.returncode != INVALID_PIPELINE:
        yield f"{name}: the exit code is {result.returncode}, expected {INVALID_PIPELINE}\n{said}"
        return
    if result.stdout or not said.startswith("error MR"):
        yield f"{name}: expected errors on stderr and nothing else\n{result.stdout}{said}"
    lines = pipeline.read_bytes().decode("utf-8", "replace").split("\n")
    for error in errors_of(said):
        place = PLACE.search(error)
        if not place and error.startswith("error MR0404"):
            continue  # a sum has no place
        if not place:
            yield f"{name}: the error has no line and column\n{error}"
            continue
        line, column = int(place.group(2)), int(place.group(3))
        if line > len(lines) or column > len(lines[line - 1]) + 1:
            yield f"{name}: {place.group(0).strip()} is outside the text"


def errors_of(said):
    return re.findall(r"(?ms)^error MR.*?(?=^error MR|\Z)", said)


def end_of_value(line, at):
    """Where the value that begins at `at` ends: in a flow map before a comma or bracket that is not its own."""
    if sum(line[:at].count(c) for c in "[{") == sum(line[:at].count(c) for c in "]}"):
        return len(line.rstrip())
    depth, quote = 0, ""
    for i in range(at, len(line)):
        c = line[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "[{":
            depth += 1
        elif c in "]}" and depth > 0:
            depth -= 1
        elif depth == 0 and (c in "]}," or line[i:i + 2] == " #"):
            return len(line[:i].rstrip())
    return len(line.rstrip())


def edited_line(line, column, edit):
    """A one-line pipeline: the word at the place gives way to the edit; None where that is no word."""
    if edit.startswith("'") and edit.endswith("'"):  # the whole line, as a shell takes it
        return shlex.split(edit)[0]
    words_of_a_handler = re.match(r"[\w.]+( [\w.]+=\S+)+$", edit) or re.match(r"[\w.]+=\S+( [\w.]+=\S+)*$", edit)
    if " " in edit and not edit.startswith("! ") and not words_of_a_handler:
        return None
    begin = line.rfind(" ", 0, column - 1) + 1
    end = line.find(" ", begin)
    return line[:begin] + edit + ("" if end < 0 else line[end:])


def edited_file(text, code, line_at, column, edit):
    """A pipeline file with the edit made; None where it is no key, no value and no indentation."""
    lines = text.split("\n")
    line, at = lines[line_at - 1], column - 1
    if between := re.match(r"(\w+: \{ .* \}), and (\S+) in the place of (\S+)$", edit):
        handler, name, replaced = between.groups()
        if not line[at:].startswith(replaced):
            return None
        lines[line_at - 1] = line[:at] + name + line[at + len(replaced):]
        lines.insert(lines.index("handlers:") + 1, "  " + handler)
        return "\n".join(lines)
    if indent := re.match(r"(\d+) spaces? before '", edit):
        lines[line_at - 1] = " " * int(indent.group(1)) + line.lstrip(" ")
        return "\n".join(lines)
    pair = re.match(r"([\w.-]+): (\S.*)$", edit)
    is_value_of_it = pair and re.search(rf"\b{pair.group(1)}:\s*$", line[:at])  # the clock of a set
    is_at_it = pair and line.startswith(" " * at + pair.group(1) + ":")
    if pair and pair.group(1) in TOP_KEYS and not is_value_of_it and not is_at_it:
        old = [i for i, one in enumerate(lines) if one.startswith(pair.group(1) + ":")]
        lines[old[0] if old else 0:(old[0] if old else -1) + 1] = [edit]
        return "\n".join(lines)
    if pair and code in ADDS_A_KEY:
        brace = line.find("{", at)
        if brace < 0:
            return None
        if old := re.search(rf"\b{pair.group(1)}: *[^,}}]+?(?= *[,}}])", line[brace:]):
            lines[line_at - 1] = line[:brace] + line[brace:].replace(old.group(0), edit)
            return "\n".join(lines)
        lines[line_at - 1] = f"{line[:brace + 1]} {edit},{line[brace + 1:]}"
        return "\n".join(lines)
    if pair and pair.group(1) in ("input", "inputs"):  # the place may be within it
        at = max([found.start() for found in re.finditer(r"\binputs?\s*:", line[:at + 1])], default=at)
    key = re.match(r"[\w.<-]+\s*:\s*", line[at:])
    if pair and not key:  # the place is that of a value: its key goes with it
        before = re.search(r"[\w.-]+\s*:[^:]*$", line[:at])
        if not before:
            return None
        at, key = before.start(), re.match(r"[\w.-]+\s*:\s*", line[before.start():])
    if not pair and (" " in edit and edit[0] not in "[{\"'"):
        return None
    begin = at + (key.end() if pair else 0)
    lines[line_at - 1] = line[:at] + edit + line[end_of_value(line, begin):]
    return "\n".join(lines)


def edited(text, is_line, error):
    """The pipeline with the edit that the error suggests; None where no rule makes it. Options are left to the command."""
    edit, place = re.search(r"(?m)^  try: (.*)$", error), PLACE.search(error)
    if not edit or not place or "…" in edit.group(1) or edit.group(1).startswith(("--", "`")):
        return None
    line, column = int(place.group(2)), int(place.group(3))
    if is_line:
        return edited_line(text, column, edit.group(1)) if line == 1 else None
    return edited_file(text, error[6:12], line, column, edit.group(1))


def follow(millrace, pipeline):
    """Makes the suggested edits, one after another: (how many, what the last pipeline is told, a complaint or "")."""
    is_line = pipeline.suffix == ".line"
    try:
        text = pipeline.read_bytes().decode("utf-8").rstrip("\n" if is_line else "")
    except UnicodeDecodeError:
        return 0, "", ""
    options = re.search(r"(?m)^# options: (.*)$", text)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / pipeline.name
        said, edits = check(millrace, pipeline).stderr, 0
        (pathlib.Path(folder) / "data").symlink_to(TESTS.parent / "examples" / "data")
        while edits < EDITS_MAX:
            made = ((error, edited(text, is_line, error)) for error in errors_of(said))
            error, better = next(((error, better) for error, better in made if better not in (None, text)), ("", ""))
            if not error:
                break
            text, edits = better, edits + 1
            if not is_line:
                file.write_text(text, encoding="utf-8")
            arguments = [text if is_line else file.name, *(options.group(1).split() if options else [])]
            said = ask(millrace, arguments, folder).stderr
            if not said.startswith("error MR") and said:
                return edits, said, f"{pipeline.name}: its edit leads to\n{text}\n{said}"
            if error.split("\n")[:2] in [one.split("\n")[:2] for one in errors_of(said)]:
                return edits, said, f"{pipeline.name}: its edit does not mend it\n{error}is followed by\n{text}\n{said}"
        return edits, said, ""


def main():
    update = "--update" in sys.argv[2:]
    alone = tempfile.TemporaryDirectory()
    millrace = shutil.copy(pathlib.Path(sys.argv[1]).resolve(), alone.name)
    found, told, count, accepted = [], set(), 0, 0
    for pipeline in pipelines_in(TEXTS) + pipelines_in(WRONG):
        result = check(millrace, pipeline)
        found += complaints(pipeline, result)
        told.add(re.sub(PLACE, "", result.stderr))
        edits, said, complaint = follow(millrace, pipeline)
        count += edits > 0
        if complaint:
            found.append(complaint)
        accepted += edits > 0 and not said
        if pipeline.parent == TEXTS:
            continue
        if differs := difference(pipeline.with_suffix(".txt"), result.stderr, update):
            found.append(differs)
    if len(told) < PIPELINES_MIN:
        found.append(f"{len(told)} different refusals, expected at least {PIPELINES_MIN}")
    if count < EDITED_MIN or accepted < ACCEPTED_MIN:
        found.append(f"the edits of {count} pipelines could be made, expected at least {EDITED_MIN}; {accepted} were "
                     f"accepted then, expected at least {ACCEPTED_MIN}")
    print("\n".join(found) if found else f"{len(told)} different wrong pipelines are refused in the right words; "
          f"the suggested edits of {count} were made, and {accepted} are accepted then")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
