// Loads the module with libtorch's functions; see torch_module.h.
#include "torch_module.h"

#include <dlfcn.h>

#include <filesystem>

namespace millrace::test {

const Torch& torch() {
  static const Torch loaded = [] {
    Torch torch;
    const std::filesystem::path module =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("torch_replay.so");
    if (!std::filesystem::exists(module)) {
      torch.why_not = "not built: no libtorch with CUDA";
      return torch;
    }
    void* const library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      torch.why_not = dlerror();
      return torch;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function) torch.why_not = module.string() + " is of another build";
    };
    find(torch.stream, "torch_replay_stream");
    find(torch.capture, "torch_replay_capture");
    find(torch.launch, "torch_replay_launch");
    find(torch.nearest, "torch_replay_nearest");
    return torch;
  }();
  return loaded;
}

} // namespace millrace::test
