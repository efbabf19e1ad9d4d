// Words of a line that are neither `!` nor key=value: the parameter for which they are taken.
#include "graph/stray_word.h"

#include <doctest/doctest.h>

#include "observe/error_codes.h"
#include "plugin/registry.h"

using namespace millrace;

namespace {

// The edit that is suggested for a line that is refused.
std::string edit_for(const std::string& line, bool with_types = true) {
  const plugin::Registry registry;
  const graph::FindType find = [&](const std::string& type) { return registry.find(type); };
  try {
    graph::parse_line(line, nullptr, with_types ? find : graph::FindType());
  } catch (const Failure& failure) {
    CHECK(failure.error().code == code::bad_one_line_pipeline);
    return failure.error().edit;
  }
  return "accepted";
}

} // namespace

TEST_CASE("a word that looks like a path is the parameter that takes one") {
  CHECK(edit_for("file.raw_reader a/b.rgb width=4 ! null.sink") == "path=a/b.rgb");
  CHECK(edit_for("test.pattern ! file.raw_writer out.rgb") == "path=out.rgb");
  CHECK(edit_for("test.pattern ! file.raw_writer -") == "path=-");
  CHECK(edit_for("test.pattern ! file.raw_writer \"my film.rgb\"") == "path=\"my film.rgb\"");
  CHECK(edit_for("test.pattern ! draw.text fonts/a.ttf ! null.sink") == "font=fonts/a.ttf");
}

TEST_CASE("a size is width and height where the handler has both") {
  for (const char* size : {"640x360", "640X360", "640×360", "640*360"})
    CHECK(edit_for("test.pattern ! image.resize " + std::string(size) + " ! null.sink") == "width=640 height=360");
  CHECK(edit_for("test.pattern 64x48 count=3 ! null.sink") == "width=64 height=48");
  CHECK(edit_for("test.pattern width=64 64x48 ! null.sink") != "width=64 height=48"); // one is given
}

TEST_CASE("choices, numbers, colons, dashes and names of parameters are understood") {
  CHECK(edit_for("test.pattern ! image.resize width=4 area ! null.sink") == "method=area");
  CHECK(edit_for("test.pattern ! image.flip Vertical ! null.sink") == "mode=vertical");
  CHECK(edit_for("test.pattern ! image.blur 3 ! null.sink") == "sigma=3");
  CHECK(edit_for("test.pattern ! image.blur 2.5 ! null.sink") == "sigma=2.5");
  CHECK(edit_for("test.pattern ! image.blur 100 ! null.sink") == ""); // above its range
  CHECK(edit_for("test.pattern ! image.blur sigma:3 ! null.sink") == "sigma=3");
  CHECK(edit_for("test.pattern ! image.blur --sigma ! null.sink") == "sigma=2");
  CHECK(edit_for("test.pattern ! draw.boxes labels ! null.sink") == "labels=false");
  CHECK(edit_for("test.pattern ! draw.boxes label ! null.sink") == "labels=false");
}

TEST_CASE("a word after a free text belongs to it, unless it can be nothing of it") {
  CHECK(edit_for("test.pattern ! draw.text text=Camera 7 ! null.sink") == "text=\"Camera 7\"");
  CHECK(edit_for("test.pattern ! draw.text text=at noon ! null.sink") == "text=\"at noon\"");
}

TEST_CASE("without the types, what is sure by itself is suggested") {
  CHECK(edit_for("video.file media/vtest.avi ! null.sink", false) == "path=media/vtest.avi");
  CHECK(edit_for("video.file vtest.avi ! null.sink", false) == "path=vtest.avi");
  CHECK(edit_for("image.resize 640x360 ! null.sink", false) == "");
  CHECK(edit_for("unknown.type 640x360 ! null.sink") == "");
}

TEST_CASE("the parameters that there are stand in the error") {
  const plugin::Registry registry;
  try {
    graph::parse_line("test.pattern ! image.resize @ ! null.sink", nullptr,
                      [&](const std::string& type) { return registry.find(type); });
    FAIL("it is accepted");
  } catch (const Failure& failure) {
    CHECK(failure.error().notes.back() == "parameters of image.resize: width, height, method");
  }
}
