// The handlers of types.h.
#include "tests/node/types.h"

#include <millrace/handler.h>

#include <stdexcept>

namespace millrace::node::test {
namespace {

struct Boxes final : Handler {
  Output<Records<Box>> boxes{*this, "boxes"};
  Param<int64_t> most{*this, "most", 4, "records in a value"};
  Param<int64_t> count{*this, "count", 9, "ticks"};
  Param<int64_t> rate{*this, "rate", 0, "ticks a second; 0: not known"};
  void probe(Facts& facts) override {
    facts.tick_count(count);
    if (rate > 0) facts.rate(rate);
    facts.cost_us(12, 3);
  }
  void configure(const Formats& formats) override {
    if (most == 0) throw std::invalid_argument("none are no boxes");
    formats.out(boxes).record_count_max = static_cast<uint32_t>(*most);
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};

struct Total final : Handler {
  Input<Records<Box>> boxes{*this, "boxes"};
  Output<Tensor> out{*this, "out"};
  Param<int64_t> most{*this, "most", 100, "records that it can add up"};
  State<int64_t> added{*this};
  void configure(const Formats& formats) override {
    const auto count = static_cast<int64_t>(formats.in(boxes).record_count_max);
    if (count > most) throw CodedError(MR_FAULT_MODEL_SHAPE, "too many boxes");
    formats.tensor(out, dtype_of<int64_t>(), {count});
    added.resize(static_cast<uint64_t>(count) * 32);
    needs_scratch(static_cast<uint64_t>(count));
    takes_host_memory(1 << 20);
  }
  void process(Tick&, Cpu&) {}
};

struct Show final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};

} // namespace

const mr_plugin& boxes_plugin() {
  static const mr_handler_type type = detail::Type<Boxes>::table("n.boxes", "Gives boxes", "");
  static const mr_handler_type* const types[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "boxes", "1", types, 1, 0};
  return plugin;
}

const mr_plugin& total_plugin() {
  static const mr_handler_type type = detail::Type<Total>::table("n.total", "Adds boxes up", "");
  static const mr_handler_type* const types[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "total", "1", types, 1, 0};
  return plugin;
}

const mr_plugin& show_plugin() {
  static const mr_handler_type type = detail::Type<Show>::table("n.show", "Shows numbers", "");
  static const mr_handler_type* const types[] = {&type};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "show", "1", types, 1, 0};
  return plugin;
}

} // namespace millrace::node::test
