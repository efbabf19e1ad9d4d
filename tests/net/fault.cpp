// Faults: each has a sentence of its own, and the number that travels.
#include "net/fault.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace millrace::net;

TEST_CASE("every fault in use has a sentence of its own, without a full stop") {
  std::set<std::string> sentences;
  for (uint16_t number = 0; number < static_cast<uint16_t>(Fault::count); ++number) {
    CAPTURE(number);
    const std::string sentence = sentence_of(static_cast<Fault>(number));
    CHECK(sentence.size() > 8);
    CHECK(sentence.size() < 120);
    CHECK(sentence.back() != '.');
    const bool is_in_use = sentence.find("not in use") == std::string::npos;
    CHECK((sentences.insert(sentence).second || !is_in_use));
  }
}

TEST_CASE("a fault of a later version has a sentence too") {
  const std::string sentence = sentence_of(Fault::count);
  CHECK(sentence == sentence_of(static_cast<Fault>(0xFFFF)));
  CHECK(sentence.find("later version") != std::string::npos);
}

TEST_CASE("a fault's number is part of the wire, and does not move") {
  CHECK(static_cast<int>(Fault::head_checksum) == 1);
  CHECK(static_cast<int>(Fault::body_checksum) == 6);
  CHECK(static_cast<int>(Fault::magic) == 10);
  CHECK(static_cast<int>(Fault::version) == 11);
  CHECK(static_cast<int>(Fault::running_already) == 17);
  CHECK(static_cast<int>(Fault::unexpected) == 19);
  CHECK(static_cast<int>(Fault::open_name) == 23);
  CHECK(static_cast<int>(Fault::index) == 29);
  CHECK(static_cast<int>(Fault::acknowledged) == 37);
  CHECK(static_cast<int>(Fault::slow_greeting) == 39);
  CHECK(static_cast<int>(Fault::leaving) == 42);
  CHECK(static_cast<int>(Fault::drained) == 44);
  CHECK(static_cast<int>(Fault::vanished) == 46);
  CHECK(static_cast<int>(Fault::message_waiting) == 49);
  CHECK(static_cast<int>(Fault::no_pong) == 54);
  CHECK(static_cast<int>(Fault::count) >= 55);
}
