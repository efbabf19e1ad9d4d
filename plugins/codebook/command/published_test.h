// `millrace codebook test`: the published fits, made by pipelines and compared with what was published.
#pragma once

#include <string>

#include "plugins/codebook/published_fits.h"

namespace millrace::codebook {

// The pipeline that makes a published fit; its files go to `folder`. `device`: where the fit runs; "" is the host.
std::string published_pipeline(const PublishedFit& fit, const std::string& folder, const std::string& device = "");

// Runs all published fits on the host and on a device, and prints a line for each: `device`, or cuda:0 if that is ""
// and there is one; "cpu" is the host alone. Those of 10,000 vectors only if `large`. Returns the exit code: 0 if all
// gave what was published, 1 if one did not, else that of the run that failed.
int run_published_fits(bool large, const std::string& device);

} // namespace millrace::codebook
