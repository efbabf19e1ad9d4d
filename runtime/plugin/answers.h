// What a compiler asks about one handler: a live one (Instance), or answers that came from elsewhere, as from the node
// where the handler will run.
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
  // The formats of its outputs, flat, where its inputs have these. `outputs` has what its ports say already. Not MR_OK:
  // refused, and error() says why.
  virtual mr_status configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) = 0;
  virtual std::string error() const = 0;
  // Device memory that its GPU body works in, with the formats of the last configure().
  virtual uint64_t scratch_bytes() const = 0;
};

} // namespace millrace::plugin
