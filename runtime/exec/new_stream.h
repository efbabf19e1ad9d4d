// A stream that comes while the run goes on (seats.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace millrace {
struct Error;
}
namespace millrace::plan {
struct MadeStream;
}

namespace millrace::exec {

// Called once, when the stream has begun or is gone; with an error, if it could not begin. The head's thread calls it,
// so it must not wait.
using StreamDone = std::function<void(const Error* error)>;

// A stream that comes. Instances whose seat it takes are left in `made`, and whoever holds it destroys them.
struct NewStream {
  std::string name;
  std::shared_ptr<plan::MadeStream> made;
  StreamDone done;
  bool was_absent = false; // its source did not answer when the plan was made
};

} // namespace millrace::exec
