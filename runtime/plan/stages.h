// How a graph is spread over nodes.
//
// Problem. Handlers of one clock run on several nodes, and a tick goes from one to the next. No node may hold up the
// clock: a handler at home that waits for an answer over a link must not keep the next tick from its camera. And no
// circle of waits may go over a link, because nobody sees it whole.
//
// Why this way. Each handler has a *stage*: the number of links on the longest way to it on which readers wait. At its
// clock's home, stage 0 is the clock's own pace. The handlers of any other node, clock and stage share a *far* pace: it
// runs every tick of the clock, as soon as all that feeds it has come. Its feeds are the paces of lower stages that it
// reads from. So a pace waits for paces of lower stages alone, and the clock's own pace waits for no link.
//
//   home    camera(0) ──────────────────────────▶ overlay(2) → screen(2)
//              └──── link ──▶ detect(1) ── link ──▶┘
//
//   pace       node   stage   fed by
//   main/0     home   0       -          (its clock)
//   main/1     gpu    1       main/0                   over a link
//   main/2     home   2       main/0, main/1           the second over a link
//
// A value that `latest`, `align` or a queue between clocks reads from another node comes through a far pace of its own,
// which only puts it into the reader's channel. So a reader's channel and its writer are always on one node, and what
// the writer's clock has passed (8.1) is known there. Edges between clocks count for no stage: they wait for media
// times and not for ticks, and windows are made for that (clock_circles.h).
//
// Every node compiles the whole graph and so finds the same paces, feeds and numbers; its plan has steps for its own.
// A feed whose two ends are on different nodes is a crossing.
//
// Limits. A reader must not feed its own writer by a link: no such loop (MR0813). The sources of a clock are on one
// node, which is the one that the clock names if it names one (MR0814). A clock without sources reads its queues on one
// node (MR0818). The handlers of a far pace all hold its tick open, and so does a handler that another node reads.
#pragma once

#include <vector>

#include "plan/draft.h"
#include "plan/machine.h"

namespace millrace::plan {

// Finds the node and the stage of each handler. Throws Failure (MR0318, MR0813, MR0814, MR0818).
void find_stages(Draft& draft);

inline bool is_here(const Draft& draft, const DraftHandler& handler) { return handler.node == draft.options.node; }

} // namespace millrace::plan
