"""Finds links of Markdown pages that lead nowhere: to a file that is not there, or to a heading that a page does not have."""
import re

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"#+\s+(.*)")
ELSEWHERE = re.compile(r"[a-z]+:")  # https:, mailto:


def lines_of(page):
    """(number, line) of all lines that are no code."""
    in_code = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchor_of(heading):
    """What GitHub calls a heading in a link."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors_of(page):
    found = set()
    for _, line in lines_of(page):
        heading = HEADING.match(line)
        if heading:
            name, again = anchor_of(heading.group(1)), 0
            while name + (f"-{again}" if again else "") in found:
                again += 1
            found.add(name + (f"-{again}" if again else ""))
    return found


def check(source, files):
    """Complaints about the pages among `files`, which are those of the tree."""
    anchors = {}
    for path in files:
        if path.suffix != ".md":
            continue
        for number, line in lines_of(path.read_text(encoding="utf-8", errors="replace")):
            for link in LINK.findall(line):
                file, _, anchor = link.partition("#")
                target = (path.parent / file) if file else path
                if ELSEWHERE.match(link):
                    continue
                where = f"{path.relative_to(source).as_posix()}:{number}"
                if not target.exists():
                    yield f"{where}: there is no {link}"
                elif anchor and target.suffix == ".md":
                    key = target.resolve()
                    if key not in anchors:
                        anchors[key] = anchors_of(target.read_text(encoding="utf-8", errors="replace"))
                    if anchor not in anchors[key]:
                        yield f"{where}: {file or path.name} has no heading #{anchor}"
