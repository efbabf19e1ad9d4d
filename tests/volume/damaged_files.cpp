// Damaged raw numbers, NPY and TIFF: each is refused with its file, its key and what would be right.
#include <doctest/doctest.h>
#include <tiffio.h>

#include <string>
#include <vector>

#include "tests/file_bytes.h"
#include "tests/volume/damage_table.h"

namespace millrace::volume {
namespace {

using namespace test;

Wishes with_shape(const char* shape, const char* dtype = "uint16") {
  Wishes wishes;
  wishes.shape = shape;
  wishes.dtype = dtype;
  return wishes;
}

TEST_CASE("damaged raw numbers, and files that are none, are refused with a sentence") {
  Wishes level, place;
  level.level = 1;
  place.at = "t=0";
  const Make npy = just(npy_bytes(small_volume()));
  check_all({
      {"a file that is not there", "a.npy", [](const std::string&) {}, {"there is no such file"}},
      {"an empty file", "a.npy", just(""), {"the file is empty"}},
      {"a text", "a.txt", just("no volume"), {"of no format that is known", "raw numbers need shape="}},
      {"an NPY that is a text", "a.npy", just("no volume"), {"its name says NPY"}},
      {"a TIFF that is a text", "a.TIF", just("no volume"), {"its name says TIFF"}},
      {"numbers that break off",
       "a.raw",
       just(std::string(959, 'x')),
       {"it breaks off: the shape 4x10x12 of uint16 takes 960 bytes from byte 0 on, and there are 959"},
       with_shape("4x10x12")},
      {"a shape of two", "a.raw", just("x"), {"shape is '4x10'", "DEPTHxHEIGHTxWIDTH"}, with_shape("4x10")},
      {"a shape of words", "a.raw", just("x"), {"shape is 'axbxc'"}, with_shape("axbxc")},
      {"a shape of four", "a.raw", just("x"), {"shape is '1x1x1x1'"}, with_shape("1x1x1x1")},
      {"no height", "a.raw", just("x"), {"shape: the height is 0, and may be 1 to 65536"}, with_shape("4x0x12")},
      {"an overflow",
       "a.raw",
       just("x"),
       {"shape is '99999999999999999999x1x1'"},
       with_shape("99999999999999999999x1x1")},
      {"the longest sides",
       "a.raw",
       just("x"),
       {"takes 1125899906842624 bytes"},
       with_shape("65536x65536x65536", "float32")},
      {"a level of a file", "a.npy", npy, {"it is a file, and level is for the folder of a Zarr"}, level},
      {"a place of a file", "a.npy", npy, {"it is a file, and at is for the folder of a Zarr"}, place},
  });
}

TEST_CASE("damaged NPY are refused with a sentence") {
  const std::string npy = npy_bytes(small_volume());
  const auto of = [](std::vector<int64_t> shape) {
    MadeVolume volume = small_volume();
    volume.shape = std::move(shape);
    return just(npy_bytes(volume));
  };
  const auto of_type = [&](const char* type) { return just(replaced(npy, "<u2", type)); };
  check_all({
      {"cut", "a", just(npy.substr(0, npy.size() - 1)), {"it breaks off: the shape 4x10x12", "there are 959"}},
      {"cut in its header", "a", just(npy.substr(0, 40)), {"it breaks off in its header"}},
      {"of another version",
       "a",
       just(npy_bytes(small_volume(), 4)),
       {"its format version is 4, and 1 to 3 are known"}},
      {"in Fortran's order",
       "a",
       just(npy_bytes(small_volume(), 1, false, "True")),
       {"fortran_order: its first axis runs fastest", "numpy.ascontiguousarray"}},
      {"of four axes", "a", of({2, 2, 10, 12}), {"shape: it has 4 axes (2x2x10x12), and a volume has three"}},
      {"of two axes", "a", of({40, 12}), {"shape: it has 2 axes (40x12)"}},
      {"of doubles", "a", of_type("<f8"), {"descr: its elements are float64", "the nearest is float32"}},
      {"of signed numbers", "a", of_type("<i2"), {"its elements are int16", "the nearest is uint16"}},
      {"of objects", "a", of_type("|O "), {"Python objects"}},
      {"with a shape that lies", "a", of({70000, 70000, 70000}), {"shape: the depth is 70000, and may be 1 to 65536"}},
      {"without elements", "a", of({4, 0, 12}), {"shape: the height is 0"}},
  });
}

// ---- TIFF

// Pages of 12 x 10 pixels in one strip, with other tags; each further one has a row more.
Make tiff(std::function<void(TIFF*)> set, int pages = 1) {
  return [=](const std::string& path) {
    TIFF* const file = TIFFOpen(path.c_str(), "w");
    for (int page = 0; page < pages; ++page) {
      TIFFSetField(file, TIFFTAG_IMAGEWIDTH, 12);
      TIFFSetField(file, TIFFTAG_IMAGELENGTH, 10 + page);
      TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 1);
      TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
      TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
      TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, 20);
      set(file);
      std::string strip(static_cast<size_t>(TIFFStripSize(file)), '\5');
      TIFFWriteRawStrip(file, 0, strip.data(), static_cast<tmsize_t>(strip.size()));
      TIFFWriteDirectory(file);
    }
    TIFFClose(file);
  };
}

// Puts bytes into the file of such a page after others that it has once.
Make tiff_with(const std::string& after, const std::string& bytes) {
  return [=](const std::string& path) {
    tiff([](TIFF*) {})(path);
    std::string all = bytes_of(path);
    const size_t at = all.find(after);
    REQUIRE(at != all.npos);
    put(path, all.replace(at + after.size(), bytes.size(), bytes));
  };
}

Make tiff_with(uint32_t tag, int value) {
  return tiff([=](TIFF* file) { TIFFSetField(file, tag, value); });
}

void write_damaged_lzw(const std::string& path) {
  TiffLook look;
  look.compression = COMPRESSION_LZW;
  write_tiff(path, small_volume(), look);
  TIFF* const file = TIFFOpen(path.c_str(), "r");
  const auto at = static_cast<size_t>(TIFFGetStrileOffset(file, 0));
  const auto size = static_cast<size_t>(TIFFGetStrileByteCount(file, 0));
  TIFFClose(file);
  put(path, bytes_of(path).replace(at, size, std::string(size, '\xff')));
}

void write_cut(const std::string& path) {
  write_tiff(path, small_volume());
  const std::string all = bytes_of(path);
  put(path, all.substr(0, all.size() - 20)); // the last page's table lies at the end
}

TEST_CASE("TIFF that are damaged are refused with the page") {
  // Tags of one value: number, type, count.
  const std::string offsets("\x11\x01\x04\0\x01\0\0\0", 8), compression("\x03\x01\x03\0\x01\0\0\0", 8);
  const auto huge = [](TIFF* file) {
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, 60000);
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, 60000);
    TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, 1);
  };
  const auto packed_huge = [](TIFF* file) {
    TIFFSetField(file, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, 60000);
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, 20);
  };
  check_all({
      {"of a header alone", "a.tif", just(std::string("II*\0\x08\0\0\0", 8)), {"it is a damaged TIFF"}},
      {"cut", "a.tif", write_cut, {"its chain of pages breaks off"}},
      {"with a strip beyond its end",
       "a.tif",
       tiff_with(offsets, std::string("\xf0\xff\0\0", 4)),
       {"page 0: strip 0 ends at byte 65640, and the file has"}},
      {"of a codec that is not there",
       "a.tif",
       tiff_with(compression, std::string("\x39\x30", 2)),
       {"page 0: Compression: libtiff does not have number 12345"}},
      {"with strips that are not there", "a.tif", tiff(huge), {"page 0: strip 1 has no bytes"}},
      {"of two sizes",
       "a.tif",
       tiff([](TIFF*) {}, 2),
       {"page 1: it has 12 x 11 pixels of uint8, and page 0 has 12 x 10"}},
      {"of damaged LZW", "a.tif", write_damaged_lzw, {"page 0: strip 0 is damaged"}, {}, At::reading},
      {"of LZW that is damaged at once", "a.tif", tiff(packed_huge), {"page 0: strip 0 is damaged"}, {}, At::reading},
  });
}

TEST_CASE("TIFF that are no volumes are refused with the tag") {
  const auto palette = [](TIFF* file) {
    uint16_t colours[256] = {};
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_PALETTE);
    TIFFSetField(file, TIFFTAG_COLORMAP, colours, colours, colours);
  };
  const auto doubles = [](TIFF* file) {
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 64);
    TIFFSetField(file, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
  };
  const auto hidden = [](TIFF* file) {
    TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION, "ImageJ=1.53\nimages=300\nslices=300\n");
  };
  const auto channels = [](TIFF* file) {
    TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION, "ImageJ=1.53\nimages=4\nchannels=2\nslices=2\n");
  };
  const auto times = [](TIFF* file) {
    TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION,
                 R"(<OME><Image><Pixels SizeC="1" SizeT="7" SizeZ="3"/></Image></OME>)");
  };
  check_all({
      {"of ImageJ's channels", "a.tif", tiff(channels), {"channels is 2, and a volume has one channel and one time"}},
      {"of OME's times", "a.tif", tiff(times), {"SizeT is 7, and a volume has one channel and one time"}},
      {"of colours", "a.tif", tiff_with(TIFFTAG_SAMPLESPERPIXEL, 3), {"page 0: SamplesPerPixel is 3"}},
      {"of a palette", "a.tif", tiff(palette), {"PhotometricInterpretation: its numbers are places in a palette"}},
      {"of signed numbers",
       "a.tif",
       tiff_with(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_INT),
       {"BitsPerSample, SampleFormat: its elements are int8", "the nearest is uint8"}},
      {"of doubles", "a.tif", tiff(doubles), {"its elements are float64", "the nearest is float32"}},
      {"of bits", "a.tif", tiff_with(TIFFTAG_BITSPERSAMPLE, 1), {"its elements are uint1"}},
      {"of blocks", "a.tif", tiff_with(TIFFTAG_IMAGEDEPTH, 4), {"ImageDepth is not 1"}},
      {"of ImageJ with planes that no page has",
       "a.tif",
       tiff(hidden),
       {"ImageJ says 300 planes", "shape=300x10x12 dtype=uint8 endian=little offset=8 reads them as raw numbers"}},
  });
}

} // namespace
} // namespace millrace::volume
