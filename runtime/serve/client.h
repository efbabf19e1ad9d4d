// The other end of a control socket: asks a run on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "net/system/descriptor.h"
#include "observe/error.h"

namespace millrace::serve {

// The run has hung up without a word (MR0117): it has ended, or does so now.
class HungUp : public Failure {
 public:
  HungUp();
};

// The run does not take what the method was given (MR0117).
class WrongParams : public Failure {
 public:
  explicit WrongParams(const std::string& sentence);
};

// The run has no place for this client, or has too many requests that wait (MR0117). It has not taken the request.
class Busy : public Failure {
 public:
  explicit Busy(const std::string& sentence);
};

class ControlClient {
 public:
  // Nothing if nobody listens there.
  static std::optional<ControlClient> dial(const std::filesystem::path& path);

  // The result of a method; nothing if no answer came within `patience_ms`. Throws Failure: the error of the run's own,
  // such as MR0316, HungUp, Busy, or MR0117 if the run refuses otherwise or answers what is no answer.
  std::optional<nlohmann::ordered_json> call(const std::string& method, const nlohmann::ordered_json& params,
                                             int patience_ms);

 private:
  explicit ControlClient(net::Descriptor socket) : socket_(std::move(socket)) {}
  void send(const std::string& line, int64_t until_ms);
  std::optional<std::string> receive(int64_t until_ms);

  net::Descriptor socket_;
  std::string received_;
  int64_t last_id_ = 0;

  friend struct Greeting;
};

// A run that was dialled and asked who it is.
struct Greeting {
  enum class State {
    answers,
    gone,    // nobody listens there any more
    silent,  // it says nothing: it is stopped, or hangs
    busy,    // others have all its places
    refuses, // it cannot be dialled, or answers otherwise
  };
  State state{};
  std::string why; // if it neither answers nor is gone; the rest of a sentence that begins with the run
  nlohmann::ordered_json hello;
  std::optional<ControlClient> client; // that answers; it steers

  // Tries for as long as the run is busy, `patience_ms` at most.
  static Greeting of(const std::filesystem::path& path, int patience_ms);
};

} // namespace millrace::serve
