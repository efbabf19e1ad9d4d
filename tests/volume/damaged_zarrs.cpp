// Damaged Zarr: each is refused with its file, its key and what would be right.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/file_bytes.h"
#include "tests/volume/damage_table.h"

namespace millrace::volume {
namespace {

using namespace test;

// Writes an array in which `old` of its metadata is changed.
Make zarr(int version, const char* codec, const std::string& old = "", const std::string& by = "") {
  return [=](const std::string& path) {
    ZarrLook look;
    look.version = version;
    look.codec = codec;
    write_zarr(path, small_volume(), look);
    const std::string file = path + (version == 2 ? "/.zarray" : "/zarr.json");
    if (!old.empty()) put(file, replaced(bytes_of(file), old, by));
  };
}

// ---- metadata of an array

struct Change {
  const char* what;
  int version;
  const char *codec, *old, *by;
  const char* words; // after the file's name
};

constexpr Change kWrongShapes[] = {
    {"no JSON", 2, "none", "{", "[", "it is no JSON: the mistake is at byte"},
    {"a number beyond all", 2, "none", "[4, 10,", "[4, 1e999,", "a number in it is beyond 1.8e308"},
    {"no shape", 2, "none", "\"shape\"", "\"sharp\"", "it has no 'shape'"},
    {"a side of text", 2, "none", "[4, 10,", "[4, \"10\",", "shape[1]: it is \"10\", and should be a whole number"},
    {"a negative side", 3, "none", "[4, 10,", "[4, -10,", "shape[1]: it is -10, and should be a whole number"},
    {"no side", 3, "none", "[4, 10,", "[4, 0,", "shape[1]: it is 0, and should be a whole number from 1"},
    {"a broken side", 3, "none", "[4, 10,", "[4, 10.5,", "shape[1]: it is 10.5, and should be a whole number"},
    {"a huge side", 2, "none", "[4, 10,", "[4, 18446744073709551615,", "shape[1]: it is 18446744073709551615"},
    {"a long side", 2, "none", "[4, 10,", "[4, 70000,", "shape: the height is 70000, and may be 1 to 65536"},
    {"many axes", 2, "none", "[4, 10,", "[1, 1, 1, 1, 1, 1, 4, 10,", "shape: it has 9 elements, and may have 8"},
    {"chunks of two axes", 2, "none", "[4, 5, 6]", "[4, 5]", "chunks: it has 2 axes, and the shape has 3"},
    {"huge chunks", 3, "none", "[4, 5, 6]", "[65536, 65536, 65536]",
     "chunk_grid.configuration.chunk_shape: a chunk has more than 1073741824 bytes"},
    {"too many chunks", 2, "none", "[4, 10, 12]", "[60000, 60000, 60000]", "the volume has 1800000000000 chunks"},
    {"another grid", 3, "none", "\"regular\"", "\"rectilinear\"",
     "chunk_grid.name: it is 'rectilinear', and only 'regular' is known"},
};

constexpr Change kWrongTypes[] = {
    {"doubles", 2, "none", "<u2", "<f8",
     "dtype: its elements are float64, and a volume has uint8, uint16 or float32; "
     "the nearest is float32"},
    {"signed numbers", 3, "none", "uint16", "int16", "data_type: its elements are int16"},
    {"structures", 2, "none", "\"<u2\"", "[[\"a\", \"<u2\"]]", "dtype: it is [[\"a\",\"<u2\"]], and a volume has"},
    {"an unknown type", 3, "none", "uint16", "numbers", "data_type: it is \"numbers\", and a volume has"},
    {"Fortran's order", 2, "none", "\"order\": \"C\"", "\"order\": \"F\"", "order: it is 'F', and only C is read"},
    {"no order", 2, "none", "\"order\"", "\"sort\"", "it has no 'order'"},
    {"filters", 2, "none", "\"filters\": null", "\"filters\": [{\"id\": \"delta\"}]", "filters: there are filters"},
    {"a fill value too large", 2, "none", "\"fill_value\": 9", "\"fill_value\": 65536",
     "fill_value: it is 65536, and should be a whole number from 0 to 65535"},
    {"another separator", 2, "none", "separator\": \"/\"", "separator\": \"-\"",
     "dimension_separator: it is '-', and may be '.' or '/'"},
    {"another key encoding", 3, "none", "\"default\"", "\"v4\"",
     "chunk_key_encoding.name: it is 'v4', and may be 'default' or 'v2'"},
    {"another version", 3, "none", "\"zarr_format\": 3", "\"zarr_format\": 4",
     "zarr_format: it is 4, and should be a whole number from 2 to 3"},
    {"an extension", 3, "none", "\"attributes\"", "\"acme\"", "acme: this extension is not known"},
    {"too few names", 3, "none", "\"attributes\": {}", "\"dimension_names\": [\"z\"]",
     "dimension_names: there are 1, and the shape has 3 axes"},
    {"axes in another order", 3, "none", "\"attributes\": {}", "\"dimension_names\": [\"x\", \"y\", \"z\"]",
     "its axes are x, y, z, and a volume has z, y, x"},
};

constexpr Change kWrongCodecs[] = {
    {"an unknown codec", 2, "zstd", "\"id\": \"zstd\"", "\"id\": \"lzma\"",
     "compressor.id: the codec 'lzma' is not known; null, blosc, zstd, gzip or zlib are"},
    {"an unknown codec of blosc", 2, "blosc", "\"lz4\"", "\"lz5\"",
     "compressor.cname: blosc does not have 'lz5', but blosclz,lz4"},
    {"an unknown codec of version 3", 3, "zstd", "\"name\": \"zstd\"", "\"name\": \"crc32c\"",
     "codecs[1].name: the codec 'crc32c' is not known; bytes, blosc, zstd, gzip or zlib are"},
    {"shards", 3, "zstd", "\"name\": \"zstd\"", "\"name\": \"sharding_indexed\"", "codecs[1].name: it is sharded"},
    {"turned axes", 3, "zstd", "\"name\": \"bytes\"", "\"name\": \"transpose\"", "codecs[0].name: its axes are turned"},
    {"no bytes", 3, "none", "\"name\": \"bytes\"", "\"name\": \"gzip\"", "codecs: 'bytes' is missing"},
    {"two codecs", 3, "zstd", "{\"name\": \"zstd\"", "\"gzip\", {\"name\": \"zstd\"",
     "codecs[2].name: 'zstd' is a second codec"},
    {"bytes in no order", 3, "none", "\"endian\"", "\"ending\"", "codecs[0]: it has no 'endian'"},
    {"bytes in another order", 3, "none", "\"little\"", "\"middle\"",
     "codecs[0].configuration.endian: it is 'middle', and may be 'little' or 'big'"},
};

template <size_t count>
void check_changes(const Change (&changes)[count]) {
  for (const Change& one : changes)
    check({one.what,
           "a.zarr",
           zarr(one.version, one.codec, one.old, one.by),
           {one.version == 2 ? "a.zarr/.zarray': " : "a.zarr/zarr.json': ", one.words}});
}

TEST_CASE("shapes and chunks of a Zarr that make no sense are refused with their key") { check_changes(kWrongShapes); }
TEST_CASE("numbers of a Zarr that are no voxels are refused with their key") { check_changes(kWrongTypes); }
TEST_CASE("metadata of lists in lists without end are refused before anybody follows them") {
  const std::string deep = std::string(60'000, '[') + std::string(60'000, ']');
  check({"a shape of lists",
         "a.zarr",
         [&](const std::string& path) { put(path + "/.zarray", R"({"shape": )" + deep + "}"); },
         {"it has lists or objects in each other, more than 64"}});
}
TEST_CASE("a Zarr without axes is refused, with and without a wish") {
  const Make none = [](const std::string& path) {
    put(path + "/.zarray", R"({"zarr_format": 2, "shape": [], "chunks": [], "dtype": "<u2", "compressor": null,)"
                           R"( "fill_value": 0, "order": "C", "filters": null})");
  };
  check({"of a number", "a.zarr", none, {"shape: it is empty, and a volume has three axes"}});
  Wishes wishes;
  wishes.at = "t=0";
  check({"of a number, and a wish", "a.zarr", none, {"shape: it is empty"}, wishes});
}
TEST_CASE("codecs of a Zarr that are not known are refused with their key") { check_changes(kWrongCodecs); }

// ---- groups

std::string ome(const std::string& axes, const std::string& datasets = R"([{"path": "0"}])") {
  return R"({"multiscales": [{"axes": )" + axes + R"(, "datasets": )" + datasets + "}]}";
}
// A group with one array of five axes.
Make group(const std::string& attributes) {
  return [=](const std::string& path) {
    put(path + "/.zattrs", attributes);
    ZarrLook look;
    look.chunk = {1, 1, 4, 10, 12};
    write_zarr(path + "/0", made_volume(dtype_of<uint8_t>(), {7, 2, 4, 10, 12}), look);
  };
}
Wishes with(int64_t level, const char* at = "") {
  Wishes wishes;
  wishes.level = level;
  wishes.at = at;
  return wishes;
}

const char* const kFiveAxes = R"(["t", "c", "z", "y", "x"])";

TEST_CASE("axes that leave no volume are refused with their names") {
  const Make five = group(ome(kFiveAxes));
  check_all({
      {"five axes",
       "a",
       five,
       {"shape: it has the axes t (7), c (2), z (4), y (10), x (12), of which 5 are left", "at=t=0,c=0 chooses"}},
      {"one place", "a", five, {"of which 4 are left", "at=c=0 chooses"}, with(0, "t=3")},
      {"three places", "a", five, {"of which 2 are left, and a volume has three"}, with(0, "t=0,c=0,z=0")},
      {"a place too far", "a", five, {"at: 't=7' is no place on the axis t, which has 0 to 6"}, with(0, "t=7")},
      {"a place of words", "a", five, {"at: 'c=red' is no place on the axis c"}, with(0, "c=red")},
      {"no place", "a", five, {"at: 't' names none of the axes t,"}, with(0, "t")},
      {"another axis", "a", zarr(2, "none"), {"at: 't=0' names none of the axes dim_0, dim_1, dim_2"}, with(0, "t=0")},
  });
}

TEST_CASE("groups of OME-Zarr without the level that is asked for are refused with their key") {
  const auto levels = [](const char* datasets) { return group(ome(kFiveAxes, datasets)); };
  const auto empty = [](const std::string& path) { std::filesystem::create_directory(path); };
  const auto inner = [](const std::string& path) { zarr(2, "none")(path + "/inner"); };
  const auto no_picture = [](const std::string& path) {
    put(path + "/.zgroup", "{}");
    zarr(3, "none")(path + "/raw");
  };
  Wishes shape;
  shape.shape = "4x10x12";
  check_all({
      {"an empty folder", "a", empty, {"and so no Zarr"}},
      {"a folder with a Zarr", "a", inner, {"no Zarr; the path may go on to one of the Zarrs in it: inner"}},
      {"a shape", "a", zarr(2, "none"), {"it is a folder, and shape is for a file of raw numbers"}, shape},
      {"no picture", "a", no_picture, {"without 'multiscales'", "one of the Zarrs in it: raw"}},
      {"a list",
       "a",
       [](const std::string& path) { put(path + "/.zarray", "[]"); },
       {"it is [], and should be an object"}},
      {"no pictures", "a", group(R"({"multiscales": []})"), {"multiscales: it is empty"}},
      {"level 3 of 1", "a", levels(R"([{"path": "0"}])"), {"datasets: level 3 is not there, but 0 to 0"}, with(3)},
      {"level 1 of one array", "a", zarr(2, "none"), {"level is 1, and one array has level 0 alone"}, with(1)},
      {"a level outside", "a", levels(R"([{"path": "../../etc"}])"), {"[0].path: '../../etc' leads out of the group"}},
      {"a level of the root", "a", levels(R"([{"path": "/etc"}])"), {"[0].path: '/etc' leads out of the group"}},
      {"a level that is missing", "a", levels(R"([{"path": "9"}])"), {"/9': there is no array"}},
      {"a level without a path", "a", levels("[{}]"), {"multiscales[0].datasets[0]: it has no 'path'"}},
      {"axes of numbers", "a", group(ome("[1, 2]")), {"multiscales[0].axes[0]: it is 1, and should be an object"}},
      {"fewer axes", "a", group(ome(R"(["z", "y", "x"])")), {"shape: it has 5 axes, and multiscales says 3"}},
  });
}

// ---- chunks

// Writes an array, and changes the file of one of its chunks, which has 240 bytes.
Make chunk(const char* codec, std::function<std::string(std::string)> change) {
  return [=](const std::string& path) {
    zarr(2, codec)(path);
    put(path + "/0/1/1", change(bytes_of(path + "/0/1/1")));
  };
}
std::function<std::string(std::string)> other(const char* codec, size_t size) {
  return [=](const std::string&) { return packed(codec, std::string(size, 'x'), 2); };
}
std::string cut(const std::string& all) { return all.substr(0, all.size() - 1); }
std::string emptied(const std::string&) { return ""; }
std::string changed(std::string all) {
  for (size_t at = all.size() / 2; at < all.size(); ++at) all[at] ^= 0x5a;
  return all;
}

TEST_CASE("chunks that are missing or have no size of a chunk are refused before any is decoded") {
  const auto without_two = [](const std::string& path) {
    zarr(2, "blosc")(path);
    std::filesystem::remove(path + "/0/0/1");
    std::filesystem::remove(path + "/0/1/1");
  };
  const auto with_folder = [](const std::string& path) {
    zarr(2, "none")(path);
    std::filesystem::remove(path + "/0/1/1");
    std::filesystem::create_directory(path + "/0/1/1");
  };
  const auto of_version_5 = [](std::string all) { return '\5' + all.substr(1); };
  const auto headless = [](const std::string& all) { return all.substr(0, 9); };
  const auto longer = [](const std::string& all) { return all + std::string(20'000, 'x'); };
  check_all({
      {"two missing",
       "a",
       without_two,
       {"2 of 4 chunks are missing, the first is '0/0/1'", "missing=fill takes them as fill_value"}},
      {"all missing", "a", zarr(2, "none", "tor\": \"/\"", "tor\": \".\""), {"4 of 4 chunks are missing", "'0.0.0'"}},
      {"empty", "a", chunk("blosc", emptied), {"/0/1/1': the file is empty"}},
      {"a folder", "a", with_folder, {"/0/1/1': it is not a regular file"}},
      {"cut", "a", chunk("none", cut), {"/0/1/1': it has 239 bytes, and a chunk has 240"}},
      {"blosc, cut", "a", chunk("blosc", cut), {"/0/1/1': blosc's header: it says a file of"}},
      {"blosc, cut in its header", "a", chunk("blosc", headless), {"/0/1/1': it is too short for blosc's header"}},
      {"blosc, longer", "a", chunk("blosc", other("blosc", 250)), {"it says 250 bytes, and a chunk has 240"}},
      {"blosc, version 5", "a", chunk("blosc", of_version_5), {"its version is 5, and 1 and 2 are known"}},
      {"no zstd", "a", chunk("zstd", other("gzip", 240)), {"/0/1/1': it does not begin as zstd does"}},
      {"zstd, longer", "a", chunk("zstd", other("zstd", 250)), {"it says 250 bytes, and a chunk has 240"}},
      {"no gzip", "a", chunk("gzip", other("zlib", 240)), {"/0/1/1': it does not begin as gzip does"}},
      {"no zlib", "a", chunk("zlib", other("gzip", 240)), {"/0/1/1': it does not begin as zlib does"}},
      {"far too long", "a", chunk("gzip", longer), {"bytes, too many for a chunk of 240"}},
  });
}

TEST_CASE("chunks that prove damaged when they are decoded are errors with their file") {
  const std::vector<Damaged> table = {
      {"blosc, changed", "a", chunk("blosc", changed), {"/0/1/1': blosc cannot decode it"}},
      {"zstd, cut", "a", chunk("zstd", cut), {"/0/1/1': zstd cannot decode it"}},
      {"zstd, changed", "a", chunk("zstd", changed), {"/0/1/1': zstd cannot decode it"}},
      {"gzip, cut", "a", chunk("gzip", cut), {"/0/1/1': it holds more than a chunk, or its checksum is missing"}},
      {"gzip, changed", "a", chunk("gzip", changed), {"/0/1/1': "}},
      {"gzip, shorter", "a", chunk("gzip", other("gzip", 200)), {"/0/1/1': it says 200 bytes, and a chunk has 240"}},
      {"zlib, longer", "a", chunk("zlib", other("zlib", 250)), {"/0/1/1': it holds more than a chunk"}},
  };
  for (Damaged one : table) {
    one.at = At::reading;
    check(one);
  }
}

} // namespace
} // namespace millrace::volume
