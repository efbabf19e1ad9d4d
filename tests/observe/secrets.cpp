// Secrets in addresses are hidden in text that leaves the program.
#include "observe/secrets.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "tests/contains.h"

using namespace millrace;

namespace {

struct Address {
  const char* text;
  const char* shown;
};

// Each has the letters "s3cr" in all that is secret, and nowhere else.
const std::vector<Address> kAddresses = {
    {"rtsp://admin:s3cret@10.0.0.7:554/live", "rtsp://***@10.0.0.7:554/live"},
    {"RTSP://admin:s3cret@camera.example/live", "RTSP://***@camera.example/live"},
    {"https://s3crettoken@host.example/a.ts", "https://***@host.example/a.ts"},
    {"http://admin:@s3cr@10.0.0.7/a", "http://***@10.0.0.7/a"},
    {"rtsp://admin:p@s3cr@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:p/s3cr@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:12/s3cr@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:p#s3cr@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:p?s3cr@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:p@/#?s3cr@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:p%40s3cr%2F@host/live", "rtsp://***@host/live"},
    {"rtsp://admin:s3cret@[fe80::1%25eth0]:554/live", "rtsp://***@[fe80::1%25eth0]:554/live"},
    {"rtsp://admin:s3cret@127.0.0.1:9/x?to=me@home", "rtsp://***@127.0.0.1:9/x?to=me@home"},
    {"https://host/live.m3u8?token=s3cret&quality=2", "https://host/live.m3u8?token=***&quality=2"},
    {"https://host/a.ts?X-Amz-Signature=s3cret", "https://host/a.ts?X-Amz-Signature=***"},
    {"https://host/a.ts?Key=s3cret&SIG=s3cr/+=&x=1", "https://host/a.ts?Key=***&SIG=***&x=1"},
    {"https://host/a.ts#access_token=s3cret", "https://host/a.ts#access_token=***"},
    {"https://host/a?user=me;password=s3cret", "https://host/a?user=me;password=***"},
    {"rtsp://10.0.0.7:554/user=admin_password=s3cret_channel=1.sdp", "rtsp://10.0.0.7:554/user=admin_password=***"},
    {"srt://host:9000?mode=caller&passphrase=s3cret", "srt://host:9000?mode=caller&passphrase=***"},
    {"srt://host:9000?streamid=publish:cam:me:s3cret", "srt://host:9000?streamid=***"},
    {"rtmp://live.example/app/s3cr-et12", "rtmp://live.example/app/***"},
    {"rtmps://me:s3cr@live.example:443/app/s3cr?x=s3cr", "rtmps://***@live.example:443/app/***"},
    {"http://proxy:8080/?url=rtsp://me:s3cret@host/a", "http://proxy:8080/?url=rtsp://***@host/a"},
    {"http://proxy:8080/?url=rtsp%3A%2F%2Fme%3As3cret%40host%2Fa",
     "http://proxy:8080/?url=rtsp%3A%2F%2F***%40host%2Fa"},
    {"http://host/a?to=b%26token%3Ds3cret", "http://host/a?to=b%26token%3D***"},
    {"/seg-1.ts?sig=s3cret&n=1", "/seg-1.ts?sig=***&n=1"},
    {"concat:http://a:s3cr@h/1|http://b:s3cr@h/2", "concat:http://***@h/1|http://***@h/2"},
    {"admin:s3cret@10.0.0.7:554/live", "admin:***@10.0.0.7:554/live"},
    {"rtsp:/admin:s3cret@10.0.0.7/live", "rtsp:***@10.0.0.7/live"},
    {"rtsp//admin:s3cret@10.0.0.7/live", "rtsp//admin:***@10.0.0.7/live"},
};

// Sentences in which an address comes back.
const std::vector<std::pair<std::string, std::string>> kSentences = {
    {"", ""},
    {"cannot read the video '", "': there is no such file"},
    {"try: path=", ""},
    {"Opening \"", "\" for reading"},
    {"[rtsp @ 0x55] method DESCRIBE of ", " failed: 401"},
    {"two at once: rtsp://a:s3cr@h/1 and ", ", then rtsp://b:s3cr@h/2"},
    {"first line\n", "\nlast line"},
};

} // namespace

TEST_CASE("no secret of an address is shown, whatever sentence it stands in") {
  for (const Address& address : kAddresses)
    for (const auto& [before, after] : kSentences) {
      CAPTURE(address.text);
      CAPTURE(before);
      const std::string shown = without_secrets(before + address.text + after);
      CHECK_FALSE(contains(shown, "s3cr"));
      CHECK(contains(shown, address.shown));
      CHECK(without_secrets(shown) == shown);
    }
}

TEST_CASE("a password with blanks or quotes is hidden too") {
  for (const char* text : {"'rtsp://admin:my s3cret@host/live': refused", "path=rtsp://admin:my s3cret@host/live",
                           "'rtsp://admin:it's s3cret@host/live'", "{\"a\": \"rtsp://admin:s3\\\"cr@host/x\"}",
                           "'srt://host:9?passphrase=long s3cret phrase'"})
    CHECK_FALSE(contains(without_secrets(text), "cr"));
}

TEST_CASE("the first part of a password is hidden where a text is cut") {
  CHECK(without_secrets("cannot open rtsp://admin:s3c") == "cannot open rtsp://admin:***");
  CHECK(without_secrets("'rtsp://admin:s3c…") == "'rtsp://admin:***");
}

TEST_CASE("an Authorization header is hidden") {
  CHECK(without_secrets("DESCRIBE\r\nAuthorization: Basic YWRtaW4=\r\nCSeq: 2") ==
        "DESCRIBE\r\nAuthorization: ***\r\nCSeq: 2");
}

TEST_CASE("text without secrets stays as it is") {
  for (const char* text : {"",
                           "the disk is full",
                           "https://host.example/@name/film.mp4",
                           "http://10.0.0.7:8080/@name/film.mp4",
                           "rtsp://[::1]:554/live",
                           "tcp://HOST:PORT is expected, as in draw@gate7",
                           "video@gate7 → detect@cameras: sync",
                           "draw@gate7.thickness=3",
                           "--set draw@gate7.text=12:30",
                           "blur:x@cameras",
                           "file.yaml:3:12",
                           "mail me@home.example",
                           "key=4",
                           "the key = value",
                           "http://host/a?size=3&monkeys=2",
                           "udp://239.0.0.1:5000?ttl=2",
                           "100 % of a@b",
                           "rtmp://host/app",
                           "%zz%4",
                           "a %40 b",
                           "rtsp://127.0.0.1:8554/cam at draw@gate7"}) {
    CAPTURE(text);
    CHECK(without_secrets(text) == text);
  }
}

TEST_CASE("errors, their edits and texts that are cut show no secret") {
  const std::string address = "rtsp://admin:s3cret@10.0.0.7/live";
  const Error error{code::probe_failed,
                    "'" + address + "': refused",
                    {"--set video.path=" + address, 0, 0},
                    {"it is " + address},
                    address,
                    "path=" + address};
  const std::string text = format_error(error);
  CHECK_FALSE(contains(text, "s3cr"));
  CHECK(contains(text, "try: path=rtsp://***@10.0.0.7/live"));
  CHECK_FALSE(contains(Failure(error).what(), "s3cr"));
  for (size_t bytes = 0; bytes < 60; ++bytes) {
    CHECK_FALSE(contains(printable("see " + address, bytes), "s3"));
    CHECK_FALSE(contains(shortened("see " + address, bytes), "s3"));
  }
}

TEST_CASE("all texts of a JSON document are searched, each by itself") {
  nlohmann::ordered_json json = {
      {"a", "rtsp://me:s3cret@h/x"}, {"b", {1, "https://h/?token=s3cret"}}, {"c", "me:"}, {"d", "@h.x"}};
  hide_secrets(json);
  CHECK(json.dump() == R"({"a":"rtsp://***@h/x","b":[1,"https://h/?token=***"],"c":"me:","d":"@h.x"})");
}

TEST_CASE("a text of a million marks is searched to its end") {
  for (const std::string mark : {"://", "a://", "'a://b:c", "@", "a:b@", "=", "token=", "?", "%40", "%3A%2F%2F",
                                 "a:b c ", "?token=", "a://b:c@@"}) {
    std::string text;
    while (text.size() < (size_t{1} << 20)) text += mark;
    CHECK(without_secrets(text).size() <= text.size() + text.size());
  }
}
