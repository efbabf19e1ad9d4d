// Finds and loads the CUDA module, and checks that it is of the same build.
#include "embed/device_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace millrace::embed {
namespace fs = std::filesystem;

namespace {

// Looks beside the program, and where `cmake --install` puts it. MILLRACE_CUDA_MODULE names another file, or none if it
// is empty.
std::string find_module() {
  if (const char* named = std::getenv("MILLRACE_CUDA_MODULE")) return named;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& path : {program / "millrace_cuda.so", program.parent_path() / "millrace_cuda.so",
                               program.parent_path() / "lib" / "millrace" / "millrace_cuda.so"})
    if (fs::exists(path, failed)) return path.string();
  return "";
}

LoadedModule load() {
  LoadedModule loaded;
  loaded.path = find_module();
  if (loaded.path.empty()) {
    loaded.why = "the CUDA module was not built, or is not beside the program";
    return loaded;
  }
  void* const file = dlopen(loaded.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = file ? dlsym(file, device::kModuleSymbol) : nullptr;
  if (!symbol) {
    const char* said = dlerror();
    loaded.why = "the CUDA module could not be loaded: " + std::string(said ? said : loaded.path);
    return loaded;
  }
  const device::DeviceModule* const module = reinterpret_cast<device::DeviceModuleEntry>(symbol)();
  if (std::string(module->build) != device::kModuleBuild) {
    loaded.why =
        "the CUDA module " + loaded.path + " is of another build: " + module->build + ", not " + device::kModuleBuild;
    return loaded;
  }
  loaded.count = module->count(loaded.why);
  if (loaded.count > 0) loaded.module = module;
  return loaded;
}

} // namespace

const LoadedModule& cuda_module() {
  static const LoadedModule loaded = load();
  return loaded;
}

} // namespace millrace::embed
