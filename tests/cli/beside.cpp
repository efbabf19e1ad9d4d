// The programs that the command finds beside itself: where it looks, and its words if there is none.
#include "cli/beside.h"

#include <doctest/doctest.h>

#include <fstream>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "tests/folder.h"

using namespace millrace;
using namespace millrace::cli;
namespace fs = std::filesystem;

namespace {

// A prefix with the command in bin.
struct Prefix {
  test::Folder folder;
  fs::path command = folder.path / "bin" / "millrace";
  fs::path beside = folder.path / "bin" / "millrace-bench";
  fs::path apart = folder.path / "libexec" / "millrace" / "millrace-bench";

  Prefix() {
    fs::create_directories(beside.parent_path());
    fs::create_directories(apart.parent_path());
  }
  fs::path found() const { return find_beside("millrace-bench", "millrace-dev", command); }
};

void write(const fs::path& path) { std::ofstream(path) << "#!/bin/sh\n"; }

} // namespace

TEST_CASE("a program is looked for beside the command, then in libexec/millrace of the prefix") {
  const Prefix prefix;
  write(prefix.apart);
  CHECK(prefix.found() == prefix.apart);
  write(prefix.beside);
  CHECK(prefix.found() == prefix.beside);
}

TEST_CASE("a program that is in neither folder is an error with both folders and the package") {
  const Prefix prefix;
  fs::create_directory(prefix.beside); // a folder of its name is no program
  try {
    prefix.found();
    FAIL("something was found");
  } catch (const Failure& failure) {
    const Error& error = failure.error();
    CHECK(error.code == code::program_not_installed);
    CHECK(error.what == "the program millrace-bench is not installed");
    REQUIRE(error.notes.size() == 2);
    CHECK(error.notes[0] == "it was looked for in " + prefix.command.parent_path().string() + " and in " +
                                prefix.apart.parent_path().string());
    CHECK(error.notes[1] == "the package millrace-dev has it; in a build folder it is the target millrace-bench");
  }
}

TEST_CASE("the program that looks is this one") {
  CHECK(this_program().is_absolute());
  CHECK(find_beside(this_program().filename().string(), "") == this_program());
}

TEST_CASE("a program that the system does not run is an error with the system's reason") {
  const Prefix prefix;
  write(prefix.beside); // nobody may execute it
  CHECK_THROWS_WITH_AS(become(prefix.beside, {"plan"}), doctest::Contains("millrace-bench: Permission denied"),
                       Failure);
}
