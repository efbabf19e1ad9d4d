// Measures hops, launches and bodies; see calibrate.h.
#include "embed/calibrate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "device/device.h"
#include "device/pinned_ranges.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/error_codes.h"
#include "observe/report.h"
#include "plan/domain.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plugin/registry.h"

namespace millrace::embed {

namespace {

using Clock = std::chrono::steady_clock;

// A copy as small as this costs its latency alone.
constexpr uint64_t kTinyBytes = 64;
constexpr int kTimesMax = 200, kTimesMin = 10;
constexpr auto kPatience = std::chrono::milliseconds(150); // time for the copies of one size
// The time of a body that a copy may overlap with. A copy that does not overlap waits for most of it.
constexpr auto kBodyTime = std::chrono::milliseconds(60);
// A busy machine may hold up one copy, but hardly three in a row.
constexpr int kTriesToOverlap = 3;
constexpr int kCopiesInside = 500; // copies of 8 MiB each; they take some milliseconds in all on a fast device
// Ticks of a region without a body: how many in a row, and how many such rows; the median counts. Twice as many ticks
// are under way as in the largest window that the plan chooses by itself, so that the host prepares some while the
// device works on others.
constexpr int kEmptyTicks = 500, kEmptyRuns = 9;
constexpr size_t kEmptyUnderWay = 2 * plan::kInFlightMax;

// The index of this machine's host among the domains that are measured.
constexpr size_t kHost = 0;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void await(device::Device& device, const device::Fence& fence) {
  while (!fence.done())
    if (!device.force(fence)) std::this_thread::yield();
}

void finish(device::Device& device, device::Stream& stream) { await(device, device.signal(stream)); }

double quantile(std::vector<double>& samples, double q) {
  const auto at = static_cast<size_t>(q * static_cast<double>(samples.size() - 1) + 0.5);
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(at), samples.end());
  return samples[at];
}

// The time between ticks. submit(n) submits tick n and returns its last fence.
template <class Submit>
double apart_us(device::Device& device, const Submit& submit) {
  std::vector<double> samples;
  std::array<device::Fence, kEmptyUnderWay> under_way{};
  uint64_t tick = 0;
  for (int run = 0; run < kEmptyRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    for (int n = 0; n < kEmptyTicks; ++n, ++tick) {
      device::Fence& fence = under_way[tick % kEmptyUnderWay];
      await(device, fence);
      fence = submit(tick);
    }
    samples.push_back(us_since(begin) / kEmptyTicks);
  }
  for (const device::Fence& fence : under_way) await(device, fence);
  return quantile(samples, 0.5);
}

// The two ends of a hop, as large as the largest copy.
struct Ends {
  device::Device* device;
  device::Stream* stream;
  std::byte* target;
  const std::byte* source;

  double copy_us(uint64_t bytes) const {
    const Clock::time_point begin = Clock::now();
    device->copy(*stream, target, source, bytes);
    finish(*device, *stream);
    return us_since(begin);
  }
};

struct Times {
  double p50 = 0, p99 = 0;
};

template <class Copy>
Times measure(const Copy& copy) {
  std::vector<double> samples;
  copy(); // the first finds cold pages
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kTimesMax && (i < kTimesMin || Clock::now() - begin < kPatience); ++i) samples.push_back(copy());
  return {quantile(samples, 0.5), quantile(samples, 0.99)};
}

void wait_a_while(void*) { std::this_thread::sleep_for(kBodyTime); }

std::byte* take(device::Device& device, uint64_t bytes) {
  device::DeviceStatus status;
  device::Arena* const arena = device.allocate(bytes, {true}, status);
  if (!arena) throw Failure(code::device_out_of_memory, "there is no memory to measure with: " + status.sentence);
  if (device.domain() == "cpu") std::memset(arena->base, 1, bytes);
  return arena->base;
}

// Measures all hops of one machine. Its devices and memory live as long as it does.
class HopMeter {
 public:
  HopMeter(const MachineFile& machine, const std::vector<std::string>& domains) : machine_(machine) {
    domains_ = plan::with_host(plan::domains_named(domains));
    devices_ = make_devices(machine, domains_, pinned_);
    for (auto& device : devices_) memory_.push_back(take(*device, kLargest));
    for (auto& device : devices_) back_.push_back(take(*device, kLargest));
  }

  std::vector<plan::Hop> run() {
    std::vector<plan::Hop> hops;
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (domains_[d].is_host()) continue;
      device::Device& device = *devices_[d];
      const Ends up{&device, device.create_stream(device::StreamKind::copy_in), memory_[d], memory_[kHost]};
      const Ends down{&device, device.create_stream(device::StreamKind::copy_out), back_[kHost], back_[d]};
      hops.push_back(hop(name(kHost), name(d), up, true));
      hops.push_back(hop(name(d), name(kHost), down, false));
      const bool turns = take_turns(up, down);
      for (plan::Hop* one : {&hops[hops.size() - 2], &hops.back()}) {
        if (turns) one->engine = name(d) + " copies";
        one->price.overlaps_compute = overlaps_compute(one->to == name(kHost) ? down : up);
      }
      add_peers(d, hops);
    }
    for (const auto& device : devices_)
      if (const device::DeviceStatus status = device->status(); !status.ok())
        throw Failure(code::device_out_of_memory, "while hops were measured: " + status.sentence);
    return hops;
  }

 private:
  static constexpr uint64_t kLargest = plan::kHopSizes.back();

  plan::Hop hop(const std::string& from, const std::string& to, const Ends& ends, bool from_host) {
    plan::Hop hop{from, to};
    for (const plan::Hop& declared : simulated_hops(machine_, names())) // only bodies could measure reading in place
      if (declared.from == from && declared.to == to) hop.price.access_us_per_byte = declared.price.access_us_per_byte;
    hop.price.latency_us = measure([&] { return ends.copy_us(kTinyBytes); }).p50;
    for (size_t i = 0; i < plan::kHopSizes.size(); ++i) {
      const uint64_t bytes = plan::kHopSizes[i];
      const Times times = measure([&] { return ends.copy_us(bytes); });
      hop.price.us_per_byte[i] = std::max(0.0, times.p50 - hop.price.latency_us) / static_cast<double>(bytes);
      hop.price.p99_us[i] = times.p99;
      if (from_host) hop.pageable_us[i] = measure([&] { return pageable_us(ends, bytes); }).p50;
    }
    return hop;
  }

  double pageable_us(const Ends& ends, uint64_t bytes) {
    if (pageable_.empty()) pageable_.assign(kLargest, 1);
    const Clock::time_point begin = Clock::now();
    std::memcpy(memory_[kHost], pageable_.data(), bytes);
    ends.copy_us(bytes);
    return us_since(begin);
  }

  // True if the shorter of two copies waits for the longer one, which began before it.
  static bool take_turns(const Ends& up, const Ends& down) {
    const double up_us = measure([&] { return up.copy_us(kLargest); }).p50;
    const double down_us = measure([&] { return down.copy_us(kLargest); }).p50;
    const Ends& longer = up_us > down_us ? up : down;
    const Ends& shorter = up_us > down_us ? down : up;
    const double beside_us = measure([&] {
                               longer.device->copy(*longer.stream, longer.target, longer.source, kLargest);
                               const double us = shorter.copy_us(kLargest);
                               finish(*longer.device, *longer.stream);
                               return us;
                             }).p50;
    return beside_us > std::min(up_us, down_us) + std::max(up_us, down_us) / 2;
  }

  static bool overlaps_compute(const Ends& ends) {
    device::Stream* const compute = ends.device->create_stream(device::StreamKind::compute);
    bool overlapped = false;
    for (int i = 0; i < kTriesToOverlap && !overlapped; ++i) {
      const Clock::time_point begin = Clock::now();
      keep_busy(ends, *compute);
      const double beside_us = ends.copy_us(kTinyBytes);
      finish(*ends.device, *compute);
      overlapped = beside_us < us_since(begin) / 2;
    }
    return overlapped;
  }

  // Keeps the device busy for a while: by a body that sleeps, or, if bodies enqueue, by copies within the device.
  static void keep_busy(const Ends& ends, device::Stream& compute) {
    if (!ends.device->enqueuing()) return ends.device->run(compute, {&wait_a_while, nullptr, "a body that waits", 0});
    const bool up = ends.stream->kind == device::StreamKind::copy_in;
    auto* const inside = up ? ends.target : const_cast<std::byte*>(ends.source);
    for (int i = 0; i < kCopiesInside; ++i) ends.device->copy(compute, inside + kLargest / 2, inside, kLargest / 2);
  }

  void add_peers(size_t d, std::vector<plan::Hop>& hops) {
    for (size_t from = 0; domains_[d].pushes && from < domains_.size(); ++from) {
      if (from == d || !domains_[from].pushes) continue;
      device::Device& device = *devices_[from]; // the source pushes, as in a plan
      const Ends ends{&device, device.create_stream(device::StreamKind::copy_peer), memory_[d], memory_[from]};
      hops.push_back(hop(name(from), name(d), ends, false));
    }
    for (const plan::Hop& known : simulated_hops(machine_, names())) {
      const std::optional<uint32_t> from = plan::find_domain(domains_, known.from);
      if (known.to != name(d) || !from || domains_[*from].is_host() || !known.price.copies()) continue;
      device::Device& device = *devices_[d];
      const Ends ends{&device, device.create_stream(device::StreamKind::copy_peer), memory_[d], memory_[*from]};
      plan::Hop measured = hop(known.from, known.to, ends, false);
      measured.engine = known.engine;
      hops.push_back(measured);
    }
  }

  const std::string& name(size_t domain) const { return domains_[domain].name; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const plan::Domain& domain : domains_) names.push_back(domain.name);
    return names;
  }

  const MachineFile& machine_;
  std::vector<plan::Domain> domains_; // the host first
  std::shared_ptr<device::PinnedRanges> pinned_ = std::make_shared<device::PinnedRanges>();
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::vector<std::byte*> memory_; // by domain
  std::vector<std::byte*> back_;   // the same for copies to the host: copies of both directions do not share memory
  std::vector<char> pageable_;
};

} // namespace

plan::LaunchCost measure_launch(device::Device& device, std::byte* on_host, std::byte* on_device) {
  device::Stream& up = *device.create_stream(device::StreamKind::copy_in);
  device::Stream& compute = *device.create_stream(device::StreamKind::compute);
  device::Stream& down = *device.create_stream(device::StreamKind::copy_out);
  device.begin_record(compute);
  const std::unique_ptr<device::Recording> empty = device.end_record(compute);
  if (!empty) return {};
  const auto region = [&](uint64_t tick) {
    device.replay(compute, *empty, {tick, 0});
    return device.signal(compute);
  };
  const auto between_copies = [&](uint64_t tick) {
    device.copy(up, on_device, on_host, kTinyBytes);
    device.wait(compute, device.signal(up));
    device.wait(down, region(tick));
    device.copy(down, on_host + kTinyBytes, on_device + kTinyBytes, kTinyBytes);
    return device.signal(down);
  };
  const double region_us = apart_us(device, region);
  const double with_copies_us = apart_us(device, between_copies);
  return {device.domain(), region_us, std::max(0.0, with_copies_us - region_us) / 2};
}

std::vector<plan::LaunchCost> measure_launches(const MachineFile& machine, const std::vector<std::string>& domains) {
  std::vector<plan::LaunchCost> launches;
  const auto pinned = std::make_shared<device::PinnedRanges>();
  const auto devices = make_devices(machine, plan::with_host(plan::domains_named(domains)), pinned);
  std::byte* const on_host = take(*devices[kHost], 2 * kTinyBytes);
  for (const auto& device : devices) {
    if (!device->enqueuing()) continue;
    plan::LaunchCost cost = measure_launch(*device, on_host, take(*device, 2 * kTinyBytes));
    if (const device::DeviceStatus status = device->status(); !status.ok())
      throw Failure(code::device_out_of_memory, "while launches were measured: " + status.sentence);
    if (!cost.domain.empty()) launches.push_back(std::move(cost));
  }
  return launches;
}

std::vector<plan::Hop> measure_hops(const MachineFile& machine, const std::vector<std::string>& domains) {
  return HopMeter(machine, domains).run();
}

std::vector<plan::BodyCost> measure_bodies(const std::function<graph::Graph()>& load, const plugin::Registry& registry,
                                           const mr_host& host, const Choices& choices, uint64_t ticks) {
  std::vector<plan::BodyCost> bodies;
  for (const std::string& domain : choices.domains) {
    Choices here = choices;
    here.domains = {domain}; // first; the other domains take the handlers that do not run there
    for (const std::string& other : choices.domains)
      if (other != domain) here.domains.push_back(other);
    here.clock = graph::ClockMode::free;
    here.by_price = false;
    Composition composition(load(), registry, host, here);
    exec::RunOptions options;
    options.ticks_max = ticks;
    options.measure_bodies = true;
    const std::unique_ptr<exec::Run> run = composition.make_run(options);
    run->start();
    const Result result = run->wait();
    if (!result.ok) throw Failure(result.error);
    const plan::Plan& plan = composition.plan();
    for (uint32_t h = 0; h < plan.handlers.size(); ++h) {
      const HandlerReport& report = result.report.handlers[h];
      if (report.domain != domain || report.sampled == 0) continue;
      plan::BodyCost body{report.type,
                          plan::settings_of(composition.declared_of(h)),
                          domain,
                          plan::bytes_read(plan, h),
                          report.sampled_us / static_cast<double>(report.sampled),
                          report.p50_us,
                          report.p99_us,
                          report.sampled};
      if (report.by_items.empty()) bodies.push_back(body);
      for (const HandlerReport::ItemsTime& of : report.by_items) {
        body.items = of.items;
        body.mean_us = of.mean_us;
        body.p50_us = of.p50_us;
        body.p99_us = of.p99_us;
        body.calls = of.sampled;
        bodies.push_back(body);
      }
    }
  }
  return bodies;
}

void merge(MachineFile& file, std::vector<plan::Hop> hops, std::vector<plan::BodyCost> bodies,
           std::vector<plan::LaunchCost> launches) {
  for (plan::LaunchCost& cost : launches) {
    std::erase_if(file.launches, [&](const plan::LaunchCost& old) { return old.domain == cost.domain; });
    file.launches.push_back(std::move(cost));
  }
  for (plan::Hop& hop : hops) {
    std::erase_if(file.hops, [&](const plan::Hop& old) { return old.from == hop.from && old.to == hop.to; });
    file.hops.push_back(std::move(hop));
  }
  const auto same = [](const plan::BodyCost& a, const plan::BodyCost& b) {
    return a.type == b.type && a.settings == b.settings && a.domain == b.domain && a.bytes == b.bytes &&
           a.items == b.items;
  };
  for (plan::BodyCost& body : bodies) {
    std::erase_if(file.bodies, [&](const plan::BodyCost& old) { return same(old, body); });
    file.bodies.push_back(std::move(body));
  }
}

} // namespace millrace::embed
