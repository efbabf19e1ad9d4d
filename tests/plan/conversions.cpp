// Conversions that the plan inserted run on the side of the boundary from which fewer bytes cross it.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "device/device.h"
#include "plan/print.h"
#include "planned.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// source → reader on sim:0; they share no format.
Pipeline across(const char* source, const char* reader) {
  Pipeline p;
  p.add("source", source).device = "cpu";
  p.add("reader", reader).device = "sim:0";
  p.connect("source", "reader");
  return p;
}

std::string place_of(const Planned& planned, size_t conversion = 0) {
  return planned.place(planned.inserted().at(conversion));
}

uint64_t carried(const Planned& planned) {
  uint64_t bytes = 0;
  for (const CopyView& copy : planned.copies()) bytes += copy.bytes;
  return bytes;
}

} // namespace

TEST_CASE("5.1: a picture that gets smaller is converted before the copy, one that gets larger after it") {
  const Planned smaller(across("p.bgr", "p.grayonly"), two_devices);
  CHECK(place_of(smaller) == "cpu");
  CHECK(carried(smaller) == 64 * 48 + sizeof(mr_value));
  const Planned larger(across("p.nv12", "p.rgb"), two_devices);
  CHECK(place_of(larger) == "sim:0");
  CHECK(carried(larger) == 64 * 48 + 64 * 24 + sizeof(mr_value));
  CHECK(larger.reason("reader~rgb8") == "after the copy: 4.8 KiB a tick cross, 9.2 KiB if it were in cpu");
}

TEST_CASE("5.1: a picture that stays as large is converted on its reader's side") {
  CHECK(place_of(Planned(across("p.bgr", "p.rgb"), two_devices)) == "sim:0");
  Pipeline p = across("p.bgr", "p.rgb");
  p.graph.handlers[1].device = "cpu";
  const Planned planned(p, machine_of(1, {"sim:0", "cpu"}));
  CHECK(place_of(planned) == "cpu");
  CHECK(planned.copies().empty());
}

TEST_CASE("5.1: where another reader has the picture copied already, converting after the copy costs nothing more") {
  Pipeline p = across("p.bgr", "p.grayonly");
  p.add("other", "null.sink").device = "sim:0";
  p.connect("source", "other");
  const Planned planned(p, two_devices);
  CHECK(place_of(planned) == "sim:0");
  CHECK(planned.copies().size() == 1);
}

TEST_CASE("5.1: a conversion that readers in two domains share crosses as little as it can") {
  Pipeline p = across("p.nv12", "p.rgb");
  p.add("host", "p.rgb").device = "cpu";
  p.connect("source", "host");
  const Planned planned(p, two_devices); // beside its source one copy of it crosses, on the device there and back
  CHECK(place_of(planned) == "cpu");
  CHECK(planned.copies().size() == 1);
}

TEST_CASE("5.1: a conversion runs only where --devices allows, and where no edge forbids the copy") {
  CHECK(place_of(Planned(across("p.bgr", "p.grayonly"), machine_of(1, {"sim:0"}))) == "sim:0");
  Pipeline p = across("p.bgr", "p.rgb");
  p.graph.edges[0].forbid_copy = true;
  CHECK(refusal(p, two_devices) == 411);
  p.graph.handlers[1].device = "cpu";
  CHECK(place_of(Planned(p, two_devices)) == "cpu");
}

TEST_CASE("5.6: domain: of a converted edge is where the converted picture is delivered") {
  Pipeline p = across("p.bgr", "p.grayonly");
  p.graph.handlers[1].device.clear();
  p.graph.edges[0].domain = "sim:0";
  const Planned planned(p, two_devices);
  CHECK(planned.place("reader") == "sim:0");
  CHECK(place_of(planned) == "cpu");
}

TEST_CASE("5.1: what a source gives on its side is turned once, before all its readers and all other conversions") {
  Pipeline p;
  p.add("source", "p.lying");
  p.add("one", "p.rgb");
  p.add("two", "p.gray");
  p.add("three", "p.square");
  for (const char* reader : {"one", "two", "three"}) p.connect("source", reader);
  const Planned planned(p);
  REQUIRE(planned.inserted().size() >= 3);
  CHECK(planned.type("one~upright") == "image.flip");
  CHECK(planned.format("one~upright").width == 48);
  CHECK(planned.format("one~upright").height == 64);
  CHECK(planned.format("one~upright").turn == MR_TURN_NONE);
  const std::vector<std::string> inserted = planned.inserted();
  CHECK(std::count_if(inserted.begin(), inserted.end(),
                      [&](const std::string& name) { return planned.type(name) == "image.flip"; }) == 1);
  CHECK(planned.text().find("one~upright: image.flip 64×48 of pixels 4:3 → 48×64 of pixels 3:4 "
                            "between source.out and ") != std::string::npos);
  CHECK(planned.text().find("because source asks for mode=rotate90;") != std::string::npos);
}

TEST_CASE("5.1: a picture on its side is turned once, also if a handler passes on what is converted") {
  Pipeline p;
  p.add("source", "p.lying"); // bgr8
  p.add("one", "p.rgb");
  p.add("end", "p.rgb");
  p.connect("source", "one");
  p.connect("one", "end");
  const Planned planned(p);
  const std::vector<std::string> inserted = planned.inserted();
  CHECK(inserted.size() == 2);
  CHECK(std::count_if(inserted.begin(), inserted.end(),
                      [&](const std::string& name) { return planned.type(name) == "image.flip"; }) == 1);
}

TEST_CASE("5.1: a reader of square pixels gets them, in the shape of the picture and with no side made smaller") {
  Pipeline p("p.lying name=source ! p.square name=square ; source. ! null.sink name=any");
  const Planned planned(p);
  const mr_format& made = planned.format("square~square"); // 48 × 64 of pixels 3:4 is shown as 36 to 64
  CHECK(made.width == 48);
  CHECK(made.height == 85);
  CHECK(made.aspect_num == made.aspect_den);
  CHECK(!planned.read_the_same("any", "square"));
  CHECK(planned.text().find("because square takes square pixels;") != std::string::npos);
  Pipeline wide;
  wide.add("source", "p.wide");
  wide.add("square", "p.square");
  wide.connect("source", "square");
  CHECK(Planned(wide).format("square~square").width == 85);
  CHECK(Planned(wide).format("square~square").height == 48);
}

TEST_CASE("5.1: numbers of YCbCr keep their matrix and range; made from RGB they get the matrix of their size") {
  const auto settings_of = [](const char* source) {
    Pipeline p;
    p.add("source", source);
    p.add("reader", "p.nv12only");
    p.connect("source", "reader");
    const Planned planned(p);
    const mr_format& made = planned.format("reader~nv12");
    return std::pair(made.color, made.range);
  };
  CHECK(settings_of("p.bgr") == std::pair<uint32_t, uint32_t>(MR_COLOR_BT601, MR_RANGE_LIMITED));
  CHECK(settings_of("p.hd") == std::pair<uint32_t, uint32_t>(MR_COLOR_BT709, MR_RANGE_LIMITED));
  CHECK(settings_of("p.full709") == std::pair<uint32_t, uint32_t>(MR_COLOR_BT709, MR_RANGE_FULL));
}

TEST_CASE(
    "5.1: what a handler takes is narrowed by its parameters before formats are settled, or refused in its words") {
  const auto taken = [](const char* what) {
    Pipeline p;
    p.add("source", "p.bgr");
    p.add("reader", "p.narrow", {{"takes", what}});
    p.connect("source", "reader");
    const Planned planned(p);
    return planned.inserted().empty() ? std::string("as it is") : planned.made_by(planned.inserted()[0]);
  };
  CHECK(taken("any") == "as it is");
  CHECK(taken("gray8") == "gray8");
  CHECK(taken("rgb8") == "rgb8");
  Pipeline p("p.bgr name=source ! p.narrow name=reader takes=sound");
  CHECK(refusal(p) == 402);
}

TEST_CASE("5.6: every conversion has a name, a reason and a price in text and JSON, and a dashed box in dot") {
  plan::Options options;
  options.costs_ns["reader~gray8"] = 12'000;
  const Planned planned(across("p.bgr", "p.grayonly"), two_devices, options);
  const std::string text = planned.text();
  CHECK(text.find("  reader~gray8: image.convert bgr8 → gray8 between source.out and reader.in, because reader takes "
                  "gray8; on cpu, 64×48, about 12 µs\n") != std::string::npos);
  const auto inserted = nlohmann::json::parse(plan::print_json(planned.plan()))["inserted"];
  const nlohmann::json expected = {{"handler", "reader~gray8"},
                                   {"from", "bgr8"},
                                   {"to", "gray8"},
                                   {"edge", "source.out → reader.in"},
                                   {"domain", "cpu"},
                                   {"reason", "reader takes gray8"},
                                   {"predicted_us", 12.0},
                                   {"bytes", 64 * 48}};
  CHECK(inserted == nlohmann::json::array({expected}));
  CHECK(plan::print_dot(planned.plan()).find("reader~gray8\\nimage.convert\", style=dashed") != std::string::npos);
}
