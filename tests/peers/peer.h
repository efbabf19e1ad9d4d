// The common part of the programs of this folder: their arguments and the form of their answers.
//
//   PROGRAM chain HANDLERS MESSAGES     ns of one message through a chain of so many handlers that do nothing
//   PROGRAM picture FORMAT TO FRAMES    pictures a second: 1920×1080 in FORMAT, converted TO, resized to 1280×720, a
//                                       line of text drawn, dropped
//
// A program measures once and prints one number; compare.py calls ours and the rivals' in turns. Exit code 3: this
// machine lacks what the measurement needs, said on stderr.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace peers {

constexpr unsigned kWidth = 1920, kHeight = 1080, kTargetWidth = 1280, kTargetHeight = 720;
constexpr const char* kText = "millrace";
constexpr int kMissing = 3, kWrongUsage = 2;
// Messages and pictures that go through before the clock starts: caches, pools and branch predictors are warm then.
constexpr unsigned kWarmMessages = 2'000, kWarmFrames = 30;

struct Job {
  bool chain = false;
  unsigned handlers = 0;
  std::string format, to; // our names of pixel formats
  unsigned count = 0;     // messages or frames
};

inline Job job_of(int argc, char** argv) {
  Job job;
  if (argc == 4 && std::strcmp(argv[1], "chain") == 0) {
    job.chain = true;
    job.handlers = static_cast<unsigned>(std::atoi(argv[2]));
  } else if (argc == 5 && std::strcmp(argv[1], "picture") == 0) {
    job.format = argv[2];
    job.to = argv[3];
  } else {
    std::fprintf(stderr, "usage: %s chain HANDLERS MESSAGES | picture FORMAT TO FRAMES\n", argv[0]);
    std::exit(kWrongUsage);
  }
  job.count = static_cast<unsigned>(std::atoi(argv[argc - 1]));
  return job;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace peers
