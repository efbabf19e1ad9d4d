// ONNX Runtime's library, opened once for the process.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "plugins/model/onnx/api.h"

namespace millrace::model::onnx {

// The library and its table of functions. call<Run>(…) throws EngineError or std::runtime_error with the library's
// words if it fails.
class Library {
 public:
  // Opens it where MILLRACE_ONNXRUNTIME says, else in media/models, which ./dev models fills, else where the system's
  // loader finds it. Throws EngineError if there is none, or one that is too old.
  static const Library& instance();

  template <class F, class... Arguments>
  auto plain(Arguments... arguments) const {
    return reinterpret_cast<typename F::type>(const_cast<void*>(table_[F::place]))(arguments...);
  }
  template <class F, class... Arguments>
  void call(Arguments... arguments) const {
    if (Status* const status = plain<F>(arguments...)) fail(status);
  }
  const Env* env() const { return env_; }

 private:
  Library();
  [[noreturn]] void fail(Status* status) const;

  const void* const* table_ = nullptr;
  Env* env_ = nullptr;
};

// Owns what the library gives, and gives it back by Release.
template <class T, class Release>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned(Owned&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  ~Owned() {
    if (pointer_) Library::instance().plain<Release>(pointer_);
  }
  T* get() const { return pointer_; }
  T** place() { return &pointer_; }

 private:
  T* pointer_ = nullptr;
};

} // namespace millrace::model::onnx
