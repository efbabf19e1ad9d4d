// Edits that a plan suggests and that change more than a word: the handler that is missing between two, and the input
// that a handler is idle without. Each suggested line is compiled.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <string>
#include <vector>

#include "graph/unfold.h"
#include "observe/error_codes.h"
#include "plan/compile.h"
#include "plan/notes.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "planned.h"
#include "plugin/registry.h"
#include "tests/contains.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct Find final : Handler {
  Input<Image> video{*this, "video"};
  Output<Records<Box>> boxes{*this, "boxes", count_max(8)};
  void process(Tick&, Cpu&) {}
};
struct Show final : Handler {
  Input<Image> video{*this, "video"};
  void process(Tick&, Cpu&) {}
};
struct Count final : Handler {
  Input<Records<Box>> boxes{*this, "boxes"};
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick&, Cpu&) {}
};

const mr_plugin& finders() {
  static const mr_handler_type types[] = {detail::Type<Find>::table("find.people", "", ""),
                                          detail::Type<Show>::table("show.picture", "", ""),
                                          detail::Type<Count>::table("count.found", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "finders", "1", pointers, 3, 0};
  return plugin;
}

struct Answer {
  Error error; // code 0: it was compiled
  std::vector<std::string> notes;
};

Answer compiled(graph::Graph graph) {
  plugin::Registry registry;
  registry.add(finders(), "");
  const mr_host host = plugin::basic_host();
  try {
    graph = graph::unfold(std::move(graph));
    plan::Prepared prepared = plan::prepare(graph, registry, host);
    const plan::Plan plan = plan::compile(graph, prepared, registry, host, machine_of(1), {});
    return {{}, plan::notes_of_run(plan, false)};
  } catch (const Failure& failure) {
    return {failure.error(), {}};
  }
}
Answer of_line(const std::string& line) { return compiled(graph::parse_line(line)); }
Answer of_file(const std::string& text) { return compiled(graph::parse_yaml("version: 1\n" + text, "p.yaml")); }

// The line of a suggestion, without the shell's quotes.
std::string line_in(const std::string& text) {
  const size_t begin = text.find('\''), end = text.rfind('\'');
  return begin == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

} // namespace

TEST_CASE("records of boxes that lead to a picture get draw.boxes between them, with the picture they were found in") {
  const Answer refused = of_line("test.pattern count=3 ! find.people ! show.picture");
  CHECK(refused.error.code == code::port_type_mismatch);
  CHECK(refused.error.notes.back() == "draw.boxes takes Records<Box> and Image, and gives Image");
  const std::string line = line_in(refused.error.edit);
  CAPTURE(line);
  const Answer mended = of_line(line);
  CHECK(mended.error.what == "");
  CHECK(mended.notes.empty());
  CHECK(contains(line, "test.pattern count=3"));
}

TEST_CASE("the picture comes from the nearest handler that gives one") {
  const Answer refused = of_line("test.pattern ! image.blur sigma=3 ! find.people ! show.picture");
  CHECK(contains(refused.error.edit, "blur. ! draw.boxes name=boxes ! show.picture"));
  CHECK(of_line(line_in(refused.error.edit)).error.what == "");
}

TEST_CASE("in a file the missing handler is written out, and its place is said") {
  const Answer refused = of_file(
      "handlers:\n  v: { type: test.pattern }\n  boxes: { type: find.people, input: v }\n"
      "  w: { type: show.picture, input: boxes }\n");
  CHECK(refused.error.edit ==
        "boxes2: { type: draw.boxes, inputs: { boxes: boxes, video: v } }, and boxes2 in the place of boxes");
  const Answer streams = of_file(
      "streams: { s: { items: [a, b] } }\nhandlers:\n  v: { type: test.pattern, for_each: s }\n"
      "  f: { type: find.people, for_each: s, input: v }\n"
      "  w: { type: show.picture, for_each: s, input: f }\n");
  CHECK(streams.error.edit ==
        "boxes: { type: draw.boxes, for_each: s, inputs: { boxes: f, video: v } }, and boxes in the place of f");
}

TEST_CASE("a type that takes the picture itself needs no other input") {
  const Answer refused = of_line("test.pattern ! count.found ! null.sink");
  CHECK(line_in(refused.error.edit) == "test.pattern ! find.people ! count.found ! null.sink");
  const Answer file = of_file("handlers:\n  v: { type: test.pattern }\n  c: { type: count.found, input: v }\n");
  CHECK(file.error.edit == "people: { type: find.people, input: v }, and people in the place of v");
}

TEST_CASE("where no handler fits, the error says so and suggests none") {
  const Answer refused = of_line("test.number ! show.picture");
  CHECK(refused.error.edit == "");
  CHECK(
      contains(refused.error.notes.back(), "no handler that is known here turns Tensor into what picture.video takes"));
  // Both are tensors for the declarations, and the numbers of a picture are not whole.
  CHECK(of_line("test.pattern ! test.sum ! null.sink").error.edit == "");
}

TEST_CASE("a handler whose purpose is not connected gets a note") {
  const Answer alone = of_line("test.pattern ! draw.boxes ! null.sink");
  CHECK(alone.notes == Names{"boxes (draw.boxes) does nothing: its input boxes (Records<Box>) is not connected"});
  CHECK(of_line("test.pattern ! draw.trails ! null.sink").notes.size() == 1);
  CHECK(of_line("test.pattern ! draw.text text=a ! flow.gate ! null.sink").notes.empty()); // theirs are extras
}

TEST_CASE("the note says which handler gives what is missing, and the whole line with it") {
  const Answer beside = of_line("test.pattern ! draw.boxes ! null.sink ; pattern. ! find.people name=found");
  REQUIRE(beside.notes.size() == 1);
  CHECK(contains(beside.notes[0], "not connected, and found gives that; try: '"));
  const Answer mended = of_line(line_in(beside.notes[0].substr(beside.notes[0].find("try: "))));
  CHECK(mended.error.what == "");
  CHECK(mended.notes.empty());
}

TEST_CASE("where the one that gives it stands after it, the order is mended") {
  for (const char* line : {"test.pattern ! draw.boxes ! find.people ! null.sink",
                           "test.pattern format=nv12 ! draw.trails ! find.people ! null.sink"}) { // with a conversion
    const Answer after = of_line(line);
    REQUIRE(after.notes.size() == 1);
    CHECK(contains(after.notes[0], "and people, which gives that, stands after it; try: '"));
    const Answer mended = of_line(line_in(after.notes[0].substr(after.notes[0].find("try: "))));
    CHECK(mended.error.what == "");
    CHECK(mended.notes.empty());
  }
}

TEST_CASE("notes of all streams of a template are one line, and guessed costs are told to those who ask") {
  std::string items;
  for (int i = 0; i < 8; ++i) items += (i == 0 ? "c" : ", c") + std::to_string(i);
  graph::Graph graph = graph::parse_yaml("version: 1\nstreams: { cameras: { items: [" + items +
                                             "] } }\nhandlers:\n  v: { type: test.pattern, for_each: cameras }\n"
                                             "  b: { type: draw.boxes, for_each: cameras, input: v }\n"
                                             "  s: { type: null.sink, for_each: cameras, input: b }\n",
                                         "p.yaml");
  graph = graph::unfold(std::move(graph));
  plugin::Registry registry;
  const mr_host host = plugin::basic_host();
  plan::Prepared prepared = plan::prepare(graph, registry, host);
  const plan::Plan plan = plan::compile(graph, prepared, registry, host, machine_of(2), {});
  CHECK(plan.notes.size() == 8);
  const std::vector<std::string> told = plan::notes_of_run(plan, false);
  REQUIRE(told.size() == 1);
  CHECK(told[0] == "b@cameras (draw.boxes) does nothing: its input boxes (Records<Box>) is not connected (8 streams)");
  const std::vector<std::string> all = plan::notes_of_run(plan, true);
  REQUIRE(all.size() == 2);
  CHECK(contains(all[1], "costs not known: "));
}
