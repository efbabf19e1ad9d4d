"""The rules of ticks, edges and clocks, written a second time: what each handler of a pipeline reads at each tick.

It was written from the rules alone, without a look at the runtime or at the reference of its own tests, so that both
would have to misread a sentence in the same way. It knows no threads, windows or devices: a value is a function of
its tick, found by recursion. Handlers are those of handlers.cpp. `expect(pipeline)` says whether a pipeline has to be
refused, and else which firings there are. Rule numbers are those of the exact semantics (§8 are the amendments).

Where the rules say too little, these readings were taken:

R1  `align`: of two values equally near the earlier one; a distance of exactly `within` is near enough.
R2  `delay` of an empty slot into a required input, nothing before it: `initial` again.
R3  An optional input that arrives by `queue` within its clock: its reader, where all that it reads comes so, is called
    at values alone. (2.2 says that without a required input it fires at every tick.)
R4  `lag` counts the ticks of one clock, so on an edge between clocks it is refused; so are `align` within a clock, and
    `initial` where no earlier value is read.
R5  A tick of a `source` clock whose value has no time of its own, or that is empty, has index / rate, and is raised to
    last + 1 ns where that does not rise (8.9).
R6  The nth tick of a clock with a rate is at floor(n * 10^9 / rate) ns.
R7  8.11: the first tick of a clock without sources is always admitted. Sources lead also through clocks that have some
    themselves. A blocking queue "holds a value" where its writer still has one to give.
R8  8.4: `gap` is 1 + (`in_flight` - 1) / (handlers of the pace that may owe), whole, as decision 0007 has it; 1 where
    a handler of the clock reads what is owed by `delay` or `lag` (0041). Where `in_flight` is not fixed, when a handler
    is drained is not foretold; nor where it works behind, or between clocks, or where `gap` depends on who does.
R9  8.3: what may be owed before an edge is the sum over the longest path within the writer's clock. S × rate + 1 is
    exact; an `in_flight` between its floor and its ceiling, or one that handlers which owe decide, may go either way.
    What may be owed before the edge's reader, in the reader's clock, makes the writer wait for room: such a circle may
    be refused too.
R10 2.3: a cycle through `latest`, also with `lag`, or through another clock, is a cycle without `delay`: refused.
R11 2.3: a queue within a clock whose depth is below all that its clock's handlers may owe may be refused or not.
R12 8.6: "taken on a tick on which another required input is empty" is said of queues between clocks; within a clock
    such a value may count as delivered too, as it would by `sync`.
R13 8.3 counts what is owed as `max_pending` × `every` periods, but where the input of such a handler has gaps, or its
    ticks are further apart than its rate says, it comes later. So a circle on which something may be owed may be
    refused, and sources that do not keep their rate are not drawn together with what may be owed between clocks.
R14 A `delay` loop through `align` waits for its own future. The rules do not refuse it; it is not drawn.
R15 8.3: decision 0031 sums S over all circles that share clocks. A window that is long enough for each of them alone
    may be refused.
R16 8.12: what fires on ticks without a value, and what waits for a tick (by `latest`, `align`, `delay`, or of another
    clock), depends on more than the firings of the handler before it: such a group does not stand apart.
"""
import dataclasses
import fractions
import functools
import itertools

MASK = (1 << 64) - 1
VALUE_MASK = (1 << 48) - 1
EMPTY = "empty"  # a value of extent 0; None is an empty slot

UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}


def mix(a, b):
    """The function of the same name in handlers.cpp."""
    a ^= (b + 0x9E3779B97F4A7C15 + (a << 6) + (a >> 2)) & MASK
    a = (a * 0xFF51AFD7ED558CCD) & MASK
    return a ^ (a >> 29)


def happens(percent, seed, index):
    return (mix(seed & MASK, index) >> 13) % 100 < percent


def duration_ns(text):
    for unit in ("ns", "us", "ms", "s", "m"):
        if text.endswith(unit):
            return int(fractions.Fraction(text[: -len(unit)]) * UNITS_NS[unit])
    raise ValueError(text)


# ---- the pipeline as it was declared ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Edge:
    writer: str
    port: str
    reader: str
    required: bool
    policy: str = "sync"
    lag: int = 0
    depth: int = 0
    full: str = "block"
    within_ns: int = 0
    delay: int = 0
    initial: bool = False
    between_clocks: bool = False


@dataclasses.dataclass
class Handler:
    name: str
    type: str
    every: int
    clock: str
    edges: list  # in the order of the record: required ones, then optional ones
    keys: dict

    @property
    def max_pending(self):
        return int(self.type[-1]) if self.type.startswith("oracle.late") else 0

    @property
    def is_source(self):
        return self.type == "oracle.source"

    @property
    def seed(self):
        return self.keys.get("seed", 0)


def edge_of(reader, required, entry):
    keys = {"from": entry} if isinstance(entry, str) else dict(entry)
    writer, _, port = keys["from"].partition(".")
    return Edge(
        writer, port or "out", reader, required,
        policy=keys.get("policy", "sync"), lag=keys.get("lag", 0), depth=keys.get("depth", 1),
        full=keys.get("full", "block"), within_ns=duration_ns(keys.get("within", "0ns")), delay=keys.get("delay", 0),
        initial="initial" in keys)  # fmt: skip


class Pipeline:
    """A pipeline file that was read as JSON, with the clock of each handler."""

    def __init__(self, document):
        self.clocks = document.get("clocks") or {"main": document.get("clock", {})}
        self.handlers = {}
        for name, keys in document["handlers"].items():
            inputs = keys.get("inputs", {})
            edges = [edge_of(name, True, entry) for entry in inputs.get("in", [])]
            edges += [edge_of(name, False, entry) for entry in inputs.get("opt", [])]
            clock = keys.get("clock") or (next(iter(self.clocks)) if len(self.clocks) == 1 else None)
            self.handlers[name] = Handler(name, keys["type"], keys.get("every", 1), clock, edges, keys)
        self._find_clocks()
        for edge in self.edges():
            edge.between_clocks = self.clock_of(edge.writer) != self.clock_of(edge.reader)

    def _find_clocks(self):
        """A handler belongs to the clock of its inputs (1.3): of those that need the same tick."""
        for _ in self.handlers:
            for handler in self.handlers.values():
                for edge in handler.edges:
                    if not handler.clock and edge.policy == "sync":
                        handler.clock = self.handlers[edge.writer].clock

    def clock_of(self, handler):
        return self.handlers[handler].clock

    def clocks_of(self, edges):
        return {self.clock_of(name) for edge in edges for name in (edge.writer, edge.reader)}

    def edges(self):
        return [edge for handler in self.handlers.values() for edge in handler.edges]

    def crossings(self):
        return [edge for edge in self.edges() if edge.between_clocks]

    def sources(self, clock):
        return [handler for handler in self.handlers.values() if handler.is_source and handler.clock == clock]

    def owed_ticks(self, clock):
        """The most ticks that may be owed on a path within a clock."""
        return sum(h.max_pending * h.every for h in self.handlers.values() if h.clock == clock)

    def downstream(self, names):
        """Handlers, and all that read them, one after another."""
        readers = {edge.reader for edge in self.edges() if edge.writer in names}
        return names if readers <= names else self.downstream(names | readers)

    def depends_on_itself(self, name):
        return name in self.downstream({edge.reader for edge in self.edges() if edge.writer == name})

    def rate(self, clock):
        """Ticks a second, or None."""
        if self.clocks[clock].get("rate"):
            return fractions.Fraction(self.clocks[clock]["rate"])
        rates = [source.keys.get("rate") for source in self.sources(clock)]
        return fractions.Fraction(rates[0]) if len(rates) == 1 and rates[0] else None

    def leaders(self, clock):
        """The clocks with sources from which edges lead to this one (8.11)."""
        found, waiting = set(), [clock]
        while waiting:
            reader = waiting.pop()
            for edge in self.crossings():
                writer = self.clock_of(edge.writer)
                if self.clock_of(edge.reader) == reader and writer not in found:
                    found.add(writer)
                    waiting.append(writer)
        return {leader for leader in found - {clock} if self.sources(leader)}


# ---- what the plan has to refuse -------------------------------------------------------------------------------------


class Circles:
    """The graph of 8.2: nodes are clocks, edges all edges between clocks, each for itself, without direction."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.edges = pipeline.crossings()

    def is_bridge(self, edge):
        ends = self._ends(edge)
        reached, waiting = {ends[0]}, [ends[0]]
        while waiting:
            here = waiting.pop()
            for other in self.edges:
                if other is edge or here not in self._ends(other):
                    continue
                for end in self._ends(other):
                    if end not in reached:
                        reached.add(end)
                        waiting.append(end)
        return ends[1] not in reached

    def all(self):
        """Every circle as a tuple of edges."""
        seen = set()
        for length in range(2, len(self.pipeline.clocks) + 1):
            for clocks in itertools.permutations(self.pipeline.clocks, length):
                if clocks[0] != min(clocks):
                    continue  # the same circle from another start
                steps = [self._between(a, b) for a, b in zip(clocks, clocks[1:] + clocks[:1])]
                for edges in itertools.product(*steps):
                    circle = frozenset(map(id, edges))
                    if len(circle) == length and circle not in seen:
                        seen.add(circle)
                        yield edges

    def _ends(self, edge):
        return self.pipeline.clock_of(edge.writer), self.pipeline.clock_of(edge.reader)

    def _between(self, a, b):
        return [edge for edge in self.edges if set(self._ends(edge)) == {a, b}]

    def owed_ns(self, edge):
        """What may be owed before an edge, as a time (8.3); None where its clock has no rate."""
        rate = self.pipeline.rate(self.pipeline.clock_of(edge.writer))
        ticks = self._owed_ticks(edge.writer, frozenset())
        if not ticks:
            return fractions.Fraction(0)
        return None if rate is None else ticks * 10**9 / rate

    def reader_waits_for_owed(self, edge):
        """Whether something may be owed before the reader of an edge: it reads later, and the writer needs room."""
        others = (other for other in self.pipeline.handlers[edge.reader].edges if not other.between_clocks)
        return any(self._owed_ticks(other.writer, frozenset({edge.reader})) for other in others)

    def _owed_ticks(self, name, seen):
        handler = self.pipeline.handlers[name]
        before = [
            self._owed_ticks(edge.writer, seen | {name})
            for edge in handler.edges
            if not edge.between_clocks and edge.writer not in seen | {name}
        ]
        return handler.max_pending * handler.every + max(before, default=0)


@dataclasses.dataclass
class Verdict:
    must_refuse: list = dataclasses.field(default_factory=list)
    may_refuse: list = dataclasses.field(default_factory=list)


def has_cycle(pipeline):
    """A cycle of handlers that no `delay` breaks (2.3)."""
    state = {}

    def visit(name):
        if state.get(name) == "open":
            return True
        if name in state:
            return False
        state[name] = "open"
        found = any(visit(edge.writer) for edge in pipeline.handlers[name].edges if not edge.delay)
        state[name] = "closed"
        return found

    return any(visit(name) for name in pipeline.handlers)


def look_at_joined(pipeline, circles, circle, verdict):
    """Whether a clock of a circle has less than what that one and all that share clocks with it take (R15)."""
    joined, edges = pipeline.clocks_of(circle), []
    for _ in circles:
        edges = [edge for other in circles if pipeline.clocks_of(other) & joined for edge in other]
        joined = pipeline.clocks_of(edges)
    within = sum({id(edge): edge.within_ns for edge in edges}.values())
    for clock in pipeline.clocks_of(circle) if within else ():
        rate, fixed = pipeline.rate(clock), pipeline.clocks[clock].get("in_flight")
        if rate is None or (fixed is not None and fixed < within * rate / 10**9 + 1):
            verdict.may_refuse.append(f"8.3: clock {clock} is held by several circles")


def look_at_windows(pipeline, circles, verdict):
    """8.3: every window of a circle holds S × rate + 1 ticks of its clock."""
    all_circles = list(circles.all())
    for circle in all_circles:
        look_at_joined(pipeline, all_circles, circle, verdict)
        owed = [circles.owed_ns(edge) for edge in circle]
        within = sum(edge.within_ns for edge in circle)
        reads_late = any(circles.reader_waits_for_owed(edge) for edge in circle)
        if within == 0 and all(part == 0 for part in owed) and not reads_late:
            continue
        if any(part != 0 for part in owed) or reads_late:
            verdict.may_refuse.append("8.3: something may be owed on a circle")
        for clock in sorted(pipeline.clocks_of(circle)):
            rate, fixed = pipeline.rate(clock), pipeline.clocks[clock].get("in_flight")
            if rate is None and within == 0 and all(part == 0 for part in owed):
                continue
            if rate is None or None in owed:
                verdict.must_refuse.append(f"8.3: clock {clock} is on a circle with S > 0 and has no rate")
                continue
            if fixed is None:
                continue
            needed = (within + sum(owed)) * rate / 10**9 + 1
            words = f"8.3: clock {clock} needs {float(needed):.3f} ticks of {fixed} in flight"
            if fixed < needed:
                sure = fixed < int(needed) and fixed < int(within * rate / 10**9 + 1)
                (verdict.must_refuse if sure else verdict.may_refuse).append(words)


def look(pipeline):
    """What the plan has to refuse, or may."""
    verdict = Verdict()
    circles = Circles(pipeline)
    for edge in pipeline.crossings():
        name = f"{edge.writer} → {edge.reader}"
        if edge.policy == "sync":
            verdict.must_refuse.append(f"1.3: {name} leads from clock to clock by sync")
        if edge.policy == "queue" and edge.full == "block" and not circles.is_bridge(edge):
            verdict.must_refuse.append(f"8.2: {name} blocks and is no bridge")
        if edge.lag:
            verdict.must_refuse.append(f"2.3: {name} counts ticks between clocks")
    for clock in {handler.clock for handler in pipeline.handlers.values()}:
        if not pipeline.sources(clock) and not pipeline.leaders(clock):
            verdict.must_refuse.append(f"8.11: nobody leads the clock {clock}")
    if has_cycle(pipeline):
        verdict.must_refuse.append("2.3: a cycle without delay")
    look_at_windows(pipeline, circles, verdict)
    for edge in pipeline.edges():
        owed = pipeline.owed_ticks(pipeline.clock_of(edge.reader))
        if edge.policy == "queue" and not edge.between_clocks and edge.depth < owed:
            verdict.may_refuse.append(f"2.3: {edge.writer} → {edge.reader} is shallower than what may be owed")
    return verdict


# ---- what a run does -------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Firing:
    """A call: the media time, what was read and made. `made` is by port; silent ports are left out."""

    index: int
    time_ns: int
    read: list
    made: dict
    reset: bool = False


def script_of(source):
    """The ticks that a source gives: (value or None, time or None). A word that ends the source is delivered (8.9)."""
    ticks = []
    for word in source.keys["script"].split():
        if word == "?":
            continue
        value = None if word == "-" else mix(source.seed & MASK, len(ticks)) & VALUE_MASK
        time = word.rstrip("!")
        ticks.append((value, None if time in (".", "-") else round(float(time) * 10**6)))
        if word.endswith("!"):
            break
    return ticks


class QueueBetweenClocks:
    """A queue that is filled and emptied by media times alone (8.1); only values take a place in it (8.6)."""

    def __init__(self, run, edge):
        self.run, self.edge = run, edge
        self.writer = run.pipeline.clock_of(edge.writer)
        self.reader = run.pipeline.handlers[edge.reader]
        self.waiting = []
        self.came = 0  # ticks of the writer that have been looked at
        self.taken = []  # what each tick of the reader took
        self.dropped = 0

    def take(self, index):
        """What the reader's tick of that index takes."""
        while len(self.taken) <= index:
            tick = len(self.taken)
            self._let_in(self.run.time(self.reader.clock, tick))
            fires = tick % self.reader.every == 0
            self.taken.append(self.waiting.pop(0) if fires and self.waiting else None)
        return self.taken[index]

    def holds_more(self, index):
        """Whether a value is left, now or to come, once the tick of that index has taken (8.11)."""
        self.take(index)
        tick = self.came
        while not self.waiting and self.run.has_tick(self.writer, tick):
            if self.run.slot(self.edge.writer, self.edge.port, tick) is not None:
                return True
            tick += 1
        return bool(self.waiting)

    def _let_in(self, time):
        while self.run.has_tick(self.writer, self.came) and self.run.time(self.writer, self.came) <= time:
            value = self.run.slot(self.edge.writer, self.edge.port, self.came)
            self.came += 1
            if value is None:
                continue
            if self.edge.full != "block" and len(self.waiting) == self.edge.depth:
                self.dropped += 1
                if self.edge.full == "drop_newest":
                    continue
                self.waiting.pop(0)
            self.waiting.append(value)


class Run:
    """One run of a pipeline that is not refused."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.scripts = {name: script_of(h) for name, h in pipeline.handlers.items() if h.is_source}
        self.queues = {}
        self.sourced_times = {clock: self._times_of(clock) for clock in pipeline.clocks if pipeline.sources(clock)}
        self.slot = functools.lru_cache(maxsize=None)(self._slot)
        self.fire = functools.lru_cache(maxsize=None)(self._fire)
        self.has_tick = functools.lru_cache(maxsize=None)(self._has_tick)
        self.drains = functools.lru_cache(maxsize=None)(self._drains)

    # ---- ticks and times

    def _times_of(self, clock):
        sources = self.pipeline.sources(clock)
        count = max(len(self.scripts[source.name]) for source in sources)  # a clock ends with its last source (2.8)
        leads = self.pipeline.clocks[clock].get("mode") == "source"
        times = []
        for index in range(count):
            own = self.scripts[sources[0].name][index][1] if leads else None
            time = own if own is not None else self._beat(clock, index)
            times.append(max(time, times[-1] + 1) if times else time)
        return times

    def _beat(self, clock, index):
        rate = self.pipeline.rate(clock)
        if not rate:
            raise ValueError(f"the clock {clock} needs a rate: its times are not known without")
        return int(index * 10**9 / rate)

    def time(self, clock, index):
        return self.sourced_times[clock][index] if clock in self.sourced_times else self._beat(clock, index)

    def _has_tick(self, clock, index):
        if clock in self.sourced_times:
            return index < len(self.sourced_times[clock])
        if index == 0:
            return True
        if not self.has_tick(clock, index - 1):
            return False
        before = self.time(clock, index - 1)
        for leader in self.pipeline.leaders(clock):
            if self.sourced_times[leader] and self.sourced_times[leader][-1] > before:
                return True
        blocking = [
            edge for edge in self.pipeline.crossings()
            if edge.policy == "queue" and edge.full == "block" and self.pipeline.clock_of(edge.reader) == clock
        ]  # fmt: skip
        return any(self.queue(edge).holds_more(index - 1) for edge in blocking)

    def ticks(self, clock):
        index = 0
        while self.has_tick(clock, index):
            yield index
            index += 1

    def last_tick_at(self, clock, time):
        """The last tick of a clock at or before a time, or -1."""
        last = -1
        while self.has_tick(clock, last + 1) and self.time(clock, last + 1) <= time:
            last += 1
        return last

    # ---- what an edge gives

    def queue(self, edge):
        return self.queues.setdefault(id(edge), QueueBetweenClocks(self, edge))

    def read(self, edge, index):
        policy = edge.policy
        if policy == "queue" and edge.between_clocks:
            return self.queue(edge).take(index)
        if policy == "latest":
            return self._latest(edge, index)
        if policy == "align":
            return self._aligned(edge, index)
        return self._delayed(edge, index) if edge.delay else self.slot(edge.writer, edge.port, index)

    def _latest(self, edge, index):
        index -= edge.lag
        if edge.between_clocks:
            time = self.time(self.pipeline.clock_of(edge.reader), index)
            index = self.last_tick_at(self.pipeline.clock_of(edge.writer), time)
        return self._newest(edge, index)

    def _newest(self, edge, index):
        """The newest value at or before a tick of the writer; before the first what stands in."""
        for tick in range(index, -1, -1):
            value = self.slot(edge.writer, edge.port, tick)
            if value is not None:
                return value
        return EMPTY if edge.initial else None

    def _delayed(self, edge, index):
        index -= edge.delay
        if index < 0:
            return EMPTY
        value = self.slot(edge.writer, edge.port, index)
        return self._newest(edge, index) if value is None and edge.required else value

    def _aligned(self, edge, index):
        time = self.time(self.pipeline.clock_of(edge.reader), index)
        clock = self.pipeline.clock_of(edge.writer)
        nearest, distance = None, edge.within_ns + 1
        tick = 0
        while self.has_tick(clock, tick) and self.time(clock, tick) <= time + edge.within_ns:
            apart = abs(self.time(clock, tick) - time)
            if apart < distance and self.slot(edge.writer, edge.port, tick) is not None:
                nearest, distance = tick, apart
            tick += 1
        return None if nearest is None else self.slot(edge.writer, edge.port, nearest)

    # ---- what a handler makes

    def _slot(self, name, port, index):
        handler = self.pipeline.handlers[name]
        if handler.keys.get("leaves") and index in self.drains(name)[1]:
            return None
        firing = self.fire(name, index)
        return firing.made.get(port) if firing else None

    def _fire(self, name, index):
        handler = self.pipeline.handlers[name]
        time = self.time(handler.clock, index)
        if handler.is_source:
            script = self.scripts[name]
            if index >= len(script):
                return None
            value = script[index][0]
            return Firing(index, time, [], {} if value is None else {"out": value})
        if index % handler.every:
            return None
        read = [self.read(edge, index) for edge in handler.edges]
        if any(edge.required and value is None for edge, value in zip(handler.edges, read)):
            return None
        only_queues = all(edge.policy == "queue" and not edge.between_clocks for edge in handler.edges)
        if only_queues and all(value is None for value in read):
            return None  # R3
        return Firing(index, time, read, self._make(handler, index, read))

    def _make(self, handler, index, read):
        if handler.type in ("oracle.sink", "oracle.watch"):
            return {}
        mixed = mix(handler.seed & MASK, index)
        for value in read:
            mixed = mix(mixed, 0 if value is None else 1 if value == EMPTY else value + 4)
        value, made = mixed & VALUE_MASK, {}
        if not happens(handler.keys.get("silent", 0), handler.seed + 9, index):
            made["out"] = value
        if not handler.max_pending and not happens(handler.keys.get("aux_silent", 0), handler.seed + 10, index):
            made["aux"] = value ^ 1
        return made

    # ---- what is owed (8.4)

    def foretells_drains(self, handler):
        """Whether the plan leaves no choice of when a handler that owes is drained (R8); 8.12: never, where it stands
        apart."""
        if handler.max_pending and self._stands_apart(handler.name):
            return True
        if not handler.max_pending or len(self.pipeline.clocks) > 1 or not self._holds_ticks(handler):
            return False
        return self._gap(handler.clock) is not None

    def _gap(self, clock):
        """Ticks of grace before a handler is drained; None where it is not foretold (R8)."""
        in_flight = self.pipeline.clocks[clock].get("in_flight")
        if not isinstance(in_flight, int):
            return None
        owing = [h for h in self.pipeline.handlers.values() if h.max_pending and not self._stands_apart(h.name)]
        if in_flight == 1 or any((e.delay or e.lag) and self._owes(e.writer) for e in self.pipeline.edges()):
            return 1
        owed = self.pipeline.downstream({handler.name for handler in owing})
        aside = any(edge.writer in owed and (edge.delay or edge.policy == "latest") for edge in self.pipeline.edges())
        if aside or not all(map(self._holds_ticks, owing)):
            return None
        return 1 + (in_flight - 1) // len(owing)

    def _owes(self, name):
        return self.pipeline.handlers[name].max_pending > 0

    def _stands_apart(self, name):
        """8.12: everything that depends on it comes from it alone (R16)."""

        def joins(edge):
            return not edge.between_clocks and not edge.delay and edge.policy in ("sync", "queue")

        handler = self.pipeline.handlers[name]
        own = [edge for edge in handler.edges if edge.policy == "sync"]
        if not all(map(joins, own)) or not any(edge.required for edge in own):
            return False
        if any(edge.policy not in ("sync", "latest") for edge in handler.edges):
            return False
        group = {name}
        while True:
            edges = [edge for edge in self.pipeline.edges() if edge.writer in group]
            if not all(map(joins, edges)):
                return False
            wider = group | {edge.reader for edge in edges}
            if wider == group:
                break
            group = wider
        for member in group - {name}:
            edges = self.pipeline.handlers[member].edges
            if any(edge.writer not in group for edge in edges):
                return False
            if not any(edge.required or edge.policy == "queue" for edge in edges):
                return False
        return not any(edge.writer in group for edge in handler.edges)

    def _holds_ticks(self, handler):
        """Joined to a source, and to a sink, by `sync` edges (1.6: else it works behind)."""
        handlers = self.pipeline.handlers

        def reaches_source(name):
            edges = [e for e in handlers[name].edges if e.policy == "sync" and not e.delay]
            return handlers[name].is_source or any(reaches_source(e.writer) for e in edges)

        def reaches_sink(name):
            edges = [e for e in self.pipeline.edges() if e.writer == name and e.policy == "sync" and not e.delay]
            readers = [edge.reader for edge in edges]
            return handlers[name].type in ("oracle.sink", "oracle.watch") or any(map(reaches_sink, readers))

        return reaches_source(handler.name) and reaches_sink(handler.name)

    def _drains(self, name):
        """(the firings before which reset() was called, those whose results nobody gave)"""
        handler = self.pipeline.handlers[name]
        apart = self._stands_apart(name)
        gap = 0 if apart else self._gap(handler.clock)
        owed, reset, lost, drained = [], set(), set(), False
        for index in self.ticks(handler.clock):
            fires = self.fire(name, index) is not None
            held = (owed + [index] if fires else owed)[-handler.max_pending :]
            if not apart and owed and held and index + 2 - held[0] > handler.max_pending * handler.every + gap:
                lost.update(owed if handler.keys.get("leaves") else ())
                owed, drained = [], True
            if not fires:
                continue
            if drained:
                reset.add(index)
                drained = False
            owed = (owed + [index])[-handler.max_pending :]
            left = mix((handler.seed + 11) & MASK, index) % (handler.max_pending + 1)
            owed = owed[len(owed) - left :] if left < len(owed) else owed
        lost.update(owed if handler.keys.get("leaves") else ())
        return reset, lost

    # ---- the record

    def record(self, name):
        """The lines that handlers.cpp writes of a handler, in the order of its ticks, without its name."""
        handler = self.pipeline.handlers[name]
        required = sum(edge.required for edge in handler.edges)
        foretold = self.foretells_drains(handler)
        lines = []
        for index in self.ticks(handler.clock):
            firing = self.fire(name, index)
            if not firing:
                continue
            words = ["-" if value is None else str(value) for value in firing.read]
            made = ",".join(str(firing.made.get(port, "-")) for port in ("out", "aux"))
            inputs = f"{','.join(words[:required])} | {','.join(words[required:])}"
            reset = " reset" if foretold and index in self.drains(name)[0] else ""
            # A source is asked before the time of its tick is known.
            time = "| |" if handler.is_source else f"{firing.time_ns} | {inputs} |"
            lines.append(f"{index} {time} {made}{reset}")
        return lines


    def counts(self, edge):
        """What the report says of a `queue` (8.6): all values that came, those that calls read, and those lost by
        `every` and by another input that was empty (R12). What a full queue took and what the end is left open."""
        reader = self.pipeline.handlers[edge.reader]
        writer_ticks = list(self.ticks(self.pipeline.clock_of(edge.writer)))
        came = [tick for tick in writer_ticks if self.slot(edge.writer, edge.port, tick) is not None]
        ticks = list(self.ticks(reader.clock))
        takes = [tick for tick in ticks if tick % reader.every == 0 and self.read(edge, tick) is not None]
        delivered = sum(self.fire(edge.reader, tick) is not None for tick in takes)
        passed_over = 0 if edge.between_clocks else sum(tick % reader.every != 0 for tick in came)
        return Counts(edge.between_clocks, len(came), delivered, passed_over, len(takes) - delivered)


@dataclasses.dataclass
class Counts:
    between_clocks: bool
    came: int
    delivered: int
    every: int
    input: int

    def matches(self, came, delivered, dropped):
        every, lost = dropped.get("every", 0), dropped.get("input", 0)
        if not self.between_clocks:
            return (came, delivered + lost, every) == (self.came, self.delivered + self.input, self.every)
        return (came, delivered, every, lost) == (self.came, self.delivered, self.every, self.input)


@dataclasses.dataclass
class Expectation:
    must_refuse: list
    may_refuse: list
    records: dict
    foretold: set  # handlers whose `reset` marks count
    counts: dict  # of `queue` edges, by the name that the report has for them


def expect(document):
    """What has to come of a pipeline file that was read as JSON."""
    pipeline = Pipeline(document)
    verdict = look(pipeline)
    if verdict.must_refuse:
        return Expectation(verdict.must_refuse, verdict.may_refuse, {}, set(), {})
    run = Run(pipeline)
    foretold = {name for name, handler in pipeline.handlers.items() if run.foretells_drains(handler)}
    records = {name: run.record(name) for name in pipeline.handlers}
    counts = {name_of(pipeline, edge): run.counts(edge) for edge in pipeline.edges() if edge.policy == "queue"}
    return Expectation([], verdict.may_refuse, records, foretold, counts)


def name_of(pipeline, edge):
    """An edge as the report names it: (from, to)."""
    edges = [other for other in pipeline.handlers[edge.reader].edges if other.required == edge.required]
    number = next(n for n, other in enumerate(edges) if other is edge)
    return f"{edge.writer}.{edge.port}", f"{edge.reader}.{'in' if edge.required else 'opt'}[{number}]"
