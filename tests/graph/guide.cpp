// The guide's pipelines are read, and say what the guide says of them.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "graph/graph.h"

using namespace millrace::graph;

namespace {

// The text between `begin` and `end`, from the place where `begin` stands first.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  const size_t to = text.find(end, from + begin.size());
  REQUIRE(to != std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

} // namespace

TEST_CASE("the guide's file and its one-line form say the same") {
  std::ifstream stream(MILLRACE_SOURCE_DIR "/docs/guide/pipelines.md");
  const std::string guide{std::istreambuf_iterator<char>(stream), {}};
  const Graph file = parse_yaml(between(guide, "```yaml\n", "```"), "guide");
  const Graph line = parse_line(between(guide, "millrace plan '", "'\n"));
  CHECK(line.handlers.size() == file.handlers.size());
  CHECK(line.edges.size() == file.edges.size());
  for (const Handler& handler : file.handlers) {
    const std::string name = handler.name == "show" ? "window" : handler.name;
    INFO(name);
    REQUIRE(line.find(name) != nullptr);
    CHECK(line.find(name)->type == handler.type);
    CHECK(line.find(name)->every == handler.every);
    CHECK(line.find(name)->params.size() == handler.params.size());
  }
  CHECK(parse_line(between(guide, "millrace run '", "'\n")).handlers.size() == 3);
}
