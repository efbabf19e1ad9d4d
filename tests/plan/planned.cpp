// Handlers that only have declarations worth planning, and the way to a plan; see planned.h.
#include "planned.h"

#include <millrace/handler.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "exec/run.h"
#include "plan/compile.h"
#include "plan/explained.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plugin/registry.h"
#include "tests/plan/plan_json.h"

namespace millrace::test {

namespace {

struct Token {
  static constexpr const char* kSchema = "test.token";
};

template <Pixel kPixel>
struct Picture final : Handler {
  Output<Image> out{*this, "out"};
  void configure(const Formats& formats) override { formats.image(out, kPixel, 64, 48); }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
// On its side, of pixels that are not square.
struct Lying final : Handler {
  Output<Image> out{*this, "out"};
  void configure(const Formats& formats) override {
    Format& format = formats.image(out, Pixel::bgr8, 64, 48);
    format.turn = MR_TURN_ROTATE90;
    format.aspect_num = 4;
    format.aspect_den = 3;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Wide final : Handler {
  Output<Image> out{*this, "out"};
  void configure(const Formats& formats) override {
    Format& format = formats.image(out, Pixel::bgr8, 64, 48);
    format.aspect_num = 4;
    format.aspect_den = 3;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Hd final : Handler {
  Output<Image> out{*this, "out"};
  void configure(const Formats& formats) override { formats.image(out, Pixel::bgr8, 1280, 720); }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Full709 final : Handler {
  Output<Image> out{*this, "out"};
  void configure(const Formats& formats) override {
    Format& format = formats.image(out, Pixel::i420, 64, 48);
    format.color = MR_COLOR_BT709;
    format.range = MR_RANGE_FULL;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Square final : Handler {
  Input<Image> in{*this, "in", square_pixels};
  void process(Tick&, Cpu&) {}
};
struct Nv12Only final : Handler {
  Input<Image> in{*this, "in", pixels({Pixel::nv12})};
  void process(Tick&, Cpu&) {}
};
struct Narrow final : Handler {
  Input<Image> in{*this, "in", pixels({Pixel::gray8, Pixel::rgb8, Pixel::bgr8})};
  Param<std::string> takes{*this, "takes", "any", "any, gray8, rgb8"};
  void narrow(uint32_t port, Format& accepts) override {
    if (port != in.port() || *takes == "any") return;
    if (*takes != "gray8" && *takes != "rgb8") throw std::invalid_argument("no picture is made of " + *takes);
    accepts.pixel_formats = bit_of(*takes == "gray8" ? Pixel::gray8 : Pixel::rgb8);
  }
  void process(Tick&, Cpu&) {}
};
struct Rgb final : Handler {
  Input<Image> in{*this, "in", pixels({Pixel::rgb8})};
  Output<Image> out{*this, "out", like(in)};
  void process(Tick&, Cpu&) {}
};
struct Gray final : Handler {
  Input<Image> in{*this, "in", pixels({Pixel::gray8, Pixel::nv12})};
  Output<Image> out{*this, "out", like(in)};
  void process(Tick&, Cpu&) {}
};
struct GrayOnly final : Handler {
  Input<Image> in{*this, "in", pixels({Pixel::gray8})};
  Output<Image> out{*this, "out", like(in)};
  void process(Tick&, Cpu&) {}
};
struct Unsized final : Handler {
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override {
    formats.tensor(out, dtype_of<int64_t>(), {4});
    formats.out(out).shape_kind[0] = MR_DIM_UNKNOWN;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Bounded final : Handler {
  Output<Tensor> out{*this, "out"};
  void configure(const Formats& formats) override {
    formats.tensor(out, dtype_of<int64_t>(), {100});
    formats.out(out).shape_kind[0] = MR_DIM_BOUNDED;
  }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Two final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> left{*this, "left", like(in)}, right{*this, "right", like(in)};
  void process(Tick&, Cpu&) {}
};
struct Gpu final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick&, Cuda&) {}
};
struct HostPort final : Handler {
  Input<Tensor> in{*this, "in", on_cpu};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick&, Cpu&) {}
};
struct Blocking final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Blocking() { blocking(); }
  void process(Tick&, Cpu&) {}
};
struct Named final : Handler {
  Input<Tensor> in{*this, "in"};
  Named() { thread("screen"); }
  void process(Tick&, Cpu&) {}
};
struct Heavy final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Heavy() { host_heavy(); }
  void process(Tick&, Cpu&) {}
};
struct Weights final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Weights() { takes_host_memory((5 << 20) - 1); }
  void process(Tick&, Cpu&) {}
};
struct Stateful final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> kib{*this, "kib", 8, "of state"};
  State<int32_t> past{*this};
  void configure(const Formats&) override { past.resize(static_cast<uint64_t>(*kib) * 256); }
  void process(Tick&, Cpu&) {}
};
struct Library final : Handler { // whose calls several threads compute
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<int64_t> threads{*this, "threads", 0, "compute a call", range(0, 64), counts_threads};
  void process(Tick&, Cpu&) {}
};
struct HeavyRecorded final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  HeavyRecorded() {
    host_heavy();
    capturable();
  }
  void process(Tick&, Cpu&) {}
};
struct OnGpu final : Handler {
  Input<Tensor> in{*this, "in", on_gpu};
  Output<Tensor> out{*this, "out", like(in)};
  void process(Tick&, Cpu&) {}
  void process(Tick&, Cuda&) {}
};
struct GpuOutput final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in), on_gpu};
  void process(Tick&, Cpu&) {}
};
struct GpuSink final : Handler {
  Input<Tensor> in{*this, "in"};
  void process(Tick&, Cpu&) {}
  void process(Tick&, Cuda&) {}
};
struct GpuSinks final : Handler {
  Inputs<Tensor> in{*this, "in", 8};
  void process(Tick&, Cpu&) {}
  void process(Tick&, Cuda&) {}
};
struct Camera final : Handler {
  Output<Tensor> out{*this, "out"};
  void probe(Facts& facts) override {
    facts.rate(25);
    facts.live();
  }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Hint final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Hint() { cost_hint_us(5000); }
  void process(Tick&, Cpu&) {}
};
struct HostObject final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Object<Token>> out{*this, "out"};
  void process(Tick&, Cpu&) {}
};
struct ObjectSink final : Handler {
  Input<Object<Token>> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};
struct Priced final : Handler {
  Input<Tensor> in{*this, "in"};
  Output<Tensor> out{*this, "out", like(in)};
  Param<double> cpu_us{*this, "cpu_us", 0, "on the host"};
  Param<double> gpu_us{*this, "gpu_us", 0, "on a device"};
  void probe(Facts& facts) override { facts.cost_us(*cpu_us, *gpu_us); }
  void process(Tick&, Cpu&) {}
};

struct Dense final : Handler { // its rows lie in one piece of memory, on both sides
  Input<Tensor> in{*this, "in", dense};
  Output<Tensor> out{*this, "out", dense, like(in)};
  Dense() { items(4); }
  void process(Items&, Cpu&) {}
};

struct Numbers final : Handler { // of the type that is chosen, and as many dimensions
  Output<Tensor> out{*this, "out"};
  Param<std::string> dtype{*this, "dtype", "i64", "of the numbers", choices({"i64", "f32"})};
  Param<int> dimensions{*this, "dimensions", 1, "of the tensor"};
  void configure(const Formats& formats) override {
    Format& format = formats.tensor(out, *dtype == "f32" ? dtype_of<float>() : dtype_of<int64_t>(), {1, 1, 1});
    format.rank = static_cast<uint32_t>(*dimensions);
  }
  void process(Tick&, Cpu&) {}
};
struct OfFloats final : Handler {
  Input<Tensor> in{*this, "in", dtypes<double, float>(), ranks(1, 2)};
  void process(Tick&, Cpu&) {}
};
struct Overstated final : Handler { // gives what it does not declare
  Output<Tensor> out{*this, "out", dtypes<uint8_t>()};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int8_t>(), {1}); }
  void process(Tick&, Cpu&) {}
};

struct Unopened final : Handler {
  Output<Tensor> out{*this, "out"};
  void probe(Facts&) override { throw std::runtime_error("there is no such camera"); }
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) { tick.end(); }
};

} // namespace

const mr_plugin& plan_plugin() {
  static const mr_handler_type types[] = {
      detail::Type<Picture<Pixel::nv12>>::table("p.nv12", "", ""),
      detail::Type<Picture<Pixel::bgr8>>::table("p.bgr", "", ""),
      detail::Type<Rgb>::table("p.rgb", "", ""),
      detail::Type<Numbers>::table("p.numbers", "", ""),
      detail::Type<OfFloats>::table("p.floats", "", ""),
      detail::Type<Overstated>::table("p.overstated", "", ""),
      detail::Type<Gray>::table("p.gray", "", ""),
      detail::Type<Unsized>::table("p.unsized", "", ""),
      detail::Type<Bounded>::table("p.bounded", "", ""),
      detail::Type<Two>::table("p.two", "", ""),
      detail::Type<Gpu>::table("p.gpu", "", ""),
      detail::Type<HostPort>::table("p.hostport", "", ""),
      detail::Type<Blocking>::table("p.blocking", "", ""),
      detail::Type<Named>::table("p.named", "", ""),
      detail::Type<Heavy>::table("p.heavy", "", ""),
      detail::Type<Weights>::table("p.weights", "", ""),
      detail::Type<Stateful>::table("p.state", "", ""),
      detail::Type<Library>::table("p.library", "", ""),
      detail::Type<HeavyRecorded>::table("p.heavyrecorded", "", ""),
      detail::Type<OnGpu>::table("p.ongpu", "", ""),
      detail::Type<GpuOutput>::table("p.gpuoutput", "", ""),
      detail::Type<GpuSink>::table("p.gpusink", "", ""),
      detail::Type<GpuSinks>::table("p.gpusinks", "", ""),
      detail::Type<Camera>::table("p.camera", "", ""),
      detail::Type<Hint>::table("p.hint", "", ""),
      detail::Type<HostObject>::table("p.object", "", ""),
      detail::Type<ObjectSink>::table("p.objectsink", "", ""),
      detail::Type<Unopened>::table("p.unopened", "", ""),
      detail::Type<Priced>::table("p.priced", "", ""),
      detail::Type<Dense>::table("p.dense", "", ""),
      detail::Type<GrayOnly>::table("p.grayonly", "", ""),
      detail::Type<Lying>::table("p.lying", "", ""),
      detail::Type<Wide>::table("p.wide", "", ""),
      detail::Type<Hd>::table("p.hd", "", ""),
      detail::Type<Full709>::table("p.full709", "", ""),
      detail::Type<Square>::table("p.square", "", ""),
      detail::Type<Nv12Only>::table("p.nv12only", "", ""),
      detail::Type<Narrow>::table("p.narrow", "", ""),
  };
  static const std::vector<const mr_handler_type*> pointers = [] {
    std::vector<const mr_handler_type*> list;
    for (const mr_handler_type& type : types) list.push_back(&type);
    return list;
  }();
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "plan", "1", pointers.data(), static_cast<uint32_t>(pointers.size()), 0};
  return plugin;
}

namespace {

plan::Plan compiled_of(graph::Graph graph, const plan::Machine& machine, const plan::Options& options) {
  plugin::Registry registry;
  registry.add(test_plugin(), "");
  registry.add(plan_plugin(), "");
  const mr_host host = plugin::basic_host();
  plan::Prepared prepared = plan::prepare(graph, registry, host);
  return plan::compile(graph, prepared, registry, host, machine, options);
}

plan::Plan written_and_read(const plan::Plan& plan) {
  const std::string written = write_plan(plan).dump();
  plan::Plan read = read_plan(nlohmann::json::parse(written));
  if (write_plan(read).dump() != written) throw std::logic_error("a plan that was read is another one");
  return read;
}

} // namespace

Planned::Planned(const Pipeline& pipeline, const plan::Machine& machine, const plan::Options& options)
    : Planned(compiled_of(pipeline.graph, machine, options)) {}

Planned::Planned(const plan::Plan& compiled)
    : Planned(std::make_unique<plan::Plan>(compiled), std::make_unique<plan::Plan>(written_and_read(compiled))) {}

Planned::Planned(Held compiled, Held read) : PlanView(*read), compiled_(std::move(compiled)), plan_(std::move(read)) {}

Planned::~Planned() = default;

std::vector<std::string> Planned::inserted() const {
  std::vector<std::string> names;
  for (const plan::InsertedPlan& conversion : plan_->inserted)
    names.push_back(plan_->handlers[conversion.handler].name);
  return names;
}

std::string Planned::made_by(const std::string& name) const {
  for (const plan::InsertedPlan& conversion : plan_->inserted)
    if (plan_->handlers[conversion.handler].name == name) return conversion.to;
  throw std::invalid_argument("no such conversion: " + name);
}

int refusal(const Pipeline& pipeline, const plan::Machine& machine, const plan::Options& options) {
  return error_of(pipeline, machine, options).code;
}

Error error_of(const Pipeline& pipeline, const plan::Machine& machine, const plan::Options& options) {
  try {
    Planned planned(pipeline, machine, options);
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

plan::Machine machine_of(uint32_t workers, std::vector<std::string> domains) {
  plan::Machine machine;
  machine.workers = workers;
  machine.use(plan::domains_named(domains));
  return machine;
}

void connect_host(plan::Machine& machine, const std::string& device, const plan::HopPrice& price) {
  std::erase_if(machine.hops, [&](const plan::Hop& hop) { return hop.from == device || hop.to == device; });
  machine.hops.push_back({"cpu", device, price});
  machine.hops.push_back({device, "cpu", price});
}

} // namespace millrace::test
