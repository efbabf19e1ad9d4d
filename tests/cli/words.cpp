// What the command says of a run, and the exit code of each family of errors.
#include <doctest/doctest.h>

#include "cli/exit_code.h"
#include "cli/progress.h"

using namespace millrace;
using namespace millrace::cli;

namespace {

int code_of(int error) { return exit_code_of(Error{error, "", {}, {}, "", ""}); }

exec::Progress progress_of(uint64_t ticks, double elapsed_s, int64_t expected) {
  exec::Progress progress;
  progress.ticks = ticks;
  progress.elapsed_s = elapsed_s;
  progress.ticks_expected = expected;
  return progress;
}

} // namespace

TEST_CASE("The exit code follows from the family of the error") {
  CHECK(code_of(105) == 2);
  for (int error : {201, 304, 402, 408}) CHECK(code_of(error) == 3);
  CHECK(code_of(604) == 3); // a source that cannot be opened: nothing ran
  CHECK(code_of(501) == 4);
  for (int error : {601, 605, 606, 701}) CHECK(code_of(error) == 1);
  for (int error : {702, 703}) CHECK(code_of(error) == 5);
}

TEST_CASE("The time left follows from the rate so far and the ticks that are expected") {
  CHECK(progress_words(progress_of(120, 4, 300), 0) == "  120/300 ticks  40 %  30.0/s  0:06 left");
  CHECK(progress_words(progress_of(60, 2, 300'000), 0) == "  60/300000 ticks  0 %  30.0/s  2:46:38 left");
}

TEST_CASE("The time left is the duration's where that ends first") {
  CHECK(progress_words(progress_of(120, 4, 300), 5) == "  120/300 ticks  40 %  30.0/s  0:01 left");
  CHECK(progress_words(progress_of(120, 4, -1), 70) == "  120 ticks  30.0/s  1:06 left");
}

TEST_CASE("Without an end in sight no time left is told, and no rate before there is one") {
  CHECK(progress_words(progress_of(120, 4, -1), 0) == "  120 ticks  30.0/s");
  CHECK(progress_words(progress_of(3, 0.1, 300), 0) == "  3/300 ticks  1 %");
}

TEST_CASE("The summary counts ticks, lateness, and each drop by its cause on its edge") {
  exec::Report report;
  report.ticks_run = 300;
  report.duration_s = 10;
  CHECK(summary_words(report) == "300 ticks in 10.00 s, 30.0/s\n");
  report.ticks_late = 2;
  report.ticks_skipped = 1;
  report.latency_p50_us = 250.04;
  report.latency_p99_us = report.latency_max_us = 12'345;
  exec::EdgeReport edge;
  edge.from = "video.video";
  edge.to = "slow.video";
  edge.dropped = {{"busy", 7}, {"queue_full", 1}};
  report.edges.push_back(edge);
  exec::HandlerReport handler;
  handler.name = "slow";
  handler.errors = 3;
  report.handlers.push_back(handler);
  CHECK(summary_words(report) ==
        "300 ticks in 10.00 s, 30.0/s; 2 late, 1 skipped; latency p50 250.0 µs, p99 12.3 ms\n"
        "  7 dropped on video.video → slow.video: busy, the reader was still busy with an earlier tick\n"
        "  1 dropped on video.video → slow.video: queue_full, the queue was full\n"
        "  slow failed in 3 of its calls\n");
}

TEST_CASE("The line tells what was lost so far, by cause") {
  exec::Progress progress = progress_of(120, 4, -1);
  progress.late = 2;
  progress.skipped = 1;
  CHECK(progress_words(progress, 0) == "  120 ticks  30.0/s  3 late");
  progress.dropped = {{"busy", 5}, {"queue_full", 2}};
  CHECK(progress_words(progress, 0) == "  120 ticks  30.0/s  3 late  7 dropped (busy 5, queue_full 2)");
}

TEST_CASE("The summary tells each way to a sink, beside what was predicted") {
  exec::Report report;
  report.ticks_run = 300;
  exec::PathReport path;
  path.sink = "screen";
  path.sampled = 2;
  path.p50_us = 1500;
  path.p99_us = path.max_us = 2000;
  report.paths = {path};
  CHECK(summary_words(report) == "300 ticks in 0.00 s\n"); // the one way there is was told as the run's latency
  path.sink = "file";
  path.predicted_us = 1200;
  report.paths.push_back(path);
  path.sink = "net";
  path.unknown_costs = 2;
  report.paths.push_back(path);
  CHECK(summary_words(report) ==
        "300 ticks in 0.00 s\n"
        "  to screen: p50 1.5 ms, p99 2.0 ms, max 2.0 ms\n"
        "  to file: p50 1.5 ms, p99 2.0 ms, max 2.0 ms; predicted 1.2 ms\n"
        "  to net: p50 1.5 ms, p99 2.0 ms, max 2.0 ms\n");
}
