// Taps of a client, without a transport: what is refused, when a sample is made and sent, and how it is written.
#include "serve/taps.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "exec/tap.h"
#include "observe/error.h"
#include "serve/control.h"
#include "serve/message.h"
#include "tests/exec/endless_run.h"

using namespace millrace;
using namespace millrace::serve;
using nlohmann::ordered_json;

namespace {

// A run that goes on until the test ends it, and a client of it.
struct Tapped {
  test::EndlessRun endless{"t.count name=source count=0 ! t.relay name=relay add=5 ! t.sink name=sink log=seen"};
  std::atomic<int> wakes{0};
  Control control{run()};
  Control::Client client;

  Tapped() {
    client.wake = [this] { ++wakes; };
    ask("hello", {{"protocol", kProtocol}});
  }
  SteeredRun run() {
    SteeredRun run;
    run.elapsed_s = [] { return 1.0; };
    run.tap = [this](const std::string& output, const exec::TapOptions& options) {
      return endless.tap(output, options);
    };
    return run;
  }
  ordered_json ask(const std::string& method, const ordered_json& params) {
    const std::string line =
        ordered_json({{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}}).dump();
    return ordered_json::parse(control.take(client, line, nullptr).line);
  }
  // The next sample, once the client was woken.
  Sample next(int64_t now_ms) {
    for (;;) {
      if (std::optional<Sample> sample = Control::sample(client, now_ms)) return std::move(*sample);
      std::this_thread::yield();
    }
  }
};

template <class Number>
Number number_at(const std::string& bytes, size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

} // namespace

TEST_CASE("tap is refused with the place of the mistake, or with the run's own words") {
  Tapped tapped;
  const auto place = [&](const std::string& method, const ordered_json& params) {
    const ordered_json answer = tapped.ask(method, params);
    REQUIRE(answer.contains("error"));
    return answer["error"]["data"].value("at", "") + answer["error"]["data"].value("code", "");
  };
  CHECK(place("untap", {{"tap", 1}}) == "/params/tap");
  CHECK(place("tap", ordered_json::object()) == "/params/output");
  for (const ordered_json& width : {ordered_json(15), ordered_json(961), ordered_json(-1), ordered_json("480")})
    CHECK(place("tap", {{"output", "relay.out"}, {"width", width}}) == "/params/width");
  for (const ordered_json& hz : {ordered_json(0), ordered_json(20.5), ordered_json("10")})
    CHECK(place("tap", {{"output", "relay.out"}, {"hz", hz}}) == "/params/hz");
  CHECK(place("tap", {{"output", "rely.out"}}) == "MR0301");
  CHECK(place("tap", {{"output", "relay.in"}}) == "MR0302");
  CHECK(place("tap", {{"output", "sink"}}) == "MR0319");
  for (uint32_t n = 1; n <= kTapsMax; ++n)
    CHECK(tapped.ask("tap", {{"output", "relay.out"}, {"width", 16}, {"hz", 0.1}})["result"]["tap"] == n);
  CHECK(tapped.ask("tap", {{"output", "relay.out"}})["error"]["code"] == static_cast<int>(RpcCode::busy));
  CHECK(place("ack", {{"tap", 99}}) == "/params/tap");
  CHECK(place("untap", {{"tap", "3"}}) == "/params/tap");
  CHECK(tapped.ask("untap", {{"tap", 3}}).contains("result"));
  CHECK(place("untap", {{"tap", 3}}) == "/params/tap");
  CHECK(tapped.ask("tap", {{"output", "relay.out"}})["result"]["tap"] == 9); // no number comes again
}

TEST_CASE("a sample is made once the last one was acknowledged and its period is over") {
  Tapped tapped;
  Control::Client& client = tapped.client;
  CHECK(Control::samples_due_ms(client) == INT64_MAX);
  tapped.ask("tap", {{"output", "relay.out"}, {"hz", 4}});
  CHECK(Control::samples_due_ms(client) == 0);
  const Sample first = tapped.next(1'000);
  CHECK(first.tap == 1);
  CHECK(std::get<exec::ShownTensor>(first.of.shown).max == static_cast<double>(first.of.tick) + 5);
  CHECK(tapped.wakes == 1);
  CHECK(Control::samples_due_ms(client) == INT64_MAX); // it was not acknowledged
  CHECK_FALSE(Control::sample(client, 9'000));
  tapped.ask("ack", {{"tap", 1}});
  CHECK(Control::samples_due_ms(client) == 1'250);
  CHECK_FALSE(Control::sample(client, 1'249));
  CHECK(Control::samples_due_ms(client) == 1'250); // it is not armed
  CHECK(tapped.next(1'250).of.tick > first.of.tick);
  tapped.ask("ack", {{"tap", 1}});
  tapped.ask("ack", {{"tap", 1}}); // once too often
  CHECK(Control::samples_due_ms(client) == 1'500);
  tapped.ask("untap", {{"tap", 1}});
  CHECK(Control::samples_due_ms(client) == INT64_MAX);
}

TEST_CASE("several taps take turns, and one that is not acknowledged holds up no other") {
  Tapped tapped;
  for (const char* output : {"source", "relay", "source"}) tapped.ask("tap", {{"output", output}, {"hz", 20}});
  std::map<uint32_t, int> samples;
  int64_t now_ms = 0;
  for (int n = 0; n < 41; ++n, now_ms += 50) {
    const Sample sample = tapped.next(now_ms);
    ++samples[sample.tap];
    if (sample.tap != 2) tapped.ask("ack", {{"tap", sample.tap}});
  }
  CHECK(samples[2] == 1);
  for (const uint32_t tap : {1u, 3u}) CHECK(samples[tap] > 10);
}

TEST_CASE("samples are written as a line and as bytes") {
  Sample sample;
  sample.tap = 3;
  sample.of.tick = uint64_t{1} << 40;
  sample.of.media_ns = -2;
  CHECK(sample_line(sample) == R"({"jsonrpc":"2.0","method":"tap","params":{"tap":3,"tick":1099511627776,)"
                               R"("media_ns":-2,"kind":"none"}})");
  std::string bytes = sample_bytes(sample);
  REQUIRE(bytes.size() == 40);
  CHECK(number_at<uint32_t>(bytes, 0) == 3);
  CHECK(number_at<uint32_t>(bytes, 4) == 1);
  CHECK(number_at<uint64_t>(bytes, 8) == uint64_t{1} << 40);
  CHECK(number_at<int64_t>(bytes, 16) == -2);
  CHECK(number_at<uint32_t>(bytes, 36) == 0);

  sample.of.shown = exec::ShownPicture{1920, 1080, 2, 1, {1, 2, 3, 255, 4, 5, 6, 255}};
  const ordered_json picture = ordered_json::parse(sample_line(sample))["params"];
  CHECK(picture["width"] == 1920);
  CHECK(picture["height"] == 1080);
  CHECK(picture["kind"] == "picture");
  CHECK(picture["shown"] == ordered_json({2, 1}));
  CHECK(picture["data"] == "AQID/wQFBv8=");
  bytes = sample_bytes(sample);
  REQUIRE(bytes.size() == 40 + 8 + 8);
  CHECK(number_at<uint32_t>(bytes, 4) == 0);
  CHECK(number_at<uint32_t>(bytes, 24) == 1920);
  CHECK(number_at<uint32_t>(bytes, 28) == 1080);
  CHECK(number_at<uint16_t>(bytes, 32) == 1);
  CHECK(number_at<uint16_t>(bytes, 34) == 0);
  CHECK(number_at<uint32_t>(bytes, 36) == 16);
  CHECK(number_at<uint32_t>(bytes, 40) == 2);
  CHECK(number_at<uint32_t>(bytes, 44) == 1);
  CHECK(bytes.substr(48) == std::string("\1\2\3\xff\4\5\6\xff"));

  exec::ShownTensor tensor;
  tensor.dtype = "float32";
  tensor.shape = {2, 1};
  tensor.count = tensor.looked_at = tensor.not_finite = 2;
  tensor.min = tensor.max = tensor.mean = std::numeric_limits<double>::quiet_NaN();
  tensor.heat_width = 1;
  tensor.heat_height = 2;
  tensor.heat = {0, 255};
  sample.of.shown = tensor;
  const std::string json =
      R"({"dtype":"float32","shape":[2,1],"count":2,"looked_at":2,"min":null,"max":null,"mean":null,"not_finite":2,)"
      R"("heat":{"width":1,"height":2,"values":[0,255]}})";
  CHECK(ordered_json::parse(sample_line(sample))["params"]["data"].dump() == json);
  bytes = sample_bytes(sample);
  CHECK(number_at<uint16_t>(bytes, 32) == 2);
  CHECK(number_at<uint32_t>(bytes, 36) == json.size());
  CHECK(bytes.substr(40) == json);

  exec::ShownRecords records{"t.Spot", 9, {{"id", 1}, {"at", 2}}, {{int64_t{INT64_MIN}, 0.5, std::nan("")}}};
  sample.of.shown = records;
  CHECK(sample_bytes(sample).substr(40) ==
        R"({"type":"t.Spot","count":9,"shown":1,"fields":["id","at"],"rows":[[-9223372036854775808,[0.5,null]]]})");
  sample.of.shown = exec::ShownPacket{7, true, 40, 0, 20};
  CHECK(sample_bytes(sample).substr(40) == R"({"bytes":7,"key":true,"pts_ns":40,"duration_ns":0,"dts_ns":20})");
}
