// Opens a TIFF and checks its pages; see tiff_handle.h.
#include "plugins/volume/files/tiff_handle.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "plugins/volume/files/fault.h"

namespace millrace::volume {

namespace {

// Pieces are decoded into memory of this size at most, and libtiff allocates no more at a time.
constexpr uint64_t kPieceBytesMax = uint64_t{1} << 30;

// In one page. Tiles have at least 16 x 16 pixels.
constexpr uint64_t kPiecesMax = uint64_t{1} << 24;

int keep_error(TIFF*, void* words, const char*, const char* format, va_list arguments) {
  std::array<char, 300> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  *static_cast<std::string*>(words) = text.data();
  return 1; // nobody else is told
}
int ignore_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

// The greatest ratio at which a codec can pack, rounded up; 0: not known.
uint64_t packs_at_most(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE: return 1;
    case COMPRESSION_PACKBITS: return 64;
    case COMPRESSION_LZW: return 4096; // codes of at least 9 bits for at most 4096 bytes
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE: return 1040; // 258 bytes for two bits
    default: return 0;
  }
}

template <class Number>
Number field(TIFF* tiff, uint32_t tag) {
  Number number = 0;
  TIFFGetFieldDefaulted(tiff, tag, &number);
  return number;
}

} // namespace

TiffHandle::TiffHandle(std::string path) : path_(std::move(path)) {
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(kPieceBytesMax));
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &words_);
  TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, nullptr);
  tiff_ = TIFFOpenExt(path_.c_str(), "rm", options); // m: not mapped, so that a file that is cut off is an error
  TIFFOpenOptionsFree(options);
  if (!tiff_) throw cannot_read(path_, "it is a damaged TIFF: " + words_);
}

TiffHandle::~TiffHandle() { TIFFClose(tiff_); }

bool TiffHandle::next_page() {
  if (TIFFLastDirectory(tiff_)) return false;
  words_.clear();
  if (!TIFFReadDirectory(tiff_)) throw cannot_read(path_, "its chain of pages breaks off: " + words_);
  return true;
}

void TiffHandle::go_to(uint64_t offset) {
  words_.clear();
  if (TIFFCurrentDirOffset(tiff_) != offset && !TIFFSetSubDirectory(tiff_, offset))
    throw cannot_read(path_, "it has changed since it was opened: " + words_);
}

VolumeFileError TiffHandle::fault(size_t number, const std::string& why) const {
  return cannot_read(path_, "page " + std::to_string(number) + ": " + why + (words_.empty() ? "" : ": " + words_));
}

TiffPage TiffHandle::check_page(size_t number, uint64_t file_bytes) const {
  const auto samples = field<uint16_t>(tiff_, TIFFTAG_SAMPLESPERPIXEL);
  if (samples != 1)
    throw fault(number, "SamplesPerPixel is " + std::to_string(samples) + ", and a volume has one number for a voxel");
  if (field<uint32_t>(tiff_, TIFFTAG_IMAGEDEPTH) > 1) throw fault(number, "ImageDepth is not 1; pages are the planes");
  uint16_t photometric = PHOTOMETRIC_MINISBLACK;
  TIFFGetField(tiff_, TIFFTAG_PHOTOMETRIC, &photometric);
  if (photometric == PHOTOMETRIC_PALETTE)
    throw fault(number, "PhotometricInterpretation: its numbers are places in a palette");
  TiffPage page;
  page.width = field<uint32_t>(tiff_, TIFFTAG_IMAGEWIDTH);
  page.height = field<uint32_t>(tiff_, TIFFTAG_IMAGELENGTH);
  check_shape(path_, "page " + std::to_string(number), {1, page.height, page.width});
  const auto bits = field<uint16_t>(tiff_, TIFFTAG_BITSPERSAMPLE),
             format = field<uint16_t>(tiff_, TIFFTAG_SAMPLEFORMAT);
  const char* const kind = format == SAMPLEFORMAT_IEEEFP                                ? "float"
                           : format == SAMPLEFORMAT_INT                                 ? "int"
                           : format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID ? "uint"
                                                                                        : "complex";
  const std::string type = kind + std::to_string(bits);
  if (type != "uint8" && type != "uint16" && type != "float32")
    throw fault(number, "BitsPerSample, SampleFormat: " + wrong_type(type));
  page.dtype = bits == 8 ? dtype_of<uint8_t>() : bits == 16 ? dtype_of<uint16_t>() : dtype_of<float>();
  page.compression = field<uint16_t>(tiff_, TIFFTAG_COMPRESSION);
  if (!TIFFIsCODECConfigured(page.compression))
    throw fault(number, "Compression: libtiff does not have number " + std::to_string(page.compression) +
                            "; deflate, LZW and none are always there");
  page.is_tiled = TIFFIsTiled(tiff_) != 0;
  page.piece_width = page.is_tiled ? field<uint32_t>(tiff_, TIFFTAG_TILEWIDTH) : page.width;
  page.piece_height = page.is_tiled ? field<uint32_t>(tiff_, TIFFTAG_TILELENGTH)
                                    : std::min(field<uint32_t>(tiff_, TIFFTAG_ROWSPERSTRIP), page.height);
  check_pieces(page, number, file_bytes);
  return page;
}

void TiffHandle::check_pieces(const TiffPage& page, size_t number, uint64_t file_bytes) const {
  const uint64_t piece_bytes = page.bytes_of(uint64_t{page.piece_width} * page.piece_height);
  if (piece_bytes == 0 || page.piece_width > kSideMax || page.piece_height > kSideMax || piece_bytes > kPieceBytesMax)
    throw fault(number, "a tile or strip has " + std::to_string(page.piece_width) + " x " +
                            std::to_string(page.piece_height) + " pixels, and may take 1 byte to 1 GiB");
  const uint64_t most = packs_at_most(page.compression);
  if (uint64_t{page.across()} * page.down() > kPiecesMax)
    throw fault(number, "it has more than " + std::to_string(kPiecesMax) + " tiles or strips");
  for (uint32_t piece = 0; piece < page.across() * page.down(); ++piece) {
    const uint64_t offset = TIFFGetStrileOffset(tiff_, piece), bytes = TIFFGetStrileByteCount(tiff_, piece);
    const std::string name = (page.is_tiled ? "tile " : "strip ") + std::to_string(piece);
    if (bytes == 0) throw fault(number, name + " has no bytes");
    if (offset > file_bytes || bytes > file_bytes - offset)
      throw fault(number, name + " ends at byte " + std::to_string(offset + bytes) + ", and the file has " +
                              std::to_string(file_bytes));
    const uint32_t rows =
        page.is_tiled ? page.piece_height : std::min(page.piece_height, page.height - piece * page.piece_height);
    const uint64_t expected = page.bytes_of(uint64_t{page.piece_width} * rows);
    if (most > 0 && expected / most > bytes)
      throw fault(number, name + " has " + std::to_string(bytes) + " bytes, too few for its " +
                              std::to_string(expected) + " bytes of pixels");
  }
}

} // namespace millrace::volume
