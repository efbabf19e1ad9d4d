// The program's server, as a run sees it: it serves the pages of handlers (mr_host.serve).
#pragma once

#include <memory>

#include "millrace/abi.h"

namespace millrace::exec {

class PageServer {
 public:
  virtual ~PageServer() = default;
  // Serves the page until what is returned is gone; from then on no function of `site` is called. Any thread but the
  // server's own. Throws Failure.
  virtual std::shared_ptr<void> serve(const mr_site& site) = 0;
};

} // namespace millrace::exec
