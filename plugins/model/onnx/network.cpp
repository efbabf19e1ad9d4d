// Computes .onnx files by ONNX Runtime on the CPU, in memory of the caller.
#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "plugins/model/engine.h"
#include "plugins/model/onnx/library.h"

namespace millrace::model::onnx {
namespace {

// ONNX's numbers for element types (TensorProto.DataType).
struct TypeNumber {
  int number;
  DType dtype;
};
constexpr TypeNumber kTypes[] = {{1, {MR_DTYPE_FLOAT, 32}}, {2, {MR_DTYPE_UINT, 8}},    {3, {MR_DTYPE_INT, 8}},
                                 {4, {MR_DTYPE_UINT, 16}},  {5, {MR_DTYPE_INT, 16}},    {6, {MR_DTYPE_INT, 32}},
                                 {7, {MR_DTYPE_INT, 64}},   {10, {MR_DTYPE_FLOAT, 16}}, {11, {MR_DTYPE_FLOAT, 64}},
                                 {12, {MR_DTYPE_UINT, 32}}, {13, {MR_DTYPE_UINT, 64}},  {16, {MR_DTYPE_BFLOAT, 16}}};

DType dtype_of_number(int number, const std::string& port) {
  for (const TypeNumber& type : kTypes)
    if (type.number == number) return type.dtype;
  throw EngineError(MR_FAULT_MODEL_VALUE,
                    "'" + port + "' of the network holds neither whole nor floating-point numbers (ONNX type " +
                        std::to_string(number) + "); millrace carries numbers alone");
}

int number_of(DType dtype) {
  for (const TypeNumber& type : kTypes)
    if (type.dtype == dtype) return type.number;
  throw std::logic_error("no network takes " + name_of(dtype));
}

using OwnedValue = Owned<Value, ReleaseValue>;

std::vector<int64_t> shape_of(const Library& library, const ShapeInfo* info) {
  size_t rank = 0;
  library.call<GetDimensionsCount>(info, &rank);
  std::vector<int64_t> shape(rank);
  library.call<GetDimensions>(info, shape.data(), rank);
  for (int64_t& extent : shape) extent = std::max<int64_t>(extent, kOpen);
  return shape;
}

class OnnxNetwork final : public Network {
 public:
  OnnxNetwork(const std::string& path, const LoadOptions& load) : library_(Library::instance()) {
    if (load.dtype.bits > 0)
      throw EngineError(MR_FAULT_MODEL_TYPE, "dtype converts the weights of TorchScript networks alone; ONNX Runtime " +
                                                 std::string("computes with those of the file"));
    Owned<SessionOptions, ReleaseSessionOptions> options;
    library_.call<CreateSessionOptions>(options.place());
    library_.call<SetIntraOpNumThreads>(options.get(), load.threads);
    library_.call<SetInterOpNumThreads>(options.get(), 1);
    // Threads that wait for work sleep: the run's own workers need the processors.
    library_.call<AddSessionConfigEntry>(options.get(), "session.intra_op.allow_spinning", "0");
    library_.call<CreateSession>(library_.env(), path.c_str(), static_cast<const SessionOptions*>(options.get()),
                                 session_.place());
    library_.call<CreateRunOptions>(run_options_.place());
    library_.call<CreateCpuMemoryInfo>(kArenaAllocator, kDefaultMemory, memory_.place());
    library_.call<GetAllocatorWithDefaultOptions>(&allocator_);
    inputs_ = ports<SessionGetInputCount, SessionGetInputTypeInfo, SessionGetInputName>();
    outputs_ = ports<SessionGetOutputCount, SessionGetOutputTypeInfo, SessionGetOutputName>();
    for (const PortInfo& input : inputs_) input_names_.push_back(input.name.c_str());
    file_bytes_ = std::filesystem::file_size(path);
  }

  // Nearly all of the file, if it has its weights within.
  uint64_t weights_bytes() const override { return file_bytes_; }
  const std::vector<PortInfo>& inputs() const override { return inputs_; }
  const std::vector<PortInfo>& outputs() const override { return outputs_; }

  std::vector<std::vector<int64_t>> output_shapes(std::span<const Numbers> inputs) override {
    std::vector<std::vector<int64_t>> found;
    for (const PortInfo& output : outputs_) found.push_back(output.shape);
    const auto is_told = [](const std::vector<int64_t>& shape) {
      return std::find(shape.begin(), shape.end(), kOpen) == shape.end();
    };
    if (std::all_of(found.begin(), found.end(), is_told)) return found;
    found.clear();
    std::vector<std::vector<uint64_t>> zeros; // words, so that any type is aligned
    std::vector<Numbers> given;
    for (const Numbers& input : inputs) {
      zeros.emplace_back(input.bytes() / 8 + 1);
      given.push_back({zeros.back().data(), input.dtype, input.shape});
    }
    std::vector<uint32_t> all(outputs_.size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    std::vector<OwnedValue> made(outputs_.size());
    compute(given, all, made);
    for (const OwnedValue& value : made) {
      Owned<ShapeInfo, ReleaseShapeInfo> info;
      library_.call<GetTensorTypeAndShape>(static_cast<const Value*>(value.get()), info.place());
      found.push_back(shape_of(library_, info.get()));
    }
    return found;
  }

  void run(std::span<const Numbers> inputs, std::span<const uint32_t> indices,
           std::span<const Numbers> outputs) override {
    std::vector<OwnedValue> values;
    for (const Numbers& output : outputs) values.push_back(value_over(output));
    compute(inputs, indices, values);
  }

  void interrupt() override { library_.call<RunOptionsSetTerminate>(run_options_.get()); }
  void resume() override { library_.call<RunOptionsUnsetTerminate>(run_options_.get()); }

 private:
  template <class Count, class Type, class Name>
  std::vector<PortInfo> ports() const {
    size_t count = 0;
    library_.call<Count>(static_cast<const Session*>(session_.get()), &count);
    std::vector<PortInfo> ports(count);
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      library_.call<Name>(static_cast<const Session*>(session_.get()), i, allocator_, &name);
      ports[i].name = name;
      library_.call<AllocatorFree>(allocator_, static_cast<void*>(name));
      Owned<TypeInfo, ReleaseTypeInfo> type;
      library_.call<Type>(static_cast<const Session*>(session_.get()), i, type.place());
      const ShapeInfo* info = nullptr;
      library_.call<CastTypeInfoToTensorInfo>(static_cast<const TypeInfo*>(type.get()), &info);
      if (!info) throw EngineError(MR_FAULT_MODEL_VALUE, "'" + ports[i].name + "' of the network is no tensor");
      int number = 0;
      library_.call<GetTensorElementType>(info, &number);
      ports[i].dtype = dtype_of_number(number, ports[i].name);
      ports[i].shape = shape_of(library_, info);
    }
    return ports;
  }

  OwnedValue value_over(const Numbers& numbers) const {
    OwnedValue value;
    library_.call<CreateTensorWithData>(static_cast<const MemoryInfo*>(memory_.get()), numbers.data,
                                        static_cast<size_t>(numbers.bytes()), numbers.shape.data(),
                                        numbers.shape.size(), number_of(numbers.dtype), value.place());
    return value;
  }

  // Values that are null are made by the library.
  void compute(std::span<const Numbers> inputs, std::span<const uint32_t> indices,
               std::span<OwnedValue> outputs) const {
    std::vector<OwnedValue> given;
    for (const Numbers& input : inputs) given.push_back(value_over(input));
    std::vector<const Value*> read;
    for (const OwnedValue& value : given) read.push_back(value.get());
    std::vector<const char*> names;
    std::vector<Value*> written;
    for (size_t i = 0; i < indices.size(); ++i) {
      names.push_back(outputs_.at(indices[i]).name.c_str());
      written.push_back(outputs[i].get());
    }
    library_.call<Run>(session_.get(), static_cast<const RunOptions*>(run_options_.get()), input_names_.data(),
                       read.data(), read.size(), names.data(), names.size(), written.data());
    for (size_t i = 0; i < indices.size(); ++i) *outputs[i].place() = written[i];
  }

  const Library& library_;
  uint64_t file_bytes_ = 0;
  Owned<Session, ReleaseSession> session_;
  Owned<RunOptions, ReleaseRunOptions> run_options_;
  Owned<MemoryInfo, ReleaseMemoryInfo> memory_;
  Allocator* allocator_ = nullptr; // the library's own
  std::vector<PortInfo> inputs_, outputs_;
  std::vector<const char*> input_names_;
};

std::unique_ptr<Network> load(const std::string& path, const LoadOptions& options) {
  return std::make_unique<OnnxNetwork>(path, options);
}

} // namespace
} // namespace millrace::model::onnx

extern "C" __attribute__((visibility("default"))) const millrace::model::Engine* millrace_model_engine() {
  static const millrace::model::Engine engine = {millrace::model::kEngineWord, "onnx", &millrace::model::onnx::load};
  return &engine;
}
