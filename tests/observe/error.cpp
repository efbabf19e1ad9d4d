// Errors as people see them: the text, the suggestion, the table of codes.
#include "observe/error.h"

#include <doctest/doctest.h>
#include <millrace/nearest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "observe/error_codes.h"

using namespace millrace;

TEST_CASE("an error is written with its code, place, notes, suggestion and edit, in this order") {
  const Error error{304,
                    "no handler type is called 'image.blurr'",
                    {"street.yaml", 5, 20},
                    {"3 plugins are loaded"},
                    "image.blur",
                    "type: image.blur"};
  CHECK(format_error(error) ==
        "error MR0304: no handler type is called 'image.blurr'\n"
        "  at street.yaml:5:20\n"
        "  3 plugins are loaded\n"
        "  did you mean 'image.blur'?\n"
        "  try: type: image.blur");
}

TEST_CASE("what an error does not know is left out") {
  CHECK(format_error({12, "no", {}, {}, {}, {}}) == "error MR0012: no");
  CHECK(format_error({12, "no", {"a.yaml", 0, 7}, {}, {}, {}}) == "error MR0012: no\n  at a.yaml");
  CHECK(format_error({12, "no", {"a.yaml", 3, 0}, {}, {}, {}}) == "error MR0012: no\n  at a.yaml:3");
}

TEST_CASE("a failure's what() is the whole text") {
  const Failure failure(601, "blur failed");
  CHECK(std::string(failure.what()) == "error MR0601: blur failed");
  CHECK(failure.error().code == 601);
}

TEST_CASE("the nearest name is within a third of the letters, and a swap of neighbours counts once") {
  const std::vector<std::string> names = {"input", "inputs", "every", "device", "on_error"};
  CHECK(nearest_name("inptu", names) == "input");
  CHECK(nearest_name("evry", names) == "every");
  CHECK(nearest_name("devcie", names) == "device");
  CHECK(nearest_name("onerror", names) == "on_error");
  CHECK(nearest_name("every", names) == "every");
  CHECK(nearest_name("sigma", names) == "");
  CHECK(nearest_name("", names) == "");
  CHECK(nearest_name("x", {"y"}) == "");
  CHECK(nearest_name("w", {"wd"}) == "wd");
  CHECK(nearest_name(std::string(1000, 'a'), {std::string(1000, 'a')}) == "");
}

TEST_CASE("of two names equally near the first is suggested") { CHECK(nearest_name("bat", {"cat", "hat"}) == "cat"); }

TEST_CASE("capital letters differ by nothing") {
  CHECK(nearest_name("RGB8", {"gray8", "rgb8"}) == "rgb8");
  CHECK(nearest_name("Test.Pattern", {"test.pattern"}) == "test.pattern");
}

TEST_CASE("a type without its family, or of another, is found by its last part") {
  const std::vector<std::string> types = {"draw.text", "image.blur", "image.resize", "test.pattern"};
  CHECK(nearest_type("image.blurr", types) == "image.blur");
  CHECK(nearest_type("blur", types) == "image.blur");
  CHECK(nearest_type("video.blur", types) == "image.blur");
  CHECK(nearest_type("patern", types) == "test.pattern");
  CHECK(nearest_type("acme.warp_drive", types) == "");
  CHECK(nearest_type("acme.invert", {"image.convert"}) == "");
  CHECK(nearest_type(std::string(100'000, 'a'), {std::string(100'000, 'b')}) == "");
  CHECK(nearest_type("blur", {}) == "");
}

TEST_CASE("an assignment is written as its place takes it") {
  CHECK(assignment({"street.yaml", 3, 1}, "sigma", "2") == "sigma: 2");
  CHECK(assignment({"pipeline", 1, 20}, "sigma", "2") == "sigma=2");
  CHECK(assignment({"--set blur.sigma=x", 0, 0}, "sigma", "2") == "sigma=2");
}

TEST_CASE("an article goes by the first letter") {
  CHECK(with_article("Image") == "an Image");
  CHECK(with_article("Tensor") == "a Tensor");
}

TEST_CASE("codes rise, are unique, belong to one of nine families, and each is explained") {
  int previous = 0;
  for (const CodeInfo& info : error_codes()) {
    CHECK(info.code > previous);
    CHECK(info.code / 100 >= 1);
    CHECK(info.code / 100 <= 9);
    CHECK(info.title.size() > 3);
    CHECK(info.explanation.size() > info.title.size());
    CHECK(info.explanation.back() == '.');
    previous = info.code;
  }
}

TEST_CASE("a code is found however a person writes it") {
  CHECK(parse_code("MR0304") == 304);
  CHECK(parse_code("mr304") == 304);
  CHECK(parse_code("304") == 304);
  CHECK(parse_code("MR") == 0);
  CHECK(parse_code("MR03x4") == 0);
  CHECK(parse_code("99999") == 0);
  REQUIRE(find_code(304) != nullptr);
  CHECK(find_code(304)->title == "a handler type that is not known");
  CHECK(find_code(1) == nullptr);
}

TEST_CASE("sources throw codes by their names, and every code is thrown or printed") {
  const std::regex number(R"((?:Failure\(|Error\{|Error \w+\{)\s*\d{3},)"), name(R"(code::(\w+))"),
      printed(R"(MR0(\d{3}))");
  std::set<std::string> used;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MILLRACE_SOURCE_DIR "/runtime")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    std::ifstream stream(entry.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    INFO(entry.path().filename().string());
    CHECK_FALSE(std::regex_search(text, number));
    for (const std::regex* pattern : {&name, &printed})
      for (std::sregex_iterator found(text.begin(), text.end(), *pattern), end; found != end; ++found)
        used.insert((*found)[1].str());
  }
  // Handlers give the codes of family 9: MR_FAULT_MODEL_SHAPE is model_shape.
  const std::regex given(R"(\bMR_FAULT_(\w+))");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MILLRACE_SOURCE_DIR "/plugins")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream stream(entry.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), given), end; found != end; ++found)
      used.insert(detail::in_small_letters((*found)[1].str()));
  }
  for (const CodeInfo& info : error_codes()) {
    INFO(info.name);
    const bool known = used.contains(info.name) || used.contains(std::to_string(info.code));
    CHECK(known);
  }
}
