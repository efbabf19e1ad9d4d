// FileRun without nodes: what it composes, how it ends, and its errors. tests/embed/run_file.py has nodes and plugins.
#include "millrace/file_run.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "tests/contains.h"

using namespace millrace;

namespace {

FileRunOptions options_of(const std::string& pipeline) {
  FileRunOptions options;
  options.pipeline = pipeline;
  return options;
}

// The code of the error with which an application is refused; "": it is not.
std::string refused(const FileRunOptions& options) {
  try {
    const FileRun run(options);
    return "";
  } catch (const RuntimeError& error) {
    return error.code();
  }
}

} // namespace

TEST_CASE("a pipeline runs with the settings, the devices and the length that the application chooses") {
  FileRunOptions options =
      options_of("test.pattern width=32 height=16 ! image.blur name=soft device=sim:0 ! null.sink");
  options.sets = {"soft.sigma=2"};
  options.devices = "sim:0,cpu";
  options.ticks_max = 7;
  FileRun run(options);
  const Outcome outcome = run.run();
  INFO(outcome.error);
  CHECK(outcome.ok);
  CHECK(outcome.ticks == 7);
  CHECK(contains(outcome.report, "\"ok\": true"));
  CHECK_THROWS_AS(run.run(), std::logic_error);
}

TEST_CASE("a run without an end ends when any thread stops it, before it began or later") {
  FileRun early(options_of("test.pattern width=8 height=8 fps=100 ! null.sink"));
  early.stop();
  CHECK(early.run().ok);

  FileRun later(options_of("test.pattern width=8 height=8 fps=100 ! null.sink"));
  std::thread other([&] { later.stop(); });
  const Outcome outcome = later.run();
  other.join();
  CHECK(outcome.ok);
}

TEST_CASE("a failure of a handler is an outcome with the words that the command prints") {
  FileRun run(options_of("test.pattern width=8 height=8 count=3 ! file.raw_writer path=/dev/full"));
  const Outcome outcome = run.run();
  CHECK(!outcome.ok);
  CHECK(outcome.code == "MR0601");
  CHECK(contains(outcome.error, "error MR0601: "));
}

TEST_CASE("what cannot be used is refused by the constructor, with the command's codes") {
  CHECK(refused(options_of("test.pattern ! image.blr ! null.sink")) == "MR0304");
  FileRunOptions options = options_of("test.pattern count=1 ! null.sink");
  CHECK(refused(options).empty());
  options.plugin_paths = {"/no/such/folder"};
  CHECK(refused(options) == "MR0105");
  options.plugin_paths.clear();
  options.node = "edge";
  CHECK(refused(options) == "MR0105");
  options.node.clear();
  options.threads = 2000;
  CHECK(refused(options) == "MR0105");
  options.threads = 0;
  options.sets = {"blur.sigma=2"};
  CHECK(refused(options) == "MR0102");
}
