// A report as Prometheus reads it: text format 0.0.4.
#pragma once

#include <string>

namespace millrace {
struct Report;
}
namespace millrace::serve {
struct WebRefusals;
}

namespace millrace::cli {

// Counters since the run began, quantiles over its whole time; seconds and bytes.
std::string metrics_text(const Report& report);
// Those of the run's page.
std::string web_metrics_text(const serve::WebRefusals& refused);

} // namespace millrace::cli
