#!/usr/bin/env python3
"""Writes the table of docs/reference/rules.md: for each rule of the semantics, the tests that show it. What follows the
first heading of the second level is written by hand and stays.

A test cites a rule in its name: TEST_CASE("2.3: latest ignores empties"), or [2.3] anywhere in it; several are given
as "1.5, 2.1: …". B1 to B17 are the rules of streams and batches. `--check` changes nothing and fails where the table
is out of date or a test cites a rule that is not in the list.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "reference" / "rules.md"

# The rules that the runtime keeps today, with the subject of each.
RULES = {
    "1.1": "identity of a tick", "1.2": "modes of a clock", "1.3": "several clocks in one graph",
    "1.4": "sources at their beat", "1.5": "the window of ticks in flight", "1.6": "decoupled handlers",
    "2.1": "every slot settles", "2.2": "when a handler fires", "2.3": "policies of an edge",
    "2.4": "pending and batched firings", "2.5": "outputs do not depend on threads", "2.6": "errors of a handler",
    "2.7": "live parameters", "2.8": "the end, and counted drops",
    "3.1": "shapes and extents", "3.2": "rings of slots", "3.3": "life of a view", "3.4": "one copy a domain",
    "3.5": "writing in place", "3.6": "copy and access", "3.7": "lasting values",
    "4.1": "issued and done", "4.2": "fences", "4.3": "streams belong to the runtime", "4.4": "bodies never wait",
    "4.5": "capture and replay", "4.6": "large and small copies", "4.7": "scratch memory and state",
    "4.8": "a new plan while running", "4.9": "errors of a device", "4.10": "the simulated device",
    "4.11": "device time is measured by events", "4.12": "an absent list in a launch",
    "4.13": "a loop inside a tick", "4.14": "a handler starts on its device",
    "4.15": "objects of the run", "4.16": "pages of handlers",
    "5.1": "facts, then pure passes", "5.2": "cutting segments", "5.3": "feasible first", "5.4": "then latency",
    "5.5": "search for a placement", "5.6": "price and reason of every step",
    "7.2": "a clock's home", "7.3": "stages and far paces", "7.4": "a parcel for each tick", "7.5": "joins by index", "7.6": "room of a crossing",
    "7.7": "a crossing that is full", "7.9": "a node that is away", "7.10": "a node that comes back",
    "7.11": "ends and failures of several nodes", "7.12": "one time for all nodes", "7.13": "outputs do not depend on nodes",
    "7.14": "no loop over a link", "7.15": "live changes over nodes",
    "8.1": "passing a time, and queues between clocks", "8.2": "where a queue between clocks may block",
    "8.3": "windows of clocks that wait for each other", "8.4": "pending results and gaps",
    "8.5": "empty initial values", "8.6": "a queue holds values", "8.7": "calls that do not return", "8.8": "signals",
    "8.9": "media times rise", "8.10": "what a handler says is checked", "8.11": "a clock without sources",
    "8.12": "decouple before you drain",
    "B1": "a stream is a clock", "B2": "a group fires on items", "B3": "a firing is made once, of 1 to max items",
    "B4": "an item settles at its own tick", "B5": "a group sees every stream in order",
    "B6": "what one stream may have inside a group", "B7": "items go by deadline", "B8": "streams that are not waited for",
    "B9": "late items", "B10": "errors of a firing and of an item", "B11": "a failure stays in its stream",
    "B12": "what an item gives does not depend on others", "B13": "a group in real time", "B14": "items of several rows",
    "B15": "streams come and go", "B16": "live parameters of a group", "B17": "items and drops are counted by stream",
}

TEST_NAME = re.compile(r'\b(?:TEST_CASE|TEST_CASE_FIXTURE|TEST_CASE_TEMPLATE)\s*\((?:\s*\w[\w:]*\s*,)?\s*'
                       r'((?:"(?:[^"\\]|\\.)*"\s*)+)')
RULE = r"(?:\d\.\d+|B\d+)"
LEADING = re.compile(rf"\s*({RULE}(?:\s*(?:,|and)\s*{RULE})*)\s*:\s*")
BRACKETED = re.compile(rf"\[({RULE})\]\s*")


def names_of_tests(text):
    for match in TEST_NAME.finditer(text):
        yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(1))).replace('\\"', '"')


def rules_cited(name):
    leading = LEADING.match(name)
    cited = re.findall(RULE, leading.group(1)) if leading else []
    return list(dict.fromkeys(cited + BRACKETED.findall(name)))


def sentence(name):
    return BRACKETED.sub("", LEADING.sub("", name, count=1)).strip().replace("|", "\\|")


def collect(root):
    """Rule → [(file, sentence)], and the citations of rules that are not in the list."""
    tests, unknown = {rule: [] for rule in RULES}, []
    for path in sorted([*(root / "tests").rglob("*.cpp"), *(root / "tests").rglob("*.cu"),
                        *(root / "tests").rglob("*.h")]):
        for name in names_of_tests(path.read_text(encoding="utf-8")):
            for rule in rules_cited(name):
                where = path.relative_to(root).as_posix()
                if rule in tests:
                    tests[rule].append((where, sentence(name)))
                else:
                    unknown.append(f"{where}: the test “{name}” cites rule {rule}, which is not in tests/rules.py")
    return tests, unknown


def table(tests):
    lines = ["# Rules and their tests", "",
             "Written by `./dev format` from the names of the tests; a check fails where it is out of date. A rule without a",
             "test is a rule that nothing shows yet.", "", "| rule | subject | tests |", "|---|---|---|"]
    for rule, subject in RULES.items():
        cells = "<br>".join(f"{text} ([{path.removeprefix('tests/')}](../../{path}))" for path, text in tests[rule])
        lines.append(f"| {rule} | {subject} | {cells or '—'} |")
    shown = sum(1 for found in tests.values() if found)
    lines += ["", f"{shown} of {len(RULES)} rules are shown by a test.", ""]
    return "\n".join(lines)


def by_hand(page):
    start = page.find("\n## ")
    return page[start:] if start >= 0 else ""


def main():
    tests, unknown = collect(ROOT)
    for complaint in unknown:
        print(complaint, file=sys.stderr)
    page = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    text = table(tests) + by_hand(page)
    if "--check" in sys.argv[1:]:
        if page != text:
            print("docs/reference/rules.md is out of date; ./dev format writes it", file=sys.stderr)
            return 1
    else:
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        TABLE.write_text(text, encoding="utf-8")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
