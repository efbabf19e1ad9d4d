// The command's words about a run, and the exit code of each family of errors.
#include <doctest/doctest.h>

#include "cli/exit_code.h"
#include "cli/progress.h"
#include "exec/run_options.h"
#include "observe/report.h"

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
  CHECK(progress_words(progress_of(120, 4, 300), 0) == "  120/300 ticks  40 %  30.0 ticks/s  0:06 left");
  CHECK(progress_words(progress_of(60, 2, 300'000), 0) == "  60/300000 ticks  0 %  30.0 ticks/s  2:46:38 left");
}

TEST_CASE("The time left is the duration's where that ends first") {
  CHECK(progress_words(progress_of(120, 4, 300), 5) == "  120/300 ticks  40 %  30.0 ticks/s  0:01 left");
  CHECK(progress_words(progress_of(120, 4, -1), 70) == "  120 ticks  30.0 ticks/s  1:06 left");
}

TEST_CASE("Without an end in sight no time left is told, and no rate before there is one") {
  CHECK(progress_words(progress_of(120, 4, -1), 0) == "  120 ticks  30.0 ticks/s");
  CHECK(progress_words(progress_of(3, 0.1, 300), 0) == "  3/300 ticks  1 %");
}

TEST_CASE("Trouble at a crossing stands at the end, and what is known elsewhere makes room for it") {
  const std::string trouble = "main/0>1 to gpu waits for the wire", short_line = "  120/300 ticks  40 %  " + trouble;
  const exec::Progress progress = progress_of(120, 4, 300);
  CHECK(progress_words(progress, 0, 200, trouble) == "  120/300 ticks  40 %  30.0 ticks/s  0:06 left  " + trouble);
  CHECK(progress_words(progress, 0, short_line.size(), trouble) == short_line);
  CHECK(progress_words(progress, 0, short_line.size() - 1, trouble) == "  120/300 ticks  40 %  30.0 ticks/s");
}

TEST_CASE("The summary counts ticks, lateness, and each drop by its cause on its edge") {
  Report report;
  report.ticks_run = 300;
  report.duration_s = 10;
  CHECK(summary_words(report) == "300 ticks in 10.00 s, 30.0 ticks/s\n");
  report.ticks_late = 2;
  report.ticks_skipped = 1;
  report.latency_p50_us = 250.04;
  report.latency_p99_us = 9'876;
  report.latency_max_us = 12'345;
  report.latency_sampled = 300;
  EdgeReport edge;
  edge.from = "video.video";
  edge.to = "slow.video";
  edge.dropped = {{"busy", 7}, {"queue_full", 1}, {"rate", 49}};
  report.edges.push_back(edge);
  HandlerReport handler;
  handler.name = "slow";
  handler.calls = 290;
  handler.errors = 3;
  handler.first_error = "no \x1b[1mroom\nerror MR0000: forged";
  report.handlers.push_back(handler);
  CHECK(
      summary_words(report) ==
      "300 ticks in 10.00 s, 30.0 ticks/s; 2 late, 1 skipped\n"
      "  latency of 300 ticks: p50 250.0 µs, p99 9.9 ms, max 12.3 ms\n"
      "  7 dropped on video.video → slow.video: busy, the reader was still busy with an earlier tick\n"
      "  1 dropped on video.video → slow.video: queue_full, the queue was full\n"
      "  49 values came too late for their beat on video.video → slow.video: a newer one was due, because video gives "
      "more than the clock has beats, or beats were missed\n"
      "  slow failed in 3 of 290 calls, first: no \\x1b[1mroom\n    error MR0000: forged\n");
}

TEST_CASE("The line tells what was lost so far, by cause") {
  exec::Progress progress = progress_of(120, 4, -1);
  progress.late = 2;
  progress.skipped = 1;
  CHECK(progress_words(progress, 0) == "  120 ticks  30.0 ticks/s  3 late");
  progress.dropped = {{"busy", 5}, {"queue_full", 2}};
  CHECK(progress_words(progress, 0) == "  120 ticks  30.0 ticks/s  3 late  7 dropped (busy 5, queue_full 2)");
  progress.dropped = {{"rate", 49}};
  CHECK(progress_words(progress, 0) == "  120 ticks  30.0 ticks/s  3 late  49 came too late for their beat");
}

TEST_CASE("A live line that is wider than its terminal leaves out the least important parts") {
  exec::Progress progress = progress_of(120, 4, 300);
  progress.late = 3;
  progress.dropped = {{"busy", 5}, {"queue_full", 2}};
  const auto at = [&](size_t columns) { return progress_words(progress, 0, columns); };
  const std::string whole = "  120/300 ticks  40 %  30.0 ticks/s  3 late  7 dropped (busy 5, queue_full 2)  0:06 left";
  CHECK(at(200) == whole);
  CHECK(at(whole.size()) == whole);
  CHECK(at(whole.size() - 1) == "  120/300 ticks  40 %  30.0 ticks/s  3 late  7 dropped  0:06 left");
  CHECK(at(60) == "  120/300 ticks  40 %  30.0 ticks/s  3 late  7 dropped");
  CHECK(at(40) == "  120/300 ticks  40 %  30.0 ticks/s");
  CHECK(at(30) == "  120/300 ticks  40 %");
  CHECK(at(10) == "  120/300 ");
  for (size_t columns = 0; columns < 100; ++columns) CHECK(at(columns).size() <= columns);
}

TEST_CASE("One is no plural") {
  CHECK(progress_words(progress_of(1, 0.1, -1), 0) == "  1 tick");
  Report report;
  report.ticks_run = 1;
  report.duration_s = 1;
  report.latency_sampled = 1;
  report.latency_p50_us = report.latency_p99_us = report.latency_max_us = report.latency_first_us = 7;
  HandlerReport handler;
  handler.name = "bad";
  handler.calls = handler.errors = 1;
  report.handlers = {handler};
  CHECK(summary_words(report) ==
        "1 tick in 1.00 s, 1.0 ticks/s\n  latency of 1 tick: 7.0 µs\n  bad failed in 1 of 1 call\n");
}

TEST_CASE("A log has a line a minute, and messages when they come") {
  for (const auto& [kind, expected] :
       {std::pair{Progress::lines, "  600 ticks  10.0 ticks/s\nwarning\n  1205 ticks  10.0 ticks/s\n"},
        {Progress::none, "warning\n"}}) {
    std::FILE* const out = std::tmpfile();
    REQUIRE(out);
    ProgressLine line(kind, 0, out);
    for (const double second : {0.5, 30.0, 59.9, 60.0, 60.1, 100.0, 119.9, 120.5, 121.0, 180.0}) {
      line.show(progress_of(static_cast<uint64_t>(second * 10), second, -1));
      if (second == 100) line.message("warning");
    }
    line.end();
    std::string said(1000, ' ');
    std::rewind(out);
    said.resize(std::fread(said.data(), 1, said.size(), out));
    CHECK(said == expected);
    std::fclose(out);
  }
}

namespace {

PathReport path_of(const std::string& sink, uint64_t sampled) {
  PathReport path;
  path.sink = sink;
  path.sampled = sampled;
  path.p50_us = 1500;
  path.p99_us = 1900;
  path.max_us = path.first_us = 2000;
  return path;
}

} // namespace

TEST_CASE("The summary tells each way to a sink, and on request what was predicted") {
  Report report;
  report.ticks_run = 300;
  report.paths = {path_of("screen", 2)};
  CHECK(summary_words(report) == "300 ticks in 0.00 s\n"); // the one way there is was told as the run's latency
  report.paths.push_back(path_of("file", 300));
  report.paths[1].predicted_us = 1200;
  report.paths.push_back(path_of("net", 150));
  report.paths[2].predicted_us = 1200;
  report.paths[2].unknown_costs = 2;
  const std::string screen = "  to screen, 2 ticks: p50 1.5 ms, max 2.0 ms\n";
  const std::string file = "  to file, 300 ticks: p50 1.5 ms, p99 1.9 ms, max 2.0 ms";
  const std::string net = "  to net, 150 ticks: p50 1.5 ms, p99 1.9 ms, max 2.0 ms\n";
  CHECK(summary_words(report) == "300 ticks in 0.00 s\n" + screen + file + "\n" + net);
  CHECK(summary_words(report, true) == "300 ticks in 0.00 s\n" + screen + file + "; predicted 1.2 ms\n" + net);
}

TEST_CASE(
    "The summary tells the way to a sink by another node's clock, also where it is the only one, with its error") {
  Report report;
  report.paths = {path_of("screen", 2)};
  report.paths[0].home = "edge";
  report.paths[0].clock_error_us = 730;
  report.paths[0].predicted_us = 1200;
  const std::string screen = "  to screen, 2 ticks: p50 1.5 ms, max 2.0 ms; right to 730.0 µs, from edge";
  CHECK(summary_words(report) == "0 ticks in 0.00 s\n" + screen + "\n");
  CHECK(summary_words(report, true) == "0 ticks in 0.00 s\n" + screen + "; predicted 1.2 ms\n");
}

TEST_CASE("The summary tells of an edge that is aligned more finely than its clocks agree, and of no other") {
  Report report;
  report.edges.resize(1);
  report.edges[0] = {"b.out", "both.right", "align", 1, 0, {}};
  report.edges[0].within_us = 2000;
  report.edges[0].clock_error_us = 2000;
  CHECK(summary_words(report) == "0 ticks in 0.00 s\n");
  report.edges[0].clock_error_us = 2500;
  CHECK(summary_words(report) ==
        "0 ticks in 0.00 s\n  b.out → both.right is aligned within 2.0 ms, and its clocks agree only within 2.5 ms\n");
}

TEST_CASE(
    "Few ticks have no 99th percentile, a part of the ticks is told as one, and a slow first tick is told apart") {
  Report report;
  report.ticks_run = 5000;
  report.latency_sampled = 99;
  report.latency_p50_us = 100;
  report.latency_p99_us = report.latency_max_us = 900;
  report.latency_first_us = 150;
  CHECK(summary_words(report).ends_with("\n  latency of 99 of 5000 ticks: p50 100.0 µs, max 900.0 µs\n"));
  report.latency_sampled = 100;
  report.latency_first_us = 900;
  CHECK(summary_words(report).ends_with(
      "100 of 5000 ticks: p50 100.0 µs, p99 900.0 µs, max 900.0 µs; the first tick 900.0 µs\n"));
}

TEST_CASE("Prices that were far off are told where more than one place could have run the handlers, or on request") {
  Report report;
  report.latency_p50_us = 1000;
  report.mispredictions = {{"blur", 100, 2400}, {"sink", 1, 3}, {"near", 1000, 1300}};
  report.pools["cpu"] = {};
  CHECK(summary_words(report) == "0 ticks in 0.00 s\n");
  CHECK(summary_words(report, true)
            .ends_with("\n  blur took 2.4 ms, predicted 100.0 µs\n  sink took 3.0 µs, predicted 1.0 µs\n"
                       "  near took 1.3 ms, predicted 1.0 ms\n"));
  report.pools["cuda:0"] = {};
  CHECK(summary_words(report) == "0 ticks in 0.00 s\n  blur took 2.4 ms, predicted 100.0 µs\n");
}

TEST_CASE("The summary tells where the time went, and what waited for the world apart") {
  Report report;
  report.ticks_run = 100;
  report.duration_s = 2;
  const auto add = [&](const char* name, double mean_us, bool waits) {
    HandlerReport handler;
    handler.name = name;
    handler.waits = waits;
    handler.calls = 100;
    handler.sampled = 100;
    handler.sampled_us = 100 * mean_us;
    handler.p50_us = mean_us / 2;
    report.handlers.push_back(handler);
  };
  add("cam", 33'000, true);
  add("blur", 8'000, false);
  add("text", 1'900, false);
  add("sink", 100, false);
  CHECK(summary_words(report) ==
        "100 ticks in 2.00 s, 50.0 ticks/s\n"
        "  time went into blur 80 % (8.0 ms a call), text 19 % (1.9 ms a call); cam 33.0 ms a call, "
        "on a thread of its own\n");
  report.handlers[3].calls = 100'000; // of which few were timed, one of them interrupted
  CHECK(summary_words(report).find("sink 83 % (50.0 µs a call)") != std::string::npos);
}
