// Volumes in Zarr: every codec and every shape of chunks gives the same bytes, and axes and levels the part asked for.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/folder.h"
#include "tests/volume/made_files.h"
#include "tests/volume/same_volume.h"

namespace millrace::volume {
namespace {

using namespace test;
using millrace::test::Folder;

TEST_CASE("Zarr 2 and 3 are read with each codec, in chunks that do and do not divide the shape") {
  const Folder folder;
  int number = 0;
  const std::vector<std::vector<int64_t>> chunks = {{4, 5, 6},  {7, 13, 21}, {1, 13, 21}, {2, 13, 21}, {1, 1, 21},
                                                    {1, 4, 21}, {9, 20, 30}, {1, 1, 1},   {7, 13, 4}};
  for (const int version : {2, 3})
    for (const DType dtype : kVoxelTypes)
      for (const char* const codec : {"none", "blosc", "zstd", "gzip", "zlib"})
        for (const std::vector<int64_t>& chunk : chunks) {
          if (chunk == std::vector<int64_t>{1, 1, 1} && (std::string(codec) != "none" || dtype.bits != 16)) continue;
          ZarrLook look;
          look.version = version;
          look.codec = codec;
          look.chunk = chunk;
          look.is_big_endian = number % 2 == 1;
          look.separator = number % 3 == 0 ? "." : "/";
          look.has_prefix = number % 5 != 0;
          const MadeVolume volume = sample(dtype);
          const std::string path = folder.path / std::to_string(number++);
          write_zarr(path, volume, look);
          CAPTURE(version);
          CAPTURE(std::string(codec));
          check_same(path, volume);
        }
  CHECK(number > 200);
}

TEST_CASE("what blosc packed with each of its codecs is read") {
  const Folder folder;
  for (const char* const inside : {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}) {
    ZarrLook look;
    look.codec = "blosc";
    look.inside = inside;
    CAPTURE(std::string(inside));
    write_zarr(folder.path / inside, sample(dtype_of<uint16_t>()), look);
    check_same(folder.path / inside, sample(dtype_of<uint16_t>()));
  }
}

// The volume at one place of the other axes of an array; `axes` are the volume's.
MadeVolume part_of(const MadeVolume& array, const std::vector<size_t>& axes, const std::vector<int64_t>& place) {
  MadeVolume part = {array.dtype, {}, ""};
  for (const size_t axis : axes) part.shape.push_back(array.shape[axis]);
  std::vector<int64_t> at = place;
  for (int64_t z = 0; z < part.shape[0]; ++z)
    for (int64_t y = 0; y < part.shape[1]; ++y)
      for (int64_t x = 0; x < part.shape[2]; ++x) {
        at[axes[0]] = z;
        at[axes[1]] = y;
        at[axes[2]] = x;
        int64_t offset = 0;
        for (size_t axis = 0; axis < at.size(); ++axis) offset = offset * array.shape[axis] + at[axis];
        part.bytes += array.bytes.substr(static_cast<size_t>(offset) * array.element(), array.element());
      }
  return part;
}

// A group with two levels, of which the second is `coarse`.
std::string write_ome(const std::string& folder, const char* version, const std::string& axes, const MadeVolume& fine,
                      const MadeVolume& coarse, ZarrLook look) {
  const std::string list = R"({"multiscales": [{"version": ")" + std::string(version) + "\"" +
                           (axes.empty() ? "" : ", \"axes\": " + axes) +
                           R"(, "datasets": [{"path": "0"}, {"path": "coarse/1"}]}]})";
  if (look.version == 2) {
    put(folder + "/.zgroup", R"({"zarr_format": 2})");
    put(folder + "/.zattrs", list);
  } else {
    put(folder + "/zarr.json", R"({"zarr_format": 3, "node_type": "group", "attributes": {"ome": )" + list + "}}");
  }
  write_zarr(folder + "/0", fine, look);
  write_zarr(folder + "/coarse/1", coarse, look);
  return folder;
}

TEST_CASE("OME-Zarr gives the level, and the place on axes beyond the volume's that is asked for") {
  const Folder folder;
  const MadeVolume fine = made_volume(dtype_of<uint16_t>(), {3, 2, 7, 13, 21});
  const MadeVolume coarse = made_volume(dtype_of<uint16_t>(), {3, 2, 4, 7, 11}, 5);
  ZarrLook look;
  look.chunk = {2, 1, 4, 5, 6}; // two times in one chunk
  look.codec = "zstd";
  Wishes wishes;
  wishes.at = "c=1,t=2";
  const std::string named = R"([{"name": "t", "type": "time"}, {"name": "c", "type": "channel"},
      {"name": "z", "type": "space"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}])";
  const std::vector<std::tuple<int, const char*, std::string>> kinds = {
      {2, "0.4", named}, {2, "0.3", R"(["t", "c", "z", "y", "x"])"}, {2, "0.2", ""}, {3, "0.5", named}};
  for (const auto& [zarr, version, axes] : kinds) {
    CAPTURE(std::string(version));
    look.version = zarr;
    const std::string path = write_ome(folder.path / version, version, axes, fine, coarse, look);
    wishes.level = 0;
    check_same(path, part_of(fine, {2, 3, 4}, {2, 1, 0, 0, 0}), wishes);
    wishes.level = 1;
    check_same(path, part_of(coarse, {2, 3, 4}, {2, 1, 0, 0, 0}), wishes);
  }
}

TEST_CASE("axes of one element are passed over, and others are found by their names in zarr.json") {
  const Folder folder;
  const MadeVolume single = made_volume(dtype_of<uint8_t>(), {1, 1, 7, 13, 21});
  ZarrLook look;
  look.chunk = {1, 1, 4, 13, 21};
  write_zarr(folder.path / "single", single, look);
  check_same(folder.path / "single", {single.dtype, {7, 13, 21}, single.bytes});
  const MadeVolume colours = made_volume(dtype_of<uint16_t>(), {7, 13, 21, 3}); // beside each other
  look = {3, "gzip", "", {4, 5, 6, 2}};
  look.names = {"z", "y", "x", "c"};
  write_zarr(folder.path / "colours", colours, look);
  Wishes wishes;
  wishes.at = "c=2";
  check_same(folder.path / "colours", part_of(colours, {0, 1, 2}, {0, 0, 0, 2}), wishes);
  write_zarr(folder.path / "unnamed", colours, {2, "zlib", "", {7, 13, 21, 3}});
  wishes.at = "dim_3=1";
  check_same(folder.path / "unnamed", part_of(colours, {0, 1, 2}, {0, 0, 0, 1}), wishes);
  const MadeVolume flat = made_volume(dtype_of<uint8_t>(), {1, 13, 21}); // z stays, however short
  write_zarr(folder.path / "flat", flat, {2, "none", "", {1, 5, 6}});
  check_same(folder.path / "flat", flat);
}

TEST_CASE("with missing=fill a chunk without a file has the array's fill value") {
  const Folder folder;
  Wishes wishes;
  wishes.fills_missing = true;
  for (const DType dtype : kVoxelTypes) {
    MadeVolume volume = sample(dtype);
    const std::string path = folder.path / name_of(dtype);
    write_zarr(path, volume, {});
    std::filesystem::remove(path + "/1/2/3");
    for (int64_t z = 4; z < 7; ++z)
      for (int64_t y = 10; y < 13; ++y)
        for (int64_t x = 18; x < 21; ++x) {
          const float real = 9;
          const uint16_t whole = 9; // the first byte is 9 too
          volume.bytes.replace(
              static_cast<size_t>((z * 13 + y) * 21 + x) * volume.element(), volume.element(),
              dtype.bits == 32 ? reinterpret_cast<const char*>(&real) : reinterpret_cast<const char*>(&whole),
              volume.element());
        }
    check_same(path, volume, wishes);
  }
}

} // namespace
} // namespace millrace::volume
