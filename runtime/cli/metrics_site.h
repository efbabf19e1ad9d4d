// Answers Prometheus while a pipeline runs: /metrics and /healthz.
#pragma once

#include <functional>
#include <string>

#include "http/server.h"

namespace millrace::cli {

// `text` is called by the server's thread, at most ten times a second.
http::Site metrics_site(std::function<std::string()> text);

} // namespace millrace::cli
