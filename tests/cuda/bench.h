// The common part of the files of gpu_bench: set-up of a run, printing of a row, and the list of benchmarks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "rig.h"

namespace millrace::test {

void row(const char* format, auto... values) {
  std::printf(format, values...);
  std::printf("\n");
  std::fflush(stdout);
}

// On the real device, with the handlers of rig.h and those of gpu_bench.
Setup bench_setup(std::vector<std::string> domains = {"cuda:0", "cpu"});
// Ends the process where the run failed.
Ran run_or_die(Pipeline pipeline, const Setup& setup);

// test.pattern → image.blur → draw.text → draw.waveform in rgba8, as parameters that both sides take.
struct Five {
  uint32_t width, height;
  std::string font; // a file; "": the handler looks for it
  static constexpr const char* kText = "frame {index} at {time}";
  static constexpr double kSigma = 2;
  static constexpr double kMonitorSize = 0.33;
  static constexpr int64_t kTextX = 16, kTextY = -16; // from the left, and from the bottom
  uint32_t text_size() const { return std::max(6u, height / 30); }
  uint64_t bytes() const { return uint64_t{width} * height * 4; }
};

// The same kernels, called through their tables: frames a second.
//
// A captured graph for each of three slots of memory, three launches in flight. `uploads`: each graph copies the glyphs
// up as draw.text does; else they are there.
double five_by_hand(const Five& five, bool uploads, uint32_t frames);
// All memory is allocated for each frame, each kernel is waited for and its picture copied to the host.
double five_naively(const Five& five, uint32_t frames);
// Copies of so many bytes from the device to pinned memory in a row: bytes a second.
double copies_down(uint64_t bytes, uint32_t count);

void bench_kernels();
void bench_marks();
void bench_links();
void bench_frame();
void bench_five();
void bench_crossover();
void bench_naive();
void bench_codebook();
void bench_volume();
void bench_peers(); // needs two GPUs

} // namespace millrace::test
