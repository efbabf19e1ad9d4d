// Fits that were published, with their results to the bit. The tests and `millrace codebook test` compare with them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "plugins/codebook/cells.h"
#include "plugins/codebook/fit.h"

namespace millrace::codebook {

struct PublishedFit {
  bool is_large() const { return vectors > 1000; }

  uint32_t vectors, dimensions, anchors; // the data are `waves`
  Mean mean;
  Maintenance maintenance;
  uint32_t iterations;
  bool converges;
  double energy, energy_of_means;                    // with the anchors, and with the exact means of the cells
  uint32_t anchors_at_end, empty, smallest, largest; // sizes of cells
  uint64_t labels, codebook;                         // fingerprints
};

// The energies were published with so many digits; sums of other orders differ from the sixth on.
inline constexpr double kPublishedEnergyError = 1e-5;

// Two pairs of rows are alike, because they end before maintenance comes to run.
inline constexpr std::array<PublishedFit, 12> kPublishedFits = {{
    {300, 64, 10, Mean::trimmed, Maintenance::none, 24, true, 2.3375140, 2.2056638, 10, 0, 24, 42, 0x599e9d2139ee4e5d,
     0x127edf91965d87c7},
    {300, 64, 10, Mean::trimmed, Maintenance::as_published, 50, false, 0.9157315, 0.5767656, 22, 0, 6, 22,
     0x7a8f59a271874889, 0x1c63397daf66fb6a},
    {1000, 64, 10, Mean::trimmed, Maintenance::none, 23, true, 2.3677456, 2.2305825, 10, 0, 81, 123, 0xaf93e2f5fadd36b9,
     0x3cca373aae8b26c2},
    {1000, 64, 10, Mean::plain, Maintenance::none, 28, true, 2.2713061, 2.2039419, 10, 0, 79, 119, 0x7570f6cb2d60cf9c,
     0x345ca0db3234ad4b},
    {1000, 64, 32, Mean::trimmed, Maintenance::none, 8, true, 0.2878375, 0.2728265, 32, 0, 20, 44, 0x1c7a5c6618968076,
     0xa5ae8d1652d7b201},
    {1000, 64, 32, Mean::trimmed, Maintenance::as_published, 8, true, 0.2878375, 0.2728265, 32, 0, 20, 44,
     0x1c7a5c6618968076, 0xa5ae8d1652d7b201},
    {1000, 64, 32, Mean::plain, Maintenance::none, 13, true, 0.2802989, 0.2692713, 32, 0, 20, 42, 0x0d5eab90bdd41539,
     0x705299328a74cb67},
    {1000, 64, 32, Mean::plain, Maintenance::as_published, 13, true, 0.2802989, 0.2692713, 32, 0, 20, 42,
     0x0d5eab90bdd41539, 0x705299328a74cb67},
    {10000, 128, 256, Mean::trimmed, Maintenance::as_published, 31, true, 0.0113672, 0.0099489, 262, 12, 0, 80,
     0x6400e8c74a7edac1, 0xa77e2c5bf0fcf378},
    {10000, 128, 256, Mean::trimmed, Maintenance::none, 31, true, 0.0099269, 0.0091370, 256, 0, 23, 56,
     0x43467ca757370600, 0x76ed883bde1ca6a3},
    {10000, 128, 256, Mean::plain, Maintenance::as_published, 31, true, 0.0112760, 0.0099149, 262, 12, 0, 80,
     0xe9eb6302a1056a4c, 0xfc055ebebfa9f30f},
    {10000, 128, 256, Mean::plain, Maintenance::none, 26, true, 0.0098763, 0.0091155, 256, 0, 23, 56,
     0xe0e5a764bffa542f, 0xd013b28c5a19dbdc},
}};

// The fingerprint of the vectors of so many rows; 0: it was not published.
constexpr uint64_t published_vectors(uint32_t count) {
  return count == 300     ? 0x8a6447d7d3ae7c4b
         : count == 1000  ? 0xd944b08762b08e1d
         : count == 10000 ? 0xe2a80d0bb91ca5a7
                          : 0;
}

// Labels that changed in each iteration of the large fits with maintenance.
inline constexpr std::array<uint32_t, 31> kPublishedChangesTrimmed = {
    9946, 35, 20, 7, 5, 1, 0, 6, 4, 10, 7, 4, 1, 2, 0, 2, 0, 0, 1, 0, 9591, 9722, 4, 2, 2, 4, 3, 1, 0, 0, 0};
inline constexpr std::array<uint32_t, 31> kPublishedChangesPlain = {
    9946, 41, 12, 5, 4, 2, 7, 13, 7, 4, 0, 0, 2, 2, 4, 6, 3, 4, 2, 3, 9591, 9722, 7, 2, 1, 0, 2, 3, 0, 0, 0};
// None where they were not published.
constexpr std::span<const uint32_t> published_changes(const PublishedFit& fit) {
  if (fit.vectors != 10000 || fit.maintenance == Maintenance::none) return {};
  return fit.mean == Mean::trimmed ? std::span(kPublishedChangesTrimmed) : std::span(kPublishedChangesPlain);
}

} // namespace millrace::codebook
