#!/usr/bin/env python3
"""Holds pages to the commands that they show, by the rules that the README is held to.

usage: transcripts.py MILLRACE
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import readme_test  # noqa: E402: found by the line above

PAGES = ("docs/guide/clocks_and_policies.md",
         "docs/guide/getting_started.md",
         "docs/guide/how_the_plan_decides.md",
         "docs/guide/troubleshooting.md",
         "docs/reference/machine_file.md",
         "tests/cli/peers.md")


def main():
    (ROOT / "out").mkdir(exist_ok=True)  # where the commands of the guide write
    found, shown = [], 0
    for name in PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        found += [f"{name}: {complaint}"
                  for complaint in readme_test.complaints(page, pathlib.Path(sys.argv[1]).resolve().parent)]
        commands = sum(len(list(readme_test.commands(block))) for block in readme_test.blocks(page, "console"))
        if commands == 0:
            found.append(f"{name} shows no command")
        shown += commands
    print("\n".join(found) if found else f"{shown} commands print what the pages show")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
