// Crops pictures with one copy for each row of each plane; see crop_picture.h.
#include "handlers/image/crop_picture.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "handlers/image/picture.h"
#include "handlers/image/planes.h"

namespace millrace::handlers {
namespace {

// Checks one side of the rectangle and returns its length; `offset_name` and `length_name` are the names of its
// parameters.
uint32_t crop_length(uint32_t from, uint32_t length, uint32_t side, const char* offset_name, const char* length_name) {
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw std::invalid_argument(what + " in a picture of " + std::to_string(side) + " pixels; " + remedy);
  };
  if (from >= side)
    refuse(std::string(offset_name) + " " + std::to_string(from) + " is not",
           std::string(offset_name) + " may be 0 to " + std::to_string(side - 1));
  const uint32_t room = side - from;
  if (length > room)
    refuse(std::string(offset_name) + " " + std::to_string(from) + " and " + length_name + " " +
               std::to_string(length) + " do not fit",
           std::string("from there ") + length_name + " may be at most " + std::to_string(room));
  return length > 0 ? length : room;
}

} // namespace

CropArea crop_area(const CropArea& asked, uint32_t picture_width, uint32_t picture_height, Pixel pixel) {
  if (halves_chroma(pixel) && (asked.x % 2 != 0 || asked.y % 2 != 0))
    throw std::invalid_argument("x " + std::to_string(asked.x) + " and y " + std::to_string(asked.y) +
                                " must both be even in a picture of " + std::string(name_of(pixel)) +
                                ", whose chroma has half the size; convert it first, for example to rgb8");
  return {asked.x, asked.y, crop_length(asked.x, asked.width, picture_width, "x", "width"),
          crop_length(asked.y, asked.height, picture_height, "y", "height")};
}

void crop_picture(const ImageView& source, uint32_t x, uint32_t y, const ImageSpan& target) {
  const ViewWindow window(source, x, y, target.width(), target.height());
  const ImageView part = window.view();
  for (uint32_t plane = 0; plane < target.plane_count(); ++plane) {
    const size_t bytes = plane_row_bytes(target.pixel(), target.width(), plane);
    for (uint32_t row = 0; row < target.rows(plane); ++row)
      std::memcpy(target.row(row, plane), part.row(row, plane), bytes);
  }
}

} // namespace millrace::handlers
