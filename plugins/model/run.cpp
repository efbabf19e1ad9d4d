// model.run: computes a network.
#include <millrace/handler.h>
#include <millrace/nearest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plugins/model/engine.h"
#include "plugins/model/find_engine.h"
#include "plugins/model/kept_shapes.h"

namespace millrace::model {
namespace {

constexpr const char* kRunManual = &R"(
Computes a network: the tensors of its inputs in, those of its outputs out. The file's ending says
which engine opens it: .onnx is for ONNX Runtime, which `./dev models onnxruntime` fetches into
media/models; MILLRACE_ONNXRUNTIME names the library of another version (1.16 or newer). .pt is
TorchScript, for libtorch: millrace has that engine if it was built with the package libtorch-dev.

Inputs and outputs are the network's in the order of its file: `tensor` is its first, `tensor2` its
second. `outputs: "boxes, scores"` names those that are wanted instead, and `input_names: "mask,
picture"` says which input of the network `tensor` is, and which `tensor2`. TorchScript networks
give a tensor, a tuple or a dictionary of tensors; what has no name is `output`, `output2`, and so
on.

Types and shapes are compared before anything runs, and the error says both. Where the file leaves
shapes of outputs open, the network is computed once, on zeros, to learn them; they are kept in
network_shapes.txt beside the machine file. TorchScript files say nothing of types and shapes, so
zeros of what comes are tried for each plan.

Of several streams that share the handler, up to 64 tensors go through the network in one call, one
after another in its first dimension. A network whose file fixes that dimension, or that has
several inputs, is called tensor by tensor; so is a TorchScript network that computes two tensors at
once, zeros and ones, to other numbers than each alone. A tick on which one of several inputs is
empty gives nothing.

Input and output are memory of the plan, so nothing is copied, except the outputs of libtorch, which
makes them in its own memory. `threads` of the engine compute one call, the calling worker among
them. libtorch has one such number for the process: the first network's holds, and a second is a
warning. A run that ends early stops ONNX Runtime within a call, and waits for a call of libtorch.

On a GPU libtorch computes, if it has CUDA, tensor by tensor, and with a stream and a submitting
thread of its own. Weights and work space lie in memory that the plan counts: `memory`, else what
an earlier run has seen, which network_shapes.txt keeps, else the weights and 512 MiB. A network
that needs more is refused when the run begins, with the number that it needs. `dtype` turns a
TorchScript network's weights into another type, and the tensors that come are of that type then.

    test.pattern ! image.patches ! model.run name=n path=media/models/ch_PP-OCRv4_det_infer.onnx ; n.tensor ! null.sink
)"[1];

using Shape = std::vector<int64_t>;
constexpr uint64_t kMiB = 1 << 20;

std::string tensors(size_t count) { return count == 1 ? "1 tensor" : std::to_string(count) + " tensors"; }

std::string words_of(const Shape& shape) {
  std::string words = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    words += (d ? ", " : "") + (shape[d] == kOpen ? std::string("any") : std::to_string(shape[d]));
  return words + "]";
}

// Type and shape, as the file tells.
std::string kind_of(const PortInfo& port) {
  return port.is_told ? name_of(port.dtype) + " " + words_of(port.shape) : "any type and shape";
}

std::string words_of(const std::vector<PortInfo>& ports) {
  std::string words;
  for (const PortInfo& port : ports) words += (words.empty() ? "" : ", ") + port.name + " (" + kind_of(port) + ")";
  return words;
}

std::vector<Shape> shapes_of(const std::vector<Numbers>& given) {
  std::vector<Shape> shapes;
  for (const Numbers& numbers : given) shapes.push_back(numbers.shape);
  return shapes;
}

// Types and shapes: "float32 [1, 3], int64 [2]".
std::string words_of(const std::vector<Numbers>& given) {
  std::string words;
  for (const Numbers& numbers : given)
    words += (words.empty() ? "" : ", ") + name_of(numbers.dtype) + " " + words_of(numbers.shape);
  return words;
}

// The names in a list with commas, without the spaces around them.
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::string rest = list; !rest.empty();) {
    const size_t comma = rest.find(',');
    std::string name = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
    name.erase(name.find_last_not_of(' ') + 1);
    names.push_back(std::move(name));
  }
  return names;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// The networks beside a file that is not there.
std::vector<std::string> networks_beside(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& file : std::filesystem::directory_iterator(folder_of(path), unreadable))
    if (file.path().extension() == path.extension()) names.push_back(file.path().filename().string());
  return names;
}

[[noreturn]] void refuse_missing(const std::filesystem::path& path) {
  const std::string near = nearest_name(path.filename().string(), networks_beside(path));
  throw CodedError(
      MR_FAULT_MODEL_MISSING,
      "there is no file '" + path.string() + "'" +
          (near.empty() ? "" : "; did you mean " + near + "?\ntry: path=" + (path.parent_path() / near).string()));
}

// True if a tensor of this shape may be an input of that.
bool fits(const Shape& given, const Shape& wanted) {
  return given.size() == wanted.size() &&
         std::equal(given.begin(), given.end(), wanted.begin(),
                    [](int64_t have, int64_t want) { return want == kOpen || have == want; });
}

class Run final : public Handler {
 public:
  Run() {
    items(MR_ITEMS_MAX);
    host_heavy();
  }

  void probe(Facts& facts) override {
    open();
    if (!network_->has_gpu()) facts.no_gpu_body();
  }

  void configure(const Formats& formats) override {
    open();
    const std::vector<PortInfo>& wanted = network_->inputs();
    choose_inputs();
    std::vector<Numbers> given;
    for (uint32_t i = 0; i < wanted.size(); ++i) given.push_back(checked(formats, *fed_[i], wanted[i]));
    if (made_.empty() || given != item_inputs_) {
      made_ = shapes_for(given);
      item_inputs_ = given;
      key_of_gpu_bytes_.clear();
      needs_scratch(network_->has_gpu() ? gpu_bytes() : 0);
      takes_host_memory(network_->weights_bytes());
    }
    choose_outputs();
    batches_ = wanted.size() == 1 && has_open_rows(wanted[0]) &&
               std::all_of(chosen_.begin(), chosen_.end(),
                           [&](uint32_t index) { return has_open_rows(network_->outputs()[index]); });
    if (!batches_) log(MR_LOG_INFO, "it is called tensor by tensor: " + why_alone());
    item_outputs_.clear();
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (o >= chosen_.size()) { // nothing is connected there, and a plan knows the size of every output
        set_format(formats.out(*outputs_[o]), dtype_of<float>(), {1});
        continue;
      }
      item_outputs_.push_back(made_[chosen_[o]]);
      const PortInfo made{network_->outputs()[chosen_[o]].name, network_->outputs()[chosen_[o]].dtype,
                          made_[chosen_[o]]};
      if (made.shape.empty() || made.shape.size() > MR_RANK_MAX)
        throw CodedError(MR_FAULT_MODEL_SHAPE, *path_ + " gives " + name_of(made.dtype) + " " + words_of(made.shape) +
                                                   " at '" + made.name + "', and " + name_of_port(o) +
                                                   " has one to eight dimensions");
      set_format(formats.out(*outputs_[o]), made.dtype, made.shape);
    }
  }

  void start() override {
    open();
    network_->resume();
    if (const std::optional<GpuPlace> place = gpu()) move_to(*place);
  }
  void stop() override {
    if (on_gpu_) count("gpu_bytes_used", static_cast<int64_t>(on_gpu_->gpu_bytes_used()));
    on_gpu_.reset();
  }
  void interrupt() override {
    if (Network* const network = opened_) network->interrupt();
  }

  void process(Items& all, Cpu&) {
    std::vector<Numbers> in = item_inputs_, out;
    for (size_t o = 0; o < chosen_.size(); ++o) {
      const DType dtype = network_->outputs()[chosen_[o]].dtype;
      out.push_back({outputs_[o]->allocate_all(all, dtype, item_outputs_[o]).data(), dtype, item_outputs_[o]});
    }
    if (batches_) {
      in[0].data = const_cast<uint8_t*>(fed_[0]->all(all).data());
      for (std::vector<Numbers>* side : {&in, &out})
        for (Numbers& numbers : *side) numbers.shape[0] *= all.size();
      return compute(*network_, in, out);
    }
    for (Tick& item : all) {
      if (has_all_inputs(item)) {
        point_at_inputs(item, in);
        compute(*network_, in, out);
      } else {
        for (size_t o = 0; o < chosen_.size(); ++o) outputs_[o]->withdraw(item);
      }
      for (Numbers& numbers : out) numbers.data = static_cast<uint8_t*>(numbers.data) + numbers.bytes();
    }
  }

  void process(Tick& tick, Cuda&) {
    if (!has_all_inputs(tick)) return;
    std::vector<Numbers> in = item_inputs_, out;
    point_at_inputs(tick, in);
    for (size_t o = 0; o < chosen_.size(); ++o) {
      const DType dtype = network_->outputs()[chosen_[o]].dtype;
      out.push_back({outputs_[o]->allocate(tick, dtype, item_outputs_[o]).data(), dtype, item_outputs_[o]});
    }
    compute(*on_gpu_, in, out);
  }

 private:
  static bool has_open_rows(const PortInfo& port) {
    return !port.is_told || (!port.shape.empty() && port.shape[0] == kOpen);
  }

  // Why several tensors do not go through the network in one call.
  std::string why_alone() const {
    const std::vector<PortInfo>& inputs = network_->inputs();
    if (inputs.size() != 1) return *path_ + " has several inputs";
    if (!inputs[0].is_told) return *path_ + " computes two at once otherwise than each alone";
    return *path_ + " fixes the first dimension of what goes in or comes out";
  }

  // Calls the engine. What it throws becomes a CodedError with its words between these; `fault` is that of faults of no
  // known kind.
  template <class Call>
  static void in_engine(uint32_t fault, const std::string& begins, const std::string& ends, Call&& call) {
    try {
      call();
    } catch (const EngineError& why) {
      throw CodedError(why.fault(), begins + why.what() + ends);
    } catch (const std::bad_alloc&) {
      throw CodedError(MR_FAULT_MODEL_MEMORY, begins + "there is no memory left" + ends);
    } catch (const std::exception& why) {
      throw CodedError(fault, begins + why.what() + ends);
    }
  }

  bool has_all_inputs(const Tick& tick) const {
    const auto is_empty = [&](const Input<Tensor>* input) { return input->connected() && !input->present(tick); };
    return std::none_of(inputs_.begin(), inputs_.end(), is_empty);
  }
  void point_at_inputs(const Tick& tick, std::vector<Numbers>& in) const {
    for (size_t i = 0; i < in.size(); ++i) in[i].data = const_cast<uint8_t*>((*fed_[i])(tick).data());
  }

  void compute(Network& network, const std::vector<Numbers>& in, const std::vector<Numbers>& out) {
    try {
      network.run(in, chosen_, out);
    } catch (...) {
      in_engine(MR_FAULT_MODEL_CALL, "", " (" + *path_ + " on " + words_of(in) + ")", [] { throw; });
    }
  }

  void open() {
    if (network_) return;
    if (!std::filesystem::exists(*path_)) refuse_missing(*path_);
    if (std::filesystem::is_directory(*path_))
      throw CodedError(MR_FAULT_MODEL_MISSING, "'" + *path_ + "' is a folder and no network");
    const Engine& engine = find_engine(*engine_, *path_);
    const auto warn = [this](const std::string& sentence) { log(MR_LOG_WARNING, sentence); };
    in_engine(MR_FAULT_MODEL_FILE, "'" + *path_ + "': ", "", [&] {
      network_ = engine.load(*path_, {static_cast<int>(std::max<int64_t>(*threads_, 1)), weights(), warn});
    });
    opened_ = network_.get();
  }

  // The element type that `dtype` says; 0 bits: the file's.
  DType weights() const {
    if (*dtype_ == "f32") return dtype_of<float>();
    if (*dtype_ == "f16") return dtype_of<Float16>();
    return *dtype_ == "bf16" ? dtype_of<BFloat16>() : DType{0, 0, 0};
  }

  // The bytes of a GPU's memory to plan: as `memory` says, as an earlier run has seen, or by a guess.
  uint64_t gpu_bytes() {
    constexpr uint64_t kWorkSpaceGuess = 512 * kMiB;
    if (*memory_ > 0) return static_cast<uint64_t>(*memory_) * kMiB;
    const std::string file = path_of_shapes();
    const KeptShapes kept = file.empty() ? KeptShapes{} : find_shapes(file, key_of_gpu_bytes());
    if (!kept.outputs || kept.outputs->size() != 1 || kept.outputs->front().size() != 1)
      return network_->weights_bytes() + kWorkSpaceGuess;
    const auto seen = static_cast<uint64_t>(kept.outputs->front().front());
    return seen + seen / 8; // an engine chooses its ways anew each time
  }
  void keep_gpu_bytes(uint64_t bytes) {
    if (const std::string file = path_of_shapes(); !file.empty())
      keep_shapes(file, key_of_gpu_bytes(), {{static_cast<int64_t>(bytes)}});
  }
  // For it the network's file is read as a whole, so it is made once.
  const std::string& key_of_gpu_bytes() {
    if (key_of_gpu_bytes_.empty())
      key_of_gpu_bytes_ =
          key_of_shapes(*path_, shapes_of(item_inputs_)) + " weights as " + *dtype_ + ", bytes on a GPU";
    return key_of_gpu_bytes_;
  }

  void move_to(const GpuPlace& place) {
    in_engine(MR_FAULT_MODEL_CALL, *path_ + " on a GPU: ", "", [&] {
      try {
        on_gpu_ = network_->to_gpu({place.stream, place.scratch, place.scratch_bytes}, item_inputs_);
      } catch (const EngineError& why) {
        if (why.fault() != MR_FAULT_MODEL_MEMORY) throw;
        const uint64_t needed = network_->gpu_bytes(item_inputs_);
        keep_gpu_bytes(needed);
        const std::string mib = std::to_string(needed / kMiB + 1);
        throw EngineError(MR_FAULT_MODEL_MEMORY,
                          "it needs " + mib + " MiB, and the plan has " + std::to_string(place.scratch_bytes / kMiB) +
                              (*memory_ > 0 ? "" : "; another run plans what was found now") + "\ntry: memory=" + mib);
      }
    });
    keep_gpu_bytes(on_gpu_->gpu_bytes_used());
  }

  // True if the file tells what goes in, and leaves shapes of what comes out open.
  bool keeps_shapes() const {
    const auto is_told = [](const PortInfo& port) { return port.is_told; };
    const auto is_open = [](const PortInfo& port) {
      return std::find(port.shape.begin(), port.shape.end(), kOpen) != port.shape.end();
    };
    const std::vector<PortInfo>&inputs = network_->inputs(), &outputs = network_->outputs();
    return std::all_of(inputs.begin(), inputs.end(), is_told) && std::any_of(outputs.begin(), outputs.end(), is_open);
  }

  // The shapes of all outputs of the network for inputs of these types and shapes. If the file leaves some open, they
  // are those that an earlier plan kept, or the network computes on zeros.
  std::vector<Shape> shapes_for(const std::vector<Numbers>& given) {
    const std::string file = keeps_shapes() ? path_of_shapes() : "";
    const std::string key = file.empty() ? "" : key_of_shapes(*path_, shapes_of(given));
    if (!file.empty()) {
      const std::vector<PortInfo>& outputs = network_->outputs();
      const KeptShapes kept = find_shapes(file, key);
      if (kept.is_damaged)
        log(MR_LOG_WARNING, file + " is damaged; the shapes in it are found anew as they are needed");
      const auto fit = [](const Shape& shape, const PortInfo& port) { return fits(shape, port.shape); };
      if (kept.outputs && std::equal(kept.outputs->begin(), kept.outputs->end(), outputs.begin(), outputs.end(), fit))
        return *kept.outputs;
    }
    network_->resume(); // an earlier interrupt was meant for another call
    std::vector<Shape> found;
    in_engine(MR_FAULT_MODEL_SHAPE, *path_ + " cannot compute zeros of " + words_of(given) + ": ", "",
              [&] { found = network_->output_shapes(given); });
    if (!file.empty()) keep_shapes(file, key, found); // if it cannot be written, every plan computes
    return found;
  }

  // Type and shape of what an input brings. Throws CodedError if the network does not take it.
  Numbers checked(const Formats& formats, const Input<Tensor>& input, const PortInfo& wanted) const {
    const Format& format = formats.in(input);
    const std::string takes = *path_ + " takes " + kind_of(wanted) + " at '" + wanted.name + "', and ";
    const std::string comes = " comes by " + name_of_port(input);
    for (uint32_t d = 0; d < format.rank; ++d)
      if (format.shape_kind[d] != MR_DIM_FIXED)
        throw CodedError(MR_FAULT_MODEL_SHAPE, takes + "a shape that is not known before it runs" + comes);
    const Shape given(format.shape, format.shape + format.rank);
    const DType dtype{static_cast<uint8_t>(format.dtype_code), static_cast<uint8_t>(format.dtype_bits), 1};
    const std::string both = takes + name_of(dtype) + " " + words_of(given) + comes;
    if (wanted.is_told && dtype != wanted.dtype) throw CodedError(MR_FAULT_MODEL_TYPE, both);
    if (wanted.is_told && !fits(given, wanted.shape)) throw CodedError(MR_FAULT_MODEL_SHAPE, both);
    return {nullptr, dtype, given};
  }

  std::string name_of_port(const Input<Tensor>& input) const {
    return name_of_port(static_cast<size_t>(std::find(inputs_.begin(), inputs_.end(), &input) - inputs_.begin()));
  }
  static std::string name_of_port(size_t place) { return place == 0 ? "tensor" : "tensor" + std::to_string(place + 1); }

  // The places of the names that a parameter lists among the network's inputs or outputs, which `kind` says.
  std::vector<uint32_t> find(const std::string& param, const std::string& list, const std::vector<PortInfo>& there,
                             const std::string& kind) const {
    std::vector<std::string> known, wanted = names_in(list);
    for (const PortInfo& port : there) known.push_back(port.name);
    std::vector<uint32_t> found;
    for (std::string& name : wanted) {
      const auto at = std::find(known.begin(), known.end(), name);
      found.push_back(static_cast<uint32_t>(at - known.begin()));
      if (at != known.end()) continue;
      const std::string said = param + ": " + *path_ + " has no " + kind + " '" + name + "'; it has " + words_of(there);
      const std::string near = nearest_name(name, known);
      if (near.empty()) throw CodedError(MR_FAULT_MODEL_PORTS, said);
      name = near;
      std::string edit;
      for (const std::string& one : wanted) edit += (edit.empty() ? "" : ",") + one;
      throw CodedError(MR_FAULT_MODEL_PORTS, said + "\ntry: " + param + "=" + edit);
    }
    return found;
  }

  // Finds the handler's input for each of the network's.
  void choose_inputs() {
    const std::vector<PortInfo>& wanted = network_->inputs();
    std::vector<const Input<Tensor>*> connected;
    for (const Input<Tensor>* input : inputs_)
      if (input->connected()) connected.push_back(input);
    if (connected.size() != wanted.size())
      throw CodedError(MR_FAULT_MODEL_PORTS, *path_ + " takes " + tensors(wanted.size()) + ", " + words_of(wanted) +
                                                 ", and " + std::to_string(connected.size()) +
                                                 (connected.size() == 1 ? " is" : " are") + " connected");
    fed_ = connected;
    if (input_names_->empty()) return;
    const std::vector<uint32_t> order = find("input_names", *input_names_, wanted, "input");
    if (order.size() != wanted.size() || std::set(order.begin(), order.end()).size() != order.size())
      throw CodedError(MR_FAULT_MODEL_PORTS,
                       "input_names: each input of " + *path_ + " is named once; it has " + words_of(wanted));
    for (size_t i = 0; i < order.size(); ++i) fed_[order[i]] = connected[i];
  }

  // The network's outputs that the handler's give, in order.
  void choose_outputs() {
    const std::vector<PortInfo>& there = network_->outputs();
    chosen_ = find("outputs", *output_names_, there, "output");
    if (output_names_->empty())
      for (uint32_t i = 0; i < std::min(there.size(), outputs_.size()); ++i) chosen_.push_back(i);
    if (chosen_.size() > outputs_.size())
      throw CodedError(MR_FAULT_MODEL_PORTS,
                       "outputs: model.run gives at most " + std::to_string(outputs_.size()) + " outputs of a network");
    for (size_t o = chosen_.size(); o < outputs_.size(); ++o)
      if (outputs_[o]->connected())
        throw CodedError(MR_FAULT_MODEL_PORTS, *path_ + " gives " + tensors(chosen_.size()) + ", " + words_of(there) +
                                                   ", and " + name_of_port(o) + " is connected too");
  }

  static void set_format(Format& format, DType dtype, const Shape& shape) {
    format.dtype_code = dtype.code;
    format.dtype_bits = dtype.bits;
    format.dtype_lanes = dtype.lanes;
    format.rank = static_cast<uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), format.shape);
    std::fill_n(format.shape_kind, format.rank, uint32_t{MR_DIM_FIXED});
  }

  Input<Tensor> in_{*this, "tensor", dense, help("the network's first input")};
  Input<Tensor> in2_{*this, "tensor2", optional, help("its second")};
  Input<Tensor> in3_{*this, "tensor3", optional, help("its third")};
  Output<Tensor> out_{*this, "tensor", dense, help("the network's first output, or the first of `outputs`")};
  Output<Tensor> out2_{*this, "tensor2", dense, help("the second")};
  Output<Tensor> out3_{*this, "tensor3", dense, help("the third")};
  Output<Tensor> out4_{*this, "tensor4", dense, help("the fourth")};
  Param<std::string> path_{*this, "path", "", "the file of the network", required, reads_path};
  Param<std::string> engine_{*this, "engine", "auto", "opens the file; auto: as its ending says",
                             choices({"auto", "onnx", "torch"})};
  Param<int64_t> threads_{*this,          "threads",     0, "compute one call; 0: a share of the run's",
                          range(0, 1024), counts_threads};
  Param<int64_t> memory_{
      *this,      "memory", 0, "of a GPU, for weights and work space; 0: as an earlier run has seen", range(0, 1 << 20),
      unit("MiB")};
  Param<std::string> dtype_{*this, "dtype", "file", "element type of a TorchScript network's weights",
                            choices({"file", "f32", "f16", "bf16"})};
  Param<std::string> input_names_{*this, "input_names", "",
                                  "names of the network's inputs, with commas; empty: all, in order"};
  Param<std::string> output_names_{*this, "outputs", "",
                                   "names of the wanted outputs, with commas; empty: all, in order"};

  const std::array<const Input<Tensor>*, 3> inputs_ = {&in_, &in2_, &in3_};
  const std::array<const Output<Tensor>*, 4> outputs_ = {&out_, &out2_, &out3_, &out4_};
  std::unique_ptr<Network> network_;
  std::unique_ptr<Network> on_gpu_;        // the same, from start() to stop() if the GPU body runs
  std::atomic<Network*> opened_ = nullptr; // for interrupt(), which comes from any thread
  std::vector<const Input<Tensor>*> fed_;  // by input of the network
  std::vector<uint32_t> chosen_;           // outputs of the network
  std::string key_of_gpu_bytes_;           // "": not made yet
  std::vector<Numbers> item_inputs_;       // types and shapes of one tick
  std::vector<Shape> item_outputs_;        // shapes of one tick
  std::vector<Shape> made_;                // shapes of all outputs of the network for those inputs
  bool batches_ = false;
};

MILLRACE_HANDLER(Run, "model.run", "Computes a network on tensors", kRunManual)

} // namespace
} // namespace millrace::model
