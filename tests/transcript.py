"""Compares what a program said with the transcript in the tree."""
import difflib


def difference(golden, said, update=False):
    """The lines that differ, "" if none does. `update`: what was said becomes the transcript."""
    if update:
        golden.write_text(said, encoding="utf-8")
    expected = golden.read_text(encoding="utf-8") if golden.exists() else ""
    return "".join(difflib.unified_diff(expected.splitlines(True), said.splitlines(True), golden.name, "what was said"))
