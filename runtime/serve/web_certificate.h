// The certificate that pages show to browsers that come by https.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "http/server.h"

namespace millrace::serve {

// From two files of PEM. Throws Failure: MR0126.
http::Certificate read_certificate(const std::string& chain_file, const std::string& key_file);

// One of this user's own, kept in `folder`. It is made on first use, with a P-256 key, since browsers take no Ed25519;
// and anew once it lacks one of the names or its year is nearly over. Browsers ask a person before they take it. Throws
// Failure: MR0126, and what files of the folder throw.
http::Certificate own_certificate(const std::filesystem::path& folder, const std::vector<std::string>& names);

} // namespace millrace::serve
