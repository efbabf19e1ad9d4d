// Reads the JSON of another node, whose mistakes are the mistakes of another version (MR0805).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::node {

// Runs `read`. Throws Failure (MR0805) if that throws: "WHOSE cannot be read: …".
template <class Read>
auto reading(const std::string& whose, Read read) {
  std::string why;
  try {
    return read();
  } catch (const nlohmann::json::exception& wrong) {
    why = wrong.what();
  } catch (const Failure& wrong) {
    why = wrong.error().what;
  }
  throw Failure(code::other_version, whose + " cannot be read: " + why);
}

} // namespace millrace::node
