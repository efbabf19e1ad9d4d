// The published schema is made from the tables that the parser reads by, and says what one file's keys may be.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "graph/keys.h"

using namespace millrace::graph;

TEST_CASE("the schema in the reference is the one that the tables make") {
  std::ofstream(MILLRACE_BINARY_DIR "/pipeline.schema.json") << json_schema();
  std::ifstream stream(MILLRACE_SOURCE_DIR "/docs/reference/pipeline.schema.json");
  const std::string published{std::istreambuf_iterator<char>(stream), {}};
  INFO("after a wanted change, copy build/pipeline.schema.json to docs/reference/");
  CHECK((published == json_schema()));
}

TEST_CASE("every reference within the schema leads to a definition") {
  const auto schema = nlohmann::json::parse(json_schema());
  int count = 0;
  const std::function<void(const nlohmann::json&)> visit = [&](const nlohmann::json& part) {
    if (part.is_object() && part.contains("$ref")) {
      ++count;
      CHECK(schema.contains(nlohmann::json::json_pointer(part["$ref"].get<std::string>().substr(1))));
    }
    if (part.is_structured())
      for (const auto& child : part) visit(child);
  };
  visit(schema);
  CHECK(count > 10);
}

TEST_CASE("each key's example is read by the parser as its key takes it") {
  const auto check = [](const auto& keys) {
    for (const auto& key : keys) {
      INFO(key.name);
      CHECK(key.help.size() > 5);
      if (key.takes == Takes::shape || key.takes == Takes::not_yet) continue;
      CHECK_NOTHROW(read_setting(key, key.example, {}));
    }
  };
  check(handler_keys());
  check(batch_keys());
  check(edge_keys());
  check(clock_keys());
  check(node_keys());
  check(top_keys());
}

TEST_CASE("reserved keys are those of the design") {
  CHECK(reserved_keys() == std::vector<std::string>{"type", "input", "inputs", "every", "device", "node", "clock",
                                                    "on_error", "batch", "budget", "isolate", "for_each", "concurrency",
                                                    "priority"});
}
