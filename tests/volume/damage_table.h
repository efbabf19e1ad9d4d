// Tables of damaged files of volumes: how each is made, and what is said of it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "plugins/volume/files/volume_file.h"
#include "tests/contains.h"
#include "tests/folder.h"
#include "tests/volume/made_files.h"

namespace millrace::volume::test {

enum class At { opening, reading };

using Make = std::function<void(const std::string& path)>;

// One damaged file or folder, which `make` writes at a path that ends in `name`.
struct Damaged {
  const char* what;
  const char* name;
  Make make;
  std::vector<const char*> words; // of the sentence
  Wishes wishes = {};
  At at = At::opening;
};

inline const MadeVolume& small_volume() {
  static const MadeVolume volume = made_volume(dtype_of<uint16_t>(), {4, 10, 12});
  return volume;
}

inline Make just(const std::string& bytes) {
  return [=](const std::string& path) { put(path, bytes); };
}

inline std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  REQUIRE_MESSAGE(at != text.npos, std::string(old));
  return text.replace(at, old.size(), by);
}

// The sentence about a file, and when it came; "" if there is none.
inline std::string sentence_about(const std::string& path, const Wishes& wishes, At& at) {
  try {
    at = At::opening;
    const auto file = open_volume(path, wishes);
    at = At::reading;
    std::vector<uint8_t> bytes(file->description().bytes());
    Crew crew(2);
    file->read_into(bytes, crew);
  } catch (const VolumeFileError& error) {
    return error.what();
  }
  return "";
}

inline void check(const Damaged& one) {
  CAPTURE(std::string(one.what));
  const millrace::test::Folder folder;
  const std::string path = folder.path / one.name;
  one.make(path);
  At at = At::opening;
  const std::string sentence = sentence_about(path, one.wishes, at);
  CAPTURE(sentence);
  CHECK(contains(sentence, "cannot read '" + path));
  CHECK(at == one.at);
  for (const char* const words : one.words) CHECK_MESSAGE(contains(sentence, words), std::string(words));
}

inline void check_all(const std::vector<Damaged>& table) {
  for (const Damaged& one : table) check(one);
}

} // namespace millrace::volume::test
