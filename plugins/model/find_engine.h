// Finds the engine for a model's file.
#pragma once

#include <string>

#include "plugins/model/engine.h"

namespace millrace::model {

// The engine of this name ("onnx"), or with "auto" the one that the ending of the path asks for. Opens its library the
// first time. Throws CodedError if no engine opens such a file, with what to do about it, or if the engine's library
// cannot be opened.
const Engine& find_engine(const std::string& name, const std::string& path);

} // namespace millrace::model
