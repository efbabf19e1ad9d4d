// Handlers that declare it allocate nothing from the heap in `process`: counted, for all of them.
#include <doctest/doctest.h>
#include <millrace/payload/marks.h>
#include <millrace/payload/patch_transform.h>

#include <memory>
#include <utility>
#include <vector>

#include "builtin.h"
#include "cli/count_allocations.h"
#include "handlers/draw/glyphs.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::AllocationCounter;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// These stand between the handler under test and the test around it: both allocate, and only one is counted.
mr_status (*real_process)(void*, mr_tick*) = nullptr;
const mr_host* real_host = nullptr;

const AllocationCounter counter = cli::allocation_counter();
struct Uncounted {
  Uncounted() { counter.count(false); }
  ~Uncounted() { counter.count(true); }
};
mr_status allocate(mr_tick* tick, uint32_t output, uint64_t bytes) {
  const Uncounted here;
  return real_host->allocate(tick, output, bytes);
}
mr_status modify(mr_tick* tick, uint32_t output, uint32_t input) {
  const Uncounted here;
  return real_host->modify(tick, output, input);
}

mr_status counted_process(void* self, mr_tick* tick) {
  real_host = tick->host;
  mr_host host = *real_host;
  host.allocate = &allocate;
  host.modify = &modify;
  tick->host = &host;
  counter.count(true);
  const mr_status status = real_process(self, tick);
  counter.count(false);
  tick->host = real_host;
  return status;
}

// Something that the input takes.
Value value_for(const mr_port& port) {
  const mr_format& accepts = port.accepts;
  const bool takes_whole = !accepts.dtypes || (accepts.dtypes & bit_of(dtype_of<int64_t>()));
  if (accepts.kind == MR_KIND_TENSOR && takes_whole) return testing::tensor<int64_t>({3}, {1, 2, 3});
  if (accepts.kind == MR_KIND_TENSOR && (accepts.ranks & 1u << 3)) // five numbers of each of six boxes
    return testing::tensor<float>({1, 5, 6}, std::vector<float>(30, 8));
  if (accepts.kind == MR_KIND_TENSOR) return testing::tensor<float>({3}, {1, 2, 3});
  if (accepts.schema == schema_of(PatchTransform::kSchema)) return testing::records<PatchTransform>({{}});
  if (accepts.schema == schema_of(Point::kSchema)) return testing::records<Point>({{}});
  if (accepts.schema == schema_of(Link::kSchema)) return testing::records<Link>({{}});
  if (accepts.schema == schema_of(Mark::kSchema)) return testing::records<Mark>({{}});
  if (accepts.kind == MR_KIND_RECORDS) return testing::records<Box>({{4, 20, 30, 20, 1, 0, 12345}, {1, 1, 5, 5}});
  return testing::image(Pixel::rgb8, 64, 48, 9);
}

// Heap allocations in ten ticks behind the first three.
uint64_t allocations_of(mr_handler_type type) {
  real_process = std::exchange(type.process, &counted_process);
  TableTest handler(type);
  for (uint32_t p = 0; p < handler.declaration().port_count; ++p) {
    const mr_port& port = handler.declaration().ports[p];
    if (port.direction == MR_INPUT) handler.input(port.name, value_for(port));
  }
  for (int i = 0; i < 3; ++i) REQUIRE(handler.tick().ok());
  const uint64_t before = counter.counted();
  for (int i = 0; i < 10; ++i) REQUIRE(handler.tick().ok());
  return counter.counted() - before;
}

struct Hoarder final : Handler {
  Output<Tensor> out{*this, "out"};
  void process(Tick&, Cpu&) { kept.push_back(std::make_unique<int>(1)); }
  std::vector<std::unique_ptr<int>> kept;
};

} // namespace

TEST_CASE("no built-in handler that says so allocates from the heap in process") {
  const mr_plugin& plugin = *millrace_builtin_plugin();
  uint32_t declared = 0;
  for (uint32_t i = 0; i < plugin.type_count; ++i) {
    const mr_handler_type& type = *plugin.types[i];
    if (!(TableTest(type).declaration().traits & MR_TRAIT_NO_ALLOCATION)) continue;
    const std::string name = type.type;
    if ((name.starts_with("draw.") || name.starts_with("stats.")) && find_default_font().empty()) continue;
    INFO(type.type);
    CHECK(allocations_of(type) == 0);
    ++declared;
  }
  CHECK(declared >= 8);
}

TEST_CASE("the counting of allocations sees one") {
  CHECK(allocations_of(detail::Type<Hoarder>::table("test.hoarder", "", "")) >= 10);
}
