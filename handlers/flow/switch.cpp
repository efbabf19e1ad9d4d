// flow.switch: hands on one of several inputs; the others end here.
#include <millrace/handler.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace millrace::handlers {
namespace {

constexpr const char* kSwitchManual = &R"(
Hands on the value of one of its inputs. `select` chooses it: 0 is the first of the list. All inputs
have one format, so downstream only the content changes and never the format. If the chosen input
has no value, the output has none either: there is no fallback to another input. -1 chooses no
input. `select` may change while it runs, between two ticks. A number that no input has is refused
before the start, and chooses no input while it runs. The value is copied, because it may come from
the memory of any of the inputs. Host objects cannot be copied and are refused.

The reverse, one input to several outputs, is a `flow.gate` on each of the outputs.

    test.pattern width=320 height=240 count=30 ! flow.switch select=0 ! null.sink
)"[1];

constexpr uint32_t kInputsMax = 64; // a wall of cameras; more is a mistake

// True if two formats describe values with the same layout. Bounds of counts and bytes may differ.
bool same_format(const Format& a, const Format& b) {
  if (a.kind != b.kind || a.schema != b.schema || a.layout != b.layout) return false;
  if (a.kind == MR_KIND_IMAGE) return a.pixel_formats == b.pixel_formats && a.width == b.width && a.height == b.height;
  if (a.kind != MR_KIND_TENSOR) return true;
  return a.dtype_code == b.dtype_code && a.dtype_bits == b.dtype_bits && a.dtype_lanes == b.dtype_lanes &&
         a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

class Switch final : public Handler {
 public:
  Switch() {
    stateless();
    no_allocation();
  }

  void configure(const Formats& formats) override {
    if (in_.count() == 0) return; // nothing to choose from; the plan reports that the output's size is not known
    if (select_ >= static_cast<int64_t>(in_.count()))
      throw std::invalid_argument("select is " + std::to_string(*select_) + ", and the last input is " +
                                  std::to_string(in_.count() - 1));
    Format& out = formats.out(out_);
    for (uint32_t i = 0; i < in_.count(); ++i) {
      const Format& in = formats.in(in_, i);
      if (in.kind == MR_KIND_OBJECT)
        throw std::invalid_argument("flow.switch cannot hand on host objects: they cannot be copied");
      if (!same_format(formats.in(in_), in))
        throw std::invalid_argument("the inputs 0 and " + std::to_string(i) +
                                    " differ in type, format or size; put an image.convert or image.resize before one");
      out.record_count_max = std::max(out.record_count_max, in.record_count_max);
      out.bytes_max = std::max(out.bytes_max, in.bytes_max);
    }
  }

  void process(Tick& tick, Cpu&) {
    if (select_ < 0 || select_ >= static_cast<int64_t>(in_.count())) return;
    const auto chosen = static_cast<uint32_t>(*select_);
    if (in_.present(tick, chosen)) copy(tick, in_.raw(tick, chosen));
  }

 private:
  // Copies a value of any kind unchanged: its mr_value and its data bytes.
  void copy(Tick& tick, const mr_input& from) const {
    const uint64_t bytes = from.value->header.extent_bytes;
    if (tick.raw().host->allocate(&tick.raw(), out_.first(), bytes) != MR_OK) throw std::bad_alloc();
    const mr_output& to = out_.raw(tick);
    *to.value = *from.value;
    if (bytes > 0) std::memcpy(to.data, from.data, static_cast<size_t>(bytes));
  }

  Inputs<Any> in_{*this, "in", kInputsMax, optional, help("values of one format")};
  Output<Any> out_{*this, "out", like(in_), help("the chosen input's value")};
  Param<int64_t> select_{*this, "select",
                         0,     "the input that goes on, by its place in the list; -1: none",
                         live,  range(-1, kInputsMax - 1)};
};

} // namespace

const mr_handler_type& flow_switch_type() {
  static const mr_handler_type type =
      detail::Type<Switch>::table("flow.switch", "Hands on one of several inputs", kSwitchManual);
  return type;
}

} // namespace millrace::handlers
