// Handlers that return something untrue: each mistake is reported with the handler's name, and no block is lost or
// freed twice (semantics.md 8.10).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <atomic>
#include <map>

#include "exec/guard_bytes.h"
#include "harness.h"
#include "observe/error.h"
#include "plan/memory.h"

using namespace millrace;
using namespace millrace::test;

namespace {

const int64_t kShape[] = {2};
int64_t constant[2] = {7, 7};
std::atomic<int64_t> released{0};
void count_release(void*) { ++released; }

// Makes one mistake on tick 3, and none on the others.
struct Liar final : Handler {
  Input<Tensor> in{*this, "in", optional};
  Output<Tensor> out{*this, "out"};
  Param<std::string> how{*this, "how", "", "which mistake"};
  Param<int64_t> by{*this, "by", 0, "so many bytes past the end"};
  Liar() { max_pending(1); }
  void configure(const Formats& formats) override {
    Format& format = formats.tensor(out, dtype_of<int64_t>(), {2});
    if (*how == "rank") format.rank = 200;
    if (*how == "negative") format.shape[0] = -1;
    if (*how == "kind") format.kind = MR_KIND_IMAGE;
    if (*how == "wraps") formats.tensor(out, dtype_of<int64_t>(), {int64_t{1} << 32, int64_t{1} << 31});
    if (*how == "wraps_bits") formats.tensor(out, dtype_of<int64_t>(), {int64_t{1} << 61});
    if (*how == "wraps_twice") formats.tensor(out, dtype_of<int64_t>(), {INT64_MAX, INT64_MAX});
  }
  void fill(Tick& tick) {
    for (int64_t& element : out.allocate(tick, dtype_of<int64_t>(), kShape).elements<int64_t>()) element = 1;
  }
  void adopt(Tick& tick) {
    mr_value& value = out.adopt(tick, constant, sizeof constant, &count_release, nullptr);
    value.as.tensor = {MR_DTYPE_INT, 64, 1, 1, {2}, {1}};
  }
  mr_value& filled(Tick& tick) {
    fill(tick);
    return *out.raw(tick).value;
  }
  void process(Tick& tick, Cpu&) {
    if (tick.index() != 3) return fill(tick);
    const mr_host& host = *tick.raw().host;
    mr_output& raw = out.raw(tick);
    if (*how == "output 77" && host.allocate(&tick.raw(), 77, 8) != MR_OK) throw std::bad_alloc();
    if (*how == "adopts 77" && host.adopt(&tick.raw(), 77, constant, 8, &count_release, nullptr) != MR_OK)
      throw std::bad_alloc();
    if (*how == "modifies 77" && host.modify(&tick.raw(), 0, 77) != MR_OK) throw std::bad_alloc();
    if (*how == "forwards 99999") raw.state = MR_OUTPUT_FORWARDED, raw.source = 99999;
    if (*how == "forwards nothing") raw.state = MR_OUTPUT_FORWARDED, raw.source = 0;
    if (*how == "state") raw.state = 9;
    if (*how == "adopts twice") adopt(tick), adopt(tick);
    if (*how == "allocates, adopts") fill(tick), adopt(tick);
    if (*how == "adopts, allocates") adopt(tick), fill(tick);
    if (*how == "adopts too much") out.adopt(tick, constant, 1 << 20, &count_release, nullptr);
    if (*how == "value kind") filled(tick).header.kind = MR_KIND_IMAGE;
    if (*how == "value type") filled(tick).header.schema = 1;
    if (*how == "value bytes") filled(tick).header.extent_bytes = 1 << 20;
    if (*how == "value rank") filled(tick).as.tensor.rank = 9;
    if (*how == "value shape") filled(tick).as.tensor.shape[0] = int64_t{1} << 61;
    if (*how == "value dtype") filled(tick).as.tensor.dtype_code = MR_DTYPE_FLOAT;
    if (*how == "value stride") filled(tick).as.tensor.strides[0] = 1000;
    if (*how == "past the end") {
      fill(tick);
      out.raw(tick).data[16 + *by] = 7;
    }
    if (*how == "long sentence") throw std::runtime_error(std::string(100'000, 'x'));
    if (*how == "allocates twice") {
      fill(tick);
      const uint8_t* const before = out.raw(tick).data;
      fill(tick);
      if (out.raw(tick).data != before) throw std::runtime_error("another block");
    }
    if (*how == "huge") {
      const int64_t huge[] = {int64_t{1} << 61};
      out.allocate(tick, dtype_of<int64_t>(), huge);
    }
    if (*how == "less than none") {
      const int64_t less[] = {-1};
      out.allocate(tick, dtype_of<int64_t>(), less);
    }
    if (*how == "not yet") tick.not_yet();
    if (*how == "bad_alloc") throw std::bad_alloc();
    if (*how == "says nothing") throw std::runtime_error("");
    if (*how == "pending value") {
      Tick later = tick.defer();
      fill(later);
      out.raw(later).value->as.tensor.shape[0] = 3;
      later.publish();
    }
  }
};

// A status that handler.h never gives.
template <mr_status kStatus>
struct Status {
  static mr_handler_type table(const char* type) {
    mr_handler_type table = detail::Type<Liar>::table(type, "", "");
    table.process = [](void* self, mr_tick* tick) -> mr_status {
      const mr_status status = detail::Type<Liar>::process(self, tick);
      return tick->info->index == 3 ? kStatus : status;
    };
    return table;
  }
};

// Half of the picture that `like` promises, in another format, or as it should be.
struct Painter final : Handler {
  Input<Image> in{*this, "in"};
  Output<Image> out{*this, "out", like(in)};
  Param<std::string> how{*this, "how", "", "which mistake"};
  void process(Tick& tick, Cpu&) {
    const ImageView picture = in(tick);
    const bool wrong = tick.index() == 3;
    const bool nv12 = wrong && *how == "nv12", half = wrong && *how == "half";
    out.allocate(tick, nv12 ? Pixel::nv12 : picture.pixel(), half ? picture.width() / 2 : picture.width(),
                 picture.height());
    mr_image& image = out.raw(tick).value->as.image;
    if (wrong && *how == "plane") image.planes[0].stride *= 2;
    if (wrong && *how == "rows") ++image.planes[0].rows; // a reader that walks over them writes past its own picture
    if (wrong && *how == "planes") ++image.plane_count;
  }
};
struct Pictures final : Handler {
  Output<Image> out{*this, "out"};
  void configure(const Formats& formats) override { formats.image(out, Pixel::bgr8, 320, 90); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 6) return tick.end();
    out.allocate(tick, Pixel::bgr8, 320, 90);
  }
};

std::atomic<int64_t> alive{0};
struct CountedThing {
  static constexpr std::string_view kSchema = "test.Thing";
  CountedThing() { ++alive; }
  CountedThing(const CountedThing&) = delete;
  ~CountedThing() { --alive; }
};
struct MakesThings final : Handler {
  Output<Object<CountedThing>> out{*this, "out"};
  Param<bool> twice{*this, "twice", false, "publishes two on one tick"};
  void process(Tick& tick, Cpu&) {
    if (tick.index() == 6) return tick.end();
    out.publish(tick, std::make_unique<CountedThing>());
    if (twice) out.publish(tick, std::make_unique<CountedThing>());
  }
};
struct TakesCountedThings final : Handler {
  Input<Object<CountedThing>> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};

// Asks `modify` a second time, in place or not.
struct Twice final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", in_place(in)};
  void process(Tick& tick, Cpu&) {
    out.modify(tick, in).elements<int64_t>()[0] += 100;
    out.modify(tick, in).elements<int64_t>()[0] += 1000;
  }
};

const mr_plugin& said_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Liar>::table("said.liar", "", ""),
      Status<12345>::table("said.status"),
      Status<MR_PENDING>::table("said.pending"),
      Status<-7>::table("said.negative"),
      detail::Type<Painter>::table("said.painter", "", ""),
      detail::Type<Pictures>::table("said.pictures", "", ""),
      detail::Type<MakesThings>::table("said.things", "", ""),
      detail::Type<TakesCountedThings>::table("said.takes", "", ""),
      detail::Type<Twice>::table("said.twice", "", ""),
  };
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4],
                                                    &types[5], &types[6], &types[7], &types[8]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "said", "1", pointers, 9, 0};
  return plugin;
}

Setup said_setup(std::vector<std::string> domains = {"cpu"}) {
  Setup setup;
  setup.more = &said_plugin();
  setup.domains = std::move(domains);
  return setup;
}

// source → liar → a reader behind a queue, whose blocks are held → sink
Pipeline with_liar(const std::string& how, const std::string& type = "said.liar", bool reads = false) {
  Pipeline p;
  p.add("source", "t.count", {{"count", "8"}, {"size", "2"}});
  p.add("it", type, {{"how", how}});
  p.add("sink", "t.sink", {{"log", "said"}});
  if (reads) p.connect("source", "it");
  p.connect("it", "sink", graph::Policy::queue).depth = 3;
  if (!reads) p.connect("source", "sink");
  return p;
}

std::string said_of(const std::string& how, const std::string& type = "said.liar", bool reads = false) {
  const Ran result = run(with_liar(how, type, reads), said_setup());
  CHECK_FALSE(result.ok);
  CHECK(result.error.code == 601);
  CHECK(result.report.pools.at("cpu").held_blocks == 0);
  return result.error.what;
}

int refusal_of(const std::string& how) {
  try {
    Compiled compiled(with_liar(how), said_setup());
  } catch (const Failure& failure) {
    INFO(failure.error().what);
    CHECK(failure.error().what.find("it.out") != std::string::npos);
    return failure.error().code;
  }
  return 0;
}

} // namespace

TEST_CASE(
    "8.10: a format with too many dimensions, a negative one or of another kind is refused with the port's name") {
  for (const char* how : {"rank", "negative", "kind"}) {
    CAPTURE(std::string(how));
    CHECK(refusal_of(how) == 402);
  }
}

TEST_CASE(
    "8.10: a value whose bytes do not fit into 64 bits is refused before the start, and none is planned as 0 bytes") {
  for (const char* how : {"wraps", "wraps_bits", "wraps_twice"}) {
    CAPTURE(std::string(how));
    CHECK(refusal_of(how) == 404);
  }
}

TEST_CASE("8.10: an output or input that a handler does not have is refused where it asks for it") {
  CHECK(said_of("output 77") == "it (said.liar) failed at tick 3: it asks for output 77 and has 1");
  released = 0;
  CHECK(said_of("adopts 77") == "it (said.liar) failed at tick 3: it asks for output 77 and has 1");
  CHECK(released == 1);
  CHECK(said_of("modifies 77") == "it (said.liar) failed at tick 3: it writes over input 77 and has 1");
  const std::string forwards = "it (said.liar) failed at tick 3: its output 'out' forwards an input that is not there";
  CHECK(said_of("forwards 99999") == forwards);
  CHECK(said_of("forwards nothing") == forwards);
  CHECK(said_of("state") == "it (said.liar) failed at tick 3: its output 'out' is in no known state");
}

TEST_CASE("8.10: an output that holds something takes no foreign memory, and everything is given back once") {
  const std::string words = "it (said.liar) failed at tick 3: the output out holds something already on this tick";
  const std::map<std::string, int64_t> given = {{"adopts twice", 2}, {"allocates, adopts", 1}};
  for (const auto& [how, count] : given) {
    CAPTURE(how);
    released = 0;
    CHECK(said_of(how) == words);
    CHECK(released == count);
  }
  released = 0;
  CHECK(said_of("adopts, allocates") == "it (said.liar) failed at tick 3: the output out holds adopted memory already");
  CHECK(released == 1);
  released = 0;
  CHECK(said_of("adopts too much") ==
        "it (said.liar) failed at tick 3: the output out asks for 1048576 bytes where 16 were planned");
  CHECK(released == 1);
}

TEST_CASE("8.10: a host object that is published twice on a tick fails by name, and both are deleted") {
  for (const char* twice : {"false", "true"}) {
    Pipeline p;
    p.add("things", "said.things", {{"twice", twice}});
    p.add("takes", "said.takes");
    p.connect("things", "takes");
    const Ran result = run(p, said_setup());
    CHECK(result.ok == (std::string(twice) == "false"));
    if (!result.ok)
      CHECK(result.error.what ==
            "things (said.things) failed at tick 0: the output out holds something already on this "
            "tick");
    CHECK(alive == 0);
  }
}

TEST_CASE("8.10: what a handler wrote into its value is compared with the plan before anybody reads it") {
  const std::string it = "it (said.liar) failed at tick 3: its output 'out' ";
  CHECK(said_of("value kind") == it + "carries another kind of value");
  CHECK(said_of("value type") == it + "carries another type of value");
  CHECK(said_of("value bytes") == it + "says that it has 1048576 bytes, and there is room for 16");
  CHECK(said_of("value rank") == it + "has 9 dimensions, and 1 were planned");
  CHECK(said_of("value shape") == it + "has the shape [2305843009213693952], and [2] was planned");
  CHECK(said_of("value dtype") == it + "is of float64, and int64 was planned");
  CHECK(said_of("value stride") == it + "has more elements than it has bytes for");
  CHECK(said_of("pending value") == it + "has the shape [3], and [2] was planned");
}

TEST_CASE("8.10: the same on a simulated device, and a skipped tick is empty there as on the host") {
  for (const char* domain : {"cpu", "sim:0"}) {
    CAPTURE(std::string(domain));
    for (const auto policy : {graph::OnError::fail, graph::OnError::skip}) {
      Pipeline p("said.pictures name=source ! said.painter name=it how=half ! said.painter name=sink");
      p.graph.handlers[1].device = domain;
      p.graph.handlers[1].on_error = policy;
      const Ran result = run(p, said_setup({"cpu", "sim:0"}));
      CHECK(result.ok == (policy == graph::OnError::skip));
      if (!result.ok)
        CHECK(result.error.what ==
              "it (said.painter) failed at tick 3: its output 'out' is 160x90, and 320x90 was planned");
      if (result.ok) CHECK(result.report.handlers[2].calls == 5);
    }
  }
}

TEST_CASE("8.10: a picture that is not what `like` promised is refused, and not handed to a reader that trusts it") {
  const std::string other_planes = "has other planes or rows than its pixel format and height ask for";
  const std::map<std::string, std::string> mistakes = {{"nv12", "is in nv12, and bgr8 was planned"},
                                                       {"half", "is 160x90, and 320x90 was planned"},
                                                       {"plane", "has a plane that ends past its bytes"},
                                                       {"rows", other_planes},
                                                       {"planes", other_planes}};
  for (const auto& [how, words] : mistakes) {
    Pipeline p;
    p.add("source", "said.pictures");
    p.add("it", "said.painter", {{"how", how}});
    p.add("sink", "said.painter");
    p.connect("source", "it");
    p.connect("it", "sink");
    const Ran result = run(p, said_setup());
    CHECK_FALSE(result.ok);
    CHECK(result.error.what == "it (said.painter) failed at tick 3: its output 'out' " + words);
  }
}

TEST_CASE("8.10: more elements than were planned are refused, however their product wraps") {
  CHECK(said_of("huge") ==
        "it (said.liar) failed at tick 3: the output out asks for more bytes than 64 bits count where 16 were planned");
  CHECK(said_of("less than none") ==
        "it (said.liar) failed at tick 3: the tensor's shape [-1] has a negative dimension");
}

TEST_CASE("8.10: where blocks have guards, a write past the end of one is found on the same tick") {
  const bool has_guards = exec::guard_bytes_of({}, true) > 0; // in debug builds and under sanitizers
  for (const char* by : {"0", "200", "400"}) {
    Pipeline p = with_liar("past the end");
    for (graph::Handler& handler : p.graph.handlers)
      if (handler.type == "said.liar") handler.params.push_back({"by", by, {}, {}});
    if (!has_guards && std::string(by) != "0") continue; // it would be the next block's header
    const Ran result = run(p, said_setup());
    CHECK(result.ok == !has_guards);
    if (has_guards)
      CHECK(result.error.what == "it (said.liar) failed at tick 3: it wrote past the end of its output 'out'");
  }
}

TEST_CASE("8.10: an output that is allocated twice on a tick has one block") {
  const Ran result = run(with_liar("allocates twice"), said_setup());
  CHECK_MESSAGE(result.ok, result.error.what);
  CHECK(result.report.pools.at("cpu").held_blocks == 0);
}

TEST_CASE("2.6: a sentence that no person would read to its end is told shortened, with its length") {
  const std::string said = said_of("long sentence");
  CHECK(said.size() < 5'000);
  CHECK(said.ends_with("xx … (100000 bytes in all)"));
}

TEST_CASE("8.10: a status that there is not, or not for this handler, is a failure and no standstill") {
  CHECK(said_of("", "said.status") == "it (said.status) failed at tick 3: process returned status 12345");
  CHECK(said_of("", "said.negative") == "it (said.negative) failed at tick 3: process returned status -7");
  CHECK(said_of("", "said.pending") ==
        "it (said.pending) failed at tick 3: it says that its firing is pending, and has not deferred it");
  CHECK(said_of("not yet", "said.liar", true) ==
        "it (said.liar) failed at tick 3: it has inputs and says that it has nothing");
}

TEST_CASE("8.10: modify asked for twice gives the same block with what was written") {
  for (const bool shared : {false, true}) {
    Pipeline p("t.count name=source count=5 ! said.twice name=it ! t.sink name=sink log=said");
    if (shared) p.connect("source", "it2");
    if (shared) p.add("it2", "said.twice");
    Compiled compiled(p, said_setup());
    REQUIRE(compiled.run().ok);
    const std::vector<int64_t> seen = values(compiled.seen("said"));
    REQUIRE(seen.size() == 5);
    for (int64_t i = 0; i < 5; ++i) CHECK(seen[static_cast<size_t>(i)] == i + 1100);
  }
}

TEST_CASE("2.6: a failure without a sentence is given one, and never that of an earlier failure") {
  const std::string words =
      "it (said.liar) failed at tick 3: process failed without saying why; perhaps there was no "
      "memory left";
  CHECK(said_of("bad_alloc") == words);
  CHECK(said_of("says nothing") == words);
}
