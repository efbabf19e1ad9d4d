#!/usr/bin/env python3
"""Writes docs/reference/handlers.md and docs/reference/error_codes.md from what the command itself declares.

usage: reference.py MILLRACE [--check]

`--check` changes nothing and fails where a page is out of date. Handlers of a plugin that is not loaded here cannot be
looked at: their sections stay as they are.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import prose  # noqa: E402: found by the line above

REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference"
FOR_APPLICATIONS = ["app.sink", "app.source"]  # which the command describes and does not list
FAMILIES = {1: "How a command was used", 2: "The pipeline's text", 3: "The graph", 4: "The plan", 5: "Plugins",
            6: "A run", 7: "Devices", 8: "Nodes and links", 9: "Networks"}
WRITTEN = "Written by `tests/cli/reference.py` from what the command declares; a test fails where it is out of date."


def ask(millrace, *arguments):
    result = subprocess.run([millrace, *arguments], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(result.stdout)


def error_codes(millrace):
    codes = ask(millrace, "explain", "--json")["codes"]
    lines = ["# Error codes", "", WRITTEN, "`millrace explain CODE` prints one of them. A code keeps its meaning for good.", ""]
    family = 0
    for code in codes:
        if code["number"] // 100 != family:
            family = code["number"] // 100
            lines += [f"## {FAMILIES[family]}", ""]
        explanation = code["explanation"]
        if not re.search("exit code|that signal|nothing is ended", explanation):  # else it says how the process ends
            explanation += f" Exit code {code['exit_code']}."
        lines += [f"### {code['code']}: {code['title']}", "", explanation, ""]
    return prose.wrapped("\n".join(lines))


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def number(value):
    return f"{value:g}" if abs(value) < 1e6 else str(int(value))


def port_row(port, direction):
    words = [port["type"]]
    if port["formats"]:
        words.append(", ".join(port["formats"]))
    if port.get("dtypes"):
        words.append(", ".join(port["dtypes"]))
    if port.get("ranks"):
        ranks = " or ".join(str(rank) for rank in port["ranks"])
        words.append(ranks + (" dimension" if ranks == "1" else " dimensions"))
    if port.get("fields"):
        words.append("of " + ", ".join(port["fields"]))
    if port.get("optional"):
        words.append("optional")
    if port.get("list"):
        words.append("a list")
    if port.get("keeps"):
        words.append(f"keeps {port['keeps']}")
    if port["memory"] != "follows":
        words.append(f"in {port['memory']} memory")
    if port.get("like"):
        how = "may be written over" if port.get("in_place") else "may repeat" if port.get("forwards") else "like"
        words.append(f"{how} {port['like']}")
    return f"| {direction} | `{port['name']}` | {cell('; '.join(words))} | {cell(port['help'])} |"


def param_row(param):
    words = [param["type"]]
    if "min" in param and "max" in param:
        words.append(f"{number(param['min'])} to {number(param['max'])}")
    elif "min" in param:
        words.append(f"at least {number(param['min'])}")
    elif "max" in param:
        words.append(f"at most {number(param['max'])}")
    if param["choices"]:
        words.append(", ".join(param["choices"]))
    if param["unit"]:
        words.append(param["unit"])
    if param["live"]:
        words.append("live")
    default = "required" if param["required"] else f"`{json.dumps(param['default'], ensure_ascii=False)}`"
    return f"| `{param['name']}` | {cell('; '.join(words))} | {cell(default)} | {cell(param['help'])} |"


def section(info):
    origin = {"millrace": "built in", "app": "of the library, for applications"}.get(info["plugin"],
                                                                                   f"from the plugin {info['plugin']}")
    lines = [f"## {info['type']}", "", f"{info['summary']}. {origin[0].upper()}{origin[1:]}; bodies: {', '.join(info['bodies'])}; "
             f"{', '.join(info['traits'])}.", ""]
    if info["inputs"] or info["outputs"]:
        lines += ["| | port | carries | |", "|---|---|---|---|"]
        lines += [port_row(port, "in") for port in info["inputs"]] + [port_row(port, "out") for port in info["outputs"]]
        lines.append("")
    if info["parameters"]:
        lines += ["| parameter | takes | default | |", "|---|---|---|---|"]
        lines += [param_row(param) for param in info["parameters"]] + [""]
    manual = info["manual"].rstrip()
    if manual:
        lines += [manual, ""]
    return prose.wrapped("\n".join(lines))


def sections_of(page):
    return {part.split("\n", 1)[0]: "## " + part for part in re.split(r"(?m)^## ", page)[1:]}


def with_gpu_body(info, millrace, before):
    """A plugin has its GPU bodies only where it was built with nvcc, as the CUDA module is. Elsewhere the page's word counts."""
    has_nvcc = (pathlib.Path(millrace).parent / "millrace_cuda.so").exists()
    on_page = "bodies: cpu, cuda;" in " ".join(before.get(info["type"], "").split())
    brings_kernels = info["plugin"] not in ("millrace", "app") and not has_nvcc and on_page
    return {**info, "bodies": ["cpu", "cuda"]} if brings_kernels else info


def handlers(millrace, before):
    sections = sections_of(before)
    types = [handler["type"] for handler in ask(millrace, "handlers", "--json")["handlers"]] + FOR_APPLICATIONS
    loaded = {info["type"]: info for info in (ask(millrace, "inspect", kind, "--json") for kind in sorted(types))}
    plugins = {info["plugin"] for info in loaded.values()}
    # A section stays only where it is of a plugin that is not here: a type that is gone is gone.
    kept = {kind: text for kind, text in sections.items()
            if kind not in loaded and (found := re.search(r"From the plugin (\w+)", text)) and found.group(1) not in plugins}
    made = {kind: section(with_gpu_body(info, millrace, sections)) for kind, info in loaded.items()}
    parts = [text.rstrip("\n") + "\n" for _, text in sorted({**kept, **made}.items())]
    return "\n".join(["# Handlers", "", WRITTEN, "`millrace inspect TYPE` prints one of them.", "", *parts])


def main():
    millrace, check = str(pathlib.Path(sys.argv[1]).resolve()), "--check" in sys.argv[2:]
    stale = 0
    for name, make in (("error_codes.md", lambda before: error_codes(millrace)),
                       ("handlers.md", lambda before: handlers(millrace, before))):
        page = REFERENCE / name
        before = page.read_text(encoding="utf-8") if page.exists() else ""
        after = make(before)
        if check and before != after:
            print(f"docs/reference/{name} is out of date; tests/cli/reference.py MILLRACE writes it", file=sys.stderr)
            stale = 1
        if not check:
            page.write_text(after, encoding="utf-8")
    if check and not stale:
        print("the reference says what the command declares")
    return stale


if __name__ == "__main__":
    sys.exit(main())
