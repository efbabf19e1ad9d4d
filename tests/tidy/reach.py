"""Finds out how much the headers cost: a commit to a header compiles again each file that reaches it.

The sum is that of commits × files over the headers of header_weights.txt, whose commits stay as they were counted once. So
it changes only with who includes whom. Run by itself, this prints the costliest headers. See decision 0098.
"""
import collections
import pathlib
import posixpath
import re

FOLDERS = ("runtime", "handlers", "plugins", "tests", "examples")
INCLUDE = re.compile(r'(?m)^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Where the build looks for headers, beside the file's own folder.
SEARCHED = ("runtime", "runtime/include", "", "tests", "handlers", "plugins")
WEIGHTS = "tests/tidy/header_weights.txt"
SUM_MAX = 69_200  # raised with the number of files, of which each new one reaches some headers


def include_graph(source):
    """file → the own files that it includes."""
    text = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for folder in FOLDERS for path in (source / folder).rglob("*")
            if path.suffix in (".h", ".cuh", ".cpp", ".cu") and path.is_file()}

    def found(file, name):
        for folder in (posixpath.dirname(file),) + SEARCHED:
            path = posixpath.normpath(posixpath.join(folder, name))
            if path in text:
                return path
        return None

    return {file: {path for _, name in INCLUDE.findall(code) if (path := found(file, name))} for file, code in text.items()}


def files_that_reach(graph):
    """header → the number of compiled files that include it, by whatever way."""
    count = collections.Counter()
    for file in graph:
        if not file.endswith((".cpp", ".cu")):
            continue
        reached, left = set(), [file]
        while left:
            for header in graph[left.pop()] - reached:
                reached.add(header)
                left.append(header)
        count.update(reached)
    return count


def costs(source):
    """(cost, commits, files, header), the costliest first."""
    reach = files_that_reach(include_graph(source))
    rows = []
    for line in (source / WEIGHTS).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            commits, header = line.split()
            rows.append((int(commits) * reach[header], int(commits), reach[header], header))
    return sorted(rows, reverse=True)


def check(source, most=SUM_MAX):
    """Complaints: headers of the list that are not there, and a sum that has grown."""
    if not (source / WEIGHTS).exists():
        return
    rows = costs(source)
    for _, _, _, header in rows:
        if not (source / header).exists():
            yield f"{WEIGHTS}:1: there is no {header}: give its commits to the header that has its contents now"
    total = sum(row[0] for row in rows)
    if total > most:
        worst = ", ".join(f"{header} ({files} files)" for _, _, files, header in rows[:4])
        yield (f"{WEIGHTS}:1: headers cost {total:,} (tests/tidy/reach.py), at most {most:,}: a header includes more than it "
               f"needs; the costliest are {worst}")


if __name__ == "__main__":
    table = costs(pathlib.Path(__file__).resolve().parents[2])
    print(f"{sum(row[0] for row in table):,} = the sum of commits × files\n    cost  commits  files  header")
    for cost, commits, files, header in table[:30]:
        print(f"{cost:8,} {commits:8} {files:6}  {header}")
