// The folder of control sockets: its owner, its mode, and the sockets of dead processes.
#include "serve/run_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "net/system/local.h"
#include "observe/error.h"
#include "tests/folder.h"
#include "tests/serve/variable.h"

using namespace millrace;
using namespace millrace::serve;
namespace fs = std::filesystem;

namespace {

Error refused_folder(const fs::path& folder) {
  try {
    make_run_folder(folder);
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

// The number of a process that was there and is gone.
pid_t gone_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  return child;
}

} // namespace

TEST_CASE("The folder is made for its user alone, and used again") {
  const test::Folder temporary;
  const fs::path folder = temporary.path / "millrace";
  make_run_folder(folder);
  struct stat facts {};
  REQUIRE(stat(folder.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0700);
  make_run_folder(folder);
}

TEST_CASE("A folder that others may enter, another user's, a link and a file are refused") {
  const test::Folder temporary;
  const fs::path folder = temporary.path / "millrace";
  make_run_folder(folder);
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  CHECK(refused_folder(folder).what == "other users may enter the folder");
  CHECK(refused_folder(folder).edit == "chmod 700 " + folder.string());
  CHECK(refused_folder(folder).code == 118);
  REQUIRE(chmod(folder.c_str(), 0700) == 0);
  const fs::path link = temporary.path / "link";
  fs::create_symlink(folder, link);
  CHECK(refused_folder(link).what == "this is no folder");
  std::ofstream(temporary.path / "file") << "text";
  CHECK(refused_folder(temporary.path / "file").what == "this is no folder");
  CHECK(refused_folder(temporary.path / "not" / "there").what.starts_with("the folder cannot be made: "));
  if (geteuid() != 0) return; // nobody else can give a folder away
  REQUIRE(chown(folder.c_str(), 65534, 65534) == 0);
  CHECK(refused_folder(folder).what == "the folder belongs to another user, whose number is 65534");
  CHECK_THROWS_AS(sockets_in(folder), Failure);
}

TEST_CASE("Sockets of dead processes are removed, and other files are left alone") {
  const test::Folder temporary;
  make_run_folder(temporary.path / "millrace");
  const fs::path folder = temporary.path / "millrace";
  std::string why;
  const fs::path left = folder / (std::to_string(gone_process()) + ".sock");
  net::listen_local(left.string(), why); // closed at once, as by a process that dies
  REQUIRE(fs::exists(left));
  const net::Descriptor mine = net::listen_local(socket_in(folder).string(), why);
  // As in another container: nobody here has that number, but somebody listens.
  const fs::path elsewhere = folder / (std::to_string(gone_process()) + ".sock");
  const net::Descriptor other = net::listen_local(elsewhere.string(), why);
  for (const char* name : {"notes.txt", "12x.sock", "-3.sock", ".sock", "99999999999999.sock"})
    std::ofstream(folder / name) << "text";
  const std::vector<RunSocket> found = sockets_in(folder);
  CHECK(found.size() == 2);
  for (const RunSocket& socket : found) CHECK((socket.path == socket_in(folder) || socket.path == elsewhere));
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(folder / "12x.sock"));
  CHECK(sockets_in(temporary.path / "nothing").empty());
}

TEST_CASE("The folder is the session's own if there is one, else one in the temporary folder") {
  const test::Folder temporary;
  const test::Variable session("XDG_RUNTIME_DIR", temporary.path.string());
  const test::Variable elsewhere("TMPDIR", (temporary.path / "tmp").string());
  fs::create_directory(temporary.path / "tmp");
  CHECK(open_run_folder() == temporary.path / "millrace");
  const fs::path in_temporary = temporary.path / "tmp" / ("millrace-" + std::to_string(geteuid()));
  for (const char* other : {"", "relative", "/not/there"}) {
    const test::Variable unusable("XDG_RUNTIME_DIR", other);
    CHECK(open_run_folder() == in_temporary);
  }
  std::string why;
  const net::Descriptor one = net::listen_local((temporary.path / "millrace" / "1.sock").string(), why);
  const net::Descriptor two = net::listen_local((in_temporary / "2.sock").string(), why);
  std::vector<std::string> complaints;
  CHECK(find_sockets(complaints).size() == 2);
  CHECK(complaints.empty());
  REQUIRE(chmod(in_temporary.c_str(), 0777) == 0);
  CHECK(find_sockets(complaints).size() == 1);
  REQUIRE(complaints.size() == 1);
  CHECK(complaints[0] == "left out: " + in_temporary.string() + ": other users may enter the folder");
}
