// `millrace bench crossing`: the cost of a tick that goes to another node, and of one that comes from there.
//
// `here`: null.source → null.sink on one thread. `sends`: the sink is on another node, and a thread takes each parcel
// and lets it go. `takes`: the source is on another node, and a thread gives parcels. The crossing has 64 places, and
// the link's own thread looks every few microseconds, so that worker and link seldom meet. `tick` is a run's wall time
// over its ticks: the most that its worker needs for them.
#include <cstring>
#include <thread>

#include "bench/measure.h"
#include "device/cpu/cpu_device.h"
#include "exec/crossing.h"
#include "exec/run.h"
#include "exec/run_options.h"
#include "observe/error.h"
#include "observe/report.h"
#include "plan/compile.h"
#include "plan/machine.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plugin/registry.h"

namespace millrace::bench {

namespace {

constexpr uint64_t kTicks = 100'000;
const std::vector<std::string> kNodes = {"sender", "taker"};

// One node's run of null.source → null.sink with the source on the first node and the sink on the second.
class NodeRun {
 public:
  explicit NodeRun(uint32_t node) {
    add_free_clock(graph_, 0);
    graph_.clocks.back().rate = {1000, 1};
    add(graph_, "source", "null.source", "");
    graph_.handlers.back().node = kNodes[0];
    add(graph_, "sink", "null.sink", "source");
    graph_.handlers.back().node = kNodes[1];
    prepared_ = plan::prepare(graph_, registry_, exec::host_table());
    plan::Options options;
    options.nodes = kNodes;
    options.node = node;
    options.round_trip_ns = 1'000'000'000; // 64 places
    plan_ = plan::compile(graph_, prepared_, registry_, exec::host_table(), {}, options);
    exec::RunOptions run;
    run.ticks_max = kTicks;
    run.spin_ns = 1'000'000'000;
    run_ = std::make_unique<exec::Run>(plan_, graph_, prepared_.handlers, std::vector<device::Device*>{&cpu_}, run);
  }
  exec::Run& run() { return *run_; }
  const plan::CrossingPlan& crossing() const { return plan_.crossings.at(0); }
  double ns_per_tick() {
    const Result result = run_->wait();
    if (!result.ok) throw Failure(result.error);
    return result.report.duration_s * 1e9 / static_cast<double>(kTicks);
  }

 private:
  graph::Graph graph_;
  plugin::Registry registry_;
  plan::Prepared prepared_;
  plan::Plan plan_;
  device::CpuDevice cpu_;
  std::unique_ptr<exec::Run> run_;
};

// Until the next look. Others may run, as there may be fewer processors than threads.
void pause() {
  for (const int64_t until = monotonic_ns() + 5'000; monotonic_ns() < until;) std::this_thread::yield();
}

// A parcel's only value, with bytes of its own.
struct KeptValue {
  mr_value value{};
  std::vector<uint8_t> bytes;
};

// Takes all parcels and keeps the last value.
double send_all(KeptValue& kept) {
  NodeRun node(0);
  exec::Departure departure(node.run(), node.crossing());
  node.run().start();
  std::thread link([&] {
    exec::Parcel parcel;
    for (;;) {
      if (!departure.next(parcel)) {
        pause();
        continue;
      }
      if (parcel.end) return;
      if (kept.bytes.empty() && parcel.values[0].value) {
        kept.value = *parcel.values[0].value;
        kept.bytes.assign(parcel.values[0].data, parcel.values[0].data + kept.value.header.extent_bytes);
      }
      departure.let_go();
    }
  });
  link.join();
  return node.ns_per_tick();
}

double take_all(const KeptValue& kept) {
  NodeRun node(1);
  exec::Arrival arrival(node.run(), node.crossing());
  node.run().start();
  exec::Parcel parcel;
  parcel.values.resize(1);
  for (uint64_t index = 0; index < kTicks;) {
    if (index == arrival.credit()) {
      pause();
      continue;
    }
    const exec::ParcelRoom room = arrival.room(0);
    *room.value = kept.value;
    std::memcpy(room.data, kept.bytes.data(), kept.bytes.size());
    parcel.values[0] = {&kept.value, kept.bytes.data(), 0};
    parcel.tick.index = index++;
    parcel.tick.media_time_ns = static_cast<int64_t>(index);
    arrival.arrive(parcel);
  }
  parcel.end = true;
  arrival.arrive(parcel);
  return node.ns_per_tick();
}

} // namespace

std::vector<Row> bench_crossing() {
  constexpr int kRuns = 15;
  std::vector<double> here, sends, takes;
  KeptValue kept;
  for (int r = 0; r < kRuns; ++r) {
    here.push_back(run_graph(chain(2), 1, kTicks).duration_s * 1e9 / static_cast<double>(kTicks));
    sends.push_back(send_all(kept));
    takes.push_back(take_all(kept));
  }
  return {row_of("crossing", "here", "tick", "ns", here), row_of("crossing", "sends", "tick", "ns", sends),
          row_of("crossing", "takes", "tick", "ns", takes)};
}

} // namespace millrace::bench
