// `millrace codebook test`: the published fits, made by pipelines and compared with what was published.
#pragma once

#include <string>

#include "plugins/codebook/published_fits.h"

namespace millrace::codebook {

// The pipeline that makes a published fit; its files go to `folder`.
std::string published_pipeline(const PublishedFit& fit, const std::string& folder);

// Runs all published fits, of 10,000 vectors only if `large`, and prints a line for each. Returns the exit code: 0 if
// all gave what was published, 1 if one did not, else that of the run that failed.
int run_published_fits(bool large);

} // namespace millrace::codebook
