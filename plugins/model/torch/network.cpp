// Computes TorchScript files by libtorch, on the CPU or on a GPU.
#include <ATen/Parallel.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "plugins/model/engine.h"
#include "plugins/model/torch/calling_thread.h"
#include "plugins/model/torch/gpu.h"

namespace millrace::model::libtorch {
namespace {

struct TypePair {
  at::ScalarType theirs;
  DType ours;
};
constexpr TypePair kTypes[] = {
    {at::kFloat, {MR_DTYPE_FLOAT, 32}},  {at::kHalf, {MR_DTYPE_FLOAT, 16}}, {at::kBFloat16, {MR_DTYPE_BFLOAT, 16}},
    {at::kDouble, {MR_DTYPE_FLOAT, 64}}, {at::kByte, {MR_DTYPE_UINT, 8}},   {at::kChar, {MR_DTYPE_INT, 8}},
    {at::kShort, {MR_DTYPE_INT, 16}},    {at::kInt, {MR_DTYPE_INT, 32}},    {at::kLong, {MR_DTYPE_INT, 64}},
    {at::kBool, {MR_DTYPE_UINT, 8}}}; // zeros and ones, in a byte each

at::ScalarType theirs_of(DType dtype) {
  for (const TypePair& type : kTypes)
    if (type.ours == dtype) return type.theirs;
  throw EngineError(MR_FAULT_MODEL_TYPE, "libtorch has no tensors of " + name_of(dtype));
}

DType ours_of(const at::Tensor& tensor, const std::string& name) {
  for (const TypePair& type : kTypes)
    if (type.theirs == tensor.scalar_type()) return type.ours;
  throw EngineError(MR_FAULT_MODEL_VALUE, "'" + name + "' of the network is a tensor of " +
                                              c10::toString(tensor.scalar_type()) +
                                              ", and tensors here hold whole or floating-point numbers");
}

// A tensor over memory of the caller on that device. Outside of inference mode, so that it counts what is written into
// it.
at::Tensor over(const Numbers& numbers, c10::Device device) {
  const at::TensorOptions options = at::TensorOptions().dtype(theirs_of(numbers.dtype)).device(device);
  return at::from_blob(numbers.data, numbers.shape, options);
}

// The words of libtorch without its traces: of a fault within a network only the last line says what is wrong.
std::string words_of(const std::exception& error) {
  const auto* const own = dynamic_cast<const c10::Error*>(&error);
  std::string words = own ? own->what_without_backtrace() : error.what();
  constexpr std::string_view kLast = "RuntimeError: ";
  if (const size_t last = words.rfind(kLast); last != std::string::npos) words.erase(0, last + kLast.size());
  words.erase(words.find_last_not_of(" \n") + 1);
  return "libtorch: " + words;
}

// Calls what throws exceptions of libtorch.
template <class Call>
auto guarded(const Call& call) {
  try {
    return call();
  } catch (const EngineError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string words = words_of(error);
    // A call within the network leaves only the words.
    if (words.find("out of memory") != std::string::npos) throw EngineError(MR_FAULT_MODEL_MEMORY, words);
    throw std::runtime_error(words);
  }
}

// Throws std::runtime_error if the file is no TorchScript archive: a zip that holds code and its constants.
void check_kind(const std::string& path) {
  char first[2] = {};
  std::ifstream(path, std::ios::binary).read(first, sizeof first);
  bool is_network = false, is_checkpoint = first[0] == '\x80'; // a pickle, as they were written before 2020
  if (first[0] == 'P' && first[1] == 'K') {
    try {
      caffe2::serialize::PyTorchStreamReader archive(path);
      is_network = archive.hasRecord("constants.pkl");
      is_checkpoint = archive.hasRecord("data.pkl");
    } catch (const std::exception& error) {
      throw std::runtime_error("its archive is cut off or damaged, or none of PyTorch's; " + words_of(error));
    }
  }
  if (is_network) return;
  if (!is_checkpoint) throw std::runtime_error("it is no TorchScript file, which is a zip archive with code in it");
  throw std::runtime_error(
      "it is a Python checkpoint, which holds weights and no network; export the network in Python, by "
      "torch.jit.trace(network.eval(), example).save(\"network.pt\") or by torch.onnx.export");
}

// libtorch has one number of threads for the process: the first network that is opened decides.
void set_threads(const LoadOptions& options) {
  static std::mutex mutex;
  static int chosen = 0;
  const std::lock_guard lock(mutex);
  if (chosen == 0) {
    chosen = options.threads;
    at::set_num_threads(chosen);
    try {
      at::set_num_interop_threads(1);
    } catch (const c10::Error&) { // the application around the runtime has let libtorch start them before
    }
  }
  if (chosen != options.threads)
    options.warn("threads: " + std::to_string(options.threads) + " is not taken: libtorch has one number for the " +
                 "process, and its first network asked for threads: " + std::to_string(chosen));
}

class TorchNetwork final : public Network {
 public:
  TorchNetwork(const std::string& path, const LoadOptions& options) : path_(path), options_(options) {
    check_kind(path);
    if (options.threads > 1) caller_.emplace();
    within([&] {
      set_threads(options);
      load();
    });
    for (const c10::Argument& argument : module_.get_method("forward").function().getSchema().arguments()) {
      if (argument.name() == "self" || argument.default_value()) continue;
      if (!argument.type()->isSubtypeOf(*c10::TensorType::get()))
        throw EngineError(MR_FAULT_MODEL_VALUE, "'" + argument.name() + "' of the network is a " +
                                                    argument.type()->repr_str() + ", and inputs are tensors");
      inputs_.push_back({argument.name(), {}, {}, false});
    }
  }

  // Another network on a GPU, of which it takes what was learnt of the file.
  TorchNetwork(const TorchNetwork& other, const GpuMemory& gpu, std::span<const Numbers> inputs)
      : path_(other.path_),
        options_(other.options_),
        gpu_(make_gpu(gpu)),
        inputs_(other.inputs_),
        outputs_(other.outputs_),
        writes_inputs_(other.writes_inputs_) {
    within([&] {
      load();
      warm_up(inputs);
    });
  }

  const std::vector<PortInfo>& inputs() const override { return inputs_; }
  const std::vector<PortInfo>& outputs() const override { return outputs_; }

  std::vector<std::vector<int64_t>> output_shapes(std::span<const Numbers> inputs) override {
    std::vector<std::vector<int64_t>> shapes;
    within([&] { shapes = try_zeros(inputs); });
    return shapes;
  }

  void run(std::span<const Numbers> inputs, std::span<const uint32_t> indices,
           std::span<const Numbers> outputs) override {
    within([&] { run_here(inputs, indices, outputs); });
  }

  void interrupt() override { is_interrupted_ = true; }
  void resume() override { is_interrupted_ = false; }

  bool has_gpu() const override { return libtorch::has_gpu(); }
  uint64_t weights_bytes() const override { return weights_bytes_; }

  uint64_t gpu_bytes(std::span<const Numbers> inputs) override {
    return guarded([&] { return TorchNetwork(*this, GpuMemory{}, inputs).gpu_bytes_used(); });
  }

  std::unique_ptr<Network> to_gpu(const GpuMemory& gpu, std::span<const Numbers> inputs) override {
    return guarded([&] { return std::make_unique<TorchNetwork>(*this, gpu, inputs); });
  }

  uint64_t gpu_bytes_used() const override { return gpu_->bytes_used(); }

 private:
  struct Named {
    std::string name;
    at::Tensor tensor;
  };

  c10::Device device() const { return gpu_ ? gpu_->device() : c10::Device(c10::DeviceType::CPU); }

  // Calls the function where the network is.
  template <class Call>
  void within(const Call& call) {
    if (gpu_) return gpu_->within(call);
    caller_ ? caller_->within(call) : call();
  }

  void load() {
    guarded([&] { module_ = torch::jit::load(path_, device()); });
    if (!module_.find_method("forward")) throw std::runtime_error("the network has no method `forward`");
    guarded([&] {
      module_.eval();
      convert_weights();
      module_ = torch::jit::freeze(module_);
    });
  }

  // To the element type of the options, and counts them.
  void convert_weights() {
    const auto convert = [&](const at::Tensor& weights) {
      if (options_.dtype.bits > 0 && weights.is_floating_point())
        weights.set_data(weights.to(theirs_of(options_.dtype)));
      weights_bytes_ += weights.nbytes();
    };
    weights_bytes_ = 0;
    for (const at::Tensor& weights : module_.parameters()) convert(weights);
    for (const at::Tensor& weights : module_.buffers()) convert(weights);
  }

  // The first calls of a network compile parts of it, and each thread that computes has some memory of its own: what
  // this thread has of that is for the one that calls run().
  void warm_up(std::span<const Numbers> inputs) {
    constexpr int kCalls = 3;
    std::vector<at::Tensor> zeros;
    for (const Numbers& input : inputs)
      zeros.push_back(
          guarded([&] { return at::zeros(input.shape, at::TensorOptions(theirs_of(input.dtype)).device(device())); }));
    for (int call = 0; call < kCalls; ++call) compute(zeros);
    gpu_->end_thread();
  }

  std::vector<std::vector<int64_t>> try_zeros(std::span<const Numbers> inputs) {
    std::vector<at::Tensor> zeros;
    std::vector<int64_t> writes; // so far, into each of them
    for (const Numbers& input : inputs) {
      const at::ScalarType type = theirs_of(input.dtype);
      zeros.push_back(guarded([&] { return at::zeros(input.shape, type); }));
      writes.push_back(zeros.back()._version());
    }
    const std::vector<Named> made = compute(zeros);
    writes_inputs_ = false;
    for (size_t i = 0; i < zeros.size(); ++i) writes_inputs_ = writes_inputs_ || zeros[i]._version() > writes[i];
    outputs_.clear();
    std::vector<std::vector<int64_t>> shapes;
    for (const Named& output : made) {
      shapes.push_back(output.tensor.sizes().vec());
      outputs_.push_back({output.name, ours_of(output.tensor, output.name), shapes.back()});
    }
    if (inputs.size() == 1 && pairs(inputs[0], made))
      for (PortInfo& output : outputs_) output.shape[0] = kOpen;
    return shapes;
  }

  void run_here(std::span<const Numbers> inputs, std::span<const uint32_t> indices, std::span<const Numbers> outputs) {
    const auto here = [this](const Numbers& numbers) { return over(numbers, device()); };
    std::vector<at::Tensor> given;
    for (const Numbers& input : inputs) given.push_back(writes_inputs_ ? here(input).clone() : here(input));
    const std::vector<Named> made = compute(given);
    for (size_t i = 0; !writes_inputs_ && i < given.size(); ++i)
      if (given[i]._version() > 0)
        throw std::runtime_error("the network wrote into its input '" + inputs_[i].name +
                                 "', which it does not do with zeros, and others may read that; let it begin with " +
                                 inputs_[i].name + " = " + inputs_[i].name + ".clone()");
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= made.size())
        throw std::runtime_error("the network gave " + std::to_string(made.size()) + " tensors, and " +
                                 std::to_string(outputs_.size()) + " when the plan was made");
      const at::Tensor& tensor = made[indices[i]].tensor;
      const std::string& name = outputs_[indices[i]].name;
      if (tensor.sizes() != outputs[i].shape || ours_of(tensor, name) != outputs[i].dtype)
        throw std::runtime_error("'" + name + "' of the network is " + words_of(tensor) + ", and was " +
                                 words_of(here(outputs[i])) + " when the plan was made");
      guarded([&] { return here(outputs[i]).copy_(tensor, /*non_blocking=*/true); });
    }
  }

  static std::string words_of(const at::Tensor& tensor) {
    std::string words;
    for (const int64_t extent : tensor.sizes()) words += (words.empty() ? "" : ", ") + std::to_string(extent);
    return name_of(ours_of(tensor, "output")) + " [" + words + "]";
  }

  std::vector<Named> compute(const std::vector<at::Tensor>& inputs) {
    if (is_interrupted_) throw std::runtime_error("interrupted");
    // The number of threads is one for the process, but the libraries below libtorch keep it by the thread that calls.
    [[maybe_unused]] static thread_local const bool has_number = (at::init_num_threads(), true);
    return named(guarded([&] {
      const c10::InferenceMode inference;
      return module_.forward({inputs.begin(), inputs.end()});
    }));
  }

  // The tensors of what a network gives: of a tuple by the names of its fields if it has them, of a dictionary by its
  // keys.
  static std::vector<Named> named(const c10::IValue& value) {
    std::vector<Named> all;
    const auto add = [&](std::string name, const c10::IValue& one) {
      if (name.empty()) name = all.empty() ? "output" : "output" + std::to_string(all.size() + 1);
      if (!one.isTensor())
        throw EngineError(MR_FAULT_MODEL_VALUE,
                          "'" + name + "' of the network is a " + one.type()->repr_str() +
                              ", and outputs are tensors, tuples of tensors or dictionaries of tensors");
      all.push_back({std::move(name), one.toTensor()});
    };
    if (value.isTuple()) {
      const auto type = value.type()->cast<c10::TupleType>();
      const std::vector<c10::IValue>& elements = value.toTupleRef().elements().vec();
      for (size_t i = 0; i < elements.size(); ++i)
        add(type && type->schema() ? type->schema()->arguments()[i].name() : "", elements[i]);
    } else if (value.isGenericDict() && value.toGenericDict().keyType()->kind() == c10::TypeKind::StringType) {
      for (const auto& entry : value.toGenericDict()) add(entry.key().toStringRef(), entry.value());
    } else {
      add("", value);
    }
    return all;
  }

  // True if the network computes two items at once, zeros and ones, as it computes each alone. `made` is what it makes
  // of the zeros.
  bool pairs(const Numbers& item, const std::vector<Named>& made) {
    try {
      const at::Tensor zeros = at::zeros(item.shape, theirs_of(item.dtype)), ones = at::ones_like(zeros);
      const at::Tensor both = at::cat({zeros, ones}); // before a network that writes into its input
      const std::vector<Named> of_ones = compute({ones}), of_both = compute({both});
      for (size_t i = 0; i < made.size(); ++i) {
        const at::Tensor apart = at::cat({made[i].tensor, of_ones.at(i).tensor});
        const at::Tensor& together = of_both.at(i).tensor;
        // Sums may be made in another order.
        if (apart.sizes() != together.sizes() ||
            !at::allclose(apart.to(at::kDouble), together.to(at::kDouble), 1e-3, 1e-5, true))
          return false;
      }
      return true;
    } catch (const std::exception&) { // it takes one item at a time
      return false;
    }
  }

  const std::string path_;
  const LoadOptions options_;
  std::optional<CallingThread> caller_; // if several threads compute a call
  const std::unique_ptr<Gpu> gpu_;      // null: on the CPU. Before the module, whose weights are in its memory.
  torch::jit::Module module_;
  uint64_t weights_bytes_ = 0;
  std::vector<PortInfo> inputs_, outputs_;
  bool writes_inputs_ = false; // they are copied for it
  std::atomic<bool> is_interrupted_ = false;
};

std::unique_ptr<Network> load(const std::string& path, const LoadOptions& options) {
  return std::make_unique<TorchNetwork>(path, options);
}

} // namespace
} // namespace millrace::model::libtorch

extern "C" __attribute__((visibility("default"))) const millrace::model::Engine* millrace_model_engine() {
  static const millrace::model::Engine engine = {millrace::model::kEngineWord, "torch",
                                                 &millrace::model::libtorch::load};
  return &engine;
}
