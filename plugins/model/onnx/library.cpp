// Finds and opens ONNX Runtime's library.
#include "plugins/model/onnx/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "plugins/model/engine.h"

namespace millrace::model::onnx {
namespace {

constexpr const char* kFolder = "media/models";

// The paths at which the library may be, the likeliest first.
std::vector<std::string> candidates() {
  if (const char* named = std::getenv("MILLRACE_ONNXRUNTIME"); named && *named) return {named};
  std::vector<std::string> found;
  std::error_code unreadable;
  for (const auto& file : std::filesystem::directory_iterator(kFolder, unreadable))
    if (file.path().filename().string().starts_with("libonnxruntime.so") && file.path().extension() != ".part")
      found.push_back(std::filesystem::absolute(file.path()).string());
  std::sort(found.rbegin(), found.rend()); // the newest of several
  found.push_back("libonnxruntime.so.1");
  found.push_back("libonnxruntime.so");
  return found;
}

// The kind of a fault. The library's numbers are coarse, so its words are looked at too.
uint32_t fault_of(int code, const std::string& words) {
  const auto says = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (says("bad_alloc") || says("Failed to allocate memory")) return MR_FAULT_MODEL_MEMORY;
  if (code == kNotImplemented || code == kInvalidGraph || says("is not a registered function/op") ||
      says("Invalid model. Node input"))
    return MR_FAULT_MODEL_OPERATOR;
  if (code == kNoModel || code == kInvalidProtobuf) return MR_FAULT_MODEL_FILE;
  return MR_FAULT_NONE;
}

} // namespace

Library::Library() {
  void* library = nullptr;
  std::string tried;
  for (const std::string& path : candidates()) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed: its threads may still run
    if (library) break;
    tried += "\n  " + std::string(::dlerror());
  }
  if (!library)
    throw EngineError(MR_FAULT_MODEL_ENGINE,
                      "ONNX Runtime is not here; `./dev models onnxruntime` fetches it into media/models, and "
                      "MILLRACE_ONNXRUNTIME names another libonnxruntime.so" +
                          tried);
  const auto base = reinterpret_cast<const ApiBase* (*)()>(::dlsym(library, "OrtGetApiBase"));
  if (!base)
    throw EngineError(MR_FAULT_MODEL_ENGINE, "the library that was found is not ONNX Runtime: it has no OrtGetApiBase");
  table_ = base()->get_api(kApiVersion);
  if (!table_)
    throw EngineError(MR_FAULT_MODEL_ENGINE, "ONNX Runtime " + std::string(base()->get_version()) + " is too old: 1." +
                                                 std::to_string(kApiVersion) + " or newer is needed");
  // A library never prints: errors are returned.
  call<CreateEnv>(kLogFatal, "millrace", &env_);
}

const Library& Library::instance() {
  static const Library* const library = new Library; // not taken down: networks of a plugin may outlive statics
  return *library;
}

void Library::fail(Status* status) const {
  const std::string words = plain<GetErrorMessage>(status);
  const uint32_t fault = fault_of(plain<GetErrorCode>(status), words);
  plain<ReleaseStatus>(status);
  if (fault == MR_FAULT_NONE) throw std::runtime_error("ONNX Runtime: " + words);
  throw EngineError(fault, "ONNX Runtime: " + words);
}

} // namespace millrace::model::onnx
