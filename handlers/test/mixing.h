// The arithmetic of the handlers that random graphs are made of. Everything that they give is a function of their
// parameters, their inputs and the tick's index, so two runs of one graph can be compared number by number.
#pragma once

#include <cstdint>
#include <span>

#include "handlers/gpu/both.h"

namespace millrace::handlers {

// Scatters the bits: equal results for equal arguments, otherwise as good as random. (The finaliser of SplitMix64,
// Steele, Lea and Flood, 2014.)
MR_BOTH constexpr uint64_t scatter(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
  return bits ^ (bits >> 31);
}

// Order matters: joined(joined(0, a), b) is not joined(joined(0, b), a).
MR_BOTH constexpr uint64_t joined(uint64_t hash, uint64_t next) {
  return scatter((hash + 0x9e3779b97f4a7c15ull) ^ scatter(next));
}

// Stands for an empty input.
inline constexpr uint64_t kAbsent = 0x6162736e74ull;

constexpr uint64_t hash_of(std::span<const int64_t> elements) {
  uint64_t hash = elements.size();
  for (int64_t element : elements) hash = joined(hash, static_cast<uint64_t>(element));
  return hash;
}

// Fills a value so that every element depends on the hash and on its place.
constexpr void spread(uint64_t hash, std::span<int64_t> elements) {
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<int64_t>(scatter(hash + i));
}

// True for about one in `every` indices, by a chance that the seed fixes; never if `every` is 0.
constexpr bool strikes(uint64_t index, uint64_t seed, uint64_t every) {
  return every > 0 && joined(seed, index) % every == 0;
}

} // namespace millrace::handlers
