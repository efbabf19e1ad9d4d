#!/usr/bin/env python3
"""Holds docs/guide/getting_started.md to what it shows, by the rules that the README is held to.

usage: transcripts.py MILLRACE
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import readme_test  # noqa: E402: found by the line above


def main():
    guide = (ROOT / "docs" / "guide" / "getting_started.md").read_text(encoding="utf-8")
    (ROOT / "out").mkdir(exist_ok=True)  # where the commands of the guide write
    found = list(readme_test.complaints(guide, pathlib.Path(sys.argv[1]).resolve().parent))
    commands = sum(len(list(readme_test.commands(block))) for block in readme_test.blocks(guide, "console"))
    if commands == 0:
        found.append("the guide shows no command")
    print("\n".join(found) if found else f"{commands} commands print what the guide shows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
