// Volumes in files: every format of one volume gives the same bytes. zarrs.cpp has those of Zarr.
#include <doctest/doctest.h>
#include <tiffio.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plugins/volume/files/volume_file.h"
#include "tests/contains.h"
#include "tests/file_bytes.h"
#include "tests/folder.h"
#include "tests/plugin_table.h"
#include "tests/volume/made_files.h"
#include "tests/volume/same_volume.h"

namespace millrace::volume {
namespace {

using namespace test;
using millrace::test::Folder;

bool is_mapped(const std::string& path, const Wishes& wishes = {}) {
  return open_volume(path, wishes)->mapped().has_value();
}

Wishes raw(const MadeVolume& volume, uint64_t offset = 0, bool is_big_endian = false) {
  Wishes wishes;
  wishes.shape =
      std::to_string(volume.shape[0]) + "x" + std::to_string(volume.shape[1]) + "x" + std::to_string(volume.shape[2]);
  wishes.dtype = name_of(volume.dtype);
  wishes.offset = offset;
  wishes.is_big_endian = is_big_endian;
  return wishes;
}

TEST_CASE("raw numbers are read from any place, in either order of bytes, and mapped where no byte has to move") {
  const Folder folder;
  const std::string path = folder.path / "numbers.dat";
  for (const DType dtype : kVoxelTypes) {
    const MadeVolume volume = sample(dtype);
    for (const uint64_t offset : {0, 8, 13}) {
      CAPTURE(offset);
      put(path, std::string(offset, '\x77') + volume.bytes + "the end");
      check_same(path, volume, raw(volume, offset));
      CHECK(is_mapped(path, raw(volume, offset)) == (offset % volume.element() == 0));
      put(path, std::string(offset, '\x77') + with_swapped(volume.bytes, volume.element()));
      check_same(path, volume, raw(volume, offset, true));
      CHECK(is_mapped(path, raw(volume, offset, true)) == (volume.element() == 1));
    }
  }
}

TEST_CASE("NPY of versions 1 to 3 is read in either order of bytes, and mapped if it is little-endian") {
  const Folder folder;
  const std::string path = folder.path / "a.npy";
  for (const DType dtype : kVoxelTypes)
    for (const int version : {1, 2, 3}) {
      const MadeVolume volume = sample(dtype);
      put(path, npy_bytes(volume, version));
      check_same(path, volume);
      CHECK(is_mapped(path));
      put(path, npy_bytes(volume, version, true));
      check_same(path, volume);
      CHECK(is_mapped(path) == (volume.element() == 1));
    }
}

TEST_CASE("a stack of one volume in NPY, as tensor.to_npy writes it, is a volume") {
  const Folder folder;
  MadeVolume volume = sample(dtype_of<uint16_t>());
  volume.shape.insert(volume.shape.begin(), 1);
  put(folder.path / "a.npy", npy_bytes(volume));
  volume.shape.erase(volume.shape.begin());
  check_same(folder.path / "a.npy", volume);
}

TEST_CASE("mapped voxels stay when their file is closed and removed") {
  const Folder folder;
  const MadeVolume volume = sample(dtype_of<float>());
  const std::string path = folder.path / "a.npy";
  put(path, npy_bytes(volume));
  auto voxels = open_volume(path, {})->mapped();
  std::filesystem::remove(path);
  REQUIRE(voxels);
  const auto kept = voxels->first;
  const size_t size = voxels->size;
  voxels.reset();
  CHECK((std::string(kept.get(), kept.get() + size) == volume.bytes));
  CHECK(reinterpret_cast<uintptr_t>(kept.get()) % sizeof(float) == 0);
}

TEST_CASE("TIFF and BigTIFF give their pages, in strips and tiles, packed or not, in either order of bytes") {
  const Folder folder;
  const std::string path = folder.path / "a.tif";
  int tried = 0;
  for (const DType dtype : kVoxelTypes)
    for (const char* const mode : {"w", "w8", "wb", "wb8"})
      for (const int compression :
           {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_ZSTD})
        for (const uint32_t tile : {0, 16}) {
          if (!TIFFIsCODECConfigured(static_cast<uint16_t>(compression))) continue;
          TiffLook look;
          look.mode = mode;
          look.compression = static_cast<uint16_t>(compression);
          look.tile = tile;
          // libtiff's writer swaps big-endian numbers before a predictor for floating ones that wants them as they are.
          const bool is_float = dtype.code == MR_DTYPE_FLOAT, is_swapped = contains(mode, "b");
          if (compression == COMPRESSION_LZW && !(is_float && is_swapped)) look.predictor = is_float ? 3 : 2;
          const MadeVolume volume = sample(dtype);
          write_tiff(path, volume, look);
          CAPTURE(std::string(mode));
          CAPTURE(compression);
          CAPTURE(tile);
          check_same(path, volume);
          ++tried;
        }
  CHECK(tried >= 3 * 4 * 4 * 2);
}

TEST_CASE("more pages than one thread reads at a time are read by several") {
  const Folder folder;
  const MadeVolume volume = made_volume(dtype_of<uint16_t>(), {61, 5, 9});
  write_tiff(folder.path / "a.tif", volume, {"w", COMPRESSION_LZW});
  check_same(folder.path / "a.tif", volume);
}

TEST_CASE("volume.file gives its volume once, whether it is mapped or decoded") {
  static const mr_handler_type& type = type_of(load_plugin("volume"), "volume.file");
  const Folder folder;
  const MadeVolume volume = sample(dtype_of<uint16_t>());
  put(folder.path / "a.npy", npy_bytes(volume));
  write_tiff(folder.path / "a.tif", volume);
  write_zarr(folder.path / "a.zarr", volume, {3, "blosc"});
  for (const char* const name : {"a.npy", "a.tif", "a.zarr"}) {
    CAPTURE(std::string(name));
    testing::TableTest test(type, {{"path", folder.path / name}, {"threads", "3"}});
    const testing::Value value = test.tick().value("volume");
    const TensorSpan tensor = value.tensor();
    CHECK(std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()) == volume.shape);
    CHECK((std::string(tensor.data(), tensor.data() + volume.bytes.size()) == volume.bytes));
    CHECK(test.tick().end());
  }
}

TEST_CASE("volume.file says what is wrong with a file before it runs, and what is wrong with a chunk in its tick") {
  static const mr_handler_type& type = type_of(load_plugin("volume"), "volume.file");
  const Folder folder;
  const std::string path = folder.path / "a.zarr";
  write_zarr(path, sample(dtype_of<uint8_t>()), {2, "zstd"});
  std::string chunk = bytes_of(path + "/1/1/1");
  chunk[chunk.size() / 2] ^= 0x55;
  put(path + "/1/1/1", chunk + "more");
  testing::TableTest test(type, {{"path", path}});
  CHECK(test.start() == MR_OK);
  CHECK(contains(test.tick().error, "cannot read '" + path + "/1/1/1': zstd cannot decode it"));
  std::filesystem::remove(path + "/1/1/1");
  testing::TableTest other(type, {{"path", path}});
  CHECK(contains(other.tick().error, "1 of 24 chunks are missing, the first is '1/1/1'"));
}

} // namespace
} // namespace millrace::volume
