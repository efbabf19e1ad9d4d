// The seam between model.run and the libraries that compute networks. Each engine is a shared library of its own beside
// the plugin, which is opened when a file first needs it; see find_engine.h.
#pragma once

#include <millrace/payload.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::model {

// Thrown by an engine for a fault of a known kind; any other fault is a std::runtime_error. It crosses from the
// engine's library to the plugin, so its type is visible in both.
class MR_EXPORT EngineError : public std::runtime_error {
 public:
  // `fault`: one of MR_FAULT_MODEL_*.
  EngineError(uint32_t fault, const std::string& words) : std::runtime_error(words), fault_(fault) {}
  uint32_t fault() const { return fault_; }

 private:
  uint32_t fault_;
};

// An input or an output of a network, as its file tells. kOpen: an extent that the file leaves open.
constexpr int64_t kOpen = -1;
struct PortInfo {
  std::string name;
  DType dtype{};
  std::vector<int64_t> shape;
  bool is_told = true; // false: the file tells neither type nor shape, and what comes is tried
};

// Numbers in row-major order, in memory of whoever calls. Null: their type and shape alone.
struct Numbers {
  void* data = nullptr;
  DType dtype{};
  std::vector<int64_t> shape;
  uint64_t bytes() const {
    uint64_t bytes = dtype.bits / 8;
    for (const int64_t extent : shape) bytes *= static_cast<uint64_t>(extent);
    return bytes;
  }
  friend bool operator==(const Numbers&, const Numbers&) = default;
};

// A stream of a GPU and memory there, for one network.
struct GpuMemory {
  void* stream = nullptr; // a cudaStream_t
  void* memory = nullptr; // on the same GPU, for this network alone
  uint64_t bytes = 0;
};

// A network that is ready to compute. One thread calls it at a time; interrupt() comes from any thread.
class Network {
 public:
  virtual ~Network() = default;
  virtual const std::vector<PortInfo>& inputs() const = 0;
  // Empty before output_shapes() if the file tells nothing of them. An open first extent says that the network takes
  // the items of several streams at once, one after another in that dimension.
  virtual const std::vector<PortInfo>& outputs() const = 0;
  // The shapes of the outputs for inputs of these types and shapes. Where the file does not tell them, it computes on
  // zeros.
  virtual std::vector<std::vector<int64_t>> output_shapes(std::span<const Numbers> inputs) = 0;
  // Computes the outputs with these indices. Throws EngineError or std::runtime_error with the engine's words, among
  // others if an output turns out to have another shape.
  virtual void run(std::span<const Numbers> inputs, std::span<const uint32_t> indices,
                   std::span<const Numbers> outputs) = 0;
  // Ends every later run() until resume(), and one that is under way where the engine can.
  virtual void interrupt() = 0;
  virtual void resume() = 0;

  // True if the engine can compute this network on a GPU of this machine.
  virtual bool has_gpu() const { return false; }
  // The bytes of the weights; 0: not known.
  virtual uint64_t weights_bytes() const { return 0; }
  // The bytes of a GPU's memory that weights and work space take for inputs of these types and shapes. To learn them,
  // the network computes on zeros there, in memory that nobody has planned. Only if has_gpu().
  virtual uint64_t gpu_bytes(std::span<const Numbers> inputs) { return (void)inputs, 0; }
  // The same network on a GPU, ready for inputs of these types and shapes. Its run() takes numbers in that GPU's
  // memory, enqueues the work on the stream and returns. Only if has_gpu(), and after output_shapes().
  virtual std::unique_ptr<Network> to_gpu(const GpuMemory& gpu, std::span<const Numbers> inputs) {
    return (void)gpu, (void)inputs, nullptr;
  }
  // The bytes of GpuMemory that were taken so far.
  virtual uint64_t gpu_bytes_used() const { return 0; }
};

struct LoadOptions {
  int threads = 1;                              // that compute one call, the caller among them
  DType dtype{};                                // the weights' element type; 0 bits: the file's
  std::function<void(const std::string&)> warn; // receives sentences for the log during the load
};

// The table of an engine's library, at its one symbol `millrace_model_engine`.
struct Engine {
  uint32_t word; // kEngineWord: the library was built with this very header
  const char* name;
  // Throws EngineError or std::runtime_error if the file cannot be opened, in the engine's words.
  std::unique_ptr<Network> (*load)(const std::string& path, const LoadOptions& options);
};
constexpr uint32_t kEngineWord = 3;

} // namespace millrace::model
