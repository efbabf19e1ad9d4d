// Wrong pipelines, each a file in wrong/ (.yaml, or .line for the one-line form), and what a person is told (.txt).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "observe/error.h"
#include "observe/error_codes.h"

using namespace millrace;
namespace files = std::filesystem;

namespace {

std::string content_of(const files::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<files::path> wrong_pipelines() {
  std::vector<files::path> all;
  for (const auto& entry : files::directory_iterator(MILLRACE_SOURCE_DIR "/tests/graph/wrong"))
    if (entry.path().extension() != ".txt") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

std::string told(const files::path& path, int& code) {
  try {
    std::string text = content_of(path);
    if (path.extension() == ".yaml") graph::parse_yaml(text, path.filename().string());
    if (path.extension() == ".line") {
      text.pop_back(); // the line break that ends the file
      graph::parse_line(text);
    }
  } catch (const Failure& failure) {
    code = failure.error().code;
    return std::string(failure.what()) + "\n";
  }
  return "accepted\n";
}

} // namespace

TEST_CASE("each wrong pipeline is refused in exactly the words that are kept beside it") {
  // The words are left in the build folder, so that a wanted change of them is a copy.
  const files::path said = files::path(MILLRACE_BINARY_DIR) / "wrong";
  files::create_directories(said);
  std::set<int> codes;
  const std::vector<files::path> pipelines = wrong_pipelines();
  for (const files::path& path : pipelines) {
    int code = 0;
    const std::string text = told(path, code);
    files::path expected = path;
    expected.replace_extension(".txt");
    std::ofstream(said / expected.filename()) << text;
    INFO(path.filename().string());
    CHECK(text == content_of(expected));
    CHECK(find_code(code) != nullptr);
    codes.insert(code);
  }
  CHECK(pipelines.size() >= 40);
  // All codes of the text's family can be provoked by a small text, but for limits, which have a test of their own.
  for (const CodeInfo& info : error_codes())
    if (info.code / 100 == 2 && info.code != 203) {
      INFO(info.code);
      CHECK(codes.count(info.code) == 1);
    }
}
