// The files of a new plugin project. examples/plugin is what this makes of "acme.invert"; a test compares the two.
#include "cli/new.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "observe/error.h"
#include "plugin/registry.h"

namespace millrace::cli {
namespace fs = std::filesystem;

namespace {

// In the texts, @family@, @name@, @type@ and @Class@ stand for acme, invert, acme.invert and Invert.

constexpr std::string_view kCMakeLists =
    R"_(# The @family@ plugin: builds build/plugins/@family@_plugin.so and tests its handlers.
cmake_minimum_required(VERSION 3.22)
project(@family@ VERSION 0.1.0 LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_package(millrace REQUIRED)
millrace_add_plugin(@family@_plugin SOURCES src/@name@.cpp)

enable_testing()
add_executable(@name@_test test/@name@_test.cpp)
target_link_libraries(@name@_test PRIVATE millrace::headers)
add_test(NAME @name@ COMMAND @name@_test)
)_";

constexpr std::string_view kHandler = R"_(// @type@: inverts a picture, as far as one likes.
#include <millrace/handler.h>

namespace mr = millrace;

namespace {

struct @Class@ final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8, mr::Pixel::rgb8, mr::Pixel::bgr8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<float> strength{*this, "strength", 1.0f, "0 leaves the picture, 1 inverts it", mr::range(0, 1), mr::live};

  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan inverted = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width() * mr::bytes_per_pixel(in.pixel()); ++x)
        inverted.row(y)[x] = static_cast<uint8_t>(in.row(y)[x] + strength * (255 - 2 * in.row(y)[x]));
  }
};

} // namespace

MILLRACE_HANDLER(@Class@, "@type@", "Inverts a picture")
MILLRACE_PLUGIN("@family@", "0.1.0")
)_";

constexpr std::string_view kTest = R"_(// Tests @type@ alone: no runtime, no pipeline.
#include "../src/@name@.cpp" // the class is private to its file

#include <millrace/testing.h>

#include <cstdio>

namespace {

int failures = 0;

// Unlike assert(), also in a release build.
void check(bool holds, const char* sentence) {
  if (!holds) std::fprintf(stderr, "not true: %s\n", sentence);
  if (!holds) ++failures;
}

// The first byte of what the handler makes of a picture that is 10 everywhere.
int made_of_ten(const char* strength) {
  mr::testing::HandlerTest<@Class@> test({{"strength", strength}});
  test.input("video", mr::testing::image(mr::Pixel::rgb8, 5, 3, 10));
  const mr::testing::Result result = test.tick();
  if (!result.ok()) std::fprintf(stderr, "the handler failed: %s\n", result.error.c_str());
  return result.ok() ? result.image("video").row(0)[0] : -1;
}

} // namespace

int main() {
  check(made_of_ten("1") == 245, "at strength 1 the picture is inverted");
  check(made_of_ten("0") == 10, "at strength 0 the picture stays as it is");
  return failures == 0 ? 0 : 1;
}
)_";

constexpr std::string_view kPipeline = R"_(# Shows what @type@ does to a test picture, 100 times:
#   millrace run pipeline.yaml --plugin-path build/plugins
version: 1
name: @name@
handlers:
  picture: { type: test.pattern, width: 320, height: 240, count: 100 }
  handler: { type: @type@, input: picture, strength: 0.5 }
  end:     { type: null.sink, input: handler }
)_";

constexpr std::string_view kReadme = R"_(# The @family@ plugin

A millrace plugin with one handler, `@type@`.

    cmake -B build -Dmillrace_DIR=DIR    # the build folder of millrace, or lib/cmake/millrace of an installed one
    cmake --build build
    ctest --test-dir build --output-on-failure
    millrace run pipeline.yaml --plugin-path build/plugins

| file | what it is |
|---|---|
| `src/@name@.cpp` | the handler: ports, parameters, the body; and the plugin's one exported symbol |
| `test/@name@_test.cpp` | its test, without a runtime |
| `pipeline.yaml` | a pipeline that uses it |

It begins as an inverter: put your own work into `process`. A second handler is a second file in `src/`, named in
`CMakeLists.txt`; `MILLRACE_PLUGIN` stays in one of them.
)_";

struct File {
  std::string_view path, text;
};
constexpr std::array<File, 5> kFiles = {{
    {"CMakeLists.txt", kCMakeLists},
    {"src/@name@.cpp", kHandler},
    {"test/@name@_test.cpp", kTest},
    {"pipeline.yaml", kPipeline},
    {"README.md", kReadme},
}};

// Where the parts of a type name go.
struct Words {
  std::string family, name, type, class_name;
};

Words words_of(const std::string& type) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto follows = [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; };
  const auto is_word = [&](const std::string& word) {
    return !word.empty() && lower(word[0]) && std::all_of(word.begin(), word.end(), follows);
  };
  const size_t dot = type.find('.');
  const Words words{type.substr(0, dot), dot == std::string::npos ? "" : type.substr(dot + 1), type, ""};
  if (!is_word(words.family) || !is_word(words.name)) {
    Error error{105, "'" + type + "' is no name for a handler type", {}, {}, {}, {}};
    error.notes.push_back("expected family.name in small letters, digits and _, for example acme.invert");
    throw Failure(std::move(error));
  }
  if (plugin::Registry().find(type))
    throw Failure(Error{105, "'" + type + "' is a built-in handler: no plugin may have another", {}, {}, "", ""});
  return words;
}

// remove_noise → RemoveNoise
std::string class_name_of(const std::string& name) {
  std::string result;
  bool first = true;
  for (char c : name) {
    if (c != '_') result += first && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    first = c == '_';
  }
  return result;
}

std::string filled_in(std::string_view text, const Words& words) {
  const std::array<std::pair<std::string_view, const std::string*>, 4> places = {
      {{"@family@", &words.family}, {"@name@", &words.name}, {"@type@", &words.type}, {"@Class@", &words.class_name}}};
  std::string result(text);
  for (const auto& [place, word] : places)
    for (size_t at = 0; (at = result.find(place, at)) != std::string::npos; at += word->size())
      result.replace(at, place.size(), *word);
  return result;
}

[[noreturn]] void cannot_use(const std::string& dir, const std::string& why) {
  throw Failure(Error{120, "cannot make a plugin project in " + dir, {}, {why}, {}, {}});
}

} // namespace

void write_plugin_project(const std::string& dir, const std::string& type_name) {
  Words words = words_of(type_name);
  words.class_name = class_name_of(words.name);
  std::error_code failed;
  if (fs::exists(dir, failed) && !fs::is_empty(dir, failed)) cannot_use(dir, "it is there and is not an empty folder");
  for (const File& file : kFiles) {
    const fs::path path = fs::path(dir) / filled_in(file.path, words);
    fs::create_directories(path.parent_path(), failed);
    if (failed) cannot_use(dir, failed.message());
    std::ofstream stream(path, std::ios::binary);
    stream << filled_in(file.text, words);
    stream.close();
    if (!stream) cannot_use(dir, "cannot write " + path.string());
  }
}

} // namespace millrace::cli
