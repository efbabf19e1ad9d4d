// Pictures as encoders take them; see picture.h.
#include "plugins/codec/picture.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace millrace::codec {

Picture picture_of(const ImageView& image) {
  Picture picture;
  picture.pixel = image.pixel();
  picture.width = image.width();
  picture.height = image.height();
  picture.color = image.color();
  picture.range = image.range();
  const size_t planes = std::min<size_t>(image.plane_count(), picture.planes.size());
  for (uint32_t p = 0; p < planes; ++p) {
    picture.planes[p] = image.plane(p);
    picture.strides[p] = image.stride(p);
  }
  return picture;
}

void require_encodable(const Picture& picture, std::string_view encoder, uint32_t side_max) {
  const std::string name(encoder);
  switch (picture.pixel) {
    case Pixel::gray8:
    case Pixel::rgb8:
    case Pixel::bgr8:
    case Pixel::rgba8:
    case Pixel::bgra8:
    case Pixel::nv12:
    case Pixel::i420: break;
    default:
      throw std::invalid_argument("the encoder " + name + " does not take pictures of the format " +
                                  std::string(name_of(picture.pixel)) +
                                  ", but gray8, rgb8, bgr8, rgba8, bgra8, nv12 and i420");
  }
  if (picture.width < 1 || picture.height < 1 || picture.width > side_max || picture.height > side_max)
    throw std::invalid_argument("the encoder " + name + " does not take a picture of " + std::to_string(picture.width) +
                                " × " + std::to_string(picture.height) + " pixels; a side has 1 to " +
                                std::to_string(side_max));
}

} // namespace millrace::codec
