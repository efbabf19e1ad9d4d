// Records as lines of JSON: the reader of JSON, one line and back, and the two handlers around them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <millrace/payload/marks.h>
#include <millrace/payload/view.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "builtin.h"
#include "fifo.h"
#include "handlers/record/json_line.h"
#include "handlers/record/json_reader.h"
#include "handlers/record/layout.h"
#include "handlers/stats/latency_window.h"
#include "handlers/stats/rate_meter.h"
#include "scratch.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// A type of the tests' own, with the fields that boxes have not.
struct SampleRecord {
  double value = 1.5;
  int32_t count = -7;
  float part = 0.25f;
  static constexpr std::string_view kSchema = "test.Sample";
  static std::vector<mr_field> fields() {
    return {field("value", &SampleRecord::value), field("count", &SampleRecord::count),
            field("part", &SampleRecord::part)};
  }
};
struct Corners {
  static constexpr std::string_view kSchema = "test.Corners";
  float at[2];
  uint8_t level;
  int16_t shift;
  static std::vector<mr_field> fields() {
    return {field("at", &Corners::at), field("level", &Corners::level), field("shift", &Corners::shift)};
  }
};
struct Mute {
  static constexpr std::string_view kSchema = "test.Mute";
  int32_t number;
};
const SampleRecord kDefaultSample;
std::span<const RecordLayout> sample_layouts() {
  static const mr_record_type& type = *record_type_of<SampleRecord>();
  static const std::array layouts = {RecordLayout{SampleRecord::kSchema,
                                                  sizeof(SampleRecord),
                                                  layout_of<SampleRecord>(),
                                                  {type.fields, type.field_count},
                                                  &kDefaultSample,
                                                  1}};
  return layouts;
}

std::string line_of(const std::vector<Box>& boxes, uint64_t tick = 0, int64_t time_ns = 0) {
  std::string text;
  append_record_line(text, tick, time_ns, known_layouts()[0], reinterpret_cast<const uint8_t*>(boxes.data()),
                     boxes.size());
  return text;
}

std::vector<Box> boxes_in(const RecordLine& line) {
  std::vector<Box> boxes(line.count);
  REQUIRE(line.bytes.size() == line.count * sizeof(Box));
  if (!boxes.empty()) std::memcpy(boxes.data(), line.bytes.data(), line.bytes.size());
  return boxes;
}

// "" where the text is JSON, else "column: sentence".
std::string complaint(std::string_view text) {
  try {
    JsonReader json(text);
    json.skip();
    json.end();
    return "";
  } catch (const JsonError& error) {
    return std::to_string(error.column()) + ": " + error.what();
  }
}

std::string line_complaint(std::string_view text) {
  RecordLine line;
  try {
    read_record_line(text, known_layouts(), line);
    return "";
  } catch (const JsonError& error) {
    return std::to_string(error.column()) + ": " + error.what();
  }
}

// Ticks until the end, as counts of boxes; -1: empty.
std::vector<int> counts_of(TableTest& reader) {
  std::vector<int> counts;
  for (Result result = reader.tick(); !result.end(); result = reader.tick()) {
    REQUIRE_MESSAGE(result.ok(), result.error);
    counts.push_back(result.has("out") ? static_cast<int>(result.records<Box>("out").size()) : -1);
    REQUIRE(counts.size() < 1000);
  }
  return counts;
}

constexpr std::string_view kNoBoxes = R"({"schema":"millrace.Box","records":[]})";

} // namespace

// ---- JSON
// --------------------------------------------------------------------------------------------------------------

TEST_CASE("what RFC 8259 allows is read, and what it forbids is refused with its column") {
  for (const char* good : {"0", "-0", "12.5e-3", "1E+9", "true", "false", "null", "[]", "{}", " [1 , 2]\r\n\t",
                           R"("a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")", R"({"a":[{"b":null}],"c":""})"})
    CHECK_MESSAGE(complaint(good) == "", good);
  for (const char* bad : {"",
                          "01",
                          "+1",
                          ".5",
                          "1.",
                          "1e",
                          "-",
                          "tru",
                          "[1,]",
                          "[1 2]",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{\"a\" 1}",
                          "{\"a\":}",
                          "'a'",
                          "\"a",
                          "\"\n\"",
                          R"("\x")",
                          R"("\u12g4")",
                          R"("\ud800")",
                          R"("\ude00")",
                          R"("\ud800\u0041")",
                          "1 2",
                          "[",
                          "{",
                          "nan",
                          "Infinity",
                          "[1}",
                          "\"\\"})
    CHECK_MESSAGE(complaint(bad) != "", bad);
  CHECK(complaint("[1, x]") == "5: a value is expected");
  CHECK(complaint("{\"a\":1 \"b\":2}") == "8: a comma or the object's end is expected");
}

TEST_CASE("texts are read with their escapes, as UTF-8") {
  CHECK(JsonReader(R"("a\u00e9\u20ac\ud83d\ude00\/\n")").string() == "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\n");
}

TEST_CASE("what is skipped may be nested, but not without end") {
  CHECK(complaint(std::string(60, '[') + std::string(60, ']')) == "");
  CHECK(complaint(std::string(100'000, '[')).find("nested too deep") != std::string::npos);
}

TEST_CASE("numbers beyond a type are infinite or zero where they are real, and refused where they are whole") {
  CHECK(JsonReader("1e999").f32() == std::numeric_limits<float>::infinity());
  CHECK(JsonReader("-1e39").f32() == -std::numeric_limits<float>::infinity());
  CHECK(JsonReader("1e39").f64() == 1e39);
  CHECK(JsonReader("1e-999").f64() == 0);
  CHECK(JsonReader("0." + std::string(400, '0') + "1").f64() == 0);
  CHECK(JsonReader("-9223372036854775808").integer(INT64_MIN) == INT64_MIN);
  CHECK_THROWS_WITH_AS(JsonReader("9223372036854775808").integer(0),
                       "9223372036854775808 is not a whole number of 64 bits", JsonError);
  for (const char* five : {"5", "5.0", "5.000", "0.5e1", "50e-1", "5E0", "500E-2"})
    CHECK(JsonReader(five).integer(0) == 5);
  CHECK(JsonReader("9007199254740993.0").integer(0) == 9007199254740993); // no double is between
  CHECK(JsonReader("-9.223372036854775808e18").integer(INT64_MIN) == INT64_MIN);
  CHECK(JsonReader("0e999999999999999999999").integer(0) == 0);
  for (const char* other : {"5.5", "5e-1", "1e19", "9.3e18", "1e999999999999999999999", "1e-999999999999999999999"})
    CHECK_THROWS_WITH_AS(JsonReader(other).integer(0),
                         (std::string(other) + " is not a whole number of 64 bits").c_str(), JsonError);
  CHECK_THROWS_WITH_AS(JsonReader("-1").integer(0), "-1 is less than 0", JsonError);
}

// ---- one line
// ----------------------------------------------------------------------------------------------------------

TEST_CASE("a line says tick, time, schema and every field") {
  CHECK(line_of({{1.5f, 2, 30, 40, 0.1f, 3, 1234567890123456789}, {}}, 7, 280'000'000) ==
        R"({"tick":7,"time_ns":280000000,"schema":"millrace.Box","records":[)"
        R"({"x":1.5,"y":2,"width":30,"height":40,"score":0.1,"label":3,"id":1234567890123456789},)"
        R"({"x":0,"y":0,"width":0,"height":0,"score":0,"label":-1,"id":-1}]})"
        "\n");
  CHECK(line_of({}) == "{\"tick\":0,\"time_ns\":0,\"schema\":\"millrace.Box\",\"records\":[]}\n");
}

TEST_CASE("any bits of a box come back, but that one not-a-number is like the other") {
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937_64 random(seed);
  RecordLine line;
  for (int round = 0; round < 300; ++round) {
    std::vector<Box> boxes(random() % 5);
    for (Box& box : boxes) {
      std::array<uint64_t, sizeof(Box) / 8> words;
      for (uint64_t& word : words) word = random();
      std::memcpy(static_cast<void*>(&box), words.data(), sizeof box);
    }
    const uint64_t tick = random() >> 1;
    const auto time_ns = static_cast<int64_t>(random());
    read_record_line(line_of(boxes, tick, time_ns), known_layouts(), line);
    CHECK(line.tick == tick);
    CHECK(line.time_ns == time_ns);
    const std::vector<Box> back = boxes_in(line);
    REQUIRE(back.size() == boxes.size());
    for (size_t i = 0; i < boxes.size(); ++i) {
      const auto same = [](float a, float b) {
        return std::memcmp(&a, &b, 4) == 0 || (std::isnan(a) && std::isnan(b));
      };
      CHECK(same(back[i].x, boxes[i].x));
      CHECK(same(back[i].height, boxes[i].height));
      CHECK(same(back[i].score, boxes[i].score));
      CHECK(back[i].label == boxes[i].label);
      CHECK(back[i].id == boxes[i].id);
    }
  }
}

TEST_CASE("what JSON has no number for comes back: infinities and not-a-number") {
  const float infinity = std::numeric_limits<float>::infinity();
  RecordLine line;
  read_record_line(line_of({{infinity, -infinity, std::nanf(""), -0.0f}}), known_layouts(), line);
  const Box box = boxes_in(line).at(0);
  CHECK(box.x == infinity);
  CHECK(box.y == -infinity);
  CHECK(std::isnan(box.width));
  CHECK(std::signbit(box.height));
}

TEST_CASE("keys come in any order, others are skipped, and what may be missing keeps its default") {
  RecordLine line;
  read_record_line(R"( {"by":{"who":["me"]}, "records":[{"height":4,"name":"\u007d]","width":3,"y":2,"x":1}],)"
                   R"("schema":"millrace.Box"} )",
                   known_layouts(), line);
  CHECK(!line.tick);
  CHECK(!line.time_ns);
  const Box box = boxes_in(line).at(0);
  CHECK(box.x == 1);
  CHECK(box.height == 4);
  CHECK(box.score == 0);
  CHECK(box.label == -1);
  CHECK(box.id == -1);
}

TEST_CASE("lists of numbers come back, their end may be left out, and an unsigned number takes all of its range") {
  Mark mark;
  mark.kind = 1;
  mark.at[4] = -0.5f;
  mark.fill[3] = 0.25f;
  Point point;
  point.age = UINT32_MAX;
  RecordLine line;
  std::string text;
  const RecordLayout& marks = *find_layout(known_layouts(), Mark::kSchema);
  append_record_line(text, 0, 0, marks, reinterpret_cast<const uint8_t*>(&mark), 1);
  read_record_line(text, known_layouts(), line);
  REQUIRE(line.bytes.size() == sizeof(Mark));
  CHECK(std::memcmp(line.bytes.data(), &mark, sizeof mark) == 0);

  text.clear();
  append_record_line(text, 0, 0, *find_layout(known_layouts(), Point::kSchema),
                     reinterpret_cast<const uint8_t*>(&point), 1);
  read_record_line(text, known_layouts(), line);
  CHECK(std::memcmp(line.bytes.data(), &point, sizeof point) == 0);

  read_record_line(R"({"schema":"millrace.Mark","records":[{"kind":0,"at":[1,2,null]}]})", known_layouts(), line);
  std::memcpy(&mark, line.bytes.data(), sizeof mark);
  CHECK((mark.at[0] == 1 && mark.at[1] == 2 && std::isnan(mark.at[2]) && mark.at[3] == 0));
  CHECK((mark.color[0] == 1 && mark.width == 1 && mark.stroke == -1));

  const std::string one = R"({"schema":"millrace.Mark","records":[{"kind":0,"at":)";
  CHECK(line_complaint(one + "[1,2,3,4,5,6,7]}]}") == "66: \"at\" has at most 6 numbers");
  CHECK(line_complaint(one + "5}]}") == "53: an array is expected");
  CHECK(line_complaint(R"({"schema":"millrace.Mark","records":[{"kind":0}]})") == "38: the record has no \"at\"");
  const std::string age = R"({"schema":"millrace.Point","records":[{"x":1,"y":2,"age":)";
  CHECK(line_complaint(age + "-1}]}") == "58: -1 is less than 0");
  CHECK(line_complaint(age + "4294967296}]}") == "58: 4294967296 is too large for 32 bits");
}

TEST_CASE("what a person wished of a view comes back, and bytes of a name, a mode or a map are a text") {
  ViewCamera camera;
  camera.angles[1] = -30.5F;
  camera.moving = 1;
  ViewLook look;
  look.crop_high[2] = 0.25F;
  std::memcpy(look.mode, "maximum", 7);
  std::memcpy(look.map, "ice", 3);
  ViewDims dims;
  dims.steps[2] = 7;
  const auto check = [](const auto& record, std::string_view schema) {
    std::string text;
    append_record_line(text, 0, 0, *find_layout(known_layouts(), schema), reinterpret_cast<const uint8_t*>(&record), 1);
    RecordLine line;
    read_record_line(text, known_layouts(), line);
    REQUIRE(line.bytes.size() == sizeof record);
    CHECK(std::memcmp(line.bytes.data(), &record, sizeof record) == 0);
    return text;
  };
  check(camera, ViewCamera::kSchema);
  check(dims, ViewDims::kSchema);
  CHECK(check(look, ViewLook::kSchema).find(R"("mode":"maximum","map":"ice")") != std::string::npos);
  // A field that a line leaves out is as in a new record.
  RecordLine line;
  read_record_line(R"({"schema":"millrace.ViewCamera","records":[{"zoom":2}]})", known_layouts(), line);
  std::memcpy(&camera, line.bytes.data(), sizeof camera);
  CHECK((camera.zoom == 2 && camera.field_of_view == 45 && camera.angles[1] == 0 && camera.moving == 0));
}

TEST_CASE("a damaged line is refused with its column and what is wrong") {
  CHECK(line_complaint("{}") == "1: the line has no \"schema\"");
  CHECK(line_complaint(R"({"schema":"millrace.Box"})") == "1: the line has no \"records\"");
  CHECK(line_complaint(R"({"schema":"acme.Thing","records":[]})") ==
        "11: records of 'acme.Thing' are not known, only millrace.Box, millrace.Rate, millrace.Latency, "
        "millrace.Class, millrace.PatchTransform, millrace.Point, millrace.Link, millrace.Mark, "
        "millrace.ViewEvent, millrace.ViewCamera, millrace.ViewLook, millrace.ViewDims");
  CHECK(line_complaint(R"({"schema":"millrace.Box","records":[{"x":1,"y":2,"width":3}]})") ==
        "37: the record has no \"height\"");
  CHECK(line_complaint(R"({"schema":"millrace.Box","records":[{"x":"1"}]})") == "42: a number is expected");
  CHECK(line_complaint(R"({"schema":"millrace.Box","records":[{"label":2147483648}]})") ==
        "46: 2147483648 is too large for 32 bits");
  CHECK(line_complaint(R"({"schema":"millrace.Box","records":[{"id":null}]})") == "43: a number is expected");
  CHECK(line_complaint(R"({"schema":"millrace.Box","records":{}})") == "36: an array is expected");
  CHECK(line_complaint(R"({"tick":-1,"schema":"millrace.Box","records":[]})") == "9: -1 is less than 0");
  CHECK(line_complaint(R"({"schema":"millrace.Box","records":[],"schema":"millrace.Box"})") ==
        "48: the schema is said twice");
  CHECK(line_complaint("[1]") == "1: an object is expected");
  CHECK(line_complaint(std::string(kNoBoxes) + "{}") == "39: nothing is expected after the value");
}

TEST_CASE("no truncation and no changed byte of a line does more than throw or read as records") {
  const std::string whole = line_of({{1.5f, 2, 30, 40, 0.1f, 3, 123}, {4, 5, 6, 7}}, 7, 280'000'000);
  const size_t text_size = whole.size() - 1; // without the break
  for (size_t size = 0; size < text_size; ++size) CHECK(line_complaint(whole.substr(0, size)) != "");
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  RecordLine line;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    text[random() % text_size] = static_cast<char>(random());
    if (line_complaint(text) != "") continue;
    read_record_line(text, known_layouts(), line);
    CHECK(line.bytes.size() == line.count * sizeof(Box));
    CHECK(line.count <= 2);
  }
}

TEST_CASE("a type with other fields is a row of the table and nothing more") {
  const std::array<SampleRecord, 2> samples = {SampleRecord{0.1, 2, -3}, SampleRecord{1e300, INT32_MIN, 5}};
  std::string text;
  append_record_line(text, 1, 2, sample_layouts()[0], reinterpret_cast<const uint8_t*>(samples.data()), 2);
  CHECK(text == R"({"tick":1,"time_ns":2,"schema":"test.Sample","records":[{"value":0.1,"count":2,"part":-3},)"
                R"({"value":1e+300,"count":-2147483648,"part":5}]})"
                "\n");
  RecordLine line;
  read_record_line(text, sample_layouts(), line);
  REQUIRE(line.bytes.size() == sizeof samples);
  CHECK(std::memcmp(line.bytes.data(), samples.data(), sizeof samples) == 0);
  read_record_line(R"({"schema":"test.Sample","records":[{"value":null}]})", sample_layouts(), line);
  SampleRecord sample;
  std::memcpy(&sample, line.bytes.data(), sizeof sample);
  CHECK(std::isnan(sample.value));
  CHECK(sample.count == -7);
}

TEST_CASE("what stats.fps and stats.latency measure is written with its fields and read back bit by bit") {
  const Rate rate{29.97002997002997, 1'001'000'000, 30};
  const Latency latency{0.1, 250.5, 1e4, 4096};
  const RecordLayout* of_rate = find_layout(known_layouts(), Rate::kSchema);
  const RecordLayout* of_latency = find_layout(known_layouts(), Latency::kSchema);
  REQUIRE(of_rate);
  REQUIRE(of_latency);
  std::string text;
  append_record_line(text, 3, 4, *of_rate, reinterpret_cast<const uint8_t*>(&rate), 1);
  CHECK(text == R"({"tick":3,"time_ns":4,"schema":"millrace.Rate","records":[)"
                R"({"per_second":29.97002997002997,"span_ns":1001000000,"interval_count":30}]})"
                "\n");
  RecordLine line;
  read_record_line(text, known_layouts(), line);
  REQUIRE(line.bytes.size() == sizeof rate);
  CHECK(std::memcmp(line.bytes.data(), &rate, sizeof rate) == 0);
  text.clear();
  append_record_line(text, 3, 4, *of_latency, reinterpret_cast<const uint8_t*>(&latency), 1);
  CHECK(text == R"({"tick":3,"time_ns":4,"schema":"millrace.Latency","records":[)"
                R"({"p50_us":0.1,"p99_us":250.5,"max_us":10000,"count":4096}]})"
                "\n");
  read_record_line(text, known_layouts(), line);
  REQUIRE(line.bytes.size() == sizeof latency);
  CHECK(std::memcmp(line.bytes.data(), &latency, sizeof latency) == 0);
}

// ---- the handlers
// ------------------------------------------------------------------------------------------------------

TEST_CASE("what record.to_json wrote, record.from_json gives again at the same ticks") {
  const ScratchFolder folder;
  const std::string path = folder / "new/folder/boxes.jsonl";
  const std::vector<Value> values = {testing::records<Box>({{1, 2, 3, 4, 0.5f, 6, 7}, {8, 9, 10, 11}}).at(5),
                                     Value(),
                                     testing::records<Box>({}),
                                     Value(),
                                     Value(),
                                     testing::records<Box>({{-1, 0.1f, 2, 2}}).at(-40'000'000'001)};
  TableTest writer(builtin("record.to_json"), {{"path", path}});
  for (const Value& value : values) {
    writer.input("in", value);
    REQUIRE(writer.tick().ok());
  }
  REQUIRE(writer.drain() == MR_OK);

  TableTest reader(builtin("record.from_json"), {{"path", path}});
  REQUIRE(reader.start() == MR_OK);
  CHECK(reader.facts().tick_count == 6);
  CHECK(reader.format("out").kind == MR_KIND_RECORDS);
  CHECK(reader.format("out").record_count_max == 2);
  CHECK(reader.format("out").schema == schema_of(Box::kSchema));
  for (size_t i = 0; i < values.size(); ++i) {
    const Result result = reader.tick();
    REQUIRE(result.ok());
    INFO("tick ", i);
    REQUIRE(result.has("out") == bool(values[i]));
    if (!values[i]) continue;
    CHECK(result.value("out").header().layout == values[i].header().layout);
    CHECK(result.value("out").header().pts_ns == values[i].header().pts_ns);
    const auto wanted = values[i].records<Box>(), got = result.value("out").records<Box>();
    REQUIRE(got.size() == wanted.size());
    CHECK(std::memcmp(got.data(), wanted.data(), wanted.size_bytes()) == 0);
  }
  CHECK(reader.tick().end());
  CHECK(reader.tick().end());
}

TEST_CASE("a rate goes from stats.fps into a file, and record.from_json gives it again") {
  const ScratchFolder folder;
  const std::string path = folder / "rates.jsonl";
  TableTest fps(builtin("stats.fps"), {{"time", "media"}}), writer(builtin("record.to_json"), {{"path", path}});
  for (int64_t i = 0; i < 3; ++i) {
    fps.input("in", testing::records<Box>({}).at(i * 40'000'000));
    const Result measured = fps.tick();
    REQUIRE_MESSAGE(measured.ok(), measured.error);
    REQUIRE(measured.has("rate") == (i > 0));
    if (i == 0) continue;
    writer.input("in", measured.value("rate"));
    REQUIRE(writer.tick().ok());
  }
  REQUIRE(writer.drain() == MR_OK);
  TableTest reader(builtin("record.from_json"), {{"path", path}});
  REQUIRE(reader.start() == MR_OK);
  CHECK(reader.format("out").schema == schema_of(Rate::kSchema));
  for (const int64_t intervals : {1, 2}) {
    const Result result = reader.tick();
    REQUIRE(result.ok());
    CHECK(result.records<Rate>("out")[0].interval_count == intervals);
  }
  CHECK(reader.tick().end());
}

TEST_CASE(
    "lines without a tick follow each other, empty lines and a byte order mark are none, and the last needs no break") {
  const ScratchFolder folder;
  const std::string line(kNoBoxes);
  const std::string later = R"({"tick":4,"schema":"millrace.Box","records":[]})";
  TableTest reader(
      builtin("record.from_json"),
      {{"path", folder.write("x", "\xEF\xBB\xBF" + line + "\r\n\n" + line + "\n  \n" + later + "\n" + line)}});
  CHECK(counts_of(reader) == std::vector<int>{0, 0, -1, -1, 0, 0});
}

TEST_CASE("record.from_json begins again after a seek and a stop") {
  const ScratchFolder folder;
  TableTest reader(builtin("record.from_json"), {{"path", folder.write("x", line_of({{}}) + line_of({}, 1))}});
  CHECK(counts_of(reader) == std::vector<int>{1, 0});
  REQUIRE(reader.reset() == MR_OK);
  CHECK(reader.tick().records<Box>("out").size() == 1);
  reader.stop();
  CHECK(counts_of(reader) == std::vector<int>{1, 0});
}

TEST_CASE("a FIFO gives its lines as a file does, and its first one says the type before anything runs") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  TableTest reader(builtin("record.from_json"), {{"path", path}});
  std::thread writer = feeder(path, "\n" + line_of({{}}, 1) + line_of({{}, {}}, 3) + line_of({}, 4));
  REQUIRE(reader.start() == MR_OK);
  CHECK(reader.facts().waits == 1);
  CHECK(reader.facts().tick_count == -1);
  CHECK(reader.format("out").record_size == sizeof(Box));
  CHECK(reader.format("out").record_count_max == 1024);
  CHECK(counts_of(reader) == std::vector<int>{-1, 1, -1, 2, 0});
  writer.join();
}

TEST_CASE("a stream's line of more records than `count_max` is damaged, and a stream of no line is refused") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  TableTest strict(builtin("record.from_json"), {{"path", path}, {"count_max", "1"}});
  std::thread writer = feeder(path, line_of({{}}) + line_of({{}, {}}, 1));
  REQUIRE(strict.start() == MR_OK);
  CHECK(strict.tick().ok());
  CHECK(strict.tick().error ==
        "cannot read '" + path + "': line 2, column 1: 2 records are more than the 1 of `count_max`");
  writer.join();
  strict.stop();
  TableTest empty(builtin("record.from_json"), {{"path", path}});
  writer = feeder(path, "\n");
  CHECK(empty.start() == MR_ERROR);
  CHECK(empty.error() == "cannot read '" + path + "': there is no line in it");
  writer.join();
}

TEST_CASE("an interrupt ends the wait for a stream's first line, and for a later one in the middle of it") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  TableTest never(builtin("record.from_json"), {{"path", path}});
  mr_status started = MR_OK;
  interrupted(never, [&] { started = never.start(); });
  CHECK(started == MR_ERROR);
  CHECK(never.error() == "cannot read '" + path + "': interrupted while it waited for the first line");
  TableTest reader(builtin("record.from_json"), {{"path", path}});
  const int writer = open(path.c_str(), O_RDWR); // so that opening does not wait for a reader
  const std::string first = line_of({{}}), second = line_of({{}, {}}, 1);
  const std::string begin = first + second.substr(0, 20), rest = second.substr(20);
  REQUIRE(write(writer, begin.data(), begin.size()) == static_cast<ssize_t>(begin.size()));
  REQUIRE(reader.start() == MR_OK);
  CHECK(reader.tick().records<Box>("out").size() == 1);
  interrupted(reader, [&] { CHECK(reader.tick().end()); });
  REQUIRE(write(writer, rest.data(), rest.size()) == static_cast<ssize_t>(rest.size()));
  CHECK(reader.tick().records<Box>("out").size() == 2);
  close(writer);
}

TEST_CASE("a damaged line is refused before the run, with path, line and column") {
  const ScratchFolder folder;
  const auto refusal = [&](const std::string& text) {
    TableTest reader(builtin("record.from_json"), {{"path", folder.write("x", text)}});
    CHECK(reader.start() == MR_ERROR);
    const std::string start = "cannot read '" + (folder / "x") + "': ";
    REQUIRE(reader.error().starts_with(start));
    return reader.error().substr(start.size());
  };
  const std::string good = line_of({{}}, 5);
  CHECK(refusal(good + "\n{\"tick\":x}\n") == "line 3, column 9: a number is expected");
  CHECK(refusal(good + line_of({}, 5)) == "line 2, column 1: tick 5 comes after tick 5");
  CHECK(refusal(line_of({}, 99'999'999'999)) == "line 1, column 1: tick 99999999999 is beyond 10000000000");
  CHECK(refusal(good + good.substr(0, 40)).find("as if the file were cut off") != std::string::npos);
  CHECK(refusal("\n \n") == "there is no line in it");
  CHECK(refusal(std::string(1000, '\0')).starts_with("line 1, column 1: an object is expected"));
  CHECK(refusal("") == "the file is empty");
}

TEST_CASE("damaged lines are left out and told where that is asked for") {
  const ScratchFolder folder;
  const std::string text = "?\n" + line_of({{}, {}}, 1) + line_of({}, 0) + "{\n" + line_of({{}}, 3);
  TableTest reader(builtin("record.from_json"), {{"path", folder.write("x", text)}, {"damaged", "skip"}});
  CHECK(counts_of(reader) == std::vector<int>{-1, 2, -1, 1});
  REQUIRE(reader.logs().size() == 1);
  CHECK(reader.logs()[0].level == MR_LOG_WARNING);
  CHECK(reader.logs()[0].sentence.starts_with("3 damaged lines were left out; the first: cannot read '"));
  CHECK(reader.logs()[0].sentence.ends_with("line 1, column 1: an object is expected"));
  TableTest nothing(builtin("record.from_json"), {{"path", folder.write("y", "?\n")}, {"damaged", "skip"}});
  CHECK(nothing.start() == MR_ERROR);
}

TEST_CASE("record files that are missing, or no files, are refused with their path") {
  const ScratchFolder folder;
  TableTest missing(builtin("record.from_json"), {{"path", folder / "none"}});
  CHECK(missing.start() == MR_ERROR);
  CHECK(missing.error() == "cannot read '" + (folder / "none") + "': there is no such file");
  TableTest directory(builtin("record.from_json"), {{"path", folder / "."}});
  CHECK(directory.start() == MR_ERROR);
  CHECK(directory.error().ends_with("it is a folder"));
}

TEST_CASE("record.to_json refuses what it does not know, and paths that cannot be written") {
  const ScratchFolder folder;
  TableTest image(builtin("record.to_json"), {{"path", folder / "x"}});
  image.input("in", testing::image(Pixel::rgb8, 2, 2));
  CHECK(image.start() == MR_ERROR);
  const Value strange = testing::records<Box>({});
  strange.header().schema = schema_of("acme.Thing");
  TableTest unknown(builtin("record.to_json"), {{"path", folder / "x"}});
  unknown.input("in", strange);
  CHECK(unknown.start() == MR_ERROR);
  CHECK(unknown.error() ==
        "these records are of a type that is not known and does not say its fields; known are millrace.Box, "
        "millrace.Rate, millrace.Latency, millrace.Class, millrace.PatchTransform, millrace.Point, millrace.Link, "
        "millrace.Mark, millrace.ViewEvent, millrace.ViewCamera, millrace.ViewLook, millrace.ViewDims, and "
        "types that have a function "
        "fields()");
  const Value other = testing::records<Box>({});
  other.header().layout ^= 1;
  TableTest version(builtin("record.to_json"), {{"path", folder / "x"}});
  version.input("in", other);
  CHECK(version.start() == MR_ERROR);
  CHECK(version.error() == "the records are 'millrace.Box' of another version");
  const std::string inside = folder.write("file", "x") + "/boxes.jsonl";
  TableTest nowhere(builtin("record.to_json"), {{"path", inside}});
  nowhere.input("in", testing::records<Box>({}));
  CHECK(nowhere.start() == MR_ERROR);
  CHECK(nowhere.error() == "cannot write '" + inside + "': Not a directory");
}

TEST_CASE("record.to_json flushes where it is asked to, tells a full disk, and refuses ticks behind the end" *
          doctest::skip(!std::filesystem::exists("/dev/full"))) {
  const ScratchFolder folder;
  TableTest flushed(builtin("record.to_json"), {{"path", folder / "x"}, {"flush", "true"}});
  flushed.input("in", testing::records<Box>({}));
  REQUIRE(flushed.tick().ok());
  CHECK(folder.text("x") == line_of({}));
  REQUIRE(flushed.drain() == MR_OK);
  CHECK(flushed.tick().error == "'" + (folder / "x") + "' is closed");
  for (const char* flush : {"true", "false"}) {
    TableTest full(builtin("record.to_json"), {{"path", "/dev/full"}, {"flush", flush}});
    full.input("in", testing::records<Box>({}));
    const bool told = full.tick().status == MR_ERROR || full.drain() == MR_ERROR;
    CHECK(told);
    CHECK(full.error() == "cannot write '/dev/full': No space left on device (at byte 0)");
  }
}

TEST_CASE(
    "records of a type that says its fields are written, arrays as lists; those of one that does not are refused") {
  const ScratchFolder folder;
  TableTest writer(builtin("record.to_json"), {{"path", folder / "own.jsonl"}});
  writer.input("in", testing::records<Corners>({{{1, 2.5f}, 7, -1}, {{3, 4}, 8, -2}}));
  REQUIRE(writer.tick().ok());
  REQUIRE(writer.drain() == MR_OK);
  CHECK(folder.text("own.jsonl") ==
        R"({"tick":0,"time_ns":0,"schema":"test.Corners","records":[{"at":[1,2.5],"level":7,"shift":-1},)"
        R"({"at":[3,4],"level":8,"shift":-2}]})"
        "\n");
  TableTest silent(builtin("record.to_json"), {{"path", folder / "x"}});
  silent.input("in", testing::records<Mute>({{1}}));
  CHECK(silent.start() == MR_ERROR);
}
