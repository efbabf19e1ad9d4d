// The scratch memory of points.links on a GPU: where each part lies, as the host plans it and kernels take it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "handlers/gpu/link_rule.h"

namespace millrace::handlers::gpu {

// One of the two ends of a link, in the chain of all ends at one point. Ends 2·l and 2·l + 1 are those of link l.
struct LinkEnd {
  uint32_t next;  // end; kNone: the last of its chain
  uint32_t other; // point; kNone: this link has no ends in the list
};
inline constexpr uint32_t kNone = UINT32_MAX;

// A link that fades, with its ids in order.
struct FadingLink {
  int64_t low, high;
  uint32_t a, b; // places
  float life;
};

struct LinkCounts {
  uint64_t left_out; // over all ticks
  uint32_t linked;   // on this tick
  uint32_t fading;
  uint32_t before; // the list of PastLink that was given last, 0 or 1
  uint32_t turn;
};

struct LinkWork {
  LinkCounts* counts;
  uint32_t* near; // k for each point, the nearest first; kNone: there are fewer

  // With a degree_max: pairs are numbered as `near` has them.
  float* scores;       // by pair
  uint8_t* is_pair;    // 1: this pair is a link, and this point owns it
  uint8_t* is_kept;    // the same after the cap
  uint32_t* pair_ends; // by point, the first end of its chain
  LinkEnd* ends;

  // For a rule that remembers.
  uint32_t* past_ends; // by point
  LinkEnd* past;
  uint8_t* is_renewed; // by past link: it is linked on this tick

  FadingLink* fading;
  uint64_t bytes; // all that these take
};

// Lays the parts out from `base` on, which is null if only the bytes are of interest.
inline LinkWork lay_out_work(void* base, const LinkRule& rule, uint64_t points, uint64_t links) {
  LinkWork work{};
  uint64_t at = 0;
  const auto take = [&](auto*& part, uint64_t count) {
    at = (at + 255) / 256 * 256;
    part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(reinterpret_cast<uintptr_t>(base) + at);
    at += count * sizeof(*part);
  };
  const uint64_t pairs = points * rule.k;
  take(work.counts, 1);
  take(work.near, pairs);
  if (rule.degree_max > 0) {
    take(work.scores, pairs);
    take(work.is_pair, pairs);
    take(work.is_kept, pairs);
    take(work.pair_ends, points);
    take(work.ends, 2 * pairs);
  }
  if (rule.remembers()) {
    take(work.past_ends, points);
    take(work.past, 2 * links);
    take(work.is_renewed, links);
  }
  if (rule.fade > 0) take(work.fading, links);
  work.bytes = at;
  return work;
}

} // namespace millrace::handlers::gpu
