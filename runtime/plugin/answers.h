// The questions that a compiler asks about one handler. A live handler answers them (Instance), or answers come from
// elsewhere, for instance from the node where the handler will run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/handler_info.h"

namespace millrace::plugin {

// Memory that a handler's body needs beside its values, in bytes.
struct BodyMemory {
  uint64_t scratch = 0; // device memory that its GPU body works in
  uint64_t host = 0;    // host memory that its CPU body takes from the system by itself
  uint64_t state = 0;   // kept for it by the runtime, in the memory of the body that runs
  uint64_t device = 0;  // device memory that its GPU body takes by itself
  friend bool operator==(const BodyMemory&, const BodyMemory&) = default;
};

class Answers {
 public:
  virtual ~Answers() = default;

  virtual const HandlerInfo& info() const = 0;
  // Sets the formats of its outputs, flat, for these formats of its inputs. `outputs` comes with the formats of its
  // ports. Not MR_OK: the handler refuses them, and error() says why.
  virtual mr_status configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) = 0;
  virtual std::string error() const = 0;
  // The error code that the handler itself gave to this failure; 0: it gave none.
  virtual int fault() const = 0;
  // The memory of its bodies, with the formats of the last configure().
  virtual BodyMemory memory() const = 0;
};

} // namespace millrace::plugin
