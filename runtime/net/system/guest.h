// A connection that has said who it is: it goes from the listener to the link's thread.
#pragma once

#include <functional>
#include <memory>

#include "net/record.h"
#include "net/system/transport.h"

namespace millrace::net {

struct Guest {
  std::unique_ptr<Transport> transport; // its handshake is done, and its HELLO read; nothing was written
  Hello hello;
};
using TakeGuest = std::function<void(Guest)>;

} // namespace millrace::net
