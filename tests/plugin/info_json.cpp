// Declarations of types, as JSON and back.
#include "plugin/info_json.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "observe/error.h"
#include "plugin/registry.h"

namespace mr = millrace;
using namespace mr::plugin;
using nlohmann::json;

namespace {

struct Wide final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8}), mr::keeps(2), mr::help("what to look at")};
  mr::Inputs<mr::Records<mr::Box>> boxes{*this, "boxes", 3, mr::optional};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  mr::Param<double> gain{*this, "gain", 0.1, "", mr::at_least(0), mr::unit("dB"), mr::live};
  mr::Param<int64_t> count{*this, "count", -3, "", mr::range(-5, 5)};
  mr::Param<bool> on{*this, "on", true, ""};
  mr::Param<std::string> mode{*this, "mode", "fast", "", mr::choices({"fast", "good"})};
  Wide() {
    max_pending(4);
    gap(7);
    thread("gui");
    cost_hint_us(2.5);
  }
  void process(mr::Tick&, mr::Cpu&) {}
};

} // namespace

TEST_CASE("every type that is there is written as JSON, read, and written again as the same") {
  Registry registry;
  static const mr_handler_type wide = mr::detail::Type<Wide>::table("test.wide", "Has everything", "A manual");
  const mr_handler_type* types[] = {&wide};
  const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "p", "1", types, 1, 0};
  registry.add(plugin, "somewhere.so");
  for (const RegisteredType* type : registry.all()) {
    CAPTURE(type->type);
    const json once = to_json(*type);
    const HandlerInfo read = read_handler_info(json::parse(once.dump()));
    CHECK(to_json(read).dump() == once.dump());
    REQUIRE(read.ports.size() == type->ports.size());
    REQUIRE(read.params.size() == type->params.size());
    for (size_t p = 0; p < read.ports.size(); ++p) {
      mr_port one = read.ports[p].raw, other = type->ports[p].raw;
      if (one.accepts.records && other.accepts.records) CHECK(same(*one.accepts.records, *other.accepts.records));
      CHECK(!one.accepts.records == !other.accepts.records);
      one.accepts.records = other.accepts.records = nullptr;
      CHECK(std::memcmp(&one, &other, sizeof one) == 0);
    }
    for (size_t p = 0; p < read.params.size(); ++p)
      CHECK(std::memcmp(&read.params[p].raw, &type->params[p].raw, sizeof(mr_param)) == 0);
  }
}

TEST_CASE("a declaration that was read has record types of its own") {
  Registry registry;
  const HandlerInfo::Port* port = registry.find("draw.boxes")->find_port("boxes", MR_INPUT);
  REQUIRE(port);
  REQUIRE(port->records);
  const HandlerInfo read = read_handler_info(to_json(*registry.find("draw.boxes")));
  const HandlerInfo::Port* again = read.find_port("boxes", MR_INPUT);
  REQUIRE(again->records);
  CHECK(again->records != port->records);
  CHECK(again->raw.accepts.records == &again->records->raw);
  const HandlerInfo copied = read; // and a copy points to what it shares with the first
  CHECK(copied.find_port("boxes", MR_INPUT)->raw.accepts.records == &again->records->raw);
}

TEST_CASE("every byte of a format but its record type is kept") {
  mr_format format;
  std::memset(&format, 0x11, sizeof format);
  format.size = sizeof format;
  format.rank = MR_RANK_MAX;
  format.records = nullptr;
  const mr_format read = read_format(json::parse(to_json(format).dump()));
  const auto clear = [&](size_t from, size_t to) {
    std::memset(reinterpret_cast<char*>(&format) + from, 0, to - from);
  };
  clear(offsetof(mr_format, rank) + sizeof(mr_format::rank), offsetof(mr_format, shape)); // four bytes of nothing
  clear(offsetof(mr_format, ranks) + sizeof(mr_format::ranks), offsetof(mr_format, records));
  CHECK(std::memcmp(&read, &format, sizeof format) == 0);
}

TEST_CASE("what is no declaration is not read as one") {
  Registry registry;
  const json whole = to_json(*registry.find("image.blur"));
  for (const auto& [key, value] : whole.items()) {
    CAPTURE(key);
    json less = whole;
    less.erase(key);
    CHECK_THROWS_AS(read_handler_info(less), json::exception);
  }
  json wrong = whole;
  wrong["max_pending"] = "many";
  CHECK_THROWS_AS(read_handler_info(wrong), json::exception);
  wrong = whole;
  wrong["ports"][0]["accepts"]["rank"] = MR_RANK_MAX + 1;
  CHECK_THROWS_AS(read_handler_info(wrong), mr::Failure);
}

TEST_CASE("a number that is not whole, or has no room in its field, is not cut") {
  for (const json& number : {json(1.5), json(1e300), json(-1), json(int64_t{1} << 32), json(UINT64_MAX)}) {
    CAPTURE(number.dump());
    CHECK_THROWS_AS(read_format({{"rank", number}}), mr::Failure);
    CHECK_THROWS_AS(read_format({{"width", number}}), mr::Failure);
  }
  CHECK(read_format({{"width", 7}}).width == 7);
}
