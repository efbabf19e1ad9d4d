// `millrace bench gpu` and `millrace bench transfer`: what a device costs the host, and what its copies take. On each
// GPU there is, or on the devices that `--devices` names, simulated ones included: those say nothing of hardware, but
// all of what the runtime does around it.
//
// gpu: test.pattern → image.flip × (handlers − 1) → null.sink on the device, small pictures; where the device is
// simulated the source is on the host, and there is one image.flip more. `submit` is the host's
// time to submit a tick, from its inputs issued until the launch has returned: saturated with three ticks in flight, or
// so long after the one before. `launch_to_host` is the time from there until a handler on the host is entered that
// reads the result, one tick in flight. `device_time` is what a tick takes on the device, where that can tell.
// transfer: frames of RGBA go up, are mirrored there, and come down. `frame` is the time of one in a long run,
// `by_hand` that of a loop that has the device copy as many pinned bytes up, within itself and down, in streams of
// their own with as many frames in flight; `ratio` of the two in one round. p50 and p99 are over the rounds.
#include <millrace/handler.h>

#include <atomic>
#include <memory>

#include "cli/bench_measure.h"
#include "embed/compose.h"
#include "observe/error.h"

namespace millrace::cli {

namespace {

bool is_simulated(const std::string& domain) { return domain.rfind("sim:", 0) == 0; }

void set(graph::Graph& graph, const std::string& param, const std::string& value) {
  graph.handlers.back().params.push_back({param, value, {}, {}});
}

std::atomic<int64_t> launched_ns{0};
std::vector<double>* arrivals_us = nullptr;

struct Arrival final : Handler {
  Input<Image> in{*this, "in"};
  void process(Tick& tick, Cpu&) {
    const int64_t launched = launched_ns.load();
    if (in.present(tick) && launched > 0) arrivals_us->push_back(static_cast<double>(now_ns() - launched) / 1000);
  }
};

struct Size {
  uint32_t width, height;
  uint64_t bytes() const { return uint64_t{width} * height * 4; }
};

// The ends of a frame are written, so that each is another one; what a source does with the rest is not measured.
void mark(uint8_t* frame, uint64_t bytes, uint64_t index) {
  frame[0] = static_cast<uint8_t>(index);
  frame[bytes - 1] = static_cast<uint8_t>(index * 7);
}

struct Frames final : Handler {
  Output<Image> out{*this, "out"};
  Param<int64_t> width{*this, "width", 16, "of a frame"};
  Param<int64_t> height{*this, "height", 16, "of a frame"};
  Size size() const { return {static_cast<uint32_t>(*width), static_cast<uint32_t>(*height)}; }
  void configure(const Formats& formats) override { formats.image(out, Pixel::rgba8, size().width, size().height); }
  void process(Tick& tick, Cpu&) {
    const ImageSpan frame = out.allocate(tick, Pixel::rgba8, size().width, size().height);
    mark(frame.data(), size().bytes(), tick.index());
  }
};

const mr_plugin& device_plugin() {
  static const mr_handler_type arrival = detail::Type<Arrival>::table("bench.arrival", "Notes when it is entered", "");
  static const mr_handler_type frames = detail::Type<Frames>::table("bench.frames", "Frames to copy", "");
  static const mr_handler_type* const types[] = {&arrival, &frames};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 2, 0};
  return plugin;
}

exec::Report run_with(const std::string& domain, graph::Graph graph, const exec::RunOptions& options) {
  plugin::Registry registry;
  registry.add(device_plugin(), "");
  embed::Choices choices;
  choices.domains = {domain, "cpu"};
  choices.threads = 2;
  choices.by_price = false; // where each handler runs is said
  embed::Composition composition(std::move(graph), registry, exec::host_table(), choices);
  const std::unique_ptr<exec::Run> run = composition.make_run(options);
  run->start();
  exec::Result result = run->wait();
  if (!result.ok) throw Failure(result.error);
  return std::move(result.report);
}

graph::Graph region_of(uint32_t handlers, const std::string& domain, const std::string& sink, int64_t hz,
                       uint32_t in_flight) {
  graph::Graph graph;
  add(graph, "source", "test.pattern", "");
  for (const auto& [param, value] : {std::pair{"width", "64"}, {"height", "36"}, {"format", "rgba8"}})
    set(graph, param, value);
  std::string last = "source";
  for (uint32_t h = is_simulated(domain) ? 0 : 1; h < handlers; ++h) {
    const std::string name = "flip" + std::to_string(h);
    add(graph, name, "image.flip", last);
    last = name;
  }
  add(graph, "sink", sink, last);
  for (graph::Handler& handler : graph.handlers) {
    const bool on_host = handler.type == "bench.arrival" || (is_simulated(domain) && handler.name == "source");
    handler.device = on_host ? "cpu" : domain;
  }
  graph::Clock clock;
  clock.mode = hz > 0 ? graph::ClockMode::realtime : graph::ClockMode::free;
  if (hz > 0) clock.rate = {hz, 1};
  clock.in_flight = in_flight;
  graph.clocks.push_back(clock);
  return graph;
}

constexpr uint64_t kWarmUp = 20;

struct Idle {
  const char* name;
  int64_t hz; // 0: none
  uint64_t ticks;
};
constexpr Idle kIdles[] = {{"saturated", 0, 50'000}, {"1 ms idle", 1000, 2000}, {"16.7 ms idle", 60, 180}};

} // namespace

std::vector<Row> bench_gpu(const std::string& domain) {
  std::vector<Row> rows;
  const uint64_t less = is_simulated(domain) ? 25 : 1; // its figures are the host's, so a few do
  for (const uint32_t handlers : {1u, 8u, 32u}) {
    const std::string variant = domain + ", " + std::to_string(handlers);
    for (const Idle& idle : kIdles) {
      std::vector<double> submit_us;
      exec::RunOptions options;
      options.ticks_max = std::max<uint64_t>(2 * kWarmUp, idle.ticks / less);
      options.on_launch = [&](uint64_t index, int64_t begin_ns, int64_t end_ns) {
        if (index > kWarmUp) submit_us.push_back(static_cast<double>(end_ns - begin_ns) / 1000);
      };
      const exec::Report report =
          run_with(domain, region_of(handlers, domain, "null.sink", idle.hz, idle.hz > 0 ? 0 : 3), options);
      rows.push_back(row_of("gpu", variant + " " + idle.name, "submit", "us", submit_us));
      if (idle.hz == 0 && !report.regions.empty() && report.regions[0].sampled > 0)
        rows.push_back({"gpu", variant + " " + idle.name, "device_time", "us", report.regions[0].p50_us,
                        report.regions[0].p99_us, report.regions[0].sampled});
    }
    std::vector<double> arrived_us;
    arrivals_us = &arrived_us;
    launched_ns = 0;
    exec::RunOptions options;
    options.ticks_max = 20'000 / less;
    options.on_launch = [](uint64_t index, int64_t, int64_t end_ns) {
      if (index > kWarmUp) launched_ns = end_ns;
    };
    run_with(domain, region_of(handlers, domain, "bench.arrival", 0, 1), options);
    rows.push_back(row_of("gpu", variant + " one in flight", "launch_to_host", "us", arrived_us));
  }
  return rows;
}

namespace {

double frame_us(const std::string& domain, Size size, uint32_t in_flight, uint64_t frames) {
  graph::Graph graph;
  add(graph, "source", "bench.frames", "");
  set(graph, "width", std::to_string(size.width));
  set(graph, "height", std::to_string(size.height));
  add(graph, "flip", "image.flip", "source");
  add(graph, "sink", "null.sink", "flip");
  for (graph::Handler& handler : graph.handlers) handler.device = handler.name == "flip" ? domain : "cpu";
  graph::Clock clock;
  clock.mode = graph::ClockMode::free;
  clock.in_flight = in_flight;
  graph.clocks.push_back(clock);
  exec::RunOptions options;
  options.ticks_max = frames;
  return run_with(domain, std::move(graph), options).duration_s * 1e6 / static_cast<double>(frames);
}

// Where the bytes of a frame are while it is under way, and the end of its way.
struct Slot {
  std::byte *up, *there, *mirrored, *down;
  device::Fence done;
};

double by_hand_us(const std::string& domain, Size size, uint32_t in_flight, uint64_t frames) {
  const auto pinned = std::make_shared<device::PinnedRanges>();
  const std::vector<std::unique_ptr<device::Device>> devices = embed::make_devices({}, {"cpu", domain}, pinned);
  device::Device& device = *devices[1];
  const uint64_t bytes = size.bytes();
  const auto taken = [&](device::Device& from) {
    device::DeviceStatus status;
    device::Arena* const arena = from.allocate(bytes, {true, false}, status);
    if (!arena) throw Failure(701, "for frames that are copied by hand: " + status.sentence);
    return arena->base;
  };
  std::vector<Slot> slots(in_flight);
  for (Slot& slot : slots) {
    slot = {taken(*devices[0]), taken(device), taken(device), taken(*devices[0]), {}};
    std::fill_n(slot.up, bytes, std::byte{1});
  }
  device::Stream& in = *device.create_stream(device::StreamKind::copy_in);
  device::Stream& compute = *device.create_stream(device::StreamKind::compute);
  device::Stream& out = *device.create_stream(device::StreamKind::copy_out);
  const auto await = [](const Slot& slot) {
    while (!slot.done.done()) {
    }
  };
  const auto run = [&](uint64_t count) {
    for (uint64_t f = 0; f < count; ++f) {
      Slot& slot = slots[f % in_flight];
      await(slot);
      mark(reinterpret_cast<uint8_t*>(slot.up), bytes, f);
      device.copy(in, slot.there, slot.up, bytes);
      device.wait(compute, device.signal(in));
      device.copy(compute, slot.mirrored, slot.there, bytes);
      device.wait(out, device.signal(compute));
      device.copy(out, slot.down, slot.mirrored, bytes);
      slot.done = device.signal(out);
    }
    for (const Slot& slot : slots) await(slot);
  };
  run(in_flight * 2);
  const int64_t begin = monotonic_ns();
  run(frames);
  const double us = static_cast<double>(monotonic_ns() - begin) / 1000 / static_cast<double>(frames);
  if (const device::DeviceStatus status = device.status(); !status.ok()) throw Failure(703, status.sentence);
  return us;
}

} // namespace

std::vector<Row> bench_transfer(const std::string& domain) {
  const bool simulated = is_simulated(domain);
  const int rounds = simulated ? 3 : 7;
  const Size size = simulated ? Size{640, 360} : Size{3840, 2160};
  const uint64_t frames = simulated ? 50 : 300;
  std::vector<Row> rows;
  for (const uint32_t in_flight : {1u, 3u, 4u}) {
    std::vector<double> ours, hand, ratio;
    for (int r = 0; r < rounds; ++r) {
      hand.push_back(by_hand_us(domain, size, in_flight, frames));
      ours.push_back(frame_us(domain, size, in_flight, frames));
      ratio.push_back(ours.back() / hand.back());
    }
    const std::string variant = domain + " " + std::to_string(size.width) + "×" + std::to_string(size.height) + ", " +
                                std::to_string(in_flight) + " in flight";
    rows.push_back(row_of("transfer", variant, "frame", "us", ours));
    rows.push_back(row_of("transfer", variant, "by_hand", "us", hand));
    rows.push_back(row_of("transfer", variant, "ratio", "", ratio));
  }
  return rows;
}

} // namespace millrace::cli
