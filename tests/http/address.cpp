// Addresses that people write, and the hosts of requests.
#include "http/address.h"

#include <doctest/doctest.h>

#include "observe/error.h"
#include "observe/error_codes.h"

using namespace millrace;
using namespace millrace::http;

namespace {

int refused(const std::string& address) {
  try {
    endpoint_of({"--web-listen", address});
  } catch (const Failure& failure) {
    CHECK(failure.error().what.find("--web-listen") == 0);
    return failure.error().code;
  }
  return 0;
}

bool answers(const std::string& address, const std::string& host) {
  const Listen listen{"--web-listen", address, {"cam.example", "Other:1"}};
  return Hosts(listen, endpoint_of(listen).address()).answers(host);
}

} // namespace

TEST_CASE("An address is a host and a port") {
  CHECK(endpoint_of({"--web-listen", "127.0.0.1:9090"}).port() == 9090);
  CHECK(endpoint_of({"--web-listen", "[::1]:0"}).address().is_v6());
  CHECK(endpoint_of({"--web-listen", ":80"}).address().is_unspecified());
  CHECK(endpoint_of({"--web-listen", "localhost:80"}).address().is_loopback());
  for (const char* bad : {"", "9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:9090", "[]:1"})
    CHECK_MESSAGE(refused(bad) == code::bad_command_line, bad);
  CHECK(refused("no.such.host.invalid:1") == code::bad_address);
}

TEST_CASE("A host is known by its address or by a name that was given") {
  for (const char* host : {"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.9.9.9:80", "[::1]:80",
                           "a.localhost", "CAM.example:5", "other"})
    CHECK_MESSAGE(answers("127.0.0.1:1", host), host);
  for (const char* host : {"", "evil.example", "127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "10.1.2.3", "[evil", "127.0.0.1@evil.example", "evil.example#127.0.0.1", "[::2]"})
    CHECK_MESSAGE(!answers("127.0.0.1:1", host), host);
  CHECK(answers(":1", "10.1.2.3"));
  CHECK(answers(":1", "localhost"));
  CHECK(!answers(":1", "evil.example"));
}
