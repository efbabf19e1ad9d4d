// The files of a new plugin project. examples/plugin is the project of "acme.invert", examples/plugin_cuda is the same
// with a GPU body, and examples/plugin_model is that of "acme.decode"; a test compares them with what this writes.
#include "cli/new.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "cli/new_model.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plugin/registry.h"

namespace millrace::cli {
namespace fs = std::filesystem;

namespace {

// In the texts, @family@, @FAMILY@, @name@, @type@ and @Class@ stand for acme, ACME, invert, acme.invert and Invert.
// Lines that begin with @cuda@ are only for projects with a GPU body, lines with @model@ only for those with a decoder,
// lines with @cpu@ only for the others; lines with @items@ only for those whose handler takes several items a call,
// lines with @tick@ only for the others.

constexpr std::string_view kCMakeLists =
    R"_(# The @family@ plugin: builds build/plugins/@family@_plugin.so and tests its handlers.
cmake_minimum_required(VERSION 3.22)
project(@family@ VERSION 0.1.0 LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_package(millrace REQUIRED)
@cuda@
@cuda@# The kernel is built where nvcc is; elsewhere the handler has its CPU body alone.
@cuda@include(CheckLanguage)
@cuda@if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
@cuda@  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc) # where NVIDIA's packages put it, on the PATH or not
@cuda@endif()
@cuda@check_language(CUDA)
@cuda@if(CMAKE_CUDA_COMPILER)
@cuda@  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
@cuda@    set(CMAKE_CUDA_ARCHITECTURES 75-virtual) # any GPU since 2018; 90 is machine code for Hopper
@cuda@  endif()
@cuda@  enable_language(CUDA)
@cuda@  find_package(CUDAToolkit REQUIRED)
@cuda@else()
@cuda@  message(STATUS "nvcc not found: @type@ is built with its CPU body alone")
@cuda@endif()
@cuda@
millrace_add_plugin(@family@_plugin SOURCES src/@name@.cpp)

enable_testing()
add_executable(@name@_test test/@name@_test.cpp)
target_link_libraries(@name@_test PRIVATE millrace::headers)
add_test(NAME @name@ COMMAND @name@_test)
@cuda@
@cuda@if(CMAKE_CUDA_COMPILER)
@cuda@  add_library(@name@_kernel OBJECT src/@name@_kernel.cu)
@cuda@  set_target_properties(@name@_kernel PROPERTIES POSITION_INDEPENDENT_CODE ON)
@cuda@  foreach(target @family@_plugin @name@_test)
@cuda@    target_sources(${target} PRIVATE $<TARGET_OBJECTS:@name@_kernel>)
@cuda@    target_compile_definitions(${target} PRIVATE @FAMILY@_CUDA)
@cuda@    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
@cuda@  endforeach()
@cuda@endif()
)_";

constexpr std::string_view kHandler = R"_(// @type@: inverts a picture, as far as one likes.
#include <millrace/handler.h>
@cuda@
@cuda@#include "@name@_kernel.h"

namespace mr = millrace;

namespace {

struct @Class@ final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8, mr::Pixel::rgb8, mr::Pixel::bgr8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<float> strength{*this, "strength", 1.0f, "0 leaves the picture, 1 inverts it", mr::range(0, 1), mr::live};

@cuda@  @Class@() { capturable(); } // the GPU body enqueues the same work on every tick
@cuda@
@items@  @Class@() { items(16); } // at most so many pictures a call
@items@
@items@  void process(mr::Items& items, mr::Cpu&) {
@items@    for (mr::Tick& item : items) invert(item);
@items@  }
@items@  void invert(mr::Tick& tick) {
@tick@  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan inverted = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width() * mr::bytes_per_pixel(in.pixel()); ++x)
        inverted.row(y)[x] = static_cast<uint8_t>(in.row(y)[x] + strength * (255 - 2 * in.row(y)[x]));
  }
@cuda@#ifdef @FAMILY@_CUDA
@cuda@  // On the host: enqueues and returns. The rows are addresses on the device.
@cuda@  void process(mr::Tick& tick, mr::Cuda& cuda) {
@cuda@    const mr::ImageView in = video(tick);
@cuda@    const mr::ImageSpan inverted = out.allocate_like(tick, in);
@cuda@    const uint32_t row_bytes = in.width() * mr::bytes_per_pixel(in.pixel());
@cuda@    enqueue_@name@(cuda.stream(), {inverted.row(0), inverted.stride()}, {in.row(0), in.stride()}, row_bytes,
@cuda@                   in.height(), strength);
@cuda@  }
@cuda@#endif
};

} // namespace

MILLRACE_HANDLER(@Class@, "@type@", "Inverts a picture")
MILLRACE_PLUGIN("@family@", "0.1.0")
)_";

constexpr std::string_view kKernelHeader = R"_(// Declares the kernel of @type@ for its body and its test.
#pragma once

#include <cstddef>
#include <cstdint>

// Rows of bytes on the device, `stride` bytes apart.
template <class Byte>
struct DeviceRows {
  Byte* data;
  size_t stride;
};

// Enqueues the work of process() for `rows` rows of `row_bytes` bytes on `stream`, a cudaStream_t. Throws
// std::runtime_error with CUDA's words if that fails.
void enqueue_@name@(void* stream, DeviceRows<uint8_t> to, DeviceRows<const uint8_t> from, uint32_t row_bytes,
                    uint32_t rows, float strength);
)_";

constexpr std::string_view kKernel = R"_(// The kernel of @type@: one thread per byte.
#include <cuda_runtime.h>

#include <stdexcept>

#include "@name@_kernel.h"

namespace {

__global__ void invert_bytes(DeviceRows<uint8_t> to, DeviceRows<const uint8_t> from, uint32_t row_bytes, uint32_t rows,
                             float strength) {
  const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= row_bytes || y >= rows) return;
  const int value = from.data[y * from.stride + x];
  to.data[y * to.stride + x] = static_cast<uint8_t>(value + strength * (255 - 2 * value));
}

} // namespace

void enqueue_@name@(void* stream, DeviceRows<uint8_t> to, DeviceRows<const uint8_t> from, uint32_t row_bytes,
                    uint32_t rows, float strength) {
  const dim3 threads(64, 4), blocks((row_bytes + 63) / 64, (rows + 3) / 4);
  invert_bytes<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(to, from, row_bytes, rows, strength);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(error));
}
)_";

constexpr std::string_view kTest = R"_(// Tests @type@ alone: no runtime, no pipeline.
#include "../src/@name@.cpp" // the class is private to its file

@cuda@#ifdef @FAMILY@_CUDA
@cuda@#include <cuda_runtime.h>
@cuda@#endif
#include <millrace/testing.h>

@cuda@#include <algorithm>
#include <cstdio>
@cuda@#include <cstdlib>
@cuda@#include <vector>
@items@#include <vector>

namespace {

int failures = 0;

// Unlike assert(), this also checks in a release build.
void check(bool holds, const char* sentence) {
  if (!holds) std::fprintf(stderr, "not true: %s\n", sentence);
  if (!holds) ++failures;
}

// The first byte of the handler's result for a picture that is 10 everywhere.
int made_of_ten(const char* strength) {
  mr::testing::HandlerTest<@Class@> test({{"strength", strength}});
  test.input("video", mr::testing::image(mr::Pixel::rgb8, 5, 3, 10));
  const mr::testing::Result result = test.tick();
  if (!result.ok()) std::fprintf(stderr, "the handler failed: %s\n", result.error.c_str());
  return result.ok() ? result.image("video").row(0)[0] : -1;
}

@items@// True if two pictures in one call are both inverted.
@items@bool takes_two_in_a_call() {
@items@  mr::testing::HandlerTest<@Class@> test({{"strength", "1"}});
@items@  for (const uint8_t byte : {uint8_t{10}, uint8_t{20}}) {
@items@    test.input("video", mr::testing::image(mr::Pixel::rgb8, 5, 3, byte));
@items@    test.put();
@items@  }
@items@  const std::vector<mr::testing::Result> results = test.fire_items();
@items@  return results[0].image("video").row(0)[0] == 245 && results[1].image("video").row(0)[0] == 235;
@items@}
@items@
@cuda@#ifdef @FAMILY@_CUDA
@cuda@constexpr uint32_t kWidth = 256, kHeight = 5; // a row has every value of a byte once
@cuda@
@cuda@bool has_gpu() {
@cuda@  int count = 0;
@cuda@  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0; // without a driver the call returns an error
@cuda@}
@cuda@
@cuda@// The largest difference of a byte between the results of the kernel and the CPU body for one picture.
@cuda@int difference_at(const char* strength) {
@cuda@  const mr::testing::Value picture =
@cuda@      mr::testing::image(mr::Pixel::gray8, kWidth, kHeight, [](auto x, auto y, auto) { return x + y; });
@cuda@  mr::testing::HandlerTest<@Class@> test({{"strength", strength}});
@cuda@  test.input("video", picture);
@cuda@  const mr::testing::Result result = test.tick();
@cuda@  const mr::ImageView on_cpu = result.image("video");
@cuda@  const mr::ImageSpan from = picture.image();
@cuda@
@cuda@  const size_t bytes = size_t{from.stride()} * kHeight;
@cuda@  uint8_t* device = nullptr;
@cuda@  if (cudaMalloc(&device, 2 * bytes) != cudaSuccess) return 256;
@cuda@  std::vector<uint8_t> on_gpu(bytes);
@cuda@  cudaMemcpy(device, from.row(0), bytes, cudaMemcpyHostToDevice);
@cuda@  enqueue_@name@(nullptr, {device + bytes, from.stride()}, {device, from.stride()}, kWidth, kHeight,
@cuda@                 std::strtof(strength, nullptr));
@cuda@  const cudaError_t error = cudaMemcpy(on_gpu.data(), device + bytes, bytes, cudaMemcpyDeviceToHost);
@cuda@  cudaFree(device);
@cuda@  if (error != cudaSuccess) std::fprintf(stderr, "the kernel failed: %s\n", cudaGetErrorString(error));
@cuda@  int most = error == cudaSuccess ? 0 : 256;
@cuda@  for (uint32_t y = 0; y < kHeight; ++y)
@cuda@    for (uint32_t x = 0; x < kWidth; ++x)
@cuda@      most = std::max(most, std::abs(on_gpu[y * from.stride() + x] - on_cpu.row(y)[x]));
@cuda@  return most;
@cuda@}
@cuda@
@cuda@void check_the_kernel() {
@cuda@  std::printf(has_gpu() ? "the kernel runs\n" : "there is no GPU: the kernel is not run\n");
@cuda@  if (!has_gpu()) return;
@cuda@  for (const char* strength : {"0", "0.3", "0.5", "1"})
@cuda@    check(difference_at(strength) <= 1, "the kernel is the CPU body's to one step"); // they may round differently
@cuda@}
@cuda@#else
@cuda@void check_the_kernel() { std::printf("built without nvcc: there is no kernel\n"); }
@cuda@#endif
@cuda@
} // namespace

int main() {
  check(made_of_ten("1") == 245, "at strength 1 the picture is inverted");
  check(made_of_ten("0") == 10, "at strength 0 the picture stays as it is");
@items@  check(takes_two_in_a_call(), "two pictures go into one call");
@cuda@  check_the_kernel();
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

@cpu@A millrace plugin with one handler, `@type@`.
@model@A millrace plugin with one handler, `@type@`, which makes boxes of what a network gives.
@cuda@A millrace plugin with one handler, `@type@`, which has a body for the CPU and one for NVIDIA's GPUs.

    cmake -B build -Dmillrace_DIR=DIR    # the build folder of millrace, or lib/cmake/millrace of an installed one
    cmake --build build
    ctest --test-dir build --output-on-failure
@cpu@    millrace run pipeline.yaml --plugin-path build/plugins
@model@    millrace run pipeline.yaml --plugin-path build/plugins --set network.path=FILE    # your network
@cuda@    millrace run pipeline.yaml --plugin-path build/plugins
@cuda@    millrace run pipeline.yaml --plugin-path build/plugins --devices cuda:0,cpu
@cuda@
@cuda@Without `nvcc` it is built with the CPU body alone, and cmake says so. The test runs the kernel where there is
@cuda@a GPU, and says where there is none. The driver compiles the kernel for its GPU once;
@cuda@`-DCMAKE_CUDA_ARCHITECTURES=90` does it beforehand, for Hopper.

| file | what it is |
|---|---|
| `src/@name@.cpp` | the handler: ports, parameters, the body; and the plugin's one exported symbol |
@cuda@| `src/@name@_kernel.cu`, `.h` | the kernel, and the function that enqueues it |
| `test/@name@_test.cpp` | its test, without a runtime |
| `pipeline.yaml` | a pipeline that uses it |

@cpu@It begins as an inverter: put your own work into `process`. A second handler is a second file in `src/`, named in
@cpu@`CMakeLists.txt`; `MILLRACE_PLUGIN` stays in one of them.
@model@It reads rows of six numbers: put the layout of your own network into `configure` and `decode`. A second handler
@model@is a second file in `src/`, named in `CMakeLists.txt`; `MILLRACE_PLUGIN` stays in one of them.
@items@A call of `process` brings up to 16 items; the test calls it with one and with two.
@cuda@It begins as an inverter: put your own work into `process` and the kernel. A second handler is a second file in
@cuda@`src/`, named in `CMakeLists.txt`; `MILLRACE_PLUGIN` stays in one of them.
)_";

struct File {
  std::string_view path, text;
};
std::vector<File> files_of(Project kind) {
  const bool is_model = kind == Project::model;
  std::vector<File> files = {{"CMakeLists.txt", kCMakeLists},
                             {"src/@name@.cpp", is_model ? kDecoder : kHandler},
                             {"test/@name@_test.cpp", is_model ? kDecoderTest : kTest},
                             {"pipeline.yaml", is_model ? kDecoderPipeline : kPipeline},
                             {"README.md", kReadme}};
  if (kind == Project::cuda) {
    files.push_back({"src/@name@_kernel.h", kKernelHeader});
    files.push_back({"src/@name@_kernel.cu", kKernel});
  }
  return files;
}

// The words that replace the marks in the texts.
struct Words {
  std::string family, name, type, class_name, upper_family;
};

Words words_of(const std::string& type) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto follows = [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; };
  const auto is_word = [&](const std::string& word) {
    return !word.empty() && lower(word[0]) && std::all_of(word.begin(), word.end(), follows);
  };
  const size_t dot = type.find('.');
  const Words words{type.substr(0, dot), dot == std::string::npos ? "" : type.substr(dot + 1), type, "", ""};
  if (!is_word(words.family) || !is_word(words.name)) {
    Error error{code::bad_command_line, "'" + type + "' is no name for a handler type", {}, {}, {}, {}};
    error.notes.push_back("expected family.name in small letters, digits and _, for example acme.invert");
    throw Failure(std::move(error));
  }
  if (plugin::Registry().find(type))
    throw Failure(Error{
        code::bad_command_line, "'" + type + "' is a built-in handler: no plugin may have another", {}, {}, "", ""});
  return words;
}

// Makes names that words_of() accepted upper case, in the same way in every locale.
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
std::string upper(std::string word) {
  for (char& c : word) c = upper(c);
  return word;
}

// remove_noise → RemoveNoise
std::string class_name_of(const std::string& name) {
  std::string result;
  bool first = true;
  for (char c : name) {
    if (c != '_') result += first ? upper(c) : c;
    first = c == '_';
  }
  return result;
}

// Removes the lines that are for other projects, and the marks of the lines that stay.
std::string lines_for(std::string_view text, Project kind) {
  struct Mark {
    std::string_view word;
    bool stays;
  };
  const bool has_cuda = kind == Project::cuda, has_items = kind == Project::items, is_model = kind == Project::model;
  const std::array<Mark, 5> marks = {{{"@cuda@", has_cuda},
                                      {"@model@", is_model},
                                      {"@cpu@", !has_cuda && !is_model},
                                      {"@items@", has_items},
                                      {"@tick@", !has_items}}};
  std::string result;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n') + 1);
    text.remove_prefix(line.size());
    const auto mark =
        std::find_if(marks.begin(), marks.end(), [&](const Mark& one) { return line.starts_with(one.word); });
    if (mark != marks.end() && !mark->stays) continue;
    if (mark != marks.end()) line.remove_prefix(mark->word.size());
    result += line;
  }
  return result;
}

std::string filled_in(std::string_view text, const Words& words) {
  const std::array<std::pair<std::string_view, const std::string*>, 5> places = {{{"@family@", &words.family},
                                                                                  {"@FAMILY@", &words.upper_family},
                                                                                  {"@name@", &words.name},
                                                                                  {"@type@", &words.type},
                                                                                  {"@Class@", &words.class_name}}};
  std::string result(text);
  for (const auto& [place, word] : places)
    for (size_t at = 0; (at = result.find(place, at)) != std::string::npos; at += word->size())
      result.replace(at, place.size(), *word);
  return result;
}

[[noreturn]] void cannot_use(const std::string& dir, const std::string& why) {
  throw Failure(Error{code::project_folder_not_empty, "cannot make a plugin project in " + dir, {}, {why}, {}, {}});
}

} // namespace

void write_plugin_project(const std::string& dir, const std::string& type_name, Project kind) {
  Words words = words_of(type_name);
  words.class_name = class_name_of(words.name);
  words.upper_family = upper(words.family);
  std::error_code failed;
  if (fs::exists(dir, failed) && !fs::is_empty(dir, failed)) cannot_use(dir, "it is there and is not an empty folder");
  for (const File& file : files_of(kind)) {
    const fs::path path = fs::path(dir) / filled_in(file.path, words);
    fs::create_directories(path.parent_path(), failed);
    if (failed) cannot_use(dir, failed.message());
    std::ofstream stream(path, std::ios::binary);
    stream << filled_in(lines_for(file.text, kind), words);
    stream.close();
    if (!stream) cannot_use(dir, "cannot write " + path.string());
  }
}

} // namespace millrace::cli
