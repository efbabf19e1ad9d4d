// `millrace bench model`: the cost of a network in a pipeline beside the engine alone.
//
// Two networks of 3×3 convolutions on a patch of 64×64, which the benchmark writes itself, computed by ONNX Runtime on
// one thread: `small` (two layers of 4 channels) and `1 ms` (four layers of 16; about so long on a processor of 2023).
// `bare loop` calls the engine again and again on the same memory. `model.run` is the handler's call in test.pattern →
// image.letterbox → model.run → null.sink on one worker; of 8 items, eight such cameras share it. The cases take turns.
// `to bare` is the ratio to the bare loop of the same turn, `of 8 to 8 of 1` that of a firing of 8 to eight firings of
// one.
#include <dlfcn.h>
#include <millrace/payload.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/measure.h"
#include "bench/onnx_network.h"
#include "embed/compose.h"
#include "graph/unfold.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/report.h"

#pragma GCC visibility push(hidden) // as the payloads that it names are
#include "plugins/model/engine.h"
#pragma GCC visibility pop

namespace millrace::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSide = 64, kItems = 8;
constexpr int kTurns = 7;

// A symbol of the plugin's library or of one beside it. Throws std::runtime_error if it is not there.
template <class Function>
Function* symbol_of(const fs::path& library, const char* name) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL); // stays open: plugins are not unloaded
  void* const symbol = opened ? ::dlsym(opened, name) : nullptr;
  if (!symbol) throw std::runtime_error(::dlerror());
  return reinterpret_cast<Function*>(symbol);
}

fs::path plugin_folder() {
  for (const std::string& folder : embed::standard_plugin_folders())
    if (fs::exists(fs::path(folder) / "model.so")) return folder;
  throw std::runtime_error("there is no model.so among the plugins");
}

// The file of a network, as long as this lives.
class NetworkFile {
 public:
  NetworkFile(const std::string& name, uint32_t channels, uint32_t layers)
      : path_(fs::temp_directory_path() / ("millrace-bench-" + name + std::to_string(::getpid()) + ".onnx")) {
    std::ofstream file(path_, std::ios::binary);
    if (!(file << convolutions_as_onnx(kSide, channels, layers)).flush())
      throw Failure(code::unwritable_file, "cannot write " + path_.string());
  }
  NetworkFile(const NetworkFile&) = delete;
  NetworkFile& operator=(const NetworkFile&) = delete;
  ~NetworkFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Times of the calls of a bare loop over patches that all are zero.
double bare_us(model::Network& network, uint32_t items, uint32_t calls) {
  std::vector<float> patch(size_t{items} * 3 * kSide * kSide), scores(size_t{items} * kSide * kSide);
  const DType number = dtype_of<float>();
  const model::Numbers in{patch.data(), number, {items, 3, kSide, kSide}};
  const model::Numbers out{scores.data(), number, {items, 1, kSide, kSide}};
  const uint32_t first = 0;
  std::vector<double> us;
  for (uint32_t call = 0; call < calls; ++call) {
    const int64_t begin_ns = monotonic_ns();
    network.run({&in, 1}, {&first, 1}, {&out, 1});
    us.push_back(static_cast<double>(monotonic_ns() - begin_ns) / 1e3);
  }
  return quantile(us, 0.5);
}

// The handler's calls in a pipeline, each of so many items.
double handler_us(const mr_plugin& plugin, const std::string& path, uint32_t items, uint32_t calls) {
  graph::Graph graph;
  graph::StreamSet cameras;
  cameras.name = "cameras";
  for (uint32_t s = 0; s < items; ++s) cameras.items.push_back({"c" + std::to_string(s), {}, false, {}});
  graph.streams.push_back(cameras);
  add(graph, "video", "test.pattern", "");
  add(graph, "fit", "image.letterbox", "video");
  add(graph, "net", "model.run", "fit");
  add(graph, "end", "null.sink", "net");
  for (graph::Handler& handler : graph.handlers) {
    if (handler.name != "net") handler.for_each = cameras.name;
    if (handler.name == "video" || handler.name == "fit")
      for (const char* const extent : {"width", "height"})
        handler.params.push_back({extent, std::to_string(kSide), {}, {}});
    if (handler.name == "net") handler.params.push_back({"path", path, {}, {}});
  }
  for (graph::Edge& edge : graph.edges)
    if (edge.source != "video") edge.source_port = "tensor";
  graph::Batch batch;
  batch.max = items;
  graph.handlers[2].batch = batch;
  const Report report = run_graph(graph::unfold(graph), 1, calls, &plugin);
  for (const HandlerReport& handler : report.handlers)
    if (handler.name == "net") return handler.p50_us;
  throw std::logic_error("the report has no model.run");
}

} // namespace

std::vector<Row> bench_model() {
  std::vector<Row> rows;
  try {
    const fs::path folder = plugin_folder();
    const mr_plugin& plugin = *symbol_of<const mr_plugin*()>(folder / "model.so", "millrace_plugin")();
    const model::Engine& engine =
        *symbol_of<const model::Engine*()>(folder / "model" / "model_onnx.so", "millrace_model_engine")();
    if (engine.word != model::kEngineWord) throw std::runtime_error("model_onnx.so is of another build");
    struct Case {
      const char* name;
      uint32_t channels, layers, calls;
    };
    for (const Case& one : {Case{"small", 4, 2, 2000}, Case{"1 ms", 16, 4, 300}}) {
      const NetworkFile file(std::to_string(one.channels), one.channels, one.layers);
      const std::unique_ptr<model::Network> network = engine.load(file.path(), {1});
      std::vector<double> bare[2], handler[2], to_bare[2], of_items;
      for (int turn = 0; turn < kTurns; ++turn) {
        for (const size_t many : {size_t{0}, size_t{1}}) {
          const uint32_t items = many ? kItems : 1, calls = one.calls / items;
          bare[many].push_back(bare_us(*network, items, calls));
          handler[many].push_back(handler_us(plugin, file.path(), items, calls));
          to_bare[many].push_back(handler[many].back() / bare[many].back());
        }
        of_items.push_back(handler[1].back() / (kItems * handler[0].back()));
      }
      for (const size_t many : {size_t{0}, size_t{1}}) {
        const std::string name = one.name + std::string(many ? ", firing of 8" : ", firing of 1");
        rows.push_back(row_of("model", name, "bare loop", "us", bare[many]));
        rows.push_back(row_of("model", name, "model.run", "us", handler[many]));
        rows.push_back(row_of("model", name, "to bare", "", to_bare[many]));
      }
      rows.push_back(row_of("model", one.name, "of 8 to 8 of 1", "", of_items));
    }
  } catch (const std::runtime_error& why) {
    std::fprintf(stderr, "left out: model: %s\n", why.what());
  }
  return rows;
}

} // namespace millrace::bench
