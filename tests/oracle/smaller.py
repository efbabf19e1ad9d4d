"""Makes a failing pipeline smaller: leaves out handlers, inputs, ticks and keys as long as it fails in the same way."""
import copy
import time

# Not left out, since the pipeline would be another one without.
NEEDED_KEYS = ("type", "id", "clock", "inputs", "script", "rate", "seed")


def without_handler(document, name):
    made = copy.deepcopy(document)
    del made["handlers"][name]
    gone = {name}
    while gone:
        lost = gone.pop()
        for reader, keys in list(made["handlers"].items()):
            for port, edges in list(keys.get("inputs", {}).items()):
                keys["inputs"][port] = [edge for edge in edges if edge["from"].split(".")[0] != lost]
                if not keys["inputs"][port]:
                    del keys["inputs"][port]
            needs = keys["type"] not in ("oracle.source", "oracle.any", "oracle.watch")
            if reader in made["handlers"] and keys["type"] != "oracle.source":
                if (needs and "in" not in keys["inputs"]) or not keys["inputs"]:
                    del made["handlers"][reader]
                    gone.add(reader)
    return made


def keeps_sources(document, made):
    """Whether each clock that has handlers has sources as before: one without is another kind of clock."""
    clocks = lambda handlers: {keys.get("clock") for keys in handlers}
    sourced = lambda of: clocks(keys for keys in of["handlers"].values() if keys["type"] == "oracle.source")
    left = clocks(made["handlers"].values())
    return bool(sourced(made)) and sourced(document) & left <= sourced(made)


def without_edge(document, name, port, index):
    made = copy.deepcopy(document)
    edges = made["handlers"][name]["inputs"][port]
    del edges[index]
    if not edges:
        del made["handlers"][name]["inputs"][port]
    return made


def without_key(document, name, key):
    made = copy.deepcopy(document)
    del made["handlers"][name][key]
    return made


def with_words(document, name, words):
    made = copy.deepcopy(document)
    made["handlers"][name]["script"] = " ".join(words)
    return made


def without_window(document, clock):
    made = copy.deepcopy(document)
    (made["clocks"][clock] if "clocks" in made else made["clock"]).pop("in_flight")
    return made


def candidates(document):
    """Smaller pipelines, those first that leave out most."""
    for name in list(document["handlers"]):
        made = without_handler(document, name)
        if keeps_sources(document, made):
            yield made
    for name, keys in document["handlers"].items():
        words = keys.get("script", "").split()
        for count in (len(words) // 2, len(words) - 1):
            if 0 < count < len(words):
                yield with_words(document, name, words[:count])
    for name, keys in document["handlers"].items():
        for port, edges in keys.get("inputs", {}).items():
            for index in range(len(edges)):
                if port == "opt" and ("in" in keys["inputs"] or len(edges) > 1) or port == "in" and len(edges) > 1:
                    yield without_edge(document, name, port, index)
        for key in keys:
            if key not in NEEDED_KEYS:
                yield without_key(document, name, key)
    clocks = document.get("clocks") or {"main": document.get("clock", {})}
    for name, keys in clocks.items():
        if "in_flight" in keys:
            yield without_window(document, name)


def unused_clocks_left_out(document):
    if "clocks" not in document:
        return document
    made = copy.deepcopy(document)
    used = {keys.get("clock") for keys in made["handlers"].values()}
    made["clocks"] = {name: keys for name, keys in made["clocks"].items() if name in used}
    return made


def smallest(document, fails, until):
    """The smallest pipeline found by `until` (time.monotonic()) for which `fails` is true, as it is of `document`."""
    improved = True
    while improved:
        improved = False
        for smaller in candidates(document):
            if time.monotonic() > until:
                return document
            smaller = unused_clocks_left_out(smaller)
            if fails(smaller):
                document, improved = smaller, True
                break
    return document
