// Damaged pipelines: every text near a known one is read or refused with a code and a place, never anything else.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "graph/graph.h"
#include "observe/error.h"
#include "tests/fuzz/packed.h"

using namespace millrace;
using namespace millrace::graph;

namespace {

std::vector<std::string> corpus(const char* extension) {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"/examples", "/tests/graph/wrong"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(MILLRACE_SOURCE_DIR) + folder))
      if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end()); // a folder's order is not the same everywhere, a seed's result shall be
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return texts;
}

// A few pieces cut, doubled, moved in from another text, or overwritten by a byte that means something.
std::string damaged(const std::vector<std::string>& corpus, std::mt19937& random) {
  static const std::string kBytes = "{}[]:,-!&*#?|>'\"%@`\\\n\t ;=.~\x01\xC3\xFF";
  const auto below = [&](size_t n) { return n == 0 ? 0 : std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  std::string text = corpus[below(corpus.size())];
  for (size_t n = 1 + below(4); n > 0; --n) {
    const size_t at = below(text.size() + 1), length = below(std::min<size_t>(12, text.size() - at + 1));
    const std::string& other = corpus[below(corpus.size())];
    switch (below(4)) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, text.substr(at, length)); break;
      case 2: text.insert(at, other.substr(below(other.size() + 1), below(40))); break;
      case 3: text.insert(at, 1, kBytes[below(kBytes.size())]); break;
    }
  }
  return text;
}

// Reads one text; what is accepted has to come back from its canonical form.
template <class Parse>
void check_one(const std::string& text, Parse parse) {
  try {
    const Graph graph = parse(text);
    CHECK(same(graph, parse_yaml(to_yaml(graph), "again.yaml")));
  } catch (const Failure& failure) {
    const Error& error = failure.error();
    CHECK((error.code / 100 == 2 || error.code == 303 || error.code == 315 || error.code == 318 ||
           (error.code >= 320 && error.code <= 323) || error.code == 325));
    CHECK(error.place.line >= 1);
    CHECK(error.place.column >= 1);
  }
}

} // namespace

TEST_CASE("what fuzzers have found is read or refused, with a code and a place") {
  const std::vector<std::string> lines = unpacked(MILLRACE_SOURCE_DIR, "line.txt"),
                                 files = unpacked(MILLRACE_SOURCE_DIR, "pipeline.txt");
  CHECK(lines.size() > 500);
  CHECK(files.size() > 500);
  for (const std::string& text : lines) {
    INFO(text);
    check_one(text, [](const std::string& t) { return parse_line(t); });
  }
  for (const std::string& text : files) {
    INFO(text);
    check_one(text, [](const std::string& t) { return parse_yaml(t, "fuzzed.yaml"); });
  }
}

TEST_CASE("an empty word is no handler type") { CHECK_THROWS_AS(parse_line("\"\" ! null.sink"), Failure); }

TEST_CASE("a damaged pipeline file is read or refused, with a code and a place") {
  const std::vector<std::string> texts = corpus(".yaml");
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    const std::string text = damaged(texts, random);
    INFO("seed " << seed << "\n" << text);
    check_one(text, [](const std::string& t) { return parse_yaml(t, "damaged.yaml"); });
  }
}

TEST_CASE("a damaged one-line pipeline is read or refused, with a code and a place") {
  const std::vector<std::string> texts = corpus(".line");
  for (uint32_t seed = 1; seed <= 5000; ++seed) {
    std::mt19937 random(seed);
    const std::string text = damaged(texts, random);
    INFO("seed " << seed << "\n" << text);
    check_one(text, [](const std::string& t) { return parse_line(t); });
  }
}
