#!/usr/bin/env python3
"""Compares what `millrace plan` prints for plans/*.yaml with the .txt of the same name, to the letter.

usage: plans.py MILLRACE [--update]

A line `# options: …` in a pipeline gives the command's options. A pipeline with a line `# nodes: edge gpu` is also planned
for each of these nodes, and NAME.edge.txt has the plan of the node edge.
"""
import json
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from transcript import difference  # noqa: E402: found by the line above

PLANS = pathlib.Path(__file__).resolve().parent / "plans"


def plan(millrace, pipeline, *more):
    options = re.search(r"(?m)^# options: (.*)$", pipeline.read_text(encoding="utf-8"))
    command = [millrace, "plan", pipeline.name, *(options.group(1).split() if options else []), *more]
    result = subprocess.run(command, cwd=PLANS, capture_output=True, text=True, timeout=60)
    return result.stdout + result.stderr


def nodes_of(pipeline):
    nodes = re.search(r"(?m)^# nodes: (.*)$", pipeline.read_text(encoding="utf-8"))
    return nodes.group(1).split() if nodes else []


def complaints_of_json(name, printed, text):
    """The contract of `plan --json`, and that it tells what the text tells."""
    made = json.loads(printed)
    for key in ("version", "handlers", "edges", "transfers", "segments", "memory", "latency_us"):
        if key not in made:
            yield f"{name}: --json lacks {key}"
            return
    for handler, said in made["handlers"].items():
        if handler not in made["segments"][said["segment"]]["handlers"]:
            yield f"{name}: --json puts {handler} into a segment that does not list it"
        if made["segments"][said["segment"]]["domain"] != said["domain"]:
            yield f"{name}: --json has two domains for {handler}"
    for transfer in made["transfers"]:
        keys = set(transfer) - {"one_by_one_us"}  # of a packed copy
        if keys != {"edge", "route", "bytes", "predicted_us", "reason"} or len(transfer["route"]) < 2:
            yield f"{name}: --json has an odd transfer {transfer}"
    if "streams" not in made and text.count("+ copy ") != len(made["transfers"]):  # a line may stand for many streams
        yield f"{name}: the text has other copies than --json"


def complaints_of_svg(name, svg):
    boxes = [box for box in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
             if box.get("class", "").startswith("box")]
    if not boxes:
        yield f"{name}: --svg draws no box"
    for one in boxes:
        left, top, width, height = (int(one.get(key)) for key in ("x", "y", "width", "height"))
        for other in boxes:
            if other is not one and left < int(other.get("x")) + int(other.get("width")) and int(other.get("x")) < left + width \
                    and top < int(other.get("y")) + int(other.get("height")) and int(other.get("y")) < top + height:
                yield f"{name}: --svg draws boxes over each other at {left}, {top}"


def complaints_of_dot(name, dot):
    nodes = set(re.findall(r"(?m)^    (step\d+) \[", dot))
    ends = {end for arrow in re.findall(r"(?m)^  (step\d+) -> (step\d+)", dot) for end in arrow}
    if not nodes or not ends <= nodes:
        yield f"{name}: --dot draws arrows to nodes that are not there: {ends - nodes}"


def main():
    millrace, update = str(pathlib.Path(sys.argv[1]).resolve()), "--update" in sys.argv[2:]
    found, pipelines = [], sorted(PLANS.glob("*.yaml"))

    def compare(text, golden):
        if differs := difference(golden, text, update):
            found.append(differs)

    for pipeline in pipelines:
        text = plan(millrace, pipeline)
        compare(text, pipeline.with_suffix(".txt"))
        for node in nodes_of(pipeline):
            compare(plan(millrace, pipeline, "--node", node), pipeline.with_suffix(f".{node}.txt"))
        if text.startswith("error"):
            continue
        found += complaints_of_json(pipeline.stem, plan(millrace, pipeline, "--json"), text)
        found += complaints_of_dot(pipeline.stem, plan(millrace, pipeline, "--dot"))
        found += complaints_of_svg(pipeline.stem, plan(millrace, pipeline, "--svg", "-"))
    if not pipelines:
        found.append(f"there are no pipelines in {PLANS}")
    print("\n".join(found) if found else f"{len(pipelines)} plans are printed as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
