// Class: a class of a classifier with its score; and the best classes of a tensor of scores.
#pragma once

#include <millrace/payload.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::handlers {

inline constexpr size_t kClassNameBytes = 64; // room in a record

struct Class {
  static constexpr std::string_view kSchema = "millrace.Class";
  float score = 0;
  int32_t label = -1; // index of the class; -1: none
  // UTF-8, then zeros; a longer name is cut after its last letter that has room. All zeros: nobody has said a name.
  uint8_t name[kClassNameBytes] = {};
  static std::vector<mr_field> fields() {
    return {field("score", &Class::score), field("label", &Class::label), field("name", &Class::name)};
  }
};

// Writes a name into a record, as Class::name says.
void set_name(Class& one, std::string_view name);

struct ClassRule {
  float score_min = 0;
  bool softmax = false; // scores become probabilities whose sum is 1
};

// The number of classes of a tensor of this shape: [classes] or [1, classes]. Throws std::invalid_argument for any
// other.
int64_t class_count(std::span<const int64_t> shape);

// Writes the classes with the highest scores, best first, until `best` is full. Returns how many it wrote. Of equal
// scores the lower label comes first. Numbers that are not finite are no scores and left out. The tensor holds float32
// or float16 and may have strides.
size_t best_classes(const TensorView& tensor, const ClassRule& rule, std::span<Class> best);

} // namespace millrace::handlers
