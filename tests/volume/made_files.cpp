// Writes the files of the tests; see made_files.h.
#include "tests/volume/made_files.h"

#include <blosc.h>
#include <tiffio.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "tests/file_bytes.h"

namespace millrace::volume::test {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("a test's file cannot be made: ") + what);
}

std::string list(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

template <class Number>
void fill(std::string& bytes, uint64_t seed) {
  uint64_t state = seed;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    // Runs of one number, then others.
    const auto number = static_cast<Number>(at / 64 % 3 == 0 ? 7 : state >> 50);
    std::memcpy(bytes.data() + at, &number, sizeof number);
  }
}

std::string deflated(const std::string& bytes, bool is_gzip) {
  z_stream stream{};
  require(deflateInit2(&stream, 6, Z_DEFLATED, is_gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The next place in an array of this shape, the last axis fastest; false after the last one.
bool go_on(std::vector<int64_t>& place, const std::vector<int64_t>& shape) {
  for (size_t axis = place.size(); axis-- > 0;) {
    if (++place[axis] < shape[axis]) return true;
    place[axis] = 0;
  }
  return false;
}

size_t offset_of(const std::vector<int64_t>& place, const std::vector<int64_t>& shape) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < place.size(); ++axis) offset = offset * shape[axis] + place[axis];
  return static_cast<size_t>(offset);
}

// A chunk with all of its elements; those beyond the array are 0x55.
std::string chunk_at(const MadeVolume& array, const std::vector<int64_t>& chunk, const std::vector<int64_t>& at) {
  size_t count = 1;
  for (const int64_t side : chunk) count *= static_cast<size_t>(side);
  std::string bytes(count * array.element(), '\x55');
  std::vector<int64_t> place(chunk.size()), own(chunk.size());
  do {
    bool is_inside = true;
    for (size_t axis = 0; axis < chunk.size(); ++axis) {
      own[axis] = at[axis] * chunk[axis] + place[axis];
      is_inside = is_inside && own[axis] < array.shape[axis];
    }
    if (is_inside)
      bytes.replace(offset_of(place, chunk) * array.element(), array.element(),
                    array.bytes.substr(offset_of(own, array.shape) * array.element(), array.element()));
  } while (go_on(place, chunk));
  return bytes;
}

std::string metadata_2(const MadeVolume& array, const ZarrLook& look) {
  const char kind = array.dtype.code == MR_DTYPE_FLOAT ? 'f' : 'u';
  const char order = array.dtype.bits == 8 ? '|' : look.is_big_endian ? '>' : '<';
  const std::string compressor = look.codec == "none"    ? "null"
                                 : look.codec == "blosc" ? R"({"id": "blosc", "cname": ")" + look.inside +
                                                               R"(", "clevel": 5, "shuffle": 1, "blocksize": 0})"
                                                         : R"({"id": ")" + look.codec + R"(", "level": 3})";
  return R"({"zarr_format": 2, "shape": [)" + list(array.shape) + R"(], "chunks": [)" + list(look.chunk) +
         R"(], "dtype": ")" + order + kind + std::to_string(array.element()) + R"(", "compressor": )" + compressor +
         R"(, "fill_value": 9, "order": "C", "filters": null, "dimension_separator": ")" + look.separator + "\"}";
}

std::string metadata_3(const MadeVolume& array, const ZarrLook& look) {
  std::string names, codecs = R"({"name": "bytes", "configuration": {"endian": ")" +
                              std::string(look.is_big_endian ? "big" : "little") + "\"}}";
  if (look.codec == "blosc")
    codecs += R"(, {"name": "blosc", "configuration": {"cname": ")" + look.inside +
              R"(", "clevel": 5, "shuffle": "shuffle", "typesize": )" + std::to_string(array.element()) +
              R"(, "blocksize": 0}})";
  else if (look.codec != "none")
    codecs += R"(, {"name": ")" + look.codec + R"(", "configuration": {"level": 3}})";
  for (const std::string& name : look.names) names += (names.empty() ? "\"" : ", \"") + name + "\"";
  return R"({"zarr_format": 3, "node_type": "array", "shape": [)" + list(array.shape) + R"(], "data_type": ")" +
         name_of(array.dtype) + R"(", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [)" +
         list(look.chunk) + R"(]}}, "chunk_key_encoding": {"name": ")" + (look.has_prefix ? "default" : "v2") +
         R"(", "configuration": {"separator": ")" + look.separator + R"("}}, "fill_value": 9, "codecs": [)" + codecs +
         "], \"attributes\": {}" + (names.empty() ? "" : ", \"dimension_names\": [" + names + "]") + "}";
}

} // namespace

MadeVolume made_volume(DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  size_t count = 1;
  for (const int64_t side : shape) count *= static_cast<size_t>(side);
  MadeVolume volume = {dtype, std::move(shape), std::string(count * (dtype.bits / 8), '\0')};
  if (dtype == dtype_of<uint8_t>())
    fill<uint8_t>(volume.bytes, seed);
  else if (dtype == dtype_of<uint16_t>())
    fill<uint16_t>(volume.bytes, seed);
  else
    fill<float>(volume.bytes, seed);
  return volume;
}

std::string with_swapped(std::string bytes, size_t element) {
  for (size_t at = 0; at < bytes.size(); at += element)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element));
  return bytes;
}

std::string npy_bytes(const MadeVolume& volume, int version, bool is_big_endian, const char* order) {
  const char kind = volume.dtype.code == MR_DTYPE_FLOAT ? 'f' : 'u';
  std::string dictionary = std::string("{'descr': '") + (is_big_endian ? '>' : '<') + kind +
                           std::to_string(volume.element()) + "', 'fortran_order': " + order + ", 'shape': (" +
                           list(volume.shape) + "), }";
  const size_t length_bytes = version == 1 ? 2 : 4;
  while ((8 + length_bytes + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string bytes = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  for (size_t n = 0; n < length_bytes; ++n) bytes += static_cast<char>(dictionary.size() >> 8 * n & 0xff);
  return bytes + dictionary + (is_big_endian ? with_swapped(volume.bytes, volume.element()) : volume.bytes);
}

void write_tiff(const std::string& path, const MadeVolume& volume, const TiffLook& look) {
  TIFF* const tiff = TIFFOpen(path.c_str(), look.mode);
  require(tiff, "libtiff");
  const auto height = static_cast<uint32_t>(volume.shape[1]), width = static_cast<uint32_t>(volume.shape[2]);
  const size_t row = width * volume.element();
  const char* plane = volume.bytes.data();
  for (int64_t page = 0; page < volume.shape[0]; ++page, plane += row * height) {
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, volume.dtype.bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT,
                 volume.dtype.code == MR_DTYPE_FLOAT ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, look.compression);
    if (look.predictor > 1) TIFFSetField(tiff, TIFFTAG_PREDICTOR, look.predictor);
    if (!look.description.empty()) TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, look.description.c_str());
    if (look.tile > 0) {
      TIFFSetField(tiff, TIFFTAG_TILEWIDTH, look.tile);
      TIFFSetField(tiff, TIFFTAG_TILELENGTH, look.tile);
      std::string tile(size_t{look.tile} * look.tile * volume.element(), '\0');
      for (uint32_t top = 0; top < height; top += look.tile)
        for (uint32_t left = 0; left < width; left += look.tile) {
          for (uint32_t y = 0; y < std::min(look.tile, height - top); ++y)
            std::memcpy(tile.data() + y * look.tile * volume.element(),
                        plane + (top + y) * row + left * volume.element(),
                        std::min(look.tile, width - left) * volume.element());
          require(TIFFWriteTile(tiff, tile.data(), left, top, 0, 0) > 0, "a tile");
        }
    } else {
      TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, look.rows_per_strip);
      std::string line(row, '\0');
      for (uint32_t y = 0; y < height; ++y) {
        std::memcpy(line.data(), plane + y * row, row); // libtiff may change what it is given
        require(TIFFWriteScanline(tiff, line.data(), y, 0) == 1, "a row");
      }
    }
    require(TIFFWriteDirectory(tiff) == 1, "a page");
  }
  TIFFClose(tiff);
}

std::string packed(const std::string& codec, const std::string& bytes, size_t element, const std::string& inside) {
  if (codec == "none") return bytes;
  if (codec == "gzip" || codec == "zlib") return deflated(bytes, codec == "gzip");
  std::string out(bytes.size() + 1000, '\0');
  if (codec == "zstd") {
    out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
    return out;
  }
  require(codec == "blosc", "a codec");
  const int size = blosc_compress_ctx(5, BLOSC_SHUFFLE, element, bytes.size(), bytes.data(), out.data(), out.size(),
                                      inside.c_str(), 0, 1);
  require(size > 0, "blosc");
  out.resize(static_cast<size_t>(size));
  return out;
}

void put(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  put_bytes(path, bytes);
}

std::string zarr_metadata(const MadeVolume& array, const ZarrLook& look) {
  return look.version == 2 ? metadata_2(array, look) : metadata_3(array, look);
}

void write_zarr(const std::string& folder, const MadeVolume& array, const ZarrLook& look) {
  put(folder + (look.version == 2 ? "/.zarray" : "/zarr.json"), zarr_metadata(array, look));
  std::vector<int64_t> counts, at(array.shape.size());
  for (size_t axis = 0; axis < array.shape.size(); ++axis)
    counts.push_back((array.shape[axis] + look.chunk[axis] - 1) / look.chunk[axis]);
  do {
    std::string key = look.version == 3 && look.has_prefix ? "c" : "";
    for (const int64_t n : at) key += (key.empty() ? "" : look.separator) + std::to_string(n);
    std::string bytes = chunk_at(array, look.chunk, at);
    if (look.is_big_endian) bytes = with_swapped(std::move(bytes), array.element());
    put(folder + "/" + key, packed(look.codec, bytes, array.element(), look.inside));
  } while (go_on(at, counts));
}

} // namespace millrace::volume::test
