// The sums that the proxy tells when it ends.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "script.h"

namespace millrace::chaos {

struct Totals {
  uint64_t connections = 0;        // accepted
  uint64_t failed_dials = 0;       // accepted, but the server did not answer
  uint64_t cut_connections = 0;    // by cut and by limit
  uint64_t reset_connections = 0;  // by reset
  std::array<uint64_t, 2> bytes{}; // passed on: up, down
  uint64_t bytes_vanished = 0;     // read and never passed on
  uint64_t bits_flipped = 0;
  std::array<uint64_t, kKinds> faults{}; // how often each began, whether or not it met a connection

  // One line.
  std::string json() const {
    std::string text = "{\"connections\": " + std::to_string(connections);
    const auto add = [&](const std::string& name, uint64_t value) {
      text += ", \"" + name + "\": " + std::to_string(value);
    };
    add("failed_dials", failed_dials);
    add("cut_connections", cut_connections);
    add("reset_connections", reset_connections);
    add("bytes_up", bytes[0]);
    add("bytes_down", bytes[1]);
    add("bytes_vanished", bytes_vanished);
    add("bits_flipped", bits_flipped);
    text += ", \"faults\": {";
    for (size_t kind = 0; kind < kKinds; ++kind)
      text += (kind ? ", \"" : "\"") + std::string(name_of(static_cast<Kind>(kind))) +
              "\": " + std::to_string(faults[kind]);
    return text + "}}";
  }
};

} // namespace millrace::chaos
