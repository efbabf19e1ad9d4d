// When the kernel gives a run's memory its pages: as it is used, but before the first beat of a realtime clock.
#include <doctest/doctest.h>
#include <millrace/handler.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "harness.h"
#include "table_of.h"

namespace millrace::test {
namespace {

constexpr int64_t kBytes = 12 << 20;

// By call: the share of the block's bytes that had pages before the handler wrote to them. And all blocks.
std::vector<double> shares;
std::set<const void*> blocks;

double resident_share(const uint8_t* data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  std::vector<unsigned char> pages((reinterpret_cast<uintptr_t>(data) + bytes - begin) / page);
  REQUIRE(mincore(reinterpret_cast<void*>(begin), pages.size() * page, pages.data()) == 0);
  const auto there = std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return one & 1; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

struct Large final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<int64_t> count{*this, "count", 8, "ticks"};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<uint8_t>(), {kBytes}); }
  void process(Tick& tick, Cpu&) {
    if (tick.index() == static_cast<uint64_t>(*count)) return tick.end();
    const int64_t shape[] = {kBytes};
    const auto bytes = out.allocate(tick, dtype_of<uint8_t>(), shape).elements<uint8_t>();
    shares.push_back(resident_share(bytes.data(), bytes.size()));
    blocks.insert(bytes.data());
    std::fill(bytes.begin(), bytes.end(), uint8_t{1});
  }
};
struct Reads final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};

const mr_plugin& plugin() {
  static const mr_handler_type* const types[] = {table_of<Large>("m.large"), table_of<Reads>("m.reads")};
  static const mr_plugin table = {sizeof(mr_plugin), MR_ABI_VERSION, "m", "1", types, std::size(types), 0};
  return table;
}

void run_large(graph::ClockMode mode, graph::Policy policy) {
  shares.clear();
  blocks.clear();
  Pipeline p;
  p.clock(mode, mode == graph::ClockMode::free ? 0 : 50, 1, 1);
  p.add("large", "m.large");
  p.add("reader", "m.reads");
  p.connect("large", "reader", policy);
  Setup setup;
  setup.more = &plugin();
  run(p, setup);
}

} // namespace

TEST_CASE("3.2: a block has its pages when it is first written, and a run that is done soon pays for no more") {
  run_large(graph::ClockMode::free, graph::Policy::sync);
  REQUIRE(shares.size() == 8);
  CHECK(shares[0] < 0.5); // with pages of 2 MiB the head of the block brings some
  CHECK(shares[7] == 1);
}

TEST_CASE("3.2: under a realtime clock all blocks have their pages before the first beat") {
  run_large(graph::ClockMode::realtime, graph::Policy::sync);
  REQUIRE(!shares.empty());
  for (const double share : shares) CHECK(share == 1);
}

TEST_CASE("3.2: a ring that is planned for many held values uses as many blocks as are held") {
  run_large(graph::ClockMode::free, graph::Policy::latest);
  REQUIRE(shares.size() == 8);
  CHECK(blocks.size() <= 3);
}

} // namespace millrace::test
