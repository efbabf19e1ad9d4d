// The words of the control protocol: JSON-RPC 2.0, a request object a line, and the lines that answer it.
//
//   {"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"changes": {"blur.sigma": 4}}}
//   {"jsonrpc":"2.0","id":1,"result":{"ticks":{"main":1234}}}
//   {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"…","data":{"at":"/params/changes"}}}
//
// `at` is the place of a mistake: a JSON pointer into the message, or "byte 17". A mistake in the values themselves has
// the code and the words of the command's own errors: {"code": "MR0312", "what", "notes", "nearest", "edit"}.
#pragma once

#include <cstddef>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "observe/error.h"

namespace millrace::serve {

// A client that speaks another version is refused. Version 2 has describe, get and names of clients, version 3 has
// subscribe; what the versions before have is as it was.
inline constexpr int kProtocolMin = 1, kProtocol = 3;
// A request of all parameters of a pipeline has some kilobytes.
inline constexpr size_t kMessageBytesMax = size_t{64} << 10;
// The longest name that a client may give itself.
inline constexpr size_t kClientNameBytesMax = 64;

// Those of JSON-RPC, and our own from -32000 on.
enum class RpcCode : int {
  unreadable = -32700,
  no_request = -32600,
  unknown_method = -32601,
  bad_params = -32602,
  refused = -32000, // `data` has a code such as MR0316
  no_hello = -32001,
  only_watches = -32002,
  over = -32003, // the run ended before the answer was known
  busy = -32004, // a limit of the server
};

// A request that is answered by an error.
class Refused : public std::exception {
 public:
  // `at`: see above; "": the message as a whole.
  Refused(RpcCode code, std::string message, const std::string& at = "", const std::string& nearest = "");
  explicit Refused(const Error& error);

  RpcCode code() const { return code_; }
  const nlohmann::ordered_json& data() const { return data_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  RpcCode code_;
  std::string message_;
  nlohmann::ordered_json data_;
};

struct Request {
  nlohmann::ordered_json id; // null until it was read
  bool wants_answer = true;  // false: a notification, which has no id
  std::string method;
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
};

// Reads a line into `request`. If it throws Refused, the id is there if it could be read.
void read_request(std::string_view line, Request& request);

// Throws Refused for params that `known` does not have.
void refuse_others(const Request& request, const std::vector<std::string>& known);

// A line without its end.
std::string result_line(const nlohmann::ordered_json& id, const nlohmann::ordered_json& result);
std::string error_line(const nlohmann::ordered_json& id, const Refused& refused);

} // namespace millrace::serve
