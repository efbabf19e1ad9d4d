// The seed of a test that draws its cases: the same in every run, so that a failure is one that anybody sees again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace millrace {

// MILLRACE_SEED=n draws other cases.
inline uint32_t random_seed() {
  const char* chosen = std::getenv("MILLRACE_SEED");
  return chosen ? static_cast<uint32_t>(std::stoull(chosen)) : 1;
}

} // namespace millrace
