// The other end of a control socket: asks a run on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "net/system/descriptor.h"

namespace millrace::serve {

class ControlClient {
 public:
  // Nothing if nobody listens there.
  static std::optional<ControlClient> dial(const std::filesystem::path& path);

  // The result of a method; nothing if no answer came within `patience_ms`. Throws Failure: the error of the run's own,
  // such as MR0316, or MR0117 if the run refuses otherwise, hangs up, or answers what is no answer.
  std::optional<nlohmann::ordered_json> call(const std::string& method, const nlohmann::ordered_json& params,
                                             int patience_ms);

 private:
  explicit ControlClient(net::Descriptor socket) : socket_(std::move(socket)) {}
  void send(const std::string& line, int64_t until_ms);
  std::optional<std::string> receive(int64_t until_ms);

  net::Descriptor socket_;
  std::string received_;
  int64_t last_id_ = 0;
};

} // namespace millrace::serve
