// Files with the names of classes, and what reads them: tensor.top_k.
#include "handlers/file/class_names.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "builtin.h"
#include "handlers/record/json_line.h"
#include "handlers/tensor/class_score.h"
#include "scratch.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::TableTest;

namespace {

using Names = std::vector<std::string>;

// Why the file is refused, after "cannot read 'PATH': ".
std::string why_refused(const std::string& path) {
  try {
    read_class_names(path);
  } catch (const std::runtime_error& error) {
    const std::string start = "cannot read '" + path + "': ";
    REQUIRE(std::string(error.what()).starts_with(start));
    return std::string(error.what()).substr(start.size());
  }
  return "";
}

std::string name_of(const Class& one) { return reinterpret_cast<const char*>(one.name); }

} // namespace

TEST_CASE("each line is a class, without the spaces around it, whatever ends the lines") {
  const ScratchFolder folder;
  CHECK(read_class_names(folder.write("a", "cat\ndog\n")) == Names{"cat", "dog"});
  CHECK(read_class_names(folder.write("b", "cat\ndog")) == Names{"cat", "dog"});
  CHECK(read_class_names(folder.write("c",
                                      "\xEF\xBB\xBF"
                                      "cat\r\n\ttwo words \r\n\r\n\n")) == Names{"cat", "two words"});
  CHECK(read_class_names(folder.write("d", "\n\nGlühwürmchen\n")) == Names{"", "", "Glühwürmchen"});
  CHECK(read_class_names(folder.write("e", std::string(kClassNameBytesMax, 'x'))).at(0).size() == kClassNameBytesMax);
  CHECK(read_class_names(folder.write("f", std::string(kClassNamesMax - 1, '\n') + "x")).size() == kClassNamesMax);
}

TEST_CASE("what is no list of names is refused with the line") {
  const ScratchFolder folder;
  CHECK(why_refused(folder / "none") == "there is no such file");
  CHECK(why_refused(folder.write("a", "cat\nd\x01g\n")) == "line 2 is no text; a list of names has one class a line");
  CHECK(why_refused(folder.write("b", "\n" + std::string(kClassNameBytesMax + 1, 'x'))) ==
        "line 2 has 257 bytes, and a name has at most 256");
  CHECK(why_refused(folder.write("c", " \n\n")) == "there is no name in it");
  CHECK(why_refused(folder.write("d", std::string(kClassNamesMax, '\n') + "x")) == "it has more than 65536 lines");
  CHECK(why_refused(folder.write("e", std::string(17'000'000, 'x'))) == "it is too large for a list of names");
}

TEST_CASE("tensor.top_k gives classes their names, and refuses a file with too few") {
  const ScratchFolder folder;
  const std::string names = folder.write("names.txt", "cat\nDackel\nbird\n");
  TableTest top(builtin("tensor.top_k"), {{"labels", names}, {"k", "2"}});
  top.input("tensor", testing::tensor<float>({1, 3}, {0.25f, 0.75f, 0.5f}));
  const auto result = top.tick();
  REQUIRE_MESSAGE(result.ok(), result.error);
  const auto classes = result.records<Class>("records");
  REQUIRE(classes.size() == 2);
  CHECK(name_of(classes[0]) == "Dackel");
  CHECK(name_of(classes[1]) == "bird");

  TableTest few(builtin("tensor.top_k"), {{"labels", names}});
  few.input("tensor", testing::tensor<float>({4}, {0, 0, 0, 1}));
  CHECK(few.start() == MR_ERROR);
  CHECK(few.error() == "'" + names + "' has the names of 3 classes, and the tensor has the scores of 4");
}

TEST_CASE("a name that a record has no room for is cut between two letters") {
  Class one;
  set_name(one, std::string(kClassNameBytes - 1, 'x') + "ä");
  CHECK(std::string_view(reinterpret_cast<const char*>(one.name), kClassNameBytes) ==
        std::string(kClassNameBytes - 1, 'x') + '\0');
  set_name(one, std::string(kClassNameBytes - 2, 'x') + "ä");
  CHECK(std::string_view(reinterpret_cast<const char*>(one.name), kClassNameBytes) ==
        std::string(kClassNameBytes - 2, 'x') + "ä");
  set_name(one, "cat");
  CHECK(name_of(one) == "cat");
}

TEST_CASE("a name is a text in JSON, and is read back") {
  Class one{0.5f, 3};
  set_name(one, "\"a\" \\ b\t");
  const RecordLayout& layout = *find_layout(known_layouts(), Class::kSchema);
  std::string text;
  append_record_line(text, 0, 0, layout, reinterpret_cast<const uint8_t*>(&one), 1);
  CHECK(text.find(R"({"score":0.5,"label":3,"name":"\"a\" \\ b\u0009"})") != std::string::npos);
  RecordLine line;
  read_record_line(text, known_layouts(), line);
  REQUIRE(line.bytes.size() == sizeof(Class));
  Class back;
  std::memcpy(&back, line.bytes.data(), sizeof back);
  CHECK(name_of(back) == "\"a\" \\ b\t");
  const std::string long_name(kClassNameBytes + 1, 'x');
  CHECK_THROWS_WITH(
      read_record_line(R"({"schema":"millrace.Class","records":[{"score":1,"label":0,"name":")" + long_name + "\"}]}",
                       known_layouts(), line),
      "the text has 65 bytes, and the field has room for 64");
}
