#!/usr/bin/env python3
"""Writes millrace's manual page from what `millrace --help`, and --help of each command, print.

usage: man_page.py MILLRACE OUTPUT
"""
import pathlib
import re
import subprocess
import sys


def printed(millrace, *arguments):
    return subprocess.run([millrace, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


def sections(text):
    """(first words, usage, {heading: [(term, explanation)]}) of a help text, whose terms and explanations are columns."""
    about, usage, found, heading = "", "", {}, ""
    for line in text.splitlines():
        if match := re.fullmatch(r"(\w[\w ]*):", line):
            heading = match[1]
            found[heading] = []
        elif match := re.match(r"Usage: (.*)", line):
            usage = match[1]
        elif match := re.fullmatch(r"  (\S.*?)(?:  +(\S.*))?", line):
            found[heading].append((match[1], match[2] or ""))
        elif line.strip() and heading:  # an explanation below a term that is longer than its column
            term, said = found[heading][-1]
            found[heading][-1] = (term, f"{said} {line.strip()}".strip())
        elif line.strip():
            about = line.strip()
    return about, usage, found


def roff(text):
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in escaped)
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def terms(pairs):
    for term, said in pairs:
        yield f".TP\n.B {roff(term)}\n{roff(said)}"


def page(millrace):
    version = printed(millrace, "--version").split()[1]
    about, usage, found = sections(printed(millrace, "--help"))
    yield f'.TH MILLRACE 1 "" "millrace {version}" "User Commands"'
    yield f".SH NAME\nmillrace \\- {roff(about)}\n.SH SYNOPSIS\n.B {roff(usage)}"
    yield ".SH OPTIONS"
    yield from terms(found["Options"])
    yield ".SH COMMANDS"
    for command, _ in found["Subcommands"]:
        said, usage, parts = sections(printed(millrace, command, "--help"))
        yield f".SS {roff(usage)}\n{roff(said)}"
        for heading, pairs in parts.items():
            yield from terms(pair for pair in pairs if heading != "Options" or not pair[0].startswith("-h,"))
    yield ".SH SEE ALSO\n.B millrace inspect TYPE\ndescribes a handler type,\n.B millrace explain CODE\nan error."


def main():
    millrace, output = sys.argv[1:]
    pathlib.Path(output).write_text("\n".join(page(millrace)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
