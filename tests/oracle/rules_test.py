#!/usr/bin/env python3
"""rules.py against small pipelines that were traced by hand, and what random pipelines have to be."""
import unittest

import graphs
import rules
import smaller


def source(clock, script, rate=10):
    return {"type": "oracle.source", "clock": clock, "script": script, "rate": rate}


def reader(clock, *inputs, **keys):
    return {"type": "oracle.mix", "clock": clock, "inputs": {"in": list(inputs)}, **keys}


def watcher(clock, *inputs, **keys):
    return {"type": "oracle.watch", "clock": clock, "inputs": {"opt": list(inputs)}, **keys}


def pipeline(clocks, **handlers):
    for name, keys in handlers.items():
        keys["id"] = name
        keys.setdefault("seed", 0)
    clocks = {name: keys or {"mode": "source"} for name, keys in clocks.items()}
    return {"version": 1, "clocks": clocks, "handlers": handlers}


def reads(document, name):
    """What each firing of a handler read: numbers of the values of s, None, or "empty"."""
    run = rules.Run(rules.Pipeline(document))
    number = {value: n for n, (value, _) in enumerate(run.scripts["s"])} | {None: None, rules.EMPTY: rules.EMPTY}
    clock = run.pipeline.clock_of(name)
    firings = [run.fire(name, index) for index in run.ticks(clock)]
    return [[number.get(value, "other") for value in firing.read] for firing in firings if firing]


def refusals(document):
    return [words.split(":")[0] for words in rules.expect(document).must_refuse]


class EdgesBetweenClocks(unittest.TestCase):
    def between(self, edge, written="0 10 20 30 40", read="0 15 30 60", **keys):
        return pipeline({"x": {}, "y": {}}, s=source("x", written), t=source("y", read),
                        k=watcher("y", {"from": "s", **edge}, **keys))  # fmt: skip

    def test_latest_is_the_newest_at_or_before_the_ticks_own_time(self):
        self.assertEqual(reads(self.between({"policy": "latest"}), "k"), [[0], [1], [3], [4]])

    def test_a_queue_that_drops_the_oldest_holds_the_newest_at_each_time(self):
        edge = {"policy": "queue", "depth": 1, "full": "drop_oldest"}
        self.assertEqual(reads(self.between(edge), "k"), [[0], [1], [3], [4]])

    def test_a_queue_that_drops_the_newest_keeps_what_came_first(self):
        edge = {"policy": "queue", "depth": 1, "full": "drop_newest"}
        self.assertEqual(reads(self.between(edge), "k"), [[0], [1], [2], [4]])

    def test_a_blocking_queue_loses_nothing_and_gives_what_is_due(self):
        edge = {"policy": "queue", "depth": 1}
        self.assertEqual(reads(self.between(edge), "k"), [[0], [1], [2], [3]])
        self.assertEqual(reads(self.between(edge, written="5 70"), "k"), [[None], [0], [None], [None]])

    def test_an_empty_tick_takes_no_place_in_a_queue(self):
        edge = {"policy": "queue", "depth": 2, "full": "drop_oldest"}
        self.assertEqual(reads(self.between(edge, written=". . - -", read="0 250"), "k"), [[0], [1]])

    def test_a_reader_with_every_takes_only_where_it_fires(self):
        edge = {"policy": "queue", "depth": 8}
        self.assertEqual(reads(self.between(edge, every=2), "k"), [[0], [1]])

    def test_align_gives_the_nearest_within(self):
        self.assertEqual(reads(self.between({"policy": "align", "within": "5ms"}), "k"), [[0], [1], [3], [None]])


class EdgesWithinAClock(unittest.TestCase):
    def within(self, edge, script="1 - 3 - 5", make=watcher):
        return pipeline({"x": {}}, s=source("x", script), k=make("x", {"from": "s", **edge}))

    def test_delay_repeats_the_last_value_for_a_required_input_alone(self):
        edge = {"delay": 1, "initial": "empty"}
        self.assertEqual(reads(self.within(edge), "k"), [["empty"], [0], [None], [2], [None]])
        self.assertEqual(reads(self.within(edge, make=reader), "k"), [["empty"], [0], [0], [2], [2]])

    def test_latest_lags(self):
        edge = {"policy": "latest", "lag": 1}
        self.assertEqual(reads(self.within(edge), "k"), [[None], [0], [0], [2], [2]])
        self.assertEqual(reads(self.within(edge, make=reader), "k"), [[0], [0], [2], [2]])

    def test_times_rise_and_a_value_given_with_the_end_is_delivered(self):
        run = rules.Run(rules.Pipeline(pipeline({"x": {}}, s=source("x", "5 5 4 7!"))))
        self.assertEqual(run.sourced_times["x"], [5_000_000, 5_000_001, 5_000_002, 7_000_000])


class Refusals(unittest.TestCase):
    def two(self, *edges, clocks=None, **keys):
        inputs = [{"from": "s", **edge} for edge in edges]
        return pipeline(clocks or {"x": {}, "y": {}}, s=source("x", "0 100"), t=source("y", "0 100"),
                        k=reader("y", "t", *inputs), **keys)  # fmt: skip

    def test_a_blocking_queue_is_legal_as_a_bridge_alone(self):
        block, latest = {"policy": "queue", "depth": 4}, {"policy": "latest"}
        self.assertEqual(refusals(self.two(block)), [])
        self.assertEqual(refusals(self.two(block, latest)), ["8.2"])
        self.assertEqual(refusals(self.two(block, block)), ["8.2", "8.2"])
        back = reader("x", "s", {"from": "k", **latest})
        self.assertEqual(refusals(self.two(block, b=back)), ["8.2"])
        self.assertEqual(refusals(self.two({**block, "full": "drop_oldest"}, b=back)), [])

    def test_a_window_on_a_circle_holds_what_align_waits_for(self):
        align = {"policy": "align", "within": "200ms"}
        back = reader("x", "s", {"from": "t", **align})
        clocks = lambda fixed: {"x": {"mode": "source", "in_flight": fixed}, "y": {"mode": "source"}}
        self.assertEqual(refusals(self.two(align, b=back)), [])
        self.assertEqual(refusals(self.two(align, b=back, clocks=clocks(4))), ["8.3"])
        self.assertEqual(refusals(self.two(align, b=back, clocks=clocks(5))), [])

    def test_a_clock_without_sources_is_led(self):
        free = {"mode": "free", "rate": 10}
        self.assertEqual(refusals(pipeline({"x": {}, "y": free}, s=source("x", "0"), k=watcher("y", "s"))), ["1.3"])
        nobody = {"type": "oracle.any", "clock": "z", "inputs": {"opt": []}}
        alone = pipeline({"x": {}, "y": free, "z": free}, s=source("x", "0"), b=nobody,
                         a=watcher("y", {"from": "b", "policy": "latest"}))  # fmt: skip
        self.assertEqual(refusals(alone), ["8.11", "8.11"])


class ClocksWithoutSources(unittest.TestCase):
    def led(self, script, edge):
        free = {"mode": "free", "rate": 10}
        return pipeline({"x": {}, "y": free}, s=source("x", script), k=watcher("y", {"from": "s", **edge}))

    def test_it_ends_with_the_first_tick_that_its_leaders_do_not_pass(self):
        self.assertEqual(reads(self.led("0 130 300", {"policy": "latest"}), "k"), [[0], [0], [1], [2]])
        self.assertEqual(reads(self.led("0 130 301", {"policy": "latest"}), "k"), [[0], [0], [1], [1], [2]])

    def test_it_empties_a_blocking_queue(self):
        edge = {"policy": "queue", "depth": 1}
        self.assertEqual(reads(self.led("0 10 20 30", edge), "k"), [[0], [1], [2], [3]])


class PendingResults(unittest.TestCase):
    def late(self, script, in_flight, beside=watcher("x", "h"), **keys):
        document = pipeline({"x": {"mode": "source", "in_flight": in_flight}}, s=source("x", script),
                            h={**reader("x", "s"), "type": "oracle.late2", **keys}, k=beside)  # fmt: skip
        return rules.Run(rules.Pipeline(document)).drains("h")

    def seed_that_owes(self, *counts):
        """A seed with which that much is owed after the calls of ticks 0, 1, …"""
        owed = lambda seed: tuple(rules.mix(seed + 11, index) % 3 for index in range(len(counts)))
        return next(seed for seed in range(10**6) if owed(seed) == counts)

    def test_without_gaps_nothing_is_drained(self):
        self.assertEqual(self.late(". . . . . . . .", 1)[0], set())

    def test_a_gap_that_the_window_does_not_hold_drains(self):
        seed = self.seed_that_owes(1, 0, 0, 0, 0)
        # Owed since tick 0; tick n drains once n + 2 - 0 > 2 + in_flight.
        self.assertEqual(self.late(". - - .", 1, seed=seed)[0], {3})
        self.assertEqual(self.late(". - .", 1, seed=seed)[0], {2})
        self.assertEqual(self.late(". - .", 2, seed=seed)[0], set())

    def test_where_all_that_depends_on_it_comes_from_it_alone_no_gap_drains(self):
        seed = self.seed_that_owes(1, 0, 0, 0, 0)
        self.assertEqual(self.late(". - - - - - .", 1, beside=reader("x", "h"), seed=seed)[0], set())

    def test_what_a_drain_leaves_is_lost(self):
        seed = self.seed_that_owes(1, 0, 0, 0, 0)
        self.assertEqual(self.late(". - - .", 1, seed=seed, leaves=True)[1], {0})


class RandomPipelines(unittest.TestCase):
    def test_most_are_legal_and_fire(self):
        legal, firings = 0, 0
        for number in range(200):
            expectation = rules.expect(graphs.pipeline(f"test:{number}"))
            legal += not expectation.must_refuse
            firings += sum(map(len, expectation.records.values()))
        self.assertGreater(legal, 180)
        self.assertGreater(firings, 10_000)

    def test_a_smaller_one_still_fails(self):
        document = graphs.pipeline("test:3")
        source_alone = smaller.smallest(document, lambda made: "s0" in made["handlers"], float("inf"))
        self.assertEqual(list(source_alone["handlers"]), ["s0"])
        self.assertEqual(len(source_alone["handlers"]["s0"]["script"].split()), 1)


if __name__ == "__main__":
    unittest.main()
