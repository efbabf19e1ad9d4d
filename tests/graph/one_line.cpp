// One-line pipelines: joins, names, references, quotes.
#include <doctest/doctest.h>

#include "graph/graph.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

// The edges as "source.port>target.port[index]", in the order of the text.
std::vector<std::string> edges_of(const std::string& text) {
  std::vector<std::string> all;
  for (const Edge& edge : parse_line(text).edges) {
    std::string line = edge.source + (edge.source_port.empty() ? "" : "." + edge.source_port) + ">" + edge.target;
    if (!edge.target_port.empty()) line += "." + edge.target_port;
    if (edge.target_index > 0) line += "[" + std::to_string(edge.target_index) + "]";
    all.push_back(line);
  }
  return all;
}
std::vector<std::string> handler_names(const std::string& text) {
  std::vector<std::string> all;
  for (const Handler& handler : parse_line(text).handlers) all.push_back(handler.name);
  return all;
}
using Texts = std::vector<std::string>;

} // namespace

TEST_CASE("'!' joins handlers, and key=value sets parameters") {
  const Graph graph = parse_line("test.pattern width=640 height=480 ! image.blur sigma=2 ! null.sink");
  REQUIRE(graph.handlers.size() == 3);
  CHECK(graph.handlers[0].type == "test.pattern");
  REQUIRE(graph.handlers[0].params.size() == 2);
  CHECK(graph.handlers[0].params[1].name == "height");
  CHECK(graph.handlers[0].params[1].text == "480");
  CHECK(graph.handlers[0].params[1].place.file == "pipeline");
  CHECK(graph.handlers[0].params[1].place.line == 1);
  CHECK(graph.handlers[0].params[1].place.column == 31);
  CHECK(graph.handlers[0].params[1].name_place.column == 24);
  CHECK(edges_of("test.pattern ! image.blur ! null.sink") == Texts{"pattern>blur", "blur>sink"});
}

TEST_CASE("a handler that is not named is called by the last part of its type, with a number where it repeats") {
  CHECK(handler_names("a.src ! b.blur ! c.blur ! b.blur ! d.sink") == Texts{"src", "blur", "blur2", "blur3", "sink"});
  CHECK(handler_names("a.src ! b.blur ! b.blur2 ! b.blur") == Texts{"src", "blur", "blur2", "blur3"});
}

TEST_CASE("a name that a person gives goes before one that is implied, wherever it stands") {
  CHECK(handler_names("a.src ! b.blur ! b.blur name=blur") == Texts{"src", "blur2", "blur"});
  CHECK(edges_of("a.src ! b.blur ! b.blur name=blur") == Texts{"src>blur2", "blur2>blur"});
}

TEST_CASE("reserved keys work as in the file") {
  const Handler handler = parse_line("a.src every=3 device=cpu on_error=skip budget=40ms/1.5s x-note=1").handlers[0];
  CHECK(handler.every == 3);
  CHECK(handler.device == "cpu");
  CHECK(handler.on_error == OnError::skip);
  CHECK(handler.budget_ns == 40'000'000);
  CHECK(handler.patience_ns == 1'500'000'000);
  CHECK(handler.params.empty());
}

TEST_CASE("references begin branches and end them") {
  CHECK(edges_of("video.file name=video ! draw.boxes name=boxes ! view.window  video. ! detect.people ! boxes.boxes") ==
        Texts{"video>boxes", "boxes>window", "video>people", "people>boxes.boxes"});
  CHECK(edges_of("a.src ! b.split name=s ! c.sink  s.left ! c.sink  s.right ! c.sink") ==
        Texts{"src>s", "s>sink", "s.left>sink2", "s.right>sink3"});
}

TEST_CASE("a chain goes on behind a reference with what that handler gives out") {
  CHECK(edges_of("a.src ! b.mix name=m ; a.src ! m.side ! c.sink") == Texts{"src>m", "src2>m.side", "m>sink"});
}

TEST_CASE("several edges into one input are a list in the order of the text") {
  CHECK(edges_of("a.src ! b.mix ; a.src ! mix. ; a.src ! mix.") == Texts{"src>mix", "src2>mix[1]", "src3>mix[2]"});
}

TEST_CASE("keys behind a reference that a chain leads to belong to the edge") {
  const Graph graph = parse_line("a.src ! b.mix name=m  src. ! c.slow ! m.side policy=latest initial=empty lag=2");
  const Edge& edge = graph.edges.back();
  CHECK(edge.policy == Policy::latest);
  CHECK(edge.initial_empty);
  CHECK(edge.lag == 2);
}

TEST_CASE("quotes group, a backslash takes the next character as it is") {
  const auto value = [](const std::string& text) {
    return parse_line("a.src p=" + text).handlers[0].params.at(0).text;
  };
  CHECK(value("\"two words ! ; \"") == "two words ! ; ");
  CHECK(value("'single \\ quoted'") == "single \\ quoted");
  CHECK(value("\"a \\\" b \\\\\"") == "a \" b \\");
  CHECK(value("a\\ b") == "a b");
  CHECK(value("a=b=c") == "a=b=c");
  CHECK(value("[1,2]") == "[1,2]");
  CHECK(value("pre' mid 'post") == "pre mid post");
  CHECK(value("") == "");
}

TEST_CASE("a family may be called like a handler that nobody named") {
  CHECK(handler_names("a.view ! view.window") == Texts{"view", "window"});
}

TEST_CASE("columns count characters, and line breaks count lines") {
  const Graph graph = parse_line("a.src p='äöü'\n  ! b.sink q=1");
  CHECK(graph.handlers[1].place.line == 2);
  CHECK(graph.handlers[1].place.column == 5);
  CHECK(parse_line("a.src p='äöü' q=1").handlers[0].params[1].place.column == 17);
}
