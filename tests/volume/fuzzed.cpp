// Inputs with which the fuzzer of tests/fuzz/volume_fuzz.cpp reached new code, as tests/fuzz/corpus.py packs them, and
// damaged ones.
#include <doctest/doctest.h>
#include <tiffio.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/damage.h"
#include "tests/file_bytes.h"
#include "tests/folder.h"
#include "tests/fuzz/packed.h"
#include "tests/fuzz/volume_fuzz.h"
#include "tests/volume/made_files.h"

namespace millrace::volume {
namespace {

constexpr unsigned kSeed = 28;
constexpr int kDamagedOfEach = 10;

std::vector<std::string> inputs() { return unpacked(MILLRACE_SOURCE_DIR, "volume.txt"); }

void look_at(const std::string& input) {
  const char* const broken = look_at_volume({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
  CHECK_MESSAGE(broken == nullptr, std::string(broken));
}

TEST_CASE("a fuzzed file of a volume is refused in words, or read within the size that it says") {
  const std::vector<std::string> all = inputs();
  CHECK(all.size() >= 200);
  for (size_t n = 0; n < all.size(); ++n) {
    INFO("volume.txt, line " << n + 1);
    look_at(all[n]);
  }
}

TEST_CASE("so is one that is cut off or has other bytes in it") {
  std::mt19937 random(kSeed);
  for (const std::string& input : inputs())
    for (int n = 0; n < kDamagedOfEach && input.size() > 1; ++n)
      look_at(input.substr(0, 1) + damaged(input.substr(1), random));
}

TEST_CASE("a good TIFF or NPY that was cut off or has other bytes in it is refused in words, or read") {
  std::mt19937 random(kSeed);
  const millrace::test::Folder folder;
  const std::string path = folder.path / "a.tif";
  for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS})
    for (const char* const mode : {"w", "w8", "wb"})
      for (const uint32_t tile : {0, 16}) {
        test::TiffLook look;
        look.mode = mode;
        look.compression = static_cast<uint16_t>(compression);
        look.tile = tile;
        test::write_tiff(path, test::made_volume(dtype_of<uint16_t>(), {3, 9, 17}), look);
        const std::string good = bytes_of(path);
        for (int n = 0; n < 4 * kDamagedOfEach; ++n) look_at("f" + damaged(good, random));
      }
  const std::string npy = test::npy_bytes(test::made_volume(dtype_of<float>(), {3, 9, 17}));
  for (int n = 0; n < 20 * kDamagedOfEach; ++n) look_at("f" + damaged(npy, random));
}

} // namespace
} // namespace millrace::volume
