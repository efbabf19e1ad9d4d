// Addresses of nodes are read as people write them, and what is none is refused with the reason.
#include "net/system/endpoint.h"

#include <doctest/doctest.h>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "tests/contains.h"

using namespace millrace;
using namespace millrace::net;

TEST_CASE("An address is read and written again") {
  struct Good {
    const char* text;
    const char* host;
    uint16_t port;
    const char* local;
    const char* again; // null: the text
  };
  const std::string longest_host(253, 'a'), longest_path(107, 'p');
  const std::string longest_text = longest_host + ":1", longest_local = "local:" + longest_path;
  for (const Good& good : {Good{"192.168.1.20:7433", "192.168.1.20", 7433, "", nullptr},
                           {"192.168.1.20", "192.168.1.20", 7433, "", "192.168.1.20:7433"},
                           {"gpu.local:80", "gpu.local", 80, "", nullptr},
                           {"gpu", "gpu", 7433, "", "gpu:7433"},
                           {"[::1]:7433", "::1", 7433, "", nullptr},
                           {"[fe80::1%eth0]:9", "fe80::1%eth0", 9, "", nullptr},
                           {"[::]", "::", 7433, "", "[::]:7433"},
                           {"host:0", "host", 0, "", nullptr},
                           {"host:65535", "host", 65535, "", nullptr},
                           {"host:00080", "host", 80, "", "host:80"},
                           {"local:@gpu", "", 7433, "@gpu", nullptr},
                           {"local:/run/millrace/gpu", "", 7433, "/run/millrace/gpu", nullptr},
                           {"local:a b:c", "", 7433, "a b:c", nullptr},
                           {"localhost", "localhost", 7433, "", "localhost:7433"},
                           {"b\xC3\xBC"
                            "cher:1",
                            "b\xC3\xBC"
                            "cher",
                            1, "", nullptr},
                           {longest_text.c_str(), longest_host.c_str(), 1, "", nullptr},
                           {longest_local.c_str(), "", 7433, longest_path.c_str(), nullptr}}) {
    CAPTURE(good.text);
    const Endpoint endpoint = parse_endpoint(good.text);
    CHECK(endpoint.host == good.host);
    CHECK(endpoint.port == good.port);
    CHECK(endpoint.local == good.local);
    CHECK(endpoint.is_local() == !std::string(good.local).empty());
    CHECK(to_text(endpoint) == (good.again ? good.again : good.text));
    const Endpoint again = parse_endpoint(to_text(endpoint));
    CHECK(again.host == endpoint.host);
    CHECK(again.port == endpoint.port);
    CHECK(again.local == endpoint.local);
  }
}

TEST_CASE("A text that is no address is refused with MR0816 and the reason") {
  struct Bad {
    std::string text;
    const char* reason;
  };
  for (const Bad& bad : {Bad{"", "there is no host"},
                         {":7433", "there is no host"},
                         {"[]:7433", "there is no host"},
                         {"[::1", "the bracket is not closed"},
                         {"[", "the bracket is not closed"},
                         {"::1", "an IPv6 address is in brackets"},
                         {"fe80::1:7433", "an IPv6 address is in brackets"},
                         {"host:80:90", "an IPv6 address is in brackets"},
                         {"host:", "a port is a number"},
                         {"host:http", "a port is a number"},
                         {"host:-1", "a port is a number"},
                         {"host:+1", "a port is a number"},
                         {"host: 1", "a port is a number"},
                         {"host:80x", "a port is a number"},
                         {"host:65536", "a port is a number up to 65535"},
                         {"host:99999999999999999999", "a port is a number"},
                         {"[::1]7433", "a port is a number up to 65535, after a colon"},
                         {"[::1]x:7433", "a port is a number"},
                         {"[::1]]:7433", "a port is a number"},
                         {"my host:1", "neither blanks nor control characters"},
                         {" host:1", "neither blanks nor control characters"},
                         {"host\n:1", "neither blanks nor control characters"},
                         {"host\x7F:1", "neither blanks nor control characters"},
                         {std::string("ho\0st:1", 7), "neither blanks nor control characters"},
                         {std::string(254, 'a') + ":1", "a host has at most 253 bytes"},
                         {std::string(100'000, 'a'), "a host has at most 253 bytes"},
                         {"local", "a local address has a path or a name"},
                         {"local:", "a local address has a path or a name"},
                         {"local:@", "a local address has a path or a name"},
                         {"local:" + std::string(108, 'p'), "a local address has at most 107 bytes"},
                         {std::string("local:@a\0b", 10), "a path has no zero byte"}}) {
    CAPTURE(bad.text.substr(0, 40));
    try {
      parse_endpoint(bad.text);
      FAIL_CHECK("it was read");
    } catch (const Failure& failure) {
      CHECK(failure.error().code == code::link_address);
      CHECK_MESSAGE(contains(failure.what(), bad.reason), failure.what());
      CHECK(contains(failure.what(), "expected: HOST:PORT, [IPV6]:PORT or local:PATH"));
      CHECK(failure.error().what.size() < 500);
    }
  }
}
