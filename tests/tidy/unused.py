"""Finds what a header of runtime/ declares and nobody uses, and functions that tests alone use.

A name counts as used where it stands in any code of the tree but in a declaration or definition of that name. The check is
textual: a name that something else has too passes. Public headers are for authors outside of the tree, so that there a
mention in the documents counts as well, and tests may be the only users.
"""
import collections
import re

NAME = r"[A-Za-z_]\w*"
# Lists every constant and field of the ABI, and uses none.
LISTS_THE_ABI = "tests/plugin/abi_golden.cpp"
NO_NAMES = {"operator", "default", "delete", "const", "noexcept", "override", "final", "public", "private", "protected"}
# name → why nothing in the tree need use it.
UNUSED_ALLOWED = {
    "process_items": "the ABI's room for batches; null for now",
    "reserved_too": "padding of the ABI",
    "value_type": "what std::vector asks of an allocator",
    "deallocate": "what std::vector asks of an allocator",
}
# name → why tests alone use it.
TESTS_ALONE_ALLOWED = {
    "bytes_allocated": "what a device has given out; only a test can ask whether all of it came back",
    "cipher": "what was agreed with the peer; only a test can ask it of both ends",
    "cut_all": "of the network simulator, which is for tests",
    "run_for": "of the network simulator, which is for tests",
    "value_bytes": "of the network simulator, which is for tests",
    "measured_curve": "batch/sim calls it in a list of members, which reads as a definition",
    "is_connected": "the state of a session; its users act on events",
    "json_schema": "docs/reference/pipeline.schema.json is made and checked by a test",
    "least_sum": "the exact answer that a test compares the minimum cut with",
    "parse_file": "load() for what is known to be a path",
    "turned_away": "a counter of the door; only a test can ask how many it turned away",
}


def without_preprocessor(code):
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: re.sub(r"[^\n]", " ", match.group(0)), code)


def at_depth_0(head):
    """The head of a declaration without what is between brackets of any kind."""
    kept, depth = [], 0
    for at, sign in enumerate(head):
        if sign == ">" and head[at - 1:at] == "-":  # an arrow
            sign = " "
        depth -= sign in ")]>" and depth > 0
        if depth == 0:
            kept.append(sign)
        depth += sign in "([<"
    return "".join(kept)


def names_in(head):
    """The names that a declaration without its body gives, [] where it gives none."""
    head = re.sub(r"\b(alignas|__attribute__|requires|explicit)\s*\((?:[^()]|\([^()]*\))*\)|\[\[.*?\]\]", " ", head,
                  flags=re.DOTALL)
    head = re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", head)
    head = re.sub(r"^\s*template\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>", "", head).strip()
    if re.match(r"(friend|static_assert|extern\s*$|namespace|return|using\s+namespace)\b", head) or not head:
        return []
    alias = re.match(rf"using\s+({NAME})\s*=", head)
    if alias or head.startswith("using"):
        return [alias.group(1)] if alias else []
    pointer = re.match(rf"[^()]*\(\s*\*\s*(?:const\s+)?({NAME})\s*\)\s*\(", head)
    if pointer:
        return [pointer.group(1)]
    found = []
    for part in at_depth_0(head).split(","):
        part = part.split("=")[0]
        function = re.search(rf"({NAME})\s*\(", part)
        last = re.search(rf"({NAME})\s*(?:\[|:(?!:)|$)", part.strip())
        match = function or last
        if "operator" in part or "~" in part or not match:
            break
        found.append(match.group(1))
        if function:
            break  # what follows is a constructor's list
    return [name for name in found if name not in NO_NAMES]


def type_name(head):
    """(kind, name) of a type whose body follows, None where none does."""
    head = re.sub(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]", " ", head)
    match = re.search(rf"\b(enum(?:\s+class)?|class|struct|union)\s*({NAME})?(?:\s+final)?\s*(?::[^:].*)?$", head.strip(),
                      re.DOTALL)
    return (match.group(1), match.group(2)) if match and "(" not in at_depth_0(head) else None


def declarations(code, is_function_head):
    """(name, position, has a body) of all that a header declares outside of functions, from code without comments."""
    code = without_preprocessor(code)
    scopes, start = [], 0
    for position in (match.start() for match in re.finditer(r"[{};]", code)):
        sign, head = code[position], code[start:position]
        at = position - len(head.lstrip())
        inside = scopes[-1] if scopes else "scope"
        if sign == "}" and scopes:
            if scopes.pop() == "enum":
                yield from ((match.group(1), start + match.start(1), False)
                            for match in re.finditer(rf"(?:^|,)\s*({NAME})", at_depth_0(head)))
        elif sign == "{" and inside != "scope":
            scopes.append("skipped")
        elif sign == "{":
            kind = type_name(head)
            opens = re.search(rf"\bnamespace\b|\bextern\s*$", at_depth_0(head)) or 'extern "' in head
            scopes.append("enum" if kind and kind[0].startswith("enum") else "scope" if kind or opens else "skipped")
            if kind and kind[1]:
                yield kind[1], at, False
            elif not kind and not opens:
                yield from ((name, at, is_function_head(head)) for name in names_in(head.lstrip(" \n,")))
        elif sign == ";" and inside == "scope":
            yield from ((name, at, False) for name in names_in(head.lstrip(" \n,")))
        start = position + 1


BEFORE_VALUE = re.compile(r"[^;{}=]*")
CALLED = re.compile(rf"\b({NAME})\s*\(")


def is_function(what, code, position):
    """True if the declaration at the position is one of a function of that name."""
    head = BEFORE_VALUE.match(code, position)[0]
    return any(word[1] == what for word in CALLED.finditer(head))


def check(source, files, strip, functions, is_function_head):
    """Complaints; `files` are those of the tree, the functions those of tidy.py."""
    words, defined, declared = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    of_tests, defined_by_tests = collections.Counter(), collections.Counter()
    documented, of_functions = set(), set()
    for path in files:
        name = path.relative_to(source).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".md":
            documented.update(re.findall(NAME, text))
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh", ".c") or name == LISTS_THE_ABI:
            continue
        code = strip(text)
        found, made = re.findall(NAME, code), [function.split("::")[-1] for function, _, _ in functions(text)]
        words.update(found)
        defined.update(made)
        if name.startswith("tests/"):
            of_tests.update(found)
            defined_by_tests.update(made)
        if path.suffix in (".h", ".cuh"):
            for what, position, has_body in declarations(code, is_function_head):
                declared[what].append((name, code.count("\n", 0, position) + 1, has_body))
                if has_body or is_function(what, code, position):
                    of_functions.add(what)
    for what, places in sorted(declared.items()):
        name, line, _ = places[0]
        public = name.startswith("runtime/include/")
        if not name.startswith("runtime/") or what in UNUSED_ALLOWED or (public and what in documented):
            continue
        declarations_of = sum(not has_body for path, _, has_body in places)
        shipped = sum(not has_body for path, _, has_body in places if not path.startswith("tests/"))
        if words[what] <= declarations_of + defined[what]:
            yield f"{name}:{line}: nobody uses {what}"
        elif (what in of_functions and not public and what not in TESTS_ALONE_ALLOWED and
              words[what] - of_tests[what] <= shipped + defined[what] - defined_by_tests[what]):
            yield f"{name}:{line}: tests alone use {what}: delete it, or move it to them"
