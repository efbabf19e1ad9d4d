// Steps that choose the first anchors, as first_anchors.h does.
#pragma once

#include "plugins/codebook/draw.h"
#include "plugins/codebook/gpu/block.h"
#include "plugins/codebook/gpu/lane_sums.h"
#include "plugins/codebook/gpu/resident.h"

namespace millrace::codebook::gpu {

// The n-th chosen vector: its index is in the key that the choice before it ended with.
MR_HOST_DEVICE inline uint32_t chosen(const Resident& r, uint64_t n) {
  return n == 0 ? r.control->first : static_cast<uint32_t>(r.keys[n - 1]);
}

struct DrawFirst { // once; for k-means++
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.once([&] {
      Draw draw(r.control->draws);
      r.control->first = static_cast<uint32_t>(draw.below(r.used()));
      r.control->draws = draw.state();
    });
  }
};

// Once, in a loop, after the n-th anchor's distances are in: draws the next one with a probability that is proportional
// to its distance. n is rounds · kStartsARound + step.
inline constexpr uint32_t kStartsARound = 16;
struct DrawNext {
  Resident r;
  uint32_t step;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t n = uint64_t{block.rounds} * kStartsARound + step;
    if (n + 1 >= r.anchors) return;
    const Whole weights = Whole::below(double{detail::float_of_bits(static_cast<uint32_t>(r.keys[n] >> 32))});
    const auto weight = [&](uint64_t i) { return static_cast<uint64_t>(weights.of(double{r.distances[i]})); };
    const uint64_t count = r.used(), parts = count < Block::kShared ? count : Block::kShared;
    const auto begin_of = [=](uint64_t part) { return part * count / parts; };
    block.each(parts, [&](uint64_t part) {
      uint64_t sum = 0;
      for (uint64_t i = begin_of(part); i < begin_of(part + 1); ++i) sum += weight(i);
      block.shared[part] = sum;
    });
    block.once([&] {
      Draw draw(r.control->draws);
      uint64_t sum = 0;
      for (uint64_t part = 0; part < parts; ++part) sum += block.shared[part];
      uint64_t at = 0;
      if (sum == 0) { // every vector is an anchor already
        at = draw.below(count);
      } else {
        const uint64_t drawn = draw.below(sum);
        uint64_t part = 0, before = 0;
        while (before + block.shared[part] <= drawn) before += block.shared[part++];
        for (at = begin_of(part); before + weight(at) <= drawn; ++at) before += weight(at);
      }
      r.control->draws = draw.state();
      r.keys[n] = at;
    });
    block.ends = n + 2 >= r.anchors;
  }
};

struct DrawRows { // once: different vectors, drawn evenly
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.each(r.used(), [&](uint64_t i) { r.members[i] = static_cast<uint32_t>(i); });
    block.once([&] {
      Draw draw(r.control->draws);
      for (uint64_t n = 0; n < r.anchors; ++n) {
        const uint64_t other = n + draw.below(r.used() - n);
        const uint32_t taken = r.members[n];
        r.members[n] = r.members[other];
        r.members[other] = taken;
        if (n == 0) r.control->first = r.members[0];
        if (n > 0) r.keys[n - 1] = r.members[n];
      }
    });
  }
};

struct TakeChosen { // a block for each anchor
  static constexpr uint32_t kThreads = 64;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    const uint64_t a = block.index;
    const float* const from = r.row(chosen(r, a));
    block.each(r.stride, [&](uint64_t j) { put_first(r, a, j, from[j]); });
  }
};

struct ClearVelocity { // a block for each anchor that there may be
  static constexpr uint32_t kThreads = 64;
  Resident r;
  MR_HOST_DEVICE void operator()(Block& block) const {
    block.each(r.stride, [&](uint64_t j) { r.velocity[uint64_t{block.index} * r.stride + j] = 0; });
  }
};

} // namespace millrace::codebook::gpu
