// The members of each cell, exact sums of them, and means.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/codebook/lanes.h"
#include "plugins/codebook/points.h"
#include "plugins/crew/crew.h"

namespace millrace::codebook {

// Vectors that belong together, with exact sums of them.
struct Cell {
  Cell() = default;
  explicit Cell(size_t stride) : sums(stride) {}

  size_t size() const { return members.size(); }
  void add(const Points& points, uint32_t vector);
  void add(const Cell& other);
  // Sums up the members anew.
  void sum_up(const Points& points);
  // The mean of the members, of which there is one at least, in single precision.
  void mean(const Points& points, std::span<float> mean) const;
  // Σ |x − a|² over the members, in double precision: Σ|x|² − 2 a·Σx + n|a|².
  double energy(const Points& points, const float* anchor) const;

  std::vector<uint32_t> members;
  std::vector<int64_t> sums; // Σ x in units of Points::values, a row of whole lanes
  int64_t square = 0;        // Σ |x|² in units of Points::squares

 private:
  void count_in(const Points& points, uint32_t vector);
};

enum class Mean { plain, trimmed, huber };

class Cells {
 public:
  // `points` outlives this.
  explicit Cells(const Points& points) : points_(points) {}

  // Sorts the vectors by their labels, which are below `count`, and sums up the cells whose members have changed.
  void sort(std::span<const uint32_t> labels, size_t count, Crew& crew);

  size_t count() const { return cells_.size(); }
  const Cell& operator[](size_t cell) const { return cells_[cell]; } // members rise

  // Sets `mean`, which is the anchor at first, to the mean of a cell with members, in single precision. It stays if all
  // weights are 0. `distances`: of all vectors to their anchors, squared. `far`:
  // for Mean::huber, the distance (not squared) from which on members weigh less.
  void mean(size_t cell, Mean kind, std::span<const float> distances, float far, std::span<float> mean) const;

  // The mean squared distance to the anchors. The cells' energies are rounded once to whole numbers and added.
  double energy(const Rows& anchors) const;

 private:
  void trimmed(const Cell& cell, std::span<const float> distances, std::span<float> mean) const;
  void huber(const Cell& cell, std::span<const float> distances, float far, std::span<float> mean) const;

  const Points& points_;
  std::vector<Cell> cells_;
  std::vector<std::vector<uint32_t>> before_; // members that the sums were made of
};

} // namespace millrace::codebook
