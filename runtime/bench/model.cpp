// `millrace bench model`: the cost of a network in a pipeline beside the engine alone.
//
// Two networks that the benchmark writes itself: `disc` is as large as that of examples/model/disc.txt, one convolution
// on 64×48; `deep` has four layers of 3×3 convolutions with 16 channels on 64×64, which is between half a millisecond
// and two on a processor of today. Each is computed on one thread by ONNX Runtime and, where make_network is there, by
// libtorch.
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
#include "bench/small_networks.h"
#include "cli/beside.h"
#include "cli/subprocess.h"
#include "embed/plugin_folders.h"
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

constexpr uint32_t kItems = 8;
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

// A file as long as this lives.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes)
      : path_(fs::temp_directory_path() / ("millrace-bench-" + std::to_string(::getpid()) + name)) {
    std::ofstream file(path_, std::ios::binary);
    if (!(file << bytes).flush()) throw Failure(code::unwritable_file, "cannot write " + path_.string());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// A network's file for one of the engines. Throws std::runtime_error if it cannot be made here.
std::unique_ptr<TemporaryFile> file_for(const std::string& engine, const SmallNetwork& network) {
  if (engine == "onnx") return std::make_unique<TemporaryFile>(".onnx", as_onnx(network));
  auto made = std::make_unique<TemporaryFile>(".pt", "");
  const TemporaryFile text(".txt", as_torch_script(network));
  const fs::path program = cli::this_program().parent_path() / "make_network";
  if (!fs::exists(program)) throw std::runtime_error("make_network is not built: there is no libtorch");
  constexpr int kSecondsMax = 60;
  const cli::Subprocess ended = cli::run_in_subprocess(
      [&] {
        ::execl(program.c_str(), program.c_str(), text.path().c_str(), made->path().c_str(), nullptr);
        return std::string();
      },
      kSecondsMax, false);
  if (ended.signal != 0 || ended.status != 0) throw std::runtime_error("make_network failed");
  return made;
}

// The median time of the calls of a bare loop over patches that all are zero.
double bare_us(model::Network& network, const SmallNetwork& what, uint32_t items, uint32_t calls) {
  const size_t area = size_t{what.width} * what.height;
  std::vector<float> patch(items * 3 * area), scores(items * area);
  const DType number = dtype_of<float>();
  const model::Numbers in{patch.data(), number, {items, 3, what.height, what.width}};
  const model::Numbers out{scores.data(), number, {items, 1, what.height, what.width}};
  network.output_shapes({&in, 1});
  const uint32_t first = 0;
  std::vector<double> us;
  for (uint32_t call = 0; call < calls; ++call) {
    const int64_t begin_ns = monotonic_ns();
    network.run({&in, 1}, {&first, 1}, {&out, 1});
    us.push_back(static_cast<double>(monotonic_ns() - begin_ns) / 1e3);
  }
  return quantile(us, 0.5);
}

// The median time of the handler's calls in a pipeline, each of so many items.
double handler_us(const mr_plugin& plugin, const std::string& path, const SmallNetwork& what, uint32_t items,
                  uint32_t calls) {
  graph::Graph graph;
  graph::StreamSet cameras;
  cameras.name = "cameras";
  for (uint32_t s = 0; s < items; ++s) cameras.items.push_back({"c" + std::to_string(s), {}, false, {}});
  graph.streams.push_back(cameras);
  const auto set_size = [&] {
    set(graph, "width", std::to_string(what.width));
    set(graph, "height", std::to_string(what.height));
  };
  add(graph, "video", "test.pattern", "");
  set_size();
  add(graph, "fit", "image.letterbox", "video");
  set_size();
  add(graph, "net", "model.run", "fit");
  set(graph, "path", path);
  graph::Batch batch;
  batch.max = items;
  graph.handlers.back().batch = batch;
  add(graph, "end", "null.sink", "net");
  for (graph::Handler& handler : graph.handlers)
    if (handler.name != "net") handler.for_each = cameras.name;
  for (graph::Edge& edge : graph.edges)
    if (edge.source != "video") edge.source_port = "tensor";
  const Report report = run_graph(graph::unfold(graph), 1, calls, &plugin);
  for (const HandlerReport& handler : report.handlers)
    if (handler.name == "net") return handler.p50_us;
  throw std::logic_error("the report has no model.run");
}

// Rows for one network on one engine.
void measure(const std::string& engine_name, const SmallNetwork& what, std::vector<Row>& rows) {
  const fs::path folder = plugin_folder();
  const mr_plugin& plugin = *symbol_of<const mr_plugin*()>(folder / "model.so", "millrace_plugin")();
  const model::Engine& engine = *symbol_of<const model::Engine*()>(folder / "model" / ("model_" + engine_name + ".so"),
                                                                   "millrace_model_engine")();
  if (engine.word != model::kEngineWord) throw std::runtime_error("the engine is of another build");
  const std::unique_ptr<TemporaryFile> file = file_for(engine_name, what);
  const std::unique_ptr<model::Network> network = engine.load(file->path(), {});
  std::vector<double> bare[2], handler[2], to_bare[2], of_items;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const size_t many : {size_t{0}, size_t{1}}) {
      const uint32_t items = many ? kItems : 1, calls = (what.layers > 1 ? 300 : 1000) / items;
      bare[many].push_back(bare_us(*network, what, items, calls));
      handler[many].push_back(handler_us(plugin, file->path(), what, items, calls));
      to_bare[many].push_back(handler[many].back() / bare[many].back());
    }
    of_items.push_back(handler[1].back() / (kItems * handler[0].back()));
  }
  const std::string name = std::string(what.name) + ", " + engine_name;
  for (const size_t many : {size_t{0}, size_t{1}}) {
    const std::string firing = name + (many ? ", firing of 8" : ", firing of 1");
    rows.push_back(row_of("model", firing, "bare loop", "us", bare[many]));
    rows.push_back(row_of("model", firing, "model.run", "us", handler[many]));
    rows.push_back(row_of("model", firing, "to bare", "", to_bare[many]));
  }
  rows.push_back(row_of("model", name, "of 8 to 8 of 1", "", of_items));
}

} // namespace

std::vector<Row> bench_model() {
  std::vector<Row> rows;
  for (const char* const engine : {"onnx", "torch"}) {
    try {
      for (const SmallNetwork& network : {kDisc, kDeep}) measure(engine, network, rows);
    } catch (const std::runtime_error& why) {
      std::fprintf(stderr, "left out: model, %s: %s\n", engine, why.what());
    }
  }
  return rows;
}

} // namespace millrace::bench
