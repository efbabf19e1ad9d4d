// Reads the pages of a TIFF; see tiff_file.h.
#include "plugins/volume/files/tiff_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/input_file.h"
#include "plugins/volume/files/tiff_handle.h"

namespace millrace::volume {

namespace {

// A handle reads so many pages, because to open one costs as much as a small page.
constexpr size_t kPagesPerHandle = 8;

class TiffFile final : public VolumeFile {
 public:
  TiffFile(const VolumeDescription& description, std::string path, uint64_t file_bytes, std::vector<uint64_t> pages)
      : VolumeFile(description), path_(std::move(path)), file_bytes_(file_bytes), pages_(std::move(pages)) {}

  void read_into(std::span<uint8_t> target, Crew& crew) const override {
    const size_t plane = target.size() / pages_.size();
    crew.each(pages_.size(), kPagesPerHandle, [&](size_t begin, size_t end) {
      TiffHandle handle(path_); // libtiff's objects belong to one thread
      std::vector<uint8_t> tile;
      for (size_t number = begin; number < end; ++number) {
        handle.go_to(pages_[number]);
        const TiffPage page = handle.check_page(number, file_bytes_);
        check_unchanged(handle, page, number);
        const std::span<uint8_t> to = target.subspan(number * plane, plane);
        page.is_tiled ? read_tiles(handle, page, number, tile, to) : read_strips(handle, page, number, to);
      }
    });
  }

 private:
  void check_unchanged(const TiffHandle& handle, const TiffPage& page, size_t number) const {
    const VolumeDescription& all = description();
    if (page.dtype != all.dtype || page.height != all.shape[1] || page.width != all.shape[2])
      throw handle.fault(number, "its size or type has changed since it was opened");
  }
  // A strip holds whole rows, so it is decoded into its place.
  static void read_strips(const TiffHandle& handle, const TiffPage& page, size_t number, std::span<uint8_t> to) {
    for (uint32_t strip = 0; strip < page.down(); ++strip) {
      const uint32_t begin = strip * page.piece_height, rows = std::min(page.piece_height, page.height - begin);
      const auto bytes = static_cast<tmsize_t>(page.bytes_of(uint64_t{rows} * page.width));
      uint8_t* const place = to.data() + page.bytes_of(uint64_t{begin} * page.width);
      if (TIFFReadEncodedStrip(handle.raw(), strip, place, bytes) != bytes)
        throw handle.fault(number, "strip " + std::to_string(strip) + " is damaged");
    }
  }
  static void read_tiles(const TiffHandle& handle, const TiffPage& page, size_t number, std::vector<uint8_t>& tile,
                         std::span<uint8_t> to) {
    const uint64_t tile_row = page.bytes_of(page.piece_width), row = page.bytes_of(page.width);
    tile.resize(tile_row * page.piece_height);
    for (uint32_t n = 0; n < page.across() * page.down(); ++n) {
      const auto bytes = static_cast<tmsize_t>(tile.size());
      if (TIFFReadEncodedTile(handle.raw(), n, tile.data(), bytes) != bytes)
        throw handle.fault(number, "tile " + std::to_string(n) + " is damaged");
      const uint32_t left = n % page.across() * page.piece_width, top = n / page.across() * page.piece_height;
      const uint32_t rows = std::min(page.piece_height, page.height - top);
      const uint64_t count = page.bytes_of(std::min(page.piece_width, page.width - left));
      for (uint32_t y = 0; y < rows; ++y)
        std::memcpy(to.data() + (top + uint64_t{y}) * row + page.bytes_of(left), tile.data() + y * tile_row, count);
    }
  }

  const std::string path_;
  const uint64_t file_bytes_;
  const std::vector<uint64_t> pages_; // offsets in the file
};

// The number after a word of the description; 1: it is not there.
int64_t number_after(std::string_view text, std::string_view word) {
  int64_t number = 1;
  if (const size_t at = text.find(word); at != text.npos)
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

// All pages are planes of one volume, so there may be no channels and times among them. ImageJ and OME say so in the
// first page's description.
void refuse_other_axes(const TiffHandle& handle, std::string_view text) {
  for (const std::string_view word : {"channels=", "frames=", "SizeC=\"", "SizeT=\""}) {
    const bool is_known = text.starts_with("ImageJ=") || text.find("<OME") != text.npos;
    if (const int64_t count = number_after(text, word); is_known && count > 1)
      throw handle.fault(0, "ImageDescription: " + std::string(word.substr(0, word.find('='))) + " is " +
                                std::to_string(count) +
                                ", and a volume has one channel and one time: write those apart");
  }
}

// ImageJ writes a stack of more than 4 GiB as one page with the other planes after it, and says so in its description.
void refuse_hidden_planes(const TiffHandle& handle, const TiffPage& page, std::string_view text) {
  const int64_t count = number_after(text, "images=");
  if (!text.starts_with("ImageJ=") || count < 2) return;
  throw handle.fault(
      0, "ImageDescription: ImageJ says " + std::to_string(count) +
             " planes, and there is one page; shape=" + shown({count, page.height, page.width}) +
             " dtype=" + name_of(page.dtype) + " endian=" + (TIFFIsBigEndian(handle.raw()) ? "big" : "little") +
             " offset=" + std::to_string(TIFFGetStrileOffset(handle.raw(), 0)) + " reads them as raw numbers");
}

std::string description_of(const TiffHandle& handle) {
  const char* words = nullptr;
  return TIFFGetField(handle.raw(), TIFFTAG_IMAGEDESCRIPTION, &words) && words ? words : "";
}

} // namespace

std::unique_ptr<VolumeFile> open_tiff(const std::string& path) {
  const uint64_t file_bytes = InputFile(path).size();
  TiffHandle handle(path);
  const TiffPage first = handle.check_page(0, file_bytes);
  const std::string words = description_of(handle);
  refuse_other_axes(handle, words);
  std::vector<uint64_t> pages = {TIFFCurrentDirOffset(handle.raw())};
  while (handle.next_page()) {
    if (pages.size() == kSideMax) throw cannot_read(path, "it has more than " + std::to_string(kSideMax) + " pages");
    const TiffPage page = handle.check_page(pages.size(), file_bytes);
    if (page.width != first.width || page.height != first.height || page.dtype != first.dtype)
      throw handle.fault(pages.size(), "it has " + std::to_string(page.width) + " x " + std::to_string(page.height) +
                                           " pixels of " + name_of(page.dtype) + ", and page 0 has " +
                                           std::to_string(first.width) + " x " + std::to_string(first.height) + " of " +
                                           name_of(first.dtype) + "; all planes of a volume are alike");
    pages.push_back(TIFFCurrentDirOffset(handle.raw()));
  }
  if (pages.size() == 1) refuse_hidden_planes(handle, first, words);
  const VolumeDescription description = {
      "TIFF", first.dtype, {static_cast<int64_t>(pages.size()), first.height, first.width}};
  return std::make_unique<TiffFile>(description, path, file_bytes, std::move(pages));
}

} // namespace millrace::volume
