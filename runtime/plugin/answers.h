// The questions that a compiler asks about one handler. A live handler answers them (Instance), or answers come from
// elsewhere, for instance from the node where the handler will run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/handler_info.h"

namespace millrace::plugin {

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
  // Bytes of device memory that its GPU body works in, with the formats of the last configure().
  virtual uint64_t scratch_bytes() const = 0;
  // Bytes of host memory that its CPU body takes from the system, with the same formats.
  virtual uint64_t host_bytes() const = 0;
};

} // namespace millrace::plugin
