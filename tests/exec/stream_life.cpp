// A stream that fails begins anew: its epochs, their times, and what no epoch sees of another (B11).
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <numeric>

#include "enqueuing_handlers.h"
#include "exec/run.h"
#include "graph/unfold.h"
#include "harness.h"

using namespace millrace;
using namespace millrace::test;

namespace {

struct LifeNote {
  uint64_t index;
  uint32_t epoch;
  int64_t media_ns, value, at_ns;
  bool is_first;
};
std::mutex life_mutex;
std::map<std::string, std::vector<LifeNote>> lives_noted;

struct NotesLife final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> name{*this, "name", "", "the stream's"};
  void process(Tick& tick, Cpu&) {
    const std::lock_guard lock(life_mutex);
    lives_noted[*name].push_back({tick.index(), tick.epoch(), tick.media_time_ns(), read_one(in(tick)), now_ns(),
                                  (in(tick).header().flags & MR_FLAG_DISCONTINUITY) != 0});
  }
};

// A camera that can be lost: values 0, 1, 2, … from each start on. `fails` counts its failures over all starts.
struct LostCamera final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 0, "values of one start; 0: endless"};
  Param<int64_t> rate{*this, "rate", 0, "values a second; 0: none"};
  Param<int64_t> fail_at{*this, "fail_at", -1, "the value that fails"};
  Param<int64_t> fails{*this, "fails", 1, "how often it does"};
  Param<int64_t> no_starts{*this, "no_starts", 0, "starts that fail, after the first one"};
  Param<int64_t> large_at{*this, "large_at", -1, "the value that is too large, once"};
  Param<bool> is_live{*this, "live", false, "cannot wait"};
  Param<bool> in_thread{*this, "blocks", false, "is read by a thread of its own"};
  static std::vector<int64_t> starts_ns;
  int64_t next = 0, started = 0, failed = 0, resets = 0;
  bool was_large = false;
  void probe(Facts& facts) override {
    if (rate > 0) facts.rate(rate);
    if (is_live) facts.live();
    if (in_thread) facts.waits();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void start() override {
    const std::lock_guard lock(life_mutex);
    starts_ns.push_back(now_ns());
    if (started > 0 && started <= no_starts) {
      ++started;
      throw std::runtime_error("there is no camera");
    }
    ++started;
    next = 0;
  }
  void reset() override { ++resets; }
  void process(Tick& tick, Cpu&) {
    if (count > 0 && next >= count) return tick.end();
    const int64_t n = next++;
    if (n == fail_at && failed < fails) {
      ++failed;
      throw std::runtime_error("the camera is gone");
    }
    if (n == large_at && !std::exchange(was_large, true)) {
      const int64_t shape[] = {9};
      out.allocate(tick, dtype_of<int64_t>(), shape);
    }
    write_one(out, tick, n);
    if (rate > 0) out.header(tick).pts_ns = n * 1'000'000'000 / rate;
  }
};
std::vector<int64_t> LostCamera::starts_ns;

// Adds what it got on the tick before, and how many calls it had since it was reset.
struct Remembers final : Handler {
  Input<Tensor> in{*this, "in"};
  Input<Tensor> before{*this, "before", optional};
  Output<Tensor> out{*this, "out"};
  int64_t calls = 0;
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void reset() override { calls = 0; }
  void process(Tick& tick, Cpu&) {
    const int64_t last = before.present(tick) ? read_one(before(tick)) : 9;
    write_one(out, tick, ++calls * 100 + last * 10 + read_one(in(tick)));
  }
};

// Closes its file in drain(), as writers do, and notes that as -1.
struct Closes final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> name{*this, "name", "", "the stream's"};
  bool is_closed = false;
  void process(Tick& tick, Cpu&) {
    if (is_closed) throw std::logic_error("the file is closed");
    note(tick.index(), read_one(in(tick)));
  }
  void drain() override {
    is_closed = true;
    note(0, -1);
  }
  void note(uint64_t index, int64_t value) {
    const std::lock_guard lock(life_mutex);
    lives_noted[*name].push_back({index, 0, 0, value, 0, false});
  }
};

// Passes values on, on the host or on a device, as part of a region.
struct Anywhere final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Anywhere() { capturable(); }
  void process(Tick& tick, Cpu&) { *enqueued::fresh(out, tick) = enqueued::number(in(tick)); }
  void process(Tick& tick, Cuda& cuda) {
    enqueued::queue(cuda).launch(
        [to = enqueued::fresh(out, tick), from = enqueued::numbers(in(tick).data())] { *to = *from; });
  }
};

const mr_plugin& life_plugin() {
  static const mr_handler_type types[] = {detail::Type<NotesLife>::table("l.notes", "Notes all", ""),
                                          detail::Type<LostCamera>::table("l.camera", "May be lost", ""),
                                          detail::Type<Remembers>::table("l.remembers", "Has a state", ""),
                                          detail::Type<Anywhere>::table("l.anywhere", "Passes values on", ""),
                                          detail::Type<enqueued::Sums>::table("l.sums", "Has state", ""),
                                          detail::Type<Closes>::table("l.closes", "Closes in drain()", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1], &types[2], &types[3], &types[4], &types[5]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "life", "1", pointers, std::size(pointers), 0};
  return plugin;
}

Ran run_life(const std::string& clock, const std::string& items, const std::string& handlers, Setup setup) {
  const std::string text = "version: 1\nstreams: { cameras: { on_error: restart, items: " + items +
                           " } }\nclocks: { cameras: " + clock + " }\nhandlers:\n" + handlers;
  Pipeline pipeline;
  pipeline.graph = graph::unfold(graph::parse_yaml(text, "life.yaml"));
  setup.more = &life_plugin();
  lives_noted.clear();
  LostCamera::starts_ns.clear();
  return run(pipeline, setup);
}

Setup in_virtual_time() {
  Setup setup;
  setup.virtual_time = true;
  setup.workers = 4;
  return setup;
}

constexpr const char* kCameraToNotes = R"(
  video: { type: l.camera, for_each: cameras, count: 5, rate: "{rate}", fail_at: "{fail_at}", fails: "{fails}",
           live: "{live}", no_starts: "{no_starts}", large_at: "{large_at}" }
  notes: { type: l.notes, for_each: cameras, input: video, name: "{stream}" }
)";

std::string camera(const Params& said) {
  Params fields = {{"rate", "10"},    {"fail_at", "-1"},  {"fails", "1"},
                   {"live", "false"}, {"no_starts", "0"}, {"large_at", "-1"}};
  for (const auto& [name, value] : said) fields[name] = value;
  std::string text;
  for (const auto& [name, value] : fields) text += (text.empty() ? "{ " : ", ") + name + ": " + value;
  return text + " }";
}

// Two streams of 20 values, the first of which fails once, at value 7: camera → a relay, and a handler of this type,
// both on the device → notes.
Ran run_on(const std::string& device, const std::string& type, const Setup& setup) {
  const std::string there = ", device: \"" + device + "\" }\n";
  return run_life("{ mode: free }", "{ a: { fail_at: 7 }, b: { fail_at: -1 } }",
                  "  video: { type: l.camera, for_each: cameras, count: 20, fail_at: \"{fail_at}\" }\n"
                  "  first: { type: l.anywhere, for_each: cameras, input: video" +
                      there + "  later: { type: " + type + ", for_each: cameras, input: first" + there +
                      "  notes: { type: l.notes, for_each: cameras, input: later, name: \"{stream}\" }\n",
                  setup);
}

std::vector<int64_t> values_of(const std::string& stream) {
  std::vector<int64_t> values;
  for (const LifeNote& note : lives_noted[stream]) values.push_back(note.value);
  return values;
}

} // namespace

TEST_CASE("B11: a stream whose source fails begins anew: the epoch rises, index and media time go on") {
  for (const std::string clock : {"{ mode: free }", "{ mode: source }", "{ mode: realtime, rate: 10 }"}) {
    CAPTURE(clock);
    const Ran ran = run_life(clock, "{ a: " + camera({{"fail_at", "3"}}) + ", b: " + camera({}) + " }", kCameraToNotes,
                             in_virtual_time());
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(values_of("a") == std::vector<int64_t>{0, 1, 2, 0, 1, 2, 3, 4});
    CHECK(values_of("b") == std::vector<int64_t>{0, 1, 2, 3, 4});
    const std::vector<LifeNote>& notes = lives_noted["a"];
    for (size_t i = 0; i < notes.size(); ++i) {
      CHECK(notes[i].epoch == (i < 3 ? 0 : 1));
      CHECK(notes[i].is_first == (i == 3));
      if (i == 0) continue;
      CHECK(notes[i].index > notes[i - 1].index);
      CHECK(notes[i].media_ns > notes[i - 1].media_ns);
      if (i != 3) CHECK(notes[i].media_ns - notes[i - 1].media_ns == 100 * kMs); // the source's own pace
    }
    CHECK(notes[3].at_ns - notes[2].at_ns >= 100 * kMs); // the back-off
    const StreamReport& stream = ran.report.streams[0];
    CHECK(stream.state == "ended");
    CHECK(stream.restarts == 1);
    CHECK(stream.error == "");
    CHECK(stream.late + stream.skipped == 0);
    CHECK(ran.report.streams[1].restarts == 0);
  }
}

TEST_CASE("1.1: a plan's revision and a stream's epoch are two numbers: plan 1 in epoch 0 beside plan 0 in epoch 1") {
  struct Life {
    Ran ran;
    std::vector<LifeNote> notes;
  };
  const auto live = [](uint32_t revision, const std::string& fail_at) {
    Setup setup = in_virtual_time();
    setup.options.revision = revision;
    Ran ran = run_life("{ mode: free }", "{ a: " + camera({{"fail_at", fail_at}}) + " }", kCameraToNotes, setup);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(ran.report.revision == revision);
    return Life{std::move(ran), lives_noted["a"]};
  };
  const auto epochs_of = [](const Life& life) {
    std::vector<uint32_t> epochs;
    for (const LifeNote& note : life.notes) epochs.push_back(note.epoch);
    return epochs;
  };
  CHECK(epochs_of(live(1, "-1")) == std::vector<uint32_t>{0, 0, 0, 0, 0});
  const Life first = live(0, "3"), second = live(1, "3");
  CHECK(epochs_of(first) == std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 1, 1});
  // Ticks after the failure are void in its epoch alone, whichever plan runs.
  CHECK(epochs_of(second) == epochs_of(first));
  CHECK(second.ran.report.streams[0].restarts == 1);
}

TEST_CASE("B11: the back-off doubles from 0.1 s to 30 s, and is the first one again after 30 s that went well") {
  Setup setup = in_virtual_time();
  setup.options.duration_ns = 400'000 * kMs;
  const Ran ran = run_life("{ mode: realtime, rate: 10 }",
                           "{ a: " + camera({{"fail_at", "350"}, {"no_starts", "11"}, {"fails", "2"}}) + " }",
                           R"(
  video: { type: l.camera, for_each: cameras, rate: 10, fail_at: "{fail_at}", fails: "{fails}",
           no_starts: "{no_starts}" }
  notes: { type: l.notes, for_each: cameras, input: video, name: "{stream}" }
)",
                           setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  // It fails at 35 s, cannot be started eleven times, and fails once more 35 s after it was.
  std::vector<int64_t> waits_ms;
  int64_t before = 34'900 * kMs; // a value is read when the one before it is taken
  for (size_t i = 1; i < LostCamera::starts_ns.size(); ++i) {
    waits_ms.push_back((LostCamera::starts_ns[i] - before) / kMs);
    before = LostCamera::starts_ns[i];
  }
  CHECK(waits_ms ==
        std::vector<int64_t>{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000, 35000});
  CHECK(ran.report.streams[0].restarts == 2);
}

TEST_CASE("B11: no tick sees a value of an earlier epoch, and handlers are reset") {
  const Ran ran = run_life("{ mode: free }", "{ a: {} }", R"(
  video: { type: l.camera, for_each: cameras, count: 4, fail_at: 2 }
  keeps: { type: l.remembers, for_each: cameras, inputs: { in: video, before: { from: video, delay: 1 } } }
  notes: { type: l.notes, for_each: cameras, input: keeps, name: "{stream}" }
)",
                           in_virtual_time());
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values_of("a") == std::vector<int64_t>{190, 201, 190, 201, 312, 423});
}

TEST_CASE("B11: what a stream owes and what waits in its queues is given before it begins anew") {
  for (const std::string reader : {"policy: queue, depth: 8", "policy: sync"}) {
    CAPTURE(reader);
    const Ran ran = run_life("{ mode: free }", "{ a: {} }",
                             R"(
  video: { type: l.camera, for_each: cameras, count: 7, fail_at: 5 }
  late:  { type: t.late, for_each: cameras, input: video, after: 3 }
  notes: { type: l.notes, for_each: cameras, input: { from: late, )" +
                                 reader + R"( }, name: "{stream}" }
)",
                             in_virtual_time());
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    CHECK(values_of("a") == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("B11: a value larger than planned is a failure of the stream, and says both sizes") {
  std::string said;
  Setup setup = in_virtual_time();
  setup.options.on_message = [&](const std::string& line) { said += line + "\n"; };
  const Ran ran = run_life("{ mode: free }", "{ a: " + camera({{"large_at", "2"}}) + " }", kCameraToNotes, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values_of("a") == std::vector<int64_t>{0, 1, 0, 1, 2, 3, 4});
  CHECK(said.find("warning: stream a has failed and begins anew: video@a (l.camera) failed at tick 2: ") == 0);
  CHECK(said.find("asks for 72 bytes where") != std::string::npos);
}

TEST_CASE("B11: a live source that ends is lost, and comes again") {
  Setup setup = in_virtual_time();
  setup.options.duration_ns = 900 * kMs;
  const Ran ran = run_life("{ mode: source }", "{ a: " + camera({{"live", "true"}}) + " }", kCameraToNotes, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values_of("a") == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2});
  CHECK(ran.report.streams[0].restarts == 1);
}

TEST_CASE("B11: a run may end while a stream is down") {
  Setup setup = in_virtual_time();
  setup.options.duration_ns = 2'000 * kMs;
  const Ran ran = run_life("{ mode: realtime, rate: 10 }",
                           "{ a: " + camera({{"fail_at", "3"}, {"no_starts", "99"}}) + ", b: " + camera({}) + " }",
                           kCameraToNotes, setup);
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(ran.report.streams[0].state == "failed");
  CHECK(ran.report.streams[0].error.find("the camera is gone") != std::string::npos);
  CHECK(ran.report.streams[1].state == "ended");
  CHECK(values_of("b").size() == 5);
  const Ran all = run_life("{ mode: realtime, rate: 10 }",
                           "{ a: " + camera({{"fail_at", "3"}, {"no_starts", "99"}}) + " }", kCameraToNotes, setup);
  CHECK(!all.ok); // all streams of the set are down
}

TEST_CASE("B11: a source that blocks is started anew by its own thread") {
  for (const uint32_t workers : {1u, 3u}) {
    CAPTURE(workers);
    Setup setup;
    setup.workers = workers;
    const Ran ran = run_life(
        "{ mode: free }", "{ a: { fail_at: 20, fails: 2, no_starts: 1 }, b: { fail_at: -1, fails: 0, no_starts: 0 } }",
        R"(
  video: { type: l.camera, for_each: cameras, blocks: true, count: 50, fail_at: "{fail_at}", fails: "{fails}",
           no_starts: "{no_starts}" }
  relay: { type: t.relay, for_each: cameras, input: video }
  notes: { type: l.notes, for_each: cameras, input: relay, name: "{stream}" }
)",
        setup);
    REQUIRE_MESSAGE(ran.ok, ran.error.what);
    // Values that the source had read ahead are lost with it.
    std::vector<int64_t> last(50);
    std::iota(last.begin(), last.end(), 0);
    const std::vector<int64_t> told = values_of("a");
    REQUIRE(told.size() >= 50);
    CHECK(std::vector<int64_t>(told.end() - 50, told.end()) == last);
    CHECK(told.size() <= 90);
    CHECK(values_of("b").size() == 50);
    CHECK(ran.report.streams[0].restarts == 2);
    CHECK(ran.report.streams[0].state == "ended");
  }
}

TEST_CASE("B11: handlers on devices begin anew with their stream, captured as one or not") {
  enum class Time { is_virtual, wall, adversarial };
  for (const std::string device : {"sim:0", "cuda:0"})
    for (const Time time : {Time::is_virtual, Time::wall, Time::adversarial}) {
      CAPTURE(device);
      CAPTURE(static_cast<int>(time));
      Setup setup = in_virtual_time();
      setup.virtual_time = time == Time::is_virtual;
      setup.adversarial = time == Time::adversarial;
      setup.domains = {"cpu", device};
      const Ran ran = run_on(device, "l.anywhere", setup);
      REQUIRE_MESSAGE(ran.ok, ran.error.what);
      std::vector<int64_t> expected(27);
      std::iota(expected.begin(), expected.begin() + 7, 0);
      std::iota(expected.begin() + 7, expected.end(), 0);
      CHECK(values_of("a") == expected);
      CHECK(values_of("b").size() == 20);
      CHECK(ran.report.streams[0].restarts == 1);
    }
}

TEST_CASE("B11: a handler that owes nothing is not drained when its stream begins anew: a writer goes on") {
  const Ran ran = run_life("{ mode: free }", "{ a: {} }",
                           R"(
  video: { type: l.camera, for_each: cameras, count: 7, fail_at: 5 }
  file:  { type: l.closes, for_each: cameras, input: video, name: "{stream}" }
)",
                           in_virtual_time());
  REQUIRE_MESSAGE(ran.ok, ran.error.what);
  CHECK(values_of("a") == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, -1});
  CHECK(ran.report.streams[0].restarts == 1);
}

TEST_CASE("4.7: state is zero again when its stream begins anew, and stays where it is, captured as one or not") {
  for (const std::string device : {"cpu", "sim:0", "cuda:0"})
    for (const bool adversarial : {false, true}) {
      CAPTURE(device);
      CAPTURE(adversarial);
      Setup setup = in_virtual_time();
      setup.virtual_time = !adversarial;
      setup.adversarial = adversarial;
      setup.domains = {"cpu"};
      if (device != "cpu") setup.domains.push_back(device);
      enqueued::Sums::where.clear();
      const Ran ran = run_on(device, "l.sums", setup);
      REQUIRE_MESSAGE(ran.ok, ran.error.what);
      std::vector<int64_t> of_one(20);
      for (int64_t n = 0; n < 20; ++n) of_one[static_cast<size_t>(n)] = n * (n + 1) / 2 * 1000 + n + 1;
      std::vector<int64_t> expected(of_one.begin(), of_one.begin() + 7);
      expected.insert(expected.end(), of_one.begin(), of_one.end());
      CHECK(values_of("a") == expected);
      CHECK(values_of("b") == of_one);
      for (const uint32_t stream : {0u, 1u}) CHECK(enqueued::Sums::where.at(stream).size() == 2);
    }
}
