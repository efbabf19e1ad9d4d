// Runs the pipelines of its standard input, a line each, one after another in one process, and says after each what the
// process holds: resident KiB and open descriptors.
//
// usage: media_again FOLDER_OF_PLUGINS
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "millrace/runtime.h"

namespace {

long resident_kib() {
  malloc_trim(0); // what the allocator keeps for later is no leak
  long pages_all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> pages_all >> pages;
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

long descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return std::distance(begin(open), end(open));
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      millrace::RuntimeOptions options;
      options.plugin_paths = {argv[1]};
      millrace::Runtime runtime(options);
      runtime.load(line);
      runtime.start();
      const millrace::Outcome outcome = runtime.wait();
      if (!outcome.ok) {
        std::fprintf(stderr, "%s\n%s\n", line.c_str(), outcome.error.c_str());
        return 1;
      }
    } catch (const std::exception& failure) {
      // A file that is refused leaks as little as one that plays.
      std::fprintf(stderr, "%s\n%s\n", line.c_str(), failure.what());
    }
    std::printf("%ld %ld\n", resident_kib(), descriptors());
  }
}
