// Choices of a parameter on this machine, as `inspect` shows them.
#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <nlohmann/json.hpp>

#include "cli/describe.h"

using namespace millrace;
using namespace millrace::cli;

namespace {

struct Choosy final : Handler {
  Input<Any> in{*this, "in"};
  void process(Tick&, Cpu&) {}
  static void offers(Offers& offers) {
    offers.add("encoders", "h264", "the default of mp4");
    offers.add("containers", "mp4", ".mp4");
    offers.add("encoders", "ffv1", "");
  }
};
struct Plain final : Handler {
  Input<Any> in{*this, "in"};
  void process(Tick&, Cpu&) {}
};
const mr_handler_type kChoosy = detail::Type<Choosy>::table("test.choosy", "Chooses", "");
const mr_handler_type kPlain = detail::Type<Plain>::table("test.plain", "Has no choice", "");
const mr_handler_type* const kTypes[] = {&kChoosy, &kPlain};
const mr_plugin kPlugin = {sizeof(mr_plugin), MR_ABI_VERSION, "test", "1.0", kTypes, 2, 0};

} // namespace

TEST_CASE("inspect shows what a type offers on this machine, part by part, in the order in which it is said") {
  plugin::Registry registry;
  registry.add(kPlugin, "");
  const std::string text = describe_text(*registry.find("test.choosy"));
  const std::string shown =
      "\non this machine\n"
      "  encoders\n"
      "    h264  the default of mp4\n"
      "    ffv1\n"
      "  containers\n"
      "    mp4   .mp4\n";
  INFO(text);
  CHECK(text.find(shown) != std::string::npos);
  const auto json = nlohmann::json::parse(describe_json(*registry.find("test.choosy")));
  REQUIRE(json["offers"].size() == 3);
  CHECK(json["offers"][1] == nlohmann::json{{"part", "encoders"}, {"name", "ffv1"}, {"words", ""}});
  CHECK(json["offers"][2]["part"] == "containers");
}

TEST_CASE("inspect says nothing of offers where a type has none") {
  plugin::Registry registry;
  registry.add(kPlugin, "");
  CHECK(describe_text(*registry.find("test.plain")).find("on this machine") == std::string::npos);
  CHECK(nlohmann::json::parse(describe_json(*registry.find("test.plain")))["offers"].empty());
}
