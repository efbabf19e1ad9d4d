// `millrace bench transfer`: the time of the runtime's copies, on the devices that `bench gpu` runs on.
//
// Frames of RGBA go up to the device, are mirrored there, and come down. `frame` is the time of one frame in a long
// run. `by_hand` is the time in a loop that has the device copy as many pinned bytes up, within itself and down, each
// in a stream of its own, with as many frames in flight. `ratio` is `frame` over `by_hand` in one round. p50 and p99
// are over the rounds. A simulated device mirrors on the host, which takes longer than a copy within the device: the
// ratio means something for hardware alone.
#include <millrace/handler.h>

#include <algorithm>
#include <memory>

#include "bench/measure.h"
#include "device/device.h"
#include "device/pinned_ranges.h"
#include "embed/compose.h"
#include "exec/run_options.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/report.h"
#include "plan/domain.h"

namespace millrace::bench {

namespace {

struct Size {
  uint32_t width, height;
  uint64_t bytes() const { return uint64_t{width} * height * 4; }
};

// Writes the ends of a frame, so that each frame differs; the rest of a source's work is not measured.
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

const mr_plugin& frames_plugin() {
  static const mr_handler_type frames = detail::Type<Frames>::table("bench.frames", "Frames to copy", "");
  static const mr_handler_type* const types[] = {&frames};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "bench", "1", types, 1, 0};
  return table;
}

double frame_us(const std::string& domain, Size size, uint32_t in_flight, uint64_t frames) {
  graph::Graph graph;
  add(graph, "source", "bench.frames", "");
  set(graph, "width", std::to_string(size.width));
  set(graph, "height", std::to_string(size.height));
  add(graph, "flip", "image.flip", "source");
  add(graph, "sink", "null.sink", "flip");
  for (graph::Handler& handler : graph.handlers) handler.device = handler.name == "flip" ? domain : "cpu";
  add_free_clock(graph, in_flight);
  exec::RunOptions options;
  options.ticks_max = frames;
  return run_on(domain, std::move(graph), options, frames_plugin()).duration_s * 1e6 / static_cast<double>(frames);
}

// The places of a frame's bytes while it is under way, and the fence of its last copy.
struct Slot {
  std::byte *up, *there, *mirrored, *down;
  device::Fence done;
};

double by_hand_us(const std::string& domain, Size size, uint32_t in_flight, uint64_t frames) {
  const auto pinned = std::make_shared<device::PinnedRanges>();
  const std::vector<std::unique_ptr<device::Device>> devices =
      embed::make_devices({}, plan::domains_named({"cpu", domain}), pinned);
  device::Device& device = *devices[1];
  const uint64_t bytes = size.bytes();
  const auto taken = [&](device::Device& from) {
    device::DeviceStatus status;
    device::Arena* const arena = from.allocate(bytes, {true}, status);
    if (!arena) throw Failure(code::device_out_of_memory, "for frames that are copied by hand: " + status.sentence);
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
  if (const device::DeviceStatus status = device.status(); !status.ok())
    throw Failure(code::device_lost, status.sentence);
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

} // namespace millrace::bench
