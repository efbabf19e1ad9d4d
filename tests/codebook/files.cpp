// Files of codebooks: read back, of the published sizes, and refused when damaged.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/crc32c.h"
#include "plugins/codebook/deviations.h"
#include "plugins/codebook/published_files.h"
#include "rig.h"
#include "tests/file_bytes.h"
#include "tests/folder.h"
#include "tests/part.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::codebook;

namespace {

template <class T>
bool same_bytes(std::span<const T> some, std::span<const T> others) {
  return std::ranges::equal(std::as_bytes(some), std::as_bytes(others));
}

// A codebook whose sections have odd lengths.
struct Made {
  std::vector<Float16> anchors, deviations;
  std::vector<uint32_t> labels;
  CodebookView view() const { return {7, 5, "anchors=7\nenergy=0.25\n", anchors, deviations, labels}; }
};
Made make() {
  Made made;
  for (uint32_t n = 0; n < 7 * 5; ++n) {
    made.anchors.push_back(Float16(0.25f * static_cast<float>(n) - 4));
    made.deviations.push_back(Float16(0.01f * static_cast<float>(n)));
  }
  for (uint32_t n = 0; n < 23; ++n) made.labels.push_back(n % 7);
  return made;
}

std::string refusal_of(const std::string& path) {
  try {
    const CodebookFile file(path);
    return "";
  } catch (const CodebookFileError& error) {
    return error.what();
  }
}

} // namespace

TEST_CASE("the checksum is CRC-32C") {
  const std::string digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xe3069283u);
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xff); // RFC 3720, B.4
  CHECK(crc32c(std::as_bytes(std::span(zeros))) == 0x8a9136aau);
  CHECK(crc32c(std::as_bytes(std::span(ones))) == 0x62a8ab43u);
  CHECK(crc32c({}) == 0);
}

TEST_CASE("a codebook is read back as it was written, with and without labels and deviations") {
  const test::Folder folder;
  const Made made = make();
  const std::string path = (folder.path / "some/where/a.codebook").string();
  for (const bool labels : {true, false})
    for (const bool deviations : {true, false}) {
      CodebookView view = made.view();
      if (!labels) view.labels = {};
      if (!deviations) view.deviations = {};
      write_codebook(path, view);
      const CodebookFile file(path);
      const CodebookView& read = file.view();
      CHECK(read.anchor_count == 7);
      CHECK(read.dimensions == 5);
      CHECK(read.settings == view.settings);
      CHECK(setting(read.settings, "energy") == "0.25");
      CHECK(setting(read.settings, "nergy") == "");
      CHECK(same_bytes(read.anchors, view.anchors));
      CHECK(same_bytes(read.deviations, view.deviations));
      CHECK(same_bytes(read.labels, view.labels));
      for (const void* at :
           {static_cast<const void*>(read.anchors.data()), static_cast<const void*>(read.labels.data())})
        CHECK(reinterpret_cast<uintptr_t>(at) % 64 == 0);
      CHECK(is_codebook_file(path));
    }
  CHECK(std::distance(std::filesystem::directory_iterator((folder.path / "some/where").string()), {}) ==
        1); // nothing lies beside it
}

TEST_CASE("of 1,000 damaged files none is read, and each refusal names the part that is damaged") {
  const uint32_t seed = random_seed();
  INFO("MILLRACE_SEED=", seed);
  std::mt19937 draw(seed);
  const test::Folder folder;
  const std::string path = (folder.path / "whole.codebook").string(),
                    damaged = (folder.path / "damaged.codebook").string();
  write_codebook(path, make().view());
  const std::string whole = bytes_of(path);
  REQUIRE(refusal_of(path) == "");
  for (int64_t n = 0; n < test::part_of(1000); ++n) {
    std::string bytes = whole;
    const size_t at = draw() % bytes.size();
    switch (n % 4) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << draw() % 8); break; // a flipped bit
      case 1: bytes.resize(at); break;                                           // cut off
      case 2: bytes.insert(at, 1, static_cast<char>(draw())); break;
      default: std::rotate(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end() - 1, bytes.end()); break;
    }
    if (bytes == whole) continue;
    put_bytes(damaged, bytes);
    const std::string refused = refusal_of(damaged);
    INFO("damage ", n, " at byte ", at, ": ", refused);
    const auto names = [&](const char* part) { return refused.find(part) != std::string::npos; };
    REQUIRE((names("section settings") || names("section anchors") || names("section deviations") ||
             names("section labels") || names("header") || names("table") || names("end") ||
             names("is not a codebook's file")));
  }
}

TEST_CASE("a flipped bit is told by the section that it lies in") {
  const test::Folder folder;
  const std::string path = (folder.path / "a.codebook").string();
  write_codebook(path, make().view());
  const std::string whole = bytes_of(path);
  const auto with_flip = [&](size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    put_bytes(path, bytes);
    return refusal_of(path);
  };
  CHECK(with_flip(9) == "'" + path + "' is damaged: its header is not as it was written");
  CHECK(with_flip(64 + 20) == "'" + path + "' is damaged: its table is not as it was written");
  CHECK(with_flip(192 + 3) == "'" + path + "' is damaged: its section settings is not as it was written");
  CHECK(with_flip(256 + 3) == "'" + path + "' is damaged: its section anchors is not as it was written");
  CHECK(with_flip(384 + 3) == "'" + path + "' is damaged: its section deviations is not as it was written");
  CHECK(with_flip(512 + 3) == "'" + path + "' is damaged: its section labels is not as it was written");
  CHECK(with_flip(256 + 75) ==
        "'" + path + "' is damaged: its padding before section deviations is not as it was written");
  CHECK(refusal_of((folder.path / "none").string()).ends_with("No such file or directory"));
  CHECK(refusal_of((folder.path / ".").string()) ==
        "cannot read '" + ((folder.path / ".").string()) + "': it is no file");
}

TEST_CASE("the published files of the large case have the published sizes and ratios, and are read back") {
  const test::Folder folder;
  const Points points = points_of(waves(10000, 128), 128);
  FitSettings settings;
  settings.maintenance = Maintenance::as_published;
  const Fit made = fit_of(points, settings, 2);
  const std::vector<Float16> anchors = halves_of(made.anchors);
  const CodebookView view{static_cast<uint32_t>(made.anchors.count()), 128, "", anchors, {}, made.labels};
  const std::string path = (folder.path / "large.idx").string();
  write_published(path, view);
  CHECK(std::filesystem::file_size(path) == 19);
  CHECK(std::filesystem::file_size((folder.path / "large.anchors.bin").string()) == 67'072);
  CHECK(std::filesystem::file_size((folder.path / "large.assign.bin").string()) == 40'000);
  const std::string header = bytes_of(path);
  CHECK(header == std::string("ACLV\x01\0\x06\x01\0\0\x80\0\0\0\x10\x27\0\0\0", 19));
  const PublishedCodebook read = read_published(path);
  CHECK(same_bytes(std::span<const Float16>(read.anchors), view.anchors));
  CHECK(read.labels == made.labels);
  CHECK(100 * size_ratio(256, 128, 10000, 4) == doctest::Approx(2.06).epsilon(0.005)); // as published
  CHECK(100 * size_ratio(262, 128, 10000, 4) ==
        doctest::Approx(2.09).epsilon(0.005)); // with the anchors that there are
  CHECK(100 * size_ratio(262, 128, 10000, 2) ==
        doctest::Approx(4.18).epsilon(0.005)); // against the halves that there are
}

TEST_CASE("published files that do not fit together are refused") {
  const test::Folder folder;
  const Made made = make();
  CodebookView view = made.view();
  view.deviations = {};
  const std::string path = (folder.path / "a.idx").string();
  const auto refused = [&] {
    try {
      read_published(path);
      return std::string();
    } catch (const CodebookFileError& error) {
      return std::string(error.what());
    }
  };
  write_published(path, view);
  CHECK(refused() == "");
  std::filesystem::resize_file((folder.path / "a.assign.bin").string(), 88);
  CHECK(refused() == "'" + (folder.path / "a.assign.bin").string() + "' has 88 bytes, and its .idx says 92");
  write_published(path, view);
  std::ofstream((folder.path / "a.assign.bin").string(), std::ios::binary | std::ios::in) << '\x07';
  CHECK(refused() == "'" + (folder.path / "a.assign.bin").string() + "' is damaged: vector 0 has label 7 of 7");
  std::filesystem::resize_file(path, 18);
  CHECK(refused() == "'" + path + "' is no published index: it has 18 bytes, and such a file has 19");
  CHECK_THROWS_WITH(write_published((folder.path / "a.bin").string(), view),
                    doctest::Contains("the published files are named by one that ends with .idx"));
}

TEST_CASE("deviations are those of a cell's members from their anchor") {
  const Points points = points_of(std::vector<float>{1, 10, 3, 10}, 2);
  Rows anchors(2, 2);
  anchors.row(0)[0] = 2;
  anchors.row(0)[1] = 7;
  const std::vector<uint32_t> labels = {0, 0};
  std::vector<Float16> made(4, Float16(9));
  find_deviations(points.rows, anchors, labels, made);
  CHECK(float{made[0]} == 1);
  CHECK(float{made[1]} == 3);
  CHECK(float{made[2]} == 0);
  CHECK(float{made[3]} == 0);
}
