#!/usr/bin/env python3
"""A known node that contradicts itself, as two processes meet it: it is refused with its fault, and patience counts.

usage: contradictions.py MILLRACE LIBRARY [unittest arguments]

LIBRARY is tests/cli/contradicts.cpp, which is preloaded into one of two nodes. tests/net/contradictions.cpp has more kinds,
at the session.
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fleet  # noqa: E402: found by the line above
from fleet import THERE_AND_BACK, Fleet, Process  # noqa: E402: the same

LIBRARY = ""
# By the kind: what the other node says of it.
KINDS = {"epoch": "an epoch began on a clock that never begins anew",
         "gap": "a tick's index or epoch does not follow the one before",
         "number": "a parcel has another number than the next one",
         "two_ends": "a parcel came after the crossing's end",
         "after_end": "a parcel came after the crossing's end",
         "no_credit": "a crossing's reader has room for fewer parcels than it has planned",
         "no_state": "the peer has got parcels and acknowledges none",
         "no_pong": "the peer does not answer pings"}
ENDLESS = THERE_AND_BACK.replace("count: 200, ", "").replace("file.raw_writer, path: out.rgb", "null.sink")
# A stream may begin anew, so a later epoch is no contradiction by itself.
RESTARTS = """
version: 1
nodes: { edge: {}, gpu: {} }
streams: { cameras: { on_error: restart, items: { gate: {} } } }
handlers:
  video: { type: test.pattern, for_each: cameras, width: 64, height: 48, count: 200, node: edge }
  blur:  { type: image.blur, for_each: cameras, input: video, node: gpu }
  show:  { type: null.sink, for_each: cameras, input: blur, node: edge }
"""


class Contradictions(Fleet):
    def environment(self, machine):
        preloaded = {"LD_PRELOAD": LIBRARY, "CONTRADICTS": self.kind, "CONTRADICTS_AT": "20"}
        return {**super().environment(machine), **(preloaded if machine == "gpu" else {})}

    def meet(self, kind, text):
        self.kind = kind
        self.write(text)
        edge = self.edge("--patience", 1)
        return edge, Process(self, "gpu", "gpu", "--coordinator", self.address, "--patience", 1)

    def test_each_is_refused_with_its_fault_and_both_nodes_end(self):
        for kind, words in KINDS.items():
            with self.subTest(kind):
                edge, gpu = self.meet(kind, ENDLESS if "no_" in kind else THERE_AND_BACK)
                self.ends(edge, 1)
                self.ends(gpu, 1)
                self.assertIn(words, edge.said)
                self.assertRegex(edge.said, "error MR0804: gpu has been away for 1 s, and others wait for it")
                self.assertIn(f"edge refuses this node, which contradicts itself: {words}", gpu.said)
                self.assertFalse(edge.report()["ok"])

    def test_epochs_that_no_restart_began_cost_no_tick_and_no_end(self):
        edge, gpu = self.meet("epoch", RESTARTS)
        self.ends(edge, 0)
        self.ends(gpu, 0)
        self.assertEqual(edge.report()["handlers"]["show"]["calls"], 200)


if __name__ == "__main__":
    fleet.MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    LIBRARY = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
