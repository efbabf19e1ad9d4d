// Conversions of pixel formats: their parameters, what they make, and how long they take. Private to negotiation.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/pixels.h"

namespace millrace::graph {
struct Handler;
}
namespace millrace::plugin {
struct HandlerInfo;
}

namespace millrace::plan {

struct DraftHandler;
struct Machine;

using Settings = std::vector<std::pair<std::string, std::string>>; // parameters

// Sets the converter's parameter with this role, if it has one.
void set_role(Settings& settings, const plugin::HandlerInfo& converter, uint32_t role, std::string text);

// "rgb8"; one bit is set.
std::string_view name_of_pixel(uint64_t bit);
// The bytes of a picture in another format; 0 if its size is not known.
uint64_t bytes_as(mr_format picture, uint32_t pixel);
// A picture after its conversion. Between YCbCr formats the numbers keep their meaning. Numbers that are made from RGB
// get the matrix that players take for a picture of this size.
mr_format converted(mr_format picture, uint64_t wanted);

// Compares the conversions of a tree with the best ones if none stands after this output, which has one: "about 60 µs a
// tick here, 226 µs after scale.out". Empty: there is no other place. `name_of` names an output of the tree.
std::string elsewhere_words(PixelTree tree, const PixelChoice& choice, uint32_t here,
                            const std::function<std::string(uint32_t)>& name_of);

// Times are those of the host's bodies.
class ConversionTimes {
 public:
  // `converter`: the type that converts pixel formats; null if there is none, and then only the times are asked for.
  ConversionTimes(const Machine& machine, const plugin::HandlerInfo* converter)
      : machine_(machine), converter_(converter) {}

  // The converter's parameters for a picture.
  Settings settings_for(const mr_format& gives, uint64_t wanted) const;
  // As measured, else by the pixels that it reads and writes.
  uint64_t conversion_ns(mr_format picture, uint32_t from, uint32_t to) const;
  // The time of a call of a handler that gets this picture, by its format: as measured, if this is its only input. 0:
  // not known. A conversion that was inserted in an earlier round has the time that it had then.
  ByPixel own_ns(const DraftHandler& reader, const mr_format& picture) const;

 private:
  std::optional<uint64_t> measured_ns(const std::string& type, const graph::Handler& declared, uint64_t bytes) const;

  const Machine& machine_;
  const plugin::HandlerInfo* converter_;
};

} // namespace millrace::plan
