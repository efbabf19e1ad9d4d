// Streams that come later are planned by those that are there: places, and sources that do not answer.
#include "plan/stand_in.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plan/step.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A file of pictures for the streams that answer.
struct ThereFile {
  std::string path = (std::filesystem::temp_directory_path() / "millrace_stand_in.raw").string();
  ThereFile() { std::ofstream(path) << std::string(64 * 48 * 3 * 2, ' '); }
  ~ThereFile() { std::filesystem::remove(path); }
};

// Streams of raw files: `rest` stands beside items.
Pipeline raw_streams(const std::string& items, const std::string& rest) {
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml("version: 1\nstreams: { cameras: { items: { " + items + " }" + rest +
                                                       R"( } }
handlers:
  video: { type: file.raw_reader, for_each: cameras, path: "{path}", width: 32, height: 24 }
  show:  { type: null.sink, for_each: cameras, input: video }
)",
                                                   "streams.yaml"));
  return pipeline;
}

const mr_format& format_of(const plan::Plan& plan, const std::string& source) {
  for (const plan::Output& one : plan.outputs)
    if (plan.steps[one.step].name == source) return one.format;
  FAIL("there is no source " << source);
  return plan.outputs[0].format;
}

const plan::Clock& clock_named(const plan::Plan& plan, const std::string& name) {
  for (const plan::Clock& clock : plan.clocks)
    if (clock.name == name) return clock;
  FAIL("there is no clock " << name);
  return plan.clocks[0];
}

} // namespace

TEST_CASE("B11: a stream whose source does not answer is planned by the largest of the others") {
  const ThereFile there;
  const std::string path = "path: " + there.path;
  const Planned planned(raw_streams("gate: { path: no/such.raw }, hall: { " + path + " }, yard: { " + path +
                                        ", video.width: 64, video.height: 48 }",
                                    ", on_error: restart, max: 4"),
                        machine_of(2));
  const plan::Plan& plan = planned.plan(); // written as JSON and read again
  CHECK(clock_named(plan, "gate").absent.starts_with("video@gate (file.raw_reader) could not be opened: "));
  CHECK(clock_named(plan, "gate").begins_later());
  CHECK(clock_named(plan, "hall").absent.empty());
  CHECK_FALSE(clock_named(plan, "yard").begins_later());
  CHECK(format_of(plan, "video@gate").width == 64);
  CHECK(format_of(plan, "video@hall").width == 32);
  CHECK(format_of(plan, "video@+3").width == 64); // a place without a stream, too
  CHECK(planned.text().find("not there yet: video@gate (file.raw_reader) could not be opened: ") != std::string::npos);
}

TEST_CASE("B11: a source that does not answer is refused where no stream says what it gives, or it would not return") {
  const ThereFile there;
  const std::string none = "gate: { path: no/such.raw }, hall: { path: no/other.raw }";
  const std::string one = "gate: { path: no/such.raw }, hall: { path: " + there.path + " }";
  const Error nothing_known = error_of(raw_streams(none, ", on_error: restart"), machine_of(2));
  CHECK(nothing_known.code == code::probe_failed);
  REQUIRE(!nothing_known.notes.empty());
  CHECK(nothing_known.notes.back() == "no other stream of \"cameras\" answers, so nothing says what it gives");
  CHECK(error_of(raw_streams(one, ""), machine_of(2)).code == code::probe_failed);
  CHECK(error_of(raw_streams(one, ", on_error: fail"), machine_of(2)).code == code::probe_failed);
  CHECK(error_of(raw_streams(one, ", on_error: restart"), machine_of(2)).code == 0);
}
