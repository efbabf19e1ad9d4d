#!/usr/bin/env python3
"""Checks the tree itself: what a reader relies on and a compiler does not see.

Long lines and long functions, markers of unfinished work, names that say nothing, files that do not say what they are
for, paths of one machine, folders that depend the wrong way, public headers that do not compile alone, plugins that
export more than their entry, simulators and benchmarks in what is installed, declarations that nobody uses or tests alone,
links that lead nowhere, headers that reach too many files, filters of ./dev that no test case passes, files of exec and plan of which nothing says where they
are tested, rooms that have grown into halls, and domains that are told apart by how they are spelt. Prints one line for
each complaint, `file:line: sentence`, and fails if there is one.
"""
import argparse
import concurrent.futures
import fnmatch
import functools
import os
import pathlib
import re
import subprocess
import sys

import links
import reach
import unused
from reach import INCLUDE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import prose  # noqa: E402: found by the line above

# A function that does not fit on a screen is not read as one thing.
FUNCTION_LINES_MAX = 80
# "file: function" → why this one may be longer.
LONG_FUNCTIONS_ALLOWED = {}

# A file holds one idea, and these folders have so many that a longer file holds several.
FOLDERS_OF_SHORT_FILES = ("runtime/plan", "runtime/exec")
LINES_MAX = {".h": 300, ".cpp": 400}
# Plugins include the headers of this folder by name. Its subfolders hold their parts.
PUBLIC_HEADERS = "runtime/include/millrace"
PUBLIC_LINES_MAX = 300
LONG_PUBLIC_HEADERS_ALLOWED = ("abi.h",)  # one table that is read as one page
# Standard headers that plugins got from these before they were split into parts, and may still rely on.
PROMISED_INCLUDES = {
    "handler.h": "concepts cstdint deque exception initializer_list limits memory new string string_view utility vector",
    "payload.h": "array bit cstddef cstdint cstring span stdexcept string string_view type_traits vector",
    "testing.h": "algorithm cstdlib cstring deque functional map memory mutex span stdexcept string utility vector",
    "check_handler.h": "array atomic bit cmath cstdint exception optional string thread utility vector",
}
# A domain's kind is in its record (plan/domain.h).
FOLDERS_OF_RECORDS = ("runtime/plan", "runtime/exec")
SPELLINGS = re.compile(r"\b(is_cuda|is_sim|domain == 0)\b")
# Whether bodies enqueue is a property of a step: one file asks the device (exec/build_steps.cpp).
ASKS_OF_DEVICES, ASKED_IN = re.compile(r"\benqueuing\(\)"), "runtime/exec/build_steps.cpp"
# A plan's revision and a stream's epoch are two numbers (decision 0097): their sum means neither.
SUM_OF_REVISION = re.compile(r"\b(?:revision|epoch\.number)\s*\+(?!\+)|(?<!\+)\+\s*(?:\w+(?:\.|->))*revision\b(?!\s*\()")
# ThreadSanitizer does not see fences (cmake/warnings.cmake): these order atomic words against each other and nothing else.
FENCE = re.compile(r"\batomic_thread_fence\b")
FILES_OF_FENCES = ("runtime/device/bells.h", "runtime/device/event_count.h", "runtime/net/system/reactor.cpp")

# Users get neither simulators nor benchmarks: file of the build → symbols that it may not define.
KEPT_OUT = {"libmillrace_net.a": re.compile(r"\bnet::(sim::|Process\b)"),
            "millrace": re.compile(r"\bmillrace::(bench|net::sim)::")}

CODE_FOLDERS = ("runtime", "handlers", "plugins", "examples", "tests")
CPP = {".h", ".cpp", ".cu", ".cuh"}
TEXT = CPP | {".c", ".py", ".sh", ".cmake", ".md", ".yaml", ".txt", ".json"}

# Which folder of runtime/ may include which others; all may include observe, and all the public headers.
EDGES = {
    "observe": set(),
    "device": {"observe"},
    "memory": {"device", "observe"},
    "batch": {"observe"},
    "plugin": {"observe"},
    "graph": {"plugin", "observe"},
    "plan": {"batch", "graph", "plugin", "memory", "device", "observe"},
    "exec": {"batch", "plan", "graph", "plugin", "memory", "device", "observe"},
    "net": {"device", "memory", "observe"},
    "fleet": {"net", "plan", "graph", "plugin", "memory", "device", "observe"},
    "embed": {"exec", "plan", "graph", "plugin", "memory", "device", "net", "fleet", "observe"},
    "node": {"embed", "exec", "plan", "graph", "plugin", "memory", "device", "net", "fleet", "observe"},
    "http": {"observe"},
    "serve": {"http", "embed", "exec", "plan", "graph", "plugin", "memory", "device", "net", "observe"},
    "compose": {"node", "embed", "exec", "plan", "graph", "plugin", "memory", "device", "net", "fleet", "observe"},
    "cli": {"compose", "serve", "http", "node", "embed", "exec", "plan", "graph", "plugin", "memory", "device", "net", "fleet", "observe"},
    "bench": {"cli", "compose", "batch", "embed", "exec", "plan", "graph", "plugin", "memory", "device", "net", "observe"},
}
# The registry holds the table of the built-in handlers, the CUDA module that of their kernels; benchmarks call a
# network's engine and what a slice computes by themselves.
INCLUDES_ALLOWED = {("plugin", "handlers/builtin.h"), ("device", "handlers/gpu/tables.h"), ("bench", "plugins/model/engine.h"),
                    ("bench", "plugins/volume/colour_maps.h"), ("bench", "plugins/volume/slice_painter.h"),
                    ("bench", "plugins/volume/painter.h"), ("bench", "plugins/volume/test_scene.h")}
# A plugin sees no other, but for the encoders and the crew of threads, which are libraries of their own without handlers,
# for the one header about FFmpeg's objects, and for the parser of NumPy's header.
PLUGINS_SHARE = {"plugins/viewer": ("plugins/codec/",), "plugins/codec": ("plugins/ffmpeg/",), "plugins/media": ("plugins/ffmpeg/",),
                 "plugins/codebook": ("plugins/crew/",), "plugins/volume": ("plugins/crew/", "handlers/tensor/npy.h")}

# The link's core takes bytes, time and random numbers as arguments, so that a simulator and a fuzzer run the same code.
FOLDERS_WITHOUT_A_SYSTEM = ("runtime/net", "tests/net/sim", "runtime/fleet", "runtime/batch", "runtime/batch/sim")
SYSTEM_HEADERS = re.compile(r"(boost|openssl|sys|netinet|arpa|net)/|(unistd|fcntl|poll|netdb|chrono|random|thread|mutex|"
                            r"condition_variable|future|atomic|ctime|time|fstream|filesystem)(\.h)?$")

# A comment begins with its subject: these words begin a clause, and the subject comes last or not at all.
CLAUSE_BEGINS = re.compile(r"^\s*//+ (What|Whether|Who|Whose|Whoever|Whatever|Of|Where|Which|Whichever)\b")
CLAUSE_TRAILS = re.compile(r"[;{,)] +// (what|whether|who|whose|of|where|which)\b")
FOLDERS_OF_PLAIN_WORDS = ("runtime/", "handlers/", "plugins/", "examples/")

# Spelled in two parts so that this file does not complain about itself.
MARKERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
VAGUE_NAMES = ("util", "utils", "common", "helper", "helpers", "manager")
VAGUE_TYPE = re.compile(r"\b(?:class|struct|namespace)\s+(\w*(?:[Uu]tils?|[Cc]ommon|[Hh]elpers?|[Mm]anager))\b")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|home|Users)/\w+/")


def files_of(source):
    """The text files of the tree that people wrote, in order."""
    found = [path for path in source.iterdir() if path.is_file() and (path.suffix in TEXT or path.name == "dev")]
    for folder in CODE_FOLDERS + ("cmake", "docs", ".ci"):
        for path in (source / folder).rglob("*"):
            inside_build = "build" in path.relative_to(source).parts or "__pycache__" in path.parts
            if path.is_file() and not inside_build and (path.suffix in TEXT or path.suffix == ""):
                found.append(path)
    return sorted(found)


# ---- one file ------------------------------------------------------------------------------------------------------


@functools.cache
def without_comments_and_strings(text):
    """C++ with comments and the contents of literals blanked; lines stay where they are."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\'',
                       re.DOTALL)
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


@functools.cache
def functions(text):
    """(name, first line, last line) of every function of a C++ file, by counting braces.

    A brace opens a function where what stands before it ends in a parameter list and is no control statement. What is
    nested in a function, lambdas too, belongs to it.
    """
    code = re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  without_comments_and_strings(text))
    stack, start, found = [], 0, []
    for position in (match.start() for match in re.finditer(r"[{};]", code)):
        if code[position] == "{":
            head = code[start:position]
            opens = not any(kind == "function" for kind, _, _ in stack) and is_function_head(head)
            name = re.search(r"([\w~:]+|operator\S+)\s*\(", head) if opens else None
            first = position - len(head.lstrip()) if opens else position
            stack.append(("function" if opens else "block", name.group(1) if name else "", first))
        elif code[position] == "}" and stack:
            kind, name, opened = stack.pop()
            if kind == "function":
                found.append((name, code.count("\n", 0, opened) + 1, code.count("\n", 0, position) + 1))
        start = position + 1
    return found


def is_function_head(head):
    head = re.sub(r"^template\s*<[^;{]*?>\s*(?=\w)", "", head.strip())
    if "(" not in head or re.match(r"(if|for|while|switch|catch|do|else|return|(inline\s+)?namespace|enum)\b", head):
        return False
    if re.match(r"(?:class|struct|union)\b[^()]*$", head):
        return False
    before_parameters = head[:head.index("(")]
    return "=" not in re.sub(r"operator\s*[=!<>+\-*/]*=", "", before_parameters)


def first_words(text):
    """The text of the comment that a file begins with, '' where there is none."""
    lines = text.splitlines()
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    block = "\n".join(lines[:12])
    match = (re.match(r"((?://[^\n]*\n?)+)", block) or re.match(r"/\*(.*?)(\*/|\Z)", block, re.DOTALL) or
             re.match(r"((?:#[^\n]*\n?)+)", block) or re.match(r'"""(.*?)("""|\Z)', block, re.DOTALL))
    return re.sub(r"\s+", " ", re.sub(r"(?m)^(//+|#+| \*)", "", match.group(1))).strip() if match else ""


def begins_with_sentence(text):
    words = first_words(text)
    return re.search(r"\w.{8,}?[.:…](\s|$)", words) is not None


def check_text(path, name):
    """Complaints about one file; `path` is where it is, `name` how it is called in complaints."""
    text = path.read_text(encoding="utf-8", errors="replace")  # some test inputs are broken on purpose
    is_code = path.suffix in CPP
    numbered = list(enumerate(text.splitlines(), 1))
    limited = numbered if is_code else prose.prose_lines(text) if path.suffix == ".md" else ()
    yield from (f"{name}:{number}: {len(line)} columns, at most {prose.COLUMNS_MAX}"
                for number, line in limited if len(line) > prose.COLUMNS_MAX)
    for number, line in numbered:
        marker = MARKERS.search(line)
        if marker:
            yield f"{name}:{number}: the marker {marker.group(1)}: do it, or write it down in docs/"
        if MACHINE_PATHS.search(line):
            yield f"{name}:{number}: a path of one machine"
        vague = VAGUE_TYPE.search(line) if is_code else None
        if vague:
            yield f"{name}:{number}: the name {vague.group(1)} does not say what it is"
    for part in pathlib.PurePath(name).parts:
        if any(word in VAGUE_NAMES for word in re.split(r"[_.\-]", part.lower())):
            yield f"{name}:1: the name {part} does not say what it is"
    speaks = is_code or path.suffix in (".c", ".py", ".sh", ".cmake") or path.name in ("dev", "run", "CMakeLists.txt")
    if speaks and not begins_with_sentence(text):
        yield f"{name}:1: a file begins with one sentence that says what it is for"
    if is_code:
        for function, first, last in functions(text):
            if last - first + 1 > FUNCTION_LINES_MAX and f"{name}: {function}" not in LONG_FUNCTIONS_ALLOWED:
                yield f"{name}:{first}: {function} has {last - first + 1} lines, at most {FUNCTION_LINES_MAX}"


def check_comments(path, name):
    """Comments that begin with a dependent clause; a comment's first line alone is looked at. Those of tests may trail so."""
    before = ""
    in_literal = False
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        begins = CLAUSE_BEGINS.match(line) if not before.lstrip().startswith("//") else None
        trails = CLAUSE_TRAILS.search(line) if name.startswith(FOLDERS_OF_PLAIN_WORDS) else None
        found = None if in_literal else begins or trails
        if found:
            yield f"{name}:{number}: a comment begins with its subject, not with '{found.group(1)}'"
        in_literal = (in_literal or 'R"' in line) and not re.search(r'\)\w*"', line)
        before = line


# ---- dependencies --------------------------------------------------------------------------------------------------

def check_system(path, name):
    """Complaints about headers of the system in a folder that has to do without one."""
    if pathlib.PurePath(name).parent.as_posix() not in FOLDERS_WITHOUT_A_SYSTEM:
        return
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        if match.group(1) == "<" and SYSTEM_HEADERS.match(match.group(2)):
            line = text.count("\n", 0, match.start(2)) + 1
            yield f"{name}:{line}: includes <{match.group(2)}>; the link's core knows no system, net/system does"


def check_includes(path, name):
    """Complaints about what one file of runtime/, handlers/ or plugins/ includes."""
    parts = pathlib.PurePath(name).parts
    text = path.read_text(encoding="utf-8", errors="replace")  # some test inputs are broken on purpose
    for match in INCLUDE.finditer(text):
        line, included = text.count("\n", 0, match.start(2)) + 1, match.group(2)
        head = included.split("/")[0]
        if head == "millrace" or match.group(1) == "<":
            continue
        in_tree = "/" in included and (head in EDGES or head in ("handlers", "plugins", "runtime"))
        if parts[:2] == ("runtime", "include"):
            allowed, who = False, "the public headers see only themselves"
        elif parts[0] == "runtime":
            own = parts[1]
            allowed = (head == own or head in EDGES.get(own, set()) or (own, included) in INCLUDES_ALLOWED or not in_tree)
            who = f"{own} may include {', '.join(sorted(EDGES.get(own, set()))) or 'nothing but itself'}"
        else:
            own = parts[0] if parts[0] == "handlers" else "/".join(parts[:2])
            allowed = (included.startswith(own + "/") or (path.parent / included).exists() or
                       included.startswith(PLUGINS_SHARE.get(own, ())))
            who = f"{own} sees <millrace/…> and its own folder"
        if not allowed:
            yield f"{name}:{line}: includes {included}; {who}"


# ---- numbers -------------------------------------------------------------------------------------------------------

# These read and write numbers and letters by the locale, which a host or a plugin may have set.
BY_LOCALE = re.compile(r"\b(strto(?:d|f|ld)|sto(?:d|f|ld)|atof|isalnum|isalpha|isupper|islower|tolower|toupper)\s*\(")
FLOAT_FORMAT = re.compile(r'printf\([^;]*?%[-+ #0-9]*(?:\.(?!0[aefg])[0-9*]+)?[aefgAEFG]\b')


def check_locale(path, name):
    """Complaints about functions that depend on the locale. The command and millrace-bench have the C locale's."""
    raw = path.read_text(encoding="utf-8", errors="replace")
    for match in BY_LOCALE.finditer(without_comments_and_strings(raw)):
        line = without_comments_and_strings(raw).count("\n", 0, match.start()) + 1
        yield f"{name}:{line}: {match.group(1)}() depends on the locale; millrace/read_number.h and nearest.h do not"
    for match in FLOAT_FORMAT.finditer(raw) if not name.startswith(("runtime/cli/", "runtime/bench/")) else ():
        line = raw.count("\n", 0, match.start()) + 1
        yield f"{name}:{line}: printf() writes this number by the locale; fmt and to_chars do not"


# ---- memory --------------------------------------------------------------------------------------------------------

# AddressSanitizer brings forms of operator new of its own, and memory of theirs must not meet a delete of ours. So all
# forms stand in one file, which whoever counts allocations links.
OPERATOR_NEW_AT = "runtime/cli/count_allocations.cpp"
OPERATOR_NEW = re.compile(r"(?m)^[^;=(]*\bvoid\s*\*\s*operator new(?:\[\])?\s*\(")


def check_operator_new(path, name):
    """Complaints about a second replacement of the global operator new."""
    text = without_comments_and_strings(path.read_text(encoding="utf-8", errors="replace"))
    for match in OPERATOR_NEW.finditer(text) if name != OPERATOR_NEW_AT else ():
        line = text.count("\n", 0, match.end()) + 1
        yield f"{name}:{line}: replaces operator new; link {OPERATOR_NEW_AT}, which has all of its forms"


# ---- rooms -----------------------------------------------------------------------------------------------------------


def check_rooms(path, name):
    """Complaints about one file's length, and about how it tells domains and devices apart."""
    folder, most = pathlib.PurePath(name).parent.as_posix(), LINES_MAX.get(path.suffix)
    text = path.read_text(encoding="utf-8", errors="replace")
    # Includes do not count: a file that names what it uses is no longer to read.
    lines = text.count("\n") - len(INCLUDE.findall(text))
    if folder in FOLDERS_OF_SHORT_FILES and most and lines > most:
        yield f"{name}:1: has {lines} lines without its includes, at most {most}"
    public = folder == PUBLIC_HEADERS or folder.startswith(PUBLIC_HEADERS + "/")
    if public and path.name not in LONG_PUBLIC_HEADERS_ALLOWED and text.count("\n") > PUBLIC_LINES_MAX:
        yield f"{name}:1: has {text.count(chr(10))} lines, at most {PUBLIC_LINES_MAX}"
    if folder in FOLDERS_OF_RECORDS:
        for match in SPELLINGS.finditer(text):
            yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(1)}: a domain's record says what it is"
    if name not in FILES_OF_FENCES and path.suffix in CPP and (match := FENCE.search(text)):
        line = text.count(chr(10), 0, match.start()) + 1
        yield f"{name}:{line}: a fence, which ThreadSanitizer does not see: order by the atomic words themselves"
    if name.startswith("runtime/") and path.suffix in CPP and (match := SUM_OF_REVISION.search(text)):
        line = text.count(chr(10), 0, match.start()) + 1
        yield f"{name}:{line}: adds to a plan's revision, which is no part of an epoch"
    if folder == "runtime/exec" and name != ASKED_IN and (match := ASKS_OF_DEVICES.search(text)):
        line = text.count(chr(10), 0, match.start()) + 1
        yield f"{name}:{line}: asks a device whether bodies enqueue there; StepRun::enqueuing says it"


# ---- what the compiler and the linker know ---------------------------------------------------------------------------


def check_public_headers(source, compiler):
    include = source / "runtime" / "include"

    def compiled(header, language):
        command = [compiler, *language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-H", "-I", str(include), "-"]
        return subprocess.run(command, input=f'#include "millrace/{header.name}"\n', capture_output=True, text=True)

    asked = [(header, ("-x", "c++", "-std=c++20")) for header in sorted((include / "millrace").glob("*.h"))]
    asked += [(header, ("-x", "c", "-std=c11")) for header, _ in asked if header.name == "abi.h"]  # the boundary is C
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (header, language), result in zip(asked, pool.map(compiled, *zip(*asked))):
            lines = result.stderr.splitlines()
            if result.returncode:
                cause = next((line for line in lines if "error:" in line), "?")
                yield f"{header.relative_to(source)}:1: does not compile alone as {language[1]}: {cause}"
                continue
            included = {line.rsplit("/", 1)[-1] for line in lines if re.match(r"\.+ ", line)}
            for missing in sorted(set(PROMISED_INCLUDES.get(header.name, "").split()) - included):
                yield f"{header.relative_to(source)}:1: includes <{missing}> no more, which plugins may have got from it"


def check_plugin_exports(build):
    for library in sorted((build / "plugins").glob("*.so")):
        result = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
        symbols = {line.split()[-1] for line in result.stdout.splitlines() if line.strip()}
        for symbol in sorted(symbols - {"millrace_plugin"}):
            yield f"plugins/{library.name}:1: exports {symbol}; a plugin exports millrace_plugin alone"
        if "millrace_plugin" not in symbols:
            yield f"plugins/{library.name}:1: does not export millrace_plugin"


def check_kept_out(build):
    """Complaints about code of tests and benchmarks in what is installed."""
    for name, kept_out in KEPT_OUT.items():
        if not (build / name).exists():
            yield f"{name}:1: was not built, so nothing says what it defines"
            continue
        result = subprocess.run(["nm", "-C", "--defined-only", str(build / name)], capture_output=True, text=True, check=True)
        symbols = sorted(line.split(maxsplit=2)[-1] for line in result.stdout.splitlines() if kept_out.search(line))
        if symbols:
            yield f"{name}:1: defines {symbols[0]} and {len(symbols) - 1} more, which are for tests and benchmarks alone"


def check_filters(source):
    """A filter that no test case passes runs nothing, and its part of ./dev would pass for ever."""
    tests = (path for path in sorted((source / "tests").rglob("*")) if path.suffix in CPP)
    titles = [title for path in tests for title in re.findall(r'TEST_CASE\w*\(\s*"([^"]*)"', path.read_text(encoding="utf-8"))]
    for number, line in enumerate((source / "dev").read_text(encoding="utf-8").splitlines(), 1):
        for filters in re.findall(r'-tce?="([^"]*)"', line):
            for pattern in filters.split(","):
                if not any(fnmatch.fnmatchcase(title, pattern) for title in titles):
                    yield f"dev:{number}: no test case is called {pattern}"


def check_tested(source):
    """A file of exec or plan has a test of its name, or a line in the README of its tests that says where it is tested."""
    for folder in ("exec", "plan"):
        tests = source / "tests" / folder
        page = tests / "README.md"
        rows = dict(re.findall(r"^\| `(\w+\.cpp)` \| (.*) \|$", page.read_text(encoding="utf-8"), re.M)) if page.exists() else {}
        files = {path.name for path in (source / "runtime" / folder).glob("*.cpp")}
        for name in sorted(files - set(rows)):
            if not (tests / name).exists():
                yield f"runtime/{folder}/{name}:1: has no test of its name and no line in tests/{folder}/README.md"
        for name, places in rows.items():
            if name not in files or (tests / name).exists():
                yield f"tests/{folder}/README.md:1: {name} needs no line"
            for place in re.findall(r"`([^`]+)`", places):
                if not (tests / place).exists():
                    yield f"tests/{folder}/README.md:1: there is no {place}"


def complaints(source, build=None, compiler=None):
    """All complaints about the tree at `source`; what needs a build or a compiler is left out without one."""
    for path in files_of(source):
        name = path.relative_to(source).as_posix()
        yield from check_text(path, name)
        if path.suffix in CPP:
            yield from check_comments(path, name)
        if path.suffix in CPP and name.split("/")[0] in ("runtime", "handlers", "plugins"):
            yield from check_includes(path, name)
            yield from check_locale(path, name)
        if path.suffix in CPP:
            yield from check_system(path, name)
            yield from check_operator_new(path, name)
        yield from check_rooms(path, name)
    yield from check_tested(source)
    yield from links.check(source, files_of(source))
    yield from reach.check(source)
    yield from unused.check(source, files_of(source), without_comments_and_strings, functions, is_function_head)
    if (source / "dev").exists():
        yield from check_filters(source)
    if compiler:
        yield from check_public_headers(source, compiler)
    if build:
        yield from check_plugin_exports(build)
        yield from check_kept_out(build)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    found = list(complaints(arguments.source.resolve(), arguments.build, arguments.compiler))
    print("\n".join(found) if found else "the tree is tidy")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
