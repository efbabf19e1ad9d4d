#!/usr/bin/env python3
"""Keeps prose of documents within 120 columns: finds lines that are too long, and wraps pages that programs write."""
import re

COLUMNS_MAX = 120
WHOLE = re.compile(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+")  # a word; code and links are not cut


def prose_lines(page):
    """(number, line) of a Markdown page, without code, headings and rows of tables: these cannot go on in another line."""
    in_code = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith(("|", "#", "    ", "![")):
            yield number, line


def fill(line):
    """The line as lines of at most 120 columns; those after the first of a list item stand under its text."""
    indent = " " * len(re.match(r"\s*(?:(?:[-*]|\d+\.)\s+)?", line)[0])
    lines = [""]
    for word in WHOLE.findall(line):
        if not lines[-1].strip():
            lines[-1] = line[:len(line) - len(line.lstrip())] + word
        elif len(lines[-1]) + 1 + len(word) <= COLUMNS_MAX:
            lines[-1] += " " + word
        else:
            lines.append(indent + word)
    return lines


def wrapped(page):
    """The page with its long lines of prose filled; each is a paragraph, or an item of a list."""
    long = {number for number, line in prose_lines(page) if len(line) > COLUMNS_MAX}
    lines = [part for number, line in enumerate(page.split("\n"), 1) for part in (fill(line) if number in long else [line])]
    return "\n".join(lines)
