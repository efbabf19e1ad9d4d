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
    REQUIRE(refused.starts_with("'" + damaged + "' is "));
    const std::string said = refused.substr(damaged.size() + 2); // without the path
    const auto names = [&](const char* part) { return said.find(part) != std::string::npos; };
    REQUIRE((names("section settings") || names("section anchors") || names("section deviations") ||
             names("section labels") || names("its header") || names("its table") || names("its end") ||
             names("is not a codebook's file")));
  }
}

// A section as a hostile writer makes it, with checksums that are right.
struct Claimed {
  uint32_t kind;
  std::string bytes;
  uint32_t rows, columns;
  uint64_t offset = 0, length = UINT64_MAX; // other than they are
};

void write_claims(const std::string& path, const std::vector<Claimed>& sections) {
  const auto as_bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const auto put = [](std::string& to, auto value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto padded = [](std::string& bytes) { bytes.resize((bytes.size() + 63) / 64 * 64); };
  std::string body(64 + 32 * sections.size(), '\0'), table;
  padded(body);
  for (const Claimed& section : sections) {
    put(table, section.kind);
    put(table, crc32c(as_bytes(section.bytes)));
    put(table, section.offset ? section.offset : uint64_t{body.size()});
    put(table, section.length == UINT64_MAX ? uint64_t{section.bytes.size()} : section.length);
    put(table, section.rows);
    put(table, section.columns);
    body += section.bytes;
    padded(body);
  }
  std::string header = "MRCODEBK";
  put(header, uint32_t{1});
  put(header, static_cast<uint32_t>(sections.size()));
  put(header, uint64_t{body.size()});
  put(header, crc32c(as_bytes(table)));
  put(header, crc32c(as_bytes(header)));
  put_bytes(path, body.replace(0, header.size(), header).replace(64, table.size(), table));
}

TEST_CASE("a file whose checksums are right and whose shapes are wrong is refused") {
  const test::Folder folder;
  const std::string path = (folder.path / "a.codebook").string();
  const std::string two_by_three(12, '\0'), one_label(4, '\0'),
      nan = std::string("\xff\x7f", 2) + std::string(10, '\0');
  const Claimed anchors{2, two_by_three, 2, 3};
  const auto refused = [&](const std::vector<Claimed>& sections) {
    write_claims(path, sections);
    const std::string said = refusal_of(path);
    return said.empty() ? said : said.substr(path.size() + 3);
  };
  CHECK(refused({anchors, {4, one_label, 1, 1}}) == "");
  CHECK(refused({{1, "", 0, 1}, anchors}) == "");
  CHECK(refused({{2, two_by_three, 2, 3, 1 << 20}}) == "is damaged: its section anchors lies outside of its place");
  CHECK(refused({{2, two_by_three, 2, 3, 0, 1 << 20}}) == "is damaged: its section anchors lies outside of its place");
  CHECK(refused({{2, two_by_three, 2, 3, 0, UINT64_MAX - 100}}) ==
        "is damaged: its section anchors lies outside of its place");
  // Products of rows and columns that are right in 64 bits once they are multiplied by the size of an element.
  CHECK(refused({anchors, {4, "", 1u << 31, 1u << 31}}) ==
        "is damaged: its section labels has another shape than its bytes");
  CHECK(refused({{2, one_label, 4294836226u, 2147549185u}}) ==
        "is damaged: its section anchors has another shape than its bytes");
  CHECK(refused({anchors, anchors}) == "is damaged: its section anchors comes twice");
  CHECK(refused({anchors, {3, two_by_three, 3, 2}}) ==
        "is damaged: its section deviations has another shape than the anchors");
  CHECK(refused({anchors, {4, one_label + one_label, 1, 2}}) ==
        "is damaged: its section labels has another shape than its bytes");
  CHECK(refused({{2, nan, 2, 3}}) == "is damaged: its section anchors has a number that is not finite");
  CHECK(refused({anchors, {3, nan, 2, 3}}) == "is damaged: its section deviations has a number that is not finite");
  CHECK(refused({anchors, {9, "", 0, 0}}) == "is damaged: its table has a section of kind 9");
  CHECK(refused({{4, one_label, 1, 1}}) == "is damaged: its table has no anchors");
  CHECK(refused({}) == "is damaged: its table has no anchors");
  write_claims(path, {{2, std::string(64, '\0'), 2, 16}});
  std::filesystem::resize_file(path, 96); // the offset of the section lies after the end
  CHECK(refusal_of(path).find("is damaged: its header says") != std::string::npos);
}

TEST_CASE("a target that is no regular file is refused, and a link is followed") {
  const test::Folder folder;
  const Made made = make();
  CHECK_THROWS_WITH_AS(write_codebook("/dev/full", made.view()), "cannot write '/dev/full': Invalid argument",
                       CodebookFileError);
  CHECK(std::filesystem::is_character_file("/dev/full"));
  const std::filesystem::path target = folder.path / "target.codebook", link = folder.path / "link.codebook";
  std::filesystem::create_symlink(target, link);
  write_codebook(link.string(), made.view());
  CHECK(std::filesystem::is_symlink(link));
  CHECK(refusal_of(target.string()) == "");
  CHECK_THROWS_AS(write_codebook(folder.path.string(), made.view()), CodebookFileError);
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

TEST_CASE("a label without an anchor is refused, but for that of vectors that were left out") {
  const test::Folder folder;
  const std::string path = (folder.path / "a.codebook").string();
  Made made = make();
  made.labels[4] = kNoLabel;
  write_codebook(path, made.view());
  CHECK(refusal_of(path) == "");
  made.labels[5] = 7;
  write_codebook(path, made.view());
  CHECK(refusal_of(path) ==
        "'" + path + "' is damaged: its section labels has label 7 of vector 5, and there are 7 anchors");
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
  CHECK(refused() ==
        "'" + (folder.path / "a.assign.bin").string() + "' has 88 bytes, and its .idx says 23 numbers of 4");
  write_published(path, view);
  std::ofstream((folder.path / "a.assign.bin").string(), std::ios::binary | std::ios::in) << '\x07';
  CHECK(refused() == "'" + (folder.path / "a.assign.bin").string() + "' is damaged: vector 0 has label 7 of 7");
  Made left_out = made;
  left_out.labels[8] = kNoLabel;
  CHECK_THROWS_WITH_AS(write_published(path, left_out.view()),
                       ("vector 8 has no anchor, because it was left out of the fit, and '" + path +
                        "' cannot say so; a codebook's own file can")
                           .c_str(),
                       CodebookFileError);
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
