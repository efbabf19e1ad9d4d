// testing.h: a handler's test sees what the handler published and is told what it did wrong.
#include <doctest/doctest.h>

#include <thread>

#include "millrace/testing.h"

namespace mr = millrace;
using mr::Pixel;

namespace {

struct Invert final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({Pixel::rgb8, Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<float> strength{*this, "strength", 1.0f, "0 leaves, 1 inverts", mr::range(0, 1), mr::live};

  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan picture = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width() * mr::bytes_per_pixel(in.pixel()); ++x) {
        const float value = in.row(y)[x];
        picture.row(y)[x] = static_cast<uint8_t>(value + strength * (255 - 2 * value));
      }
  }
};

TEST_CASE("a handler's test sees the picture that the handler made") {
  mr::testing::HandlerTest<Invert> test({{"strength", "1"}});
  test.input("video", mr::testing::image(Pixel::rgb8, 5, 3, [](uint32_t x, uint32_t y, uint32_t c) {
                        return x * 10 + y + c;
                      }).at(77));
  const mr::testing::Result result = test.tick();
  REQUIRE(result.ok());
  CHECK(result.image("video").width() == 5);
  CHECK(result.image("video").header().pts_ns == 77);
  CHECK(result.image("video").row(2)[4 * 3 + 1] == 255 - (40 + 2 + 1));
}

struct SaysStream final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)}, same{*this, "same", mr::forward(video)};
  uint32_t told = 99;
  void process(mr::Tick& tick, mr::Cpu&) {
    told = tick.stream();
    out.allocate_like(tick, video(tick));
    same.forward(tick, video);
  }
};

TEST_CASE("a handler's test may be that of a stream's instance, whose own values say the stream") {
  mr::testing::HandlerTest<SaysStream> test;
  test.input("video", mr::testing::image(Pixel::gray8, 2, 2).from_stream(5));
  const mr::testing::Result outside = test.tick();
  REQUIRE(outside.ok());
  CHECK(test.handler().told == 0);
  CHECK(outside.value("video").header().stream == 5);
  test.set_stream(3);
  const mr::testing::Result inside = test.tick();
  REQUIRE(inside.ok());
  CHECK(test.handler().told == 3);
  CHECK(inside.value("video").header().stream == 3);
  CHECK(inside.value("same").header().stream == 5);
}

TEST_CASE("live parameters change between ticks, and texts that are no value are refused") {
  mr::testing::HandlerTest<Invert> test;
  test.input("video", mr::testing::image(Pixel::gray8, 1, 1, 10));
  CHECK(test.tick().image("video").row(0)[0] == 245);
  test.set("strength", "0");
  CHECK(test.tick().image("video").row(0)[0] == 10);
  CHECK_THROWS_WITH(test.set("strength", "2"), "parameter 'strength': '2' is not a number from 0 to 1");
  CHECK_THROWS_WITH(test.set("strenth", "1"), "there is no parameter 'strenth'; there are: strength");
}

TEST_CASE("a required input that is empty keeps the handler from firing") {
  mr::testing::HandlerTest<Invert> test;
  CHECK_THROWS_WITH(test.tick(), "input 'video' is required: give it with input()");
  test.input("video", mr::testing::image(Pixel::gray8, 1, 1));
  CHECK(test.tick().fired);
  test.input("video", {});
  const mr::testing::Result result = test.tick();
  CHECK(!result.fired);
  CHECK(!result.has("video"));
  CHECK(result.tick.index == 1);
  CHECK(result.tick.media_time_ns == 40'000'000);
}

TEST_CASE("a format that the input does not take is refused before the first tick") {
  mr::testing::HandlerTest<Invert> test;
  test.input("video", mr::testing::image(Pixel::nv12, 4, 4));
  const mr::testing::Result result = test.tick();
  CHECK(result.status == MR_ERROR);
  CHECK(result.error == "input 'video' does not take this format");
}

struct Overshoots final : mr::Handler {
  mr::Output<mr::Image> out{*this, "out"};
  mr::Param<std::string> sin{*this, "sin", "none", "what to do wrong",
                             mr::choices({"none", "end", "rows", "before", "size", "throw", "pending"})};
  void configure(const mr::Formats& formats) override { formats.image(out, Pixel::gray8, 8, 8); }
  void process(mr::Tick& tick, mr::Cpu&) {
    const bool larger = *sin == "size";
    const mr::ImageSpan picture = out.allocate(tick, Pixel::gray8, larger ? 32 : 8, 8);
    std::memset(picture.data(), 0, size_t{8} * picture.stride() + (*sin == "end" ? 1 : 0));
    constexpr size_t kFourRowsOf4K = size_t{4} * 3840 * 3;
    if (*sin == "rows") std::memset(picture.data() + size_t{8} * picture.stride(), 0, kFourRowsOf4K);
    if (*sin == "before") std::memset(picture.data() - 2048, 0, 64);
    if (*sin == "throw") throw std::runtime_error("the lens is dirty");
    if (*sin == "pending") tick.defer();
  }
};

TEST_CASE("what a handler does wrong fails its firing, with a sentence") {
  const auto error_of = [](const char* sin) {
    mr::testing::HandlerTest<Overshoots> test({{"sin", sin}});
    const mr::testing::Result result = test.tick();
    CHECK(result.ok() == (std::string(sin) == "none"));
    CHECK(result.has("out") == result.ok());
    return result.error;
  };
  CHECK(error_of("none") == "");
  CHECK(error_of("end") == "the handler wrote past the end of output 'out'");
  CHECK(error_of("rows") == "the handler wrote past the end of output 'out'"); // and the heap is whole
  CHECK(error_of("before") == "the handler wrote before the beginning of output 'out'");
  CHECK(error_of("size") == "output 'out' is 32x8, and 8x8 was planned");
  CHECK(error_of("throw") == "the lens is dirty");
  CHECK(error_of("pending") == "more firings are pending than max_pending declares");
}

struct Scribbles final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  void process(mr::Tick& tick, mr::Cpu&) { const_cast<uint8_t*>(video(tick).row(0))[0] ^= 1; }
};

TEST_CASE("a handler that writes into its input is found out") {
  mr::testing::HandlerTest<Scribbles> test;
  test.input("video", mr::testing::image(Pixel::gray8, 2, 2));
  CHECK(test.tick().error == "the handler wrote into input 0, which others may read");
}

struct BrightensInPlace final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Image> out{*this, "video", mr::in_place(video)};
  void process(mr::Tick& tick, mr::Cpu&) { out.modify(tick, video).row(0)[0] += 10; }
};

TEST_CASE("modify writes over the input where that is allowed, and else into a copy") {
  for (const bool in_place : {false, true}) {
    mr::testing::HandlerTest<BrightensInPlace> test;
    test.allow_in_place(in_place);
    const mr::testing::Value picture = mr::testing::image(Pixel::gray8, 2, 2, 5);
    test.input("video", picture);
    const mr::testing::Result result = test.tick();
    REQUIRE(result.ok());
    CHECK(result.image("video").row(0)[0] == 15);
    CHECK(picture.image().row(0)[0] == (in_place ? 15 : 5));
    CHECK((result.image("video").data() == picture.data()) == in_place);
  }
}

struct Gate final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Input<mr::Records<mr::Box>> boxes{*this, "boxes", mr::optional};
  mr::Output<mr::Image> out{*this, "video", mr::forward(video)};
  void process(mr::Tick& tick, mr::Cpu&) {
    if (boxes.present(tick) && !boxes(tick).empty()) out.forward(tick, video);
  }
};

TEST_CASE("a forwarded output is the input's own block, and a silent one is empty") {
  mr::testing::HandlerTest<Gate> test;
  const mr::testing::Value picture = mr::testing::image(Pixel::gray8, 2, 2);
  test.input("video", picture);
  test.input("boxes", mr::testing::records<mr::Box>({{}}));
  mr::testing::Result result = test.tick();
  CHECK(result.state("video") == MR_OUTPUT_FORWARDED);
  CHECK(result.image("video").data() == picture.data());
  test.input("boxes", {});
  result = test.tick();
  CHECK(result.ok());
  CHECK(!result.has("video"));
}

// Publishes each tick's number, two ticks late, from a thread of its own.
struct Late final : mr::Handler {
  struct Number {
    static constexpr std::string_view kSchema = "test.Number";
    uint64_t index;
  };
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Records<Number>> number{*this, "number", mr::count_max(1)};
  std::deque<mr::Tick> owed;
  Late() { max_pending(3); }

  void process(mr::Tick& tick, mr::Cpu&) {
    owed.push_back(tick.defer());
    if (owed.size() == 3) settle_one();
  }
  void drain() override {
    while (!owed.empty()) settle_one();
  }
  void settle_one() {
    std::thread([this] {
      number.allocate(owed.front(), 1)[0].index = owed.front().index();
      owed.front().publish();
    }).join();
    owed.pop_front();
  }
};

TEST_CASE("deferred firings are published later, in order, from any thread") {
  mr::testing::HandlerTest<Late> test;
  test.input("video", mr::testing::image(Pixel::gray8, 1, 1));
  std::vector<uint64_t> seen;
  const auto collect = [&] {
    for (const mr::testing::Result& result : test.published()) {
      CHECK(result.tick.index == seen.size());
      seen.push_back(result.records<Late::Number>("number")[0].index);
    }
  };
  for (int i = 0; i < 5; ++i) {
    CHECK(test.tick().pending());
    collect();
  }
  CHECK(seen.size() == 3);
  CHECK(test.pending() == 2);
  CHECK(test.drain() == MR_OK);
  collect();
  CHECK(seen == std::vector<uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("publishing out of order is an error of the handler") {
  mr::testing::HandlerTest<Late> test;
  test.input("video", mr::testing::image(Pixel::gray8, 1, 1));
  test.tick();
  test.tick();
  CHECK_THROWS_WITH(test.handler().owed.back().publish(), "this firing is not pending, or an earlier one is");
}

struct Detects final : mr::Handler {
  mr::Output<mr::Records<mr::Box>> boxes{*this, "boxes", mr::count_max(4)};
  mr::Param<int> asked{*this, "asked", 4, ""};
  mr::Param<int> kept{*this, "kept", 2, ""};
  void process(mr::Tick& tick, mr::Cpu&) {
    for (mr::Box& box : boxes.allocate(tick, static_cast<size_t>(*asked))) box.label = 3;
    boxes.shrink(tick, static_cast<size_t>(*kept));
  }
};

TEST_CASE("records are at most as many as declared, and fewer may be kept but not more") {
  mr::testing::HandlerTest<Detects> usual;
  const mr::testing::Result result = usual.tick();
  REQUIRE(result.records<mr::Box>("boxes").size() == 2);
  CHECK(result.records<mr::Box>("boxes")[1].label == 3);
  CHECK(result.value("boxes").header().extent_bytes == 2 * sizeof(mr::Box));
  CHECK(result.value("boxes").header().layout == mr::testing::records<mr::Box>({}).header().layout);
  mr::testing::HandlerTest<Detects> too_many({{"asked", "5"}});
  CHECK(too_many.tick().error == "output 'boxes' asks for " + std::to_string(5 * sizeof(mr::Box)) +
                                     " bytes, more than the configured " + std::to_string(4 * sizeof(mr::Box)));
  mr::testing::HandlerTest<Detects> grows({{"kept", "5"}});
  CHECK(grows.tick().error == "shrink() keeps at most what was allocated");
}

// Hands a host object on, and finishes what process began.
struct Ticket {
  static constexpr std::string_view kSchema = "test.Ticket";
  int* alive = nullptr;
  int number = 0;
  ~Ticket() { --*alive; }
};
struct Tickets final : mr::Handler {
  mr::Input<mr::Object<Ticket>> in{*this, "in"};
  mr::Output<mr::Object<Ticket>> out{*this, "out"};
  void process(mr::Tick& tick, mr::Cpu&) {
    auto ticket = std::make_unique<Ticket>();
    ticket->alive = in(tick)->alive;
    ++*ticket->alive;
    ticket->number = in(tick)->number;
    out.publish(tick, std::move(ticket));
  }
  void finish(mr::Tick& tick, mr::Cpu&) {
    static_cast<Ticket*>(out.raw(tick).value->as.object.pointer)->number += 1;
    log(MR_LOG_INFO, "finished at " + std::to_string(now_ns()));
  }
};

TEST_CASE("host objects are released once, finish follows process, and the clock says what the test says") {
  int alive = 1;
  {
    mr::testing::HandlerTest<Tickets> test;
    test.set_now_ns(12);
    auto ticket = std::make_unique<Ticket>();
    ticket->alive = &alive;
    ticket->number = 7;
    test.input("in", mr::testing::object(std::move(ticket)));
    const mr::testing::Result result = test.tick();
    REQUIRE(result.ok());
    CHECK(alive == 2);
    CHECK(static_cast<Ticket*>(result.value("out").raw().as.object.pointer)->number == 8);
    REQUIRE(test.logs().size() == 1);
    CHECK(test.logs()[0].sentence == "finished at 12");
  }
  CHECK(alive == 0);
}

struct Countdown final : mr::Handler {
  mr::Output<mr::Tensor> out{*this, "out"};
  mr::Param<int> from{*this, "from", 2, "", mr::range(0, 10), mr::unit("ticks")};
  void probe(mr::Facts& facts) override {
    facts.rate(30000, 1001);
    facts.tick_count(from);
  }
  void configure(const mr::Formats& formats) override { formats.tensor(out, mr::dtype_of<float>(), {2, 2}); }
  void process(mr::Tick& tick, mr::Cpu&) {
    if (tick.index() == 1) return tick.not_yet();
    if (tick.index() > 2) return tick.end();
    const int64_t shape[] = {2, 2};
    for (float& element : out.allocate(tick, mr::dtype_of<float>(), shape).elements<float>()) element = 0.5f;
  }
};

TEST_CASE("a source says its facts, that it has nothing yet, and its end") {
  mr::testing::HandlerTest<Countdown> test({{"from", "0x3"}});
  CHECK(test.start() == MR_OK);
  CHECK(test.facts().rate_den == 1001);
  CHECK(test.facts().tick_count == 3);
  CHECK(test.format("out").rank == 2);
  const mr::testing::Result first = test.tick();
  CHECK(first.tensor("out").elements<float>()[3] == 0.5f);
  CHECK(test.tick().not_yet());
  CHECK(test.tick().ok());
  CHECK(test.tick().end());
}

struct Placed final : mr::Handler {
  mr::Output<mr::Tensor> out{*this, "out"};
  mr::DeviceInfo told;
  std::string name;
  void configure(const mr::Formats& formats) override { formats.tensor(out, mr::dtype_of<float>(), {1}); }
  void start(const mr::DeviceInfo& device) override {
    told = device;
    name = device.name;
  }
  void process(mr::Tick& tick, mr::Cpu&) { tick.end(); }
};

TEST_CASE("a handler is told the device that the test says, in a restart too; the host if it says none") {
  mr::testing::HandlerTest<Placed> test;
  REQUIRE(test.start() == MR_OK);
  CHECK(test.handler().told.kind == mr::DeviceKind::cpu);
  CHECK(test.handler().name == "cpu");
  test.start_on({.kind = mr::DeviceKind::cuda,
                 .ordinal = 1,
                 .name = "a GPU",
                 .multiprocessors = 132,
                 .compute_major = 9,
                 .shared_bytes_max = 232'448,
                 .memory_bytes = uint64_t{1} << 37});
  REQUIRE(test.restart() == MR_OK);
  CHECK(test.handler().told.kind == mr::DeviceKind::cuda);
  CHECK(test.handler().told.ordinal == 1);
  CHECK(test.handler().name == "a GPU");
  CHECK(test.handler().told.multiprocessors == 132);
  CHECK(test.handler().told.compute_major == 9);
  CHECK(test.handler().told.shared_bytes_max == 232'448);
  CHECK(test.handler().told.memory_bytes == uint64_t{1} << 37);
}

struct Mosaic final : mr::Handler {
  mr::Inputs<mr::Image> videos{*this, "videos", 4, mr::optional};
  mr::Input<mr::Image> last{*this, "last", mr::optional};
  mr::Output<mr::Image> out{*this, "out"};
  void configure(const mr::Formats& formats) override {
    uint32_t width = 0;
    for (uint32_t i = 0; i < videos.count(); ++i) width += formats.in(videos, i).width;
    formats.image(out, Pixel::gray8, width + formats.in(last).width, 1);
  }
  void process(mr::Tick& tick, mr::Cpu&) {
    mr::ImageSpan picture = out.allocate(tick, Pixel::gray8, videos.count() + 1, 1);
    for (uint32_t i = 0; i < videos.count(); ++i) picture.row(0)[i] = videos(tick, i).row(0)[0];
    picture.row(0)[videos.count()] = last(tick).row(0)[0];
  }
};

TEST_CASE("an input that takes a list has one entry an edge, and the port behind it is still found") {
  mr::testing::HandlerTest<Mosaic> test;
  for (uint32_t i = 0; i < 3; ++i)
    test.input("videos", mr::testing::image(Pixel::gray8, 1, 1, static_cast<uint8_t>(i + 1)), i);
  test.input("last", mr::testing::image(Pixel::gray8, 1, 1, 9));
  const mr::testing::Result result = test.tick();
  REQUIRE(result.ok());
  const uint8_t* row = result.image("out").row(0);
  CHECK(std::vector<int>(row, row + 4) == std::vector<int>{1, 2, 3, 9});
}

} // namespace
