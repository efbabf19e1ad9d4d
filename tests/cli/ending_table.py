"""The table of docs/guide/troubleshooting.md that says how runs end: each of its rows is asked for by a test."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGINS = "| how the run ends | exit code | `ok` |"
NO_REPORT = "no report"


def rows():
    """By the first cell: the exit codes, and `ok` as in the report."""
    lines = (ROOT / "docs/guide/troubleshooting.md").read_text().splitlines()
    found = {}
    for line in lines[lines.index(BEGINS) + 2:]:
        if not line.startswith("|"):
            break
        how, codes, ok = (cell.strip() for cell in line.strip("|").split("|"))
        found[how] = ([int(code) for code in codes.split(", ")], ok.strip("`"))
    return found


def ok_of(report):
    """As the table says it; the path of a report that may not be there."""
    if not report.exists() or report.stat().st_size == 0:
        return NO_REPORT
    return json.dumps(json.loads(report.read_text())["ok"])


def check(test, how, code, report, said):
    """The run ended as the row of this name says, and its error was told before its numbers."""
    codes, ok = rows()[how]
    test.assertIn(code if code >= 0 else 128 - code, codes, f"{how}\n{said}")
    test.assertEqual(ok_of(report), ok, f"{how}\n{said}")
    numbers = re.search(r"(?m)^\d+ ticks? in ", said)
    if numbers and "error MR" in said:
        test.assertLess(said.rindex("error MR"), numbers.start(), f"{how}\n{said}")
