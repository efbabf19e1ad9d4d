"""Random pipelines of the handlers of handlers.cpp: a seed gives a pipeline file, as a dict that JSON can hold.

Wide rather than large: one to three clocks with and without sources, every policy of an edge in both directions between
them, `delay` loops, handlers that owe results, silence, `every`, windows of one tick, and now and then what a plan has
to refuse. Where the rules leave something open (see rules.py), such a pipeline is not drawn.
"""
import random

from rules import Circles, Pipeline, Run

RATES = (10, 20, 25, 50, 100)
SINKS = ("oracle.sink", "oracle.watch")
NEEDS_NOTHING = ("oracle.any", "oracle.watch")
FULL = ("block", "drop_oldest", "drop_newest")


class Draw:
    """One pipeline in the making."""

    def __init__(self, seed, clock_count=None, leave_out=()):
        self.random = random.Random(seed)
        self.leave_out = leave_out
        self.clocks = {}
        self.handlers = {}
        self.outputs = []  # (handler, port, clock)
        self.apart = set()  # handlers that no reader of their clock takes the same tick of, so that they work behind
        self.clock_count = clock_count or self.random.choices((1, 2, 3), (40, 40, 20))[0]
        # Times that do not rise as a rate says leave a window that is counted by the rate too small: not together with
        # what waits for later times.
        self.odd_times = self.random.random() < 0.2
        self.keeps_rates = not self.odd_times

    def happens(self, probability):
        return self.random.random() < probability

    # ---- clocks and sources

    def add_clocks(self):
        names = ["x", "y", "z"][: self.clock_count]
        for number, name in enumerate(names):
            led = 20 if number and "led" not in self.leave_out else 0
            kind = self.random.choices(("source", "free", "led"), (55, 25, led))[0]
            rate = self.random.choice(RATES)
            clock = {"mode": "source" if kind == "source" else "free"}
            if kind != "source":
                clock["rate"] = rate
            if self.happens(0.35):
                clock["in_flight"] = self.random.choice((1, 1, 2, 3, 5))
            self.clocks[name] = clock
            if kind == "source":
                self.add_source(name, self.stamped_script(rate), rate)
            elif kind == "free":
                for _ in range(self.random.choices((1, 2, 3), (60, 30, 10))[0]):
                    self.add_source(name, self.plain_script(), 0)

    def add_source(self, clock, script, rate):
        name = f"s{len(self.handlers)}"
        self.handlers[name] = {"type": "oracle.source", "id": name, "clock": clock, "script": script}
        if rate:
            self.handlers[name]["rate"] = rate
        self.seed(name)
        self.outputs.append((name, "out", clock))

    def plain_script(self):
        return self.finish_script(["." if there else "-" for there in self.presence(self.random.randint(1, 40))])

    def presence(self, count):
        """Which of so many ticks have a value: mixed, or in stretches that are longer than most windows."""
        silence, there = self.random.choice((0, 0, 0.2, 0.5, None)), []
        while silence is None and len(there) < count:
            there += [not there[-1] if there else self.happens(0.5)] * self.random.randint(1, 12)
        return there[:count] or [not self.happens(silence) for _ in range(count)]

    def stamped_script(self, rate):
        if self.happens(0.3):
            return self.plain_script()
        period = 1000 / rate
        time = self.random.choice((0, 0, 0, 0.5, 3)) * period
        uneven = self.happens(0.4)
        self.keeps_rates &= not uneven
        words = []
        for _ in range(self.random.randint(1, 30)):
            words.append(f"{time:g}")
            step = self.random.choice((1, 1, 1, 1.5, 2, 7)) if uneven else 1
            if self.odd_times and self.happens(0.3):
                step = self.random.choice((-1, 0, 0, 0.25))
                words += ["-"] * self.happens(0.3)
            time = max(0, time + step * period)
        return self.finish_script(words)

    def finish_script(self, words):
        if self.happens(0.3):
            words = [word for given in words for word in (["?", given] if self.happens(0.2) else [given])]
        if self.happens(0.15) and words[-1] not in "-?":
            words[-1] += "!"
        return " ".join(words)

    # ---- handlers

    def seed(self, name):
        self.handlers[name]["seed"] = self.random.randrange(10**6)

    def add_handlers(self):
        for number in range(self.random.randint(2, 8)):
            clock = self.random.choice(list(self.clocks))
            kind = self.random.choices(
                ("oracle.mix", "oracle.stateless", "oracle.any", "oracle.late", "oracle.sink", "oracle.watch"),
                (45, 15, 12, 12, 10, 6))[0]  # fmt: skip
            if kind == "oracle.late":
                kind = "oracle.mix" if "late" in self.leave_out else f"{kind}{self.random.choice((1, 2, 3))}"
            self.add_handler(f"h{number}", kind, clock)

    def add_handler(self, name, kind, clock):
        keys = {"type": kind, "id": name, "clock": clock}
        if kind in NEEDS_NOTHING:
            inputs = {"opt": self.draw_edges(clock, self.random.randint(1, 3))}
        else:
            inputs = {"in": self.draw_edges(clock, self.random.choice((1, 1, 2, 3)))}
            if self.happens(0.3):
                inputs["opt"] = self.draw_edges(clock, self.random.choice((1, 1, 2)))
        keys["inputs"] = inputs
        if self.happens(0.2) and "every" not in self.leave_out:
            keys["every"] = self.random.choice((2, 2, 3, 5))
        if self.happens(0.15):
            keys["spin"] = self.random.choice((50, 200))
        self.handlers[name] = keys
        self.seed(name)
        if kind in SINKS:
            return
        if self.happens(0.35):
            keys["silent"] = self.random.choice((20, 50, 80))
        if self.happens(0.4 if kind.startswith("oracle.late") else 0.15):
            self.apart.add(name)
        self.outputs.append((name, "out", clock))
        if not kind.startswith("oracle.late") and self.happens(0.4):
            keys["aux_silent"] = self.random.choice((0, 30, 70))
            self.outputs.append((name, "aux", clock))

    def draw_edges(self, clock, count):
        edges = []
        for _ in range(count):
            # Near ones more often, so that chains become long; a clock of its own as often as another.
            near = [output for output in self.outputs if output[2] == clock] or self.outputs
            handler, port, writer = self.random.choice((near if self.happens(0.6) else self.outputs)[-6:])
            keys = {"from": f"{handler}.{port}"}
            keys.update(self.policy_within(handler in self.apart) if writer == clock else self.policy_between())
            edges.append(keys)
        return edges

    def policy_within(self, apart):
        weights = (0, 70, 30, 0) if apart else (60, 16, 12, 12)
        policy = self.random.choices(("sync", "latest", "queue", "delay"), weights)[0]
        if policy == "latest":
            keys = {"policy": "latest"}
            if self.happens(0.4):
                keys["lag"] = self.random.choice((1, 2, 3))
            return keys | ({"initial": "empty"} if self.happens(0.4) else {})
        if policy == "queue":
            return {"policy": "queue", "depth": self.random.choice((1, 2, 4, 8)), "full": self.random.choice(FULL)}
        return {"delay": self.random.choice((1, 1, 2, 3)), "initial": "empty"} if policy == "delay" else {}

    def policy_between(self):
        aligns = 0 if self.odd_times or "align" in self.leave_out else 20
        policy = self.random.choices(("latest", "queue", "align"), (45, 35, aligns))[0]
        if policy == "latest":
            lag = {"lag": 1} if self.happens(0.01) else {}
            return {"policy": "latest"} | lag | ({"initial": "empty"} if self.happens(0.5) else {})
        if policy == "queue":
            return {"policy": "queue", "depth": self.random.choice((1, 1, 2, 3, 8)), "full": self.random.choice(FULL)}
        return {"policy": "align", "within": f"{self.random.choice((1, 5, 12, 20, 40, 75, 150))}ms"}

    def add_sinks(self):
        for clock in self.clocks:
            own = [output for output in self.outputs if output[2] == clock]
            if own and self.happens(0.6):
                chosen = self.random.sample(own, min(len(own), self.random.randint(1, 3)))
                self.handlers[f"k{clock}"] = {
                    "type": "oracle.watch", "id": f"k{clock}", "clock": clock,
                    "inputs": {"opt": [self.shown(handler, port) for handler, port, _ in chosen]},
                }  # fmt: skip

    def shown(self, handler, port):
        return {"from": f"{handler}.{port}"} | ({"policy": "latest"} if handler in self.apart else {})

    def add_loops(self):
        """Edges with `delay` against the direction: to a handler from one that depends on it. The delay is longer than
        what is owed."""
        for name, keys in self.handlers.items():
            if keys["type"] in SINKS or keys["type"] == "oracle.source" or not self.happens(0.12):
                continue
            later = [output for output in self.outputs if output[2] == keys["clock"] and output[0] in self.after(name)]
            if not later:
                continue
            handler, port, _ = self.random.choice(later)
            delay = Pipeline(self.with_clocks()).owed_ticks(keys["clock"]) + self.random.choice((1, 1, 2))
            edge = {"from": f"{handler}.{port}", "delay": delay, "initial": "empty"}
            required = "in" in keys["inputs"] and self.happens(0.5)
            keys["inputs"].setdefault("in" if required else "opt", []).append(edge)

    def after(self, name):
        """The handlers whose results a loop to this one may take: none that are from the future, or, between clocks,
        late."""
        readers = {}
        for reader, keys in self.handlers.items():
            for edge in (edge for edges in keys.get("inputs", {}).values() for edge in edges):
                readers.setdefault(edge["from"].split(".")[0], []).append((reader, edge))
        found, waiting = set(), [name]
        while waiting:
            here = waiting.pop()
            if self.handlers[here]["type"].startswith("oracle.late") and len(self.clocks) > 1:
                return set()
            if here in found:
                continue
            found.add(here)
            for reader, edge in readers.get(here, []):
                if edge.get("policy") == "align":
                    return set()
                waiting.append(reader)
        return found

    # ---- what makes it a pipeline that the rules speak of

    def document(self):
        paced = {keys["clock"] for keys in self.handlers.values()}
        clocks = {name: keys for name, keys in self.clocks.items() if name in paced}
        if len(clocks) > 1:
            return {"version": 1, "clocks": clocks, "handlers": self.handlers}
        (clock,) = clocks.values()
        handlers = {n: {k: v for k, v in keys.items() if k != "clock"} for n, keys in self.handlers.items()}
        return {"version": 1, "clock": clock, "handlers": handlers}

    def settle_optional_queues(self):
        """An optional input by `queue` within its clock stands beside a required input of the same tick (R3)."""
        pipeline = Pipeline(self.with_clocks())
        for name, handler in pipeline.handlers.items():
            same_tick = [e for e in handler.edges if e.policy in ("sync", "queue") and not e.between_clocks]
            if any(edge.required and not edge.delay for edge in same_tick) or handler.type == "oracle.source":
                continue
            queues_alone = same_tick == handler.edges and all(edge.policy == "queue" for edge in same_tick)
            if handler.type == "oracle.watch" and queues_alone:
                continue
            optional = [edge for edge in handler.edges if not edge.required]
            for keys, edge in zip(self.handlers[name]["inputs"].get("opt", []), optional):
                if edge.policy == "queue" and not edge.between_clocks:
                    for key in ("policy", "depth", "full"):
                        del keys[key]

    def settle_queues(self):
        """Queues within a clock hold what may be owed; those between clocks mostly do not block on a circle."""
        pipeline = Pipeline(self.with_clocks())
        circles = Circles(pipeline)
        refusal = self.happens(0.06)
        for name, handler in pipeline.handlers.items():
            inputs = self.handlers[name].get("inputs", {})
            owed = pipeline.owed_ticks(handler.clock)
            for keys, edge in zip(inputs.get("in", []) + inputs.get("opt", []), handler.edges):
                if edge.policy == "queue" and not edge.between_clocks:
                    keys["depth"] = max(keys["depth"], owed)
                elif edge.policy == "queue" and edge.full == "block" and not circles.is_bridge(edge) and not refusal:
                    keys["full"] = self.random.choice(FULL[1:])

    def settle_windows(self):
        """A fixed window on a circle that waits for later times is mostly left to the plan."""
        waits = any(edge.policy == "align" for edge in Pipeline(self.with_clocks()).edges())
        owes = any(keys["type"].startswith("oracle.late") for keys in self.handlers.values())
        if len(self.clocks) > 1 and (waits or owes) and self.happens(0.85):
            for clock in self.clocks.values():
                clock.pop("in_flight", None)

    def settle_late(self):
        """Late results of several clocks are counted by the rate (8.3): only where every source keeps its own (R13)."""
        if len(self.clocks) == 1 or self.keeps_rates:
            return
        for keys in self.handlers.values():
            if keys["type"].startswith("oracle.late"):
                keys["type"] = "oracle.mix"

    def leave_some(self):
        """Handlers that give nothing where they are drained, where it is foretold when that is."""
        if len(self.clocks) > 1:
            return
        pipeline = Pipeline(self.with_clocks())
        run = Run(pipeline)
        for name, handler in pipeline.handlers.items():
            if run.foretells_drains(handler) and not pipeline.depends_on_itself(name) and self.happens(0.3):
                self.handlers[name]["leaves"] = True

    def with_clocks(self):
        return {"version": 1, "clocks": self.clocks, "handlers": self.handlers}


def pipeline(seed, clock_count=None, leave_out=()):
    """The pipeline of a seed (any text)."""
    draw = Draw(seed, clock_count, leave_out)
    draw.add_clocks()
    draw.add_handlers()
    draw.settle_late()
    draw.add_loops()
    draw.settle_optional_queues()
    draw.settle_queues()
    draw.settle_windows()
    draw.add_sinks()
    draw.leave_some()
    return draw.document()
