// Opens the libraries of engines, which lie in the folder `model` beside the plugin.
#include "plugins/model/find_engine.h"

#include <dlfcn.h>
#include <millrace/handler.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

namespace millrace::model {
namespace {

// An ending, and the engine that opens such files; without one, what the user can do.
struct Ending {
  std::string_view ending, engine, instead;
};
constexpr Ending kEndings[] = {
    {".onnx", "onnx", ""},
    {".pt", "torch", ""},
    {".torchscript", "torch", ""},
    {".pth", "", "it holds the weights alone: load them in Python and export the network to ONNX by torch.onnx.export"},
    {".pt2", "", "export the network to ONNX: torch.onnx.export(program, ..., \"network.onnx\")"},
    {".safetensors", "", "it holds the weights alone: load them in Python and export the network to ONNX"},
    {".engine", "", "it fits one GPU and one version of TensorRT; take the .onnx file that it was built from"},
    {".plan", "", "it fits one GPU and one version of TensorRT; take the .onnx file that it was built from"},
    {".tflite", "", "convert it: python3 -m tf2onnx.convert --tflite network.tflite --output network.onnx"},
    {".pb", "", "convert it: python3 -m tf2onnx.convert --saved-model FOLDER --output network.onnx"},
    {".keras", "", "convert it in Python: tf2onnx.convert.from_keras"},
};

std::filesystem::path folder_of_engines() {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<const void*>(&find_engine), &info) || !info.dli_fname) return {};
  return std::filesystem::path(info.dli_fname).parent_path() / "model";
}

// The remedy if the library of the engine for TorchScript cannot be opened.
constexpr const char* kTorchMissing =
    "TorchScript files need libtorch: install the package millrace-plugin-model-torch, or libtorch-dev and build "
    "millrace again; or export the network to ONNX, by torch.onnx.export(network, example, \"network.onnx\")";

const Engine& open_engine(const std::string& name) {
  const std::filesystem::path path = folder_of_engines() / ("model_" + name + ".so");
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed: its threads may still run
  if (!library) {
    const std::string why = ::dlerror();
    const std::string advice = name == "torch" ? std::string(". ") + kTorchMissing : "";
    throw CodedError(MR_FAULT_MODEL_ENGINE, "the engine " + name + " cannot be opened: " + why + advice);
  }
  const auto entry = reinterpret_cast<const Engine* (*)()>(::dlsym(library, "millrace_model_engine"));
  if (!entry || entry()->word != kEngineWord)
    throw CodedError(MR_FAULT_MODEL_ENGINE,
                     path.string() + " belongs to another millrace; install both from one build");
  return *entry();
}

} // namespace

const Engine& find_engine(const std::string& name, const std::string& path) {
  std::string wanted = name;
  if (wanted == "auto") {
    const std::string ending = std::filesystem::path(path).extension().string();
    std::string known;
    for (const Ending& one : kEndings) {
      if (one.ending == ending && one.engine.empty())
        throw CodedError(MR_FAULT_MODEL_ENGINE,
                         "'" + path + "': no engine opens " + ending + " files; " + std::string(one.instead));
      if (one.ending == ending) wanted = one.engine;
      if (!one.engine.empty()) known += (known.empty() ? "" : ", ") + std::string(one.ending);
    }
    if (wanted == "auto")
      throw CodedError(MR_FAULT_MODEL_ENGINE, "'" + path + "': the ending says no kind of network; known are " + known +
                                                  ", and `engine` names the engine for a file with another ending");
  }
  static std::mutex mutex;
  static std::map<std::string, const Engine*> opened;
  const std::lock_guard lock(mutex);
  const Engine*& engine = opened[wanted];
  if (!engine) engine = &open_engine(wanted);
  return *engine;
}

} // namespace millrace::model
