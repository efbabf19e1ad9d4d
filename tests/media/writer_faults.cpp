// video.writer where writing fails: full disks, locks, crashes, vanished folders, pipes without readers.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/media/part_file.h"
#include "plugins/media/segments.h"
#include "tests/contains.h"
#include "tests/handlers/scratch.h"
#include "tests/media/films.h"

namespace {
thread_local int close_fails_with = 0, sync_fails_with = 0; // once

// One call that makes a file outlast a loss of power, or gives it its name.
struct DiskCall {
  std::string name;
  ino_t inode; // of the descriptor; 0 of a rename
};
std::vector<DiskCall>* disk_calls = nullptr; // where they are counted

int sync_as(const char* name, long number, int descriptor) {
  struct stat status {};
  fstat(descriptor, &status);
  if (disk_calls) disk_calls->push_back({name, status.st_ino});
  if (sync_fails_with) {
    errno = std::exchange(sync_fails_with, 0);
    return -1;
  }
  return static_cast<int>(syscall(number, descriptor));
}
} // namespace

// In place of the C library's, for this program.
extern "C" int close(int descriptor) {
  const long result = syscall(SYS_close, descriptor);
  if (!close_fails_with) return static_cast<int>(result);
  errno = std::exchange(close_fails_with, 0);
  return -1;
}
extern "C" int fsync(int descriptor) { return sync_as("fsync", SYS_fsync, descriptor); }
extern "C" int fdatasync(int descriptor) { return sync_as("fdatasync", SYS_fdatasync, descriptor); }
extern "C" int rename(const char* from, const char* to) noexcept {
  if (disk_calls) disk_calls->push_back({"rename", 0});
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace millrace::media {
namespace {

namespace fs = std::filesystem;
using handlers::ScratchFolder;
using testing::Result;
using testing::TableTest;

testing::Value picture(int i) {
  return numbered(Pixel::i420, 320, 240, static_cast<uint32_t>(i)).at(i * 40'000'000, 40'000'000);
}

// Ticks until the writer fails, at most so many; then the sentence, "" where it did not fail.
std::string failure_within(TableTest& writer, int ticks) {
  for (int i = 0; i < ticks; ++i) {
    writer.input("video", picture(i));
    if (const Result result = writer.tick(); !result.ok()) return result.error;
  }
  return writer.drain() == MR_OK ? "" : writer.error();
}

// The most that a file of this process may hold, for as long as this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

std::atomic<int> signals_seen = 0;

void nothing_kept(const std::string&, const std::string&) { FAIL("nothing was there"); }

ino_t inode_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

size_t count_said(const TableTest& writer, const std::string& part) {
  size_t count = 0;
  for (const testing::LogLine& line : writer.logs()) count += contains(line.sentence, part);
  return count;
}

} // namespace

TEST_CASE("a file that may not grow ends the film in words, with the byte, no signal, and a part that plays") {
  const ScratchFolder folder;
  const auto before = signal(SIGXFSZ, [](int) { ++signals_seen; });
  signals_seen = 0;
  for (const char* name : {"a.mp4", "a.mkv", "a.avi", "a.ts", "a.y4m"}) {
    INFO(std::string(name));
    const std::string path = folder / name;
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"quality", "90"}});
    std::string said;
    {
      const FileSizeLimit limit(300'000);
      said = failure_within(writer, 400);
    }
    const std::string part = folder / ("a.part" + fs::path(name).extension().string());
    CHECK(contains(said, "cannot write '" + path + "': File too large (at byte 300000)"));
    CHECK(contains(said, "what was written before is in '" + part + "'"));
    CHECK(!fs::exists(path));
    CHECK(fs::file_size(part) == 300'000);
    CHECK(writer.stop() == MR_OK); // it was said once
    CHECK(fs::exists(part));
    CHECK(decoded(part, "gray 2>/dev/null").size() >= 320 * 240);
  }
  CHECK(signals_seen == 0);
  signal(SIGXFSZ, before);
}

TEST_CASE("a full device is said with its reason") {
  const ScratchFolder folder;
  fs::create_symlink("/dev/full", folder / "full.mp4");
  TableTest writer(handler_type("video.writer"), {{"path", folder / "full.mp4"}});
  const std::string said = failure_within(writer, 100);
  CHECK(contains(said, "cannot write '" + (folder / "full.mp4") + "': No space left on device (at byte "));
  CHECK(fs::is_symlink(folder / "full.mp4"));
}

TEST_CASE("a file that cannot be made is named, and so is the path that was asked for") {
  const ScratchFolder folder;
  const std::string name(250, 'n'); // with ".part" it is longer than a name may be
  fs::create_symlink(name + ".mkv", folder / "link.mkv");
  for (const std::string& path : {folder / (name + ".mkv"), folder / "link.mkv"}) {
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    writer.input("video", picture(0));
    CHECK(writer.start() == MR_ERROR);
    CHECK(contains(writer.error(), "cannot write '" + path + "': its file '" + (folder / (name + ".part.mkv")) +
                                       "' cannot be made: File name too long"));
  }
}

TEST_CASE("what a file system says at close is heard before the file gets its name, and the lock stays") {
  const ScratchFolder folder;
  const std::string path = folder / "a.mkv";
  PartFile file;
  file.open(path, true, nothing_kept);
  REQUIRE(write(file.descriptor(), "x", 1) == 1);
  close_fails_with = EDQUOT;
  std::string said;
  try {
    file.commit();
  } catch (const std::runtime_error& failed) {
    said = failed.what();
  }
  close_fails_with = 0;
  CHECK(contains(
      said, "cannot write '" + path + "': Disk quota exceeded; what was written is in '" + (folder / "a.part.mkv")));
  CHECK(!fs::exists(path));
  file.commit();
  PartFile second;
  CHECK_THROWS_WITH_AS(second.open(path, true, nothing_kept), doctest::Contains("another process is writing it"),
                       std::runtime_error);
}

TEST_CASE("a file that replaces another has its mode, from the first byte on") {
  const ScratchFolder folder;
  const auto mode_of = [](const std::string& path) { return fs::status(path).permissions() & fs::perms::all; };
  for (const mode_t mode : {0600u, 0640u, 0444u, 0755u}) {
    const std::string path = folder / ("a" + std::to_string(mode) + ".mkv"),
                      link = folder / ("l" + std::to_string(mode));
    std::ofstream(path) << "old";
    REQUIRE(chmod(path.c_str(), mode) == 0);
    fs::create_symlink(path, link);
    PartFile file;
    file.open(link, true, nothing_kept);
    CHECK(mode_of(file.part_path()) == fs::perms(mode));
    REQUIRE(write(file.descriptor(), "new", 3) == 3);
    file.commit();
    CHECK(mode_of(path) == fs::perms(mode));
    CHECK(fs::file_size(path) == 3);
    CHECK(fs::is_symlink(link));
  }
}

TEST_CASE("a film is on the disk before it has its name, and its name and the folders made for it before it is done") {
  const ScratchFolder folder;
  PartFile file;
  file.open(folder / "made/for/a.mkv", true, nothing_kept);
  REQUIRE(write(file.descriptor(), "x", 1) == 1);
  const ino_t inode = inode_of(file.part_path());
  std::vector<DiskCall> calls;
  disk_calls = &calls;
  file.commit();
  disk_calls = nullptr;
  REQUIRE(calls.size() == 5);
  CHECK(calls[0].name == "fdatasync");
  CHECK(calls[0].inode == inode);
  CHECK(calls[1].name == "rename");
  const std::string folders[] = {folder / "made/for", folder / "made", folder / "."};
  for (size_t i = 0; i < 3; ++i) {
    CHECK(calls[2 + i].name == "fsync");
    CHECK(calls[2 + i].inode == inode_of(folders[i]));
  }
}

TEST_CASE("what the disk says when the bytes are forced to it is heard before the file gets its name") {
  const ScratchFolder folder;
  PartFile file;
  file.open(folder / "a.mkv", true, nothing_kept);
  REQUIRE(write(file.descriptor(), "x", 1) == 1);
  sync_fails_with = EIO;
  CHECK_THROWS_WITH_AS(file.commit(), doctest::Contains("Input/output error; what was written is in"),
                       std::runtime_error);
  CHECK(!fs::exists(folder / "a.mkv"));
  CHECK(fs::exists(folder / "a.part.mkv"));
}

TEST_CASE("a film that has failed refuses each further picture in the words of the failure, and its end says no more") {
  const ScratchFolder folder;
  const std::string path = folder / "a.mp4";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"quality", "90"}});
  std::string said;
  {
    const FileSizeLimit limit(200'000);
    said = failure_within(writer, 400);
  }
  CHECK(contains(said, "cannot write '" + path + "': File too large (at byte 200000)"));
  for (int i = 0; i < 3; ++i) {
    writer.input("video", picture(400 + i));
    CHECK(writer.tick().error == said);
  }
  CHECK(writer.drain() == MR_OK);
  CHECK(!fs::exists(path));
  CHECK(fs::file_size(folder / "a.part.mp4") == 200'000);
}

TEST_CASE("after a failure a restart keeps what was written, and says where it is and that it is its own") {
  const ScratchFolder folder;
  const std::string path = folder / "a.mp4";
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"quality", "90"}});
  {
    const FileSizeLimit limit(200'000);
    CHECK(failure_within(writer, 400) != "");
  }
  REQUIRE(writer.restart() == MR_OK);
  CHECK(fs::file_size(folder / "a.part-1.mp4") == 200'000);
  CHECK(count_said(writer, "the film that failed is kept as '" + (folder / "a.part-1.mp4") + "'") == 1);
  CHECK(count_said(writer, "an earlier run") == 0);
  CHECK(failure_within(writer, 10) == "");
  CHECK(probe(path).times.size() == 10);
}

TEST_CASE("leftovers of crashed runs never overwrite each other") {
  const ScratchFolder folder;
  for (const char* left : {"first", "second"}) {
    folder.write("a.part.mp4", left);
    TableTest writer(handler_type("video.writer"), {{"path", folder / "a.mp4"}});
    CHECK(failure_within(writer, 3) == "");
    CHECK(count_said(writer, "an earlier run left an unfinished file, which is kept as '" + (folder / "a.part-")) == 1);
  }
  CHECK(folder.text("a.part-1.mp4") == "first");
  CHECK(folder.text("a.part-2.mp4") == "second");
}

TEST_CASE("a second writer of a name is refused before it has touched anything") {
  const ScratchFolder folder;
  const std::string path = folder / "a.mp4";
  TableTest first(handler_type("video.writer"), {{"path", path}});
  first.input("video", picture(0));
  REQUIRE(first.tick().ok());
  fs::create_symlink("a.mp4", folder / "link.mp4");
  for (const std::string& name : {path, folder / "link.mp4"}) {
    TableTest second(handler_type("video.writer"), {{"path", name}});
    second.input("video", picture(0));
    CHECK(second.start() == MR_ERROR);
    CHECK(contains(second.error(), "cannot write '" + (folder / "")));
    CHECK(contains(second.error(), "another process is writing it"));
  }
  CHECK(failure_within(first, 10) == "");
  CHECK(probe(path).times.size() == 11);
  CHECK(!fs::exists(folder / "a.part-1.mp4"));
  TableTest third(handler_type("video.writer"), {{"path", path}}); // the lock is gone
  CHECK(failure_within(third, 3) == "");
}

TEST_CASE("a second recording in segments is refused while the first goes on, also after its first segment") {
  const ScratchFolder folder;
  const std::string path = folder / "s-%03d.mkv";
  TableTest first(handler_type("video.writer"), {{"path", path}, {"segment", "200ms"}});
  for (int i = 0; i < 60; ++i) {
    first.input("video", picture(i));
    REQUIRE(first.tick().ok());
  }
  REQUIRE(fs::exists(folder / "s-000.mkv"));
  TableTest second(handler_type("video.writer"), {{"path", path}, {"segment", "200ms"}});
  second.input("video", picture(0));
  CHECK(second.start() == MR_ERROR);
  CHECK(contains(second.error(), "another process is writing it"));
  CHECK(first.drain() == MR_OK);
}

TEST_CASE("a list that cannot be written is refused in the start, and leaves no film") {
  const ScratchFolder folder;
  fs::create_directory(folder / "list.txt");
  folder.write("file", "x");
  for (const auto& [list, why] : {std::pair{folder / "list.txt", "Is a directory"},
                                  {folder / "file/list.txt", "Not a directory"},
                                  {std::string("/proc/none/list.txt"), "No such file or directory"}}) {
    TableTest writer(handler_type("video.writer"), {{"path", folder / "s.mkv"}, {"segment", "1s"}, {"list", list}});
    writer.input("video", picture(0));
    CHECK(writer.start() == MR_ERROR);
    CHECK(contains(writer.error(), "cannot write '" + list + "'"));
    CHECK(contains(writer.error(), why));
  }
  CHECK(!fs::exists(folder / "s-000.part.mkv"));
}

TEST_CASE("a second recording with the list of the first is refused in the start, before and after a segment") {
  const ScratchFolder folder;
  const std::string list = folder.write("list.txt", "of another recording");
  const auto second_is_refused = [&] {
    TableTest second(handler_type("video.writer"), {{"path", folder / "b.mkv"}, {"segment", "1s"}, {"list", list}});
    second.input("video", picture(0));
    CHECK(second.start() == MR_ERROR);
    CHECK(contains(second.error(), "cannot write '" + list + "': another process is writing it"));
  };
  TableTest first(handler_type("video.writer"), {{"path", folder / "a.mkv"}, {"segment", "200ms"}, {"list", list}});
  first.input("video", picture(0));
  REQUIRE(first.start() == MR_OK);
  second_is_refused();
  CHECK(folder.text("list.txt") == "of another recording"); // until there is something to list
  for (int i = 0; i < 60; ++i) {
    first.input("video", picture(i));
    REQUIRE(first.tick().ok());
  }
  const std::string begun = folder.text("list.txt");
  CHECK(begun.starts_with("ffconcat version 1.0\nfile 'a-000.mkv'\nduration 0.200000\n"));
  CHECK(begun.ends_with("\nduration 0.200000\n"));
  second_is_refused();
  CHECK(first.drain() == MR_OK);
  CHECK(folder.text("list.txt").starts_with(begun));
  CHECK(contains(folder.text("list.txt"), "file 'a-011.mkv'\n"));
  TableTest third(handler_type("video.writer"), {{"path", folder / "b.mkv"}, {"segment", "1s"}, {"list", list}});
  CHECK(failure_within(third, 3) == ""); // the lock is gone
  CHECK(folder.text("list.txt").starts_with("ffconcat version 1.0\nfile 'b-000.mkv'\nduration "));
}

TEST_CASE("a list that is removed while it is written is made anew, whole, and one that may not grow keeps its lines") {
  const ScratchFolder folder;
  SegmentList list;
  list.begin(folder / "list.txt", nothing_kept);
  list.add(folder / "a-000.mkv", 1'000'000);
  fs::remove(folder / "list.txt");
  list.add(folder / "a-001.mkv", 61'000'040);
  const std::string both =
      "ffconcat version 1.0\nfile 'a-000.mkv'\nduration 1.000000\nfile 'a-001.mkv'\nduration 61.000040\n";
  CHECK(folder.text("list.txt") == both);
  const FileSizeLimit limit(both.size() + 3);
  CHECK_THROWS_WITH_AS(list.add(folder / "a-002.mkv", 1'000'000), doctest::Contains("': File too large (at byte "),
                       std::runtime_error);
  CHECK(folder.text("list.txt") == both);
}

TEST_CASE("a film whose part file is deleted, or whose folder is gone, fails while it runs") {
  for (const bool whole_folder : {false, true}) {
    const ScratchFolder folder;
    const std::string path = folder / "in/a.mp4";
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    writer.input("video", picture(0));
    REQUIRE(writer.tick().ok());
    if (whole_folder)
      fs::remove_all(folder / "in");
    else
      fs::remove(folder / "in/a.part.mp4");
    const std::string said = failure_within(writer, 200);
    CHECK(contains(said, "cannot write '" + path + "': its file '" + (folder / "in/a.part.mp4") + "' was removed"));
    CHECK(!fs::exists(path));
  }
}

TEST_CASE("a film whose folder was moved fails at its end and says where it cannot be put") {
  const ScratchFolder folder;
  TableTest writer(handler_type("video.writer"), {{"path", folder / "in/a.mp4"}});
  writer.input("video", picture(0));
  REQUIRE(writer.tick().ok());
  fs::rename(folder / "in", folder / "elsewhere");
  CHECK(contains(failure_within(writer, 3), "cannot write '" + (folder / "in/a.mp4") + "'"));
  CHECK(fs::file_size(folder / "elsewhere/a.part.mp4") > 0);
}

TEST_CASE("`exists: fail` refuses a name that is there, at the start and at the end") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.mp4", "old");
  {
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"exists", "fail"}});
    writer.input("video", picture(0));
    CHECK(writer.start() == MR_ERROR);
    CHECK(contains(writer.error(), "it is there already"));
  }
  fs::remove(path);
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"exists", "fail"}});
  writer.input("video", picture(0));
  REQUIRE(writer.tick().ok());
  folder.write("a.mp4", "new");
  CHECK(contains(failure_within(writer, 3), "it has come into being meanwhile"));
  CHECK(folder.text("a.mp4") == "new");
  CHECK(probe(folder / "a.part.mp4").times.size() == 4);
}

TEST_CASE("what cannot be written at all is refused in the start with the system's words") {
  const ScratchFolder folder;
  fs::create_directory(folder / "folder.mp4");
  folder.write("file", "x");
  for (const auto& [path, why] : {std::pair{folder / "folder.mp4", "Is a directory"},
                                  {folder / "file/a.mp4", "Not a directory"},
                                  {std::string("/proc/none/a.mp4"), "No such file or directory"}}) {
    TableTest writer(handler_type("video.writer"), {{"path", path}});
    writer.input("video", picture(0));
    CHECK(writer.start() == MR_ERROR);
    INFO(writer.error());
    CHECK(contains(writer.error(), "cannot write '" + path + "'"));
    CHECK(contains(writer.error(), why));
  }
}

TEST_CASE("a recording that is killed leaves a film that plays but for its last two seconds") {
  const ScratchFolder folder;
  for (const char* name : {"a.mp4", "a.mkv", "a.mov", "a.ts"}) {
    const std::string part = folder / ("a.part" + fs::path(name).extension().string());
    const pid_t child = fork();
    if (child == 0) {
      TableTest writer(handler_type("video.writer"), {{"path", folder / name}, {"preset", "medium"}});
      for (int i = 0; i < 150; ++i) { // 6 s
        const testing::Value shown = numbered(Pixel::i420, 160, 120, static_cast<uint32_t>(i));
        writer.input("video", shown.at(i * 40'000'000, 40'000'000));
        if (!writer.tick().ok()) _exit(2);
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    INFO(std::string(name));
    CHECK(!fs::exists(folder / name));
    const size_t pictures = decoded(part, "gray 2>/dev/null").size() / (160 * 120);
    CHECK(pictures >= 100);
  }
}

TEST_CASE("a FIFO without a reader is waited for until an interrupt") {
  const ScratchFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  TableTest writer(handler_type("video.writer"), {{"path", path}, {"container", "nut"}});
  writer.input("video", picture(0));
  std::atomic<bool> done = false;
  std::thread interrupter([&] {
    while (!done) {
      writer.interrupt();
      std::this_thread::yield();
    }
  });
  CHECK(writer.start() == MR_ERROR);
  done = true;
  interrupter.join();
  CHECK(contains(writer.error(), "interrupted while it waited for a reader"));
}

TEST_CASE("a FIFO whose reader reads nothing is waited for until an interrupt, and one whose reader goes is an error") {
  const ScratchFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const auto before = signal(SIGPIPE, [](int) { ++signals_seen; });
  signals_seen = 0;
  int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  {
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"container", "y4m"}});
    writer.input("video", picture(0));
    REQUIRE(writer.start() == MR_OK);
    std::atomic<bool> done = false;
    std::thread interrupter([&] {
      while (!done) {
        writer.interrupt();
        std::this_thread::yield();
      }
    });
    const std::string said = failure_within(writer, 100); // a pipe holds 64 KiB
    done = true;
    interrupter.join();
    CHECK(contains(said, "cannot write '" + path + "': interrupted, as its reader has taken nothing for "));
  }
  {
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"container", "y4m"}});
    writer.input("video", picture(0));
    REQUIRE(writer.start() == MR_OK);
    close(reader);
    CHECK(contains(failure_within(writer, 100), "cannot write '" + path + "': Broken pipe (at byte "));
  }
  CHECK(signals_seen == 0);
  signal(SIGPIPE, before);
}

TEST_CASE("a slow reader of a FIFO gets every picture") {
  const ScratchFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] {
    const int descriptor = open(path.c_str(), O_RDONLY);
    char piece[5000];
    for (ssize_t count; (count = read(descriptor, piece, sizeof piece)) > 0;)
      got.append(piece, static_cast<size_t>(count));
    close(descriptor);
  });
  {
    TableTest writer(handler_type("video.writer"), {{"path", path}, {"container", "y4m"}});
    CHECK(failure_within(writer, 50) == "");
  }
  reader.join();
  CHECK(got.size() > 50 * 320 * 240 * 3 / 2);
  folder.write("got.y4m", got);
  CHECK(probe(folder / "got.y4m").times.size() == 50);
}

TEST_CASE("pictures that change their size are refused, and what came before is a film") {
  const ScratchFolder folder;
  TableTest writer(handler_type("video.writer"), {{"path", folder / "a.mp4"}});
  writer.input("video", picture(0));
  REQUIRE(writer.tick().ok());
  writer.input("video", numbered(Pixel::i420, 64, 48, 0).at(40'000'000, 40'000'000));
  CHECK(contains(writer.tick().error, "a picture is 64 × 48 i420, the film was begun at 320 × 240 i420"));
  CHECK(failure_within(writer, 3) == ""); // under `on_error: skip` the film goes on without it
  CHECK(probe(folder / "a.mp4").times.size() == 4);
}

TEST_CASE("a writer that is stopped without a drain leaves a whole film") {
  const ScratchFolder folder;
  {
    TableTest writer(handler_type("video.writer"), {{"path", folder / "a.mp4"}});
    for (int i = 0; i < 20; ++i) {
      writer.input("video", picture(i));
      REQUIRE(writer.tick().ok());
    }
  }
  CHECK(probe(folder / "a.mp4").times.size() == 20);
}

TEST_CASE("an address that nobody listens at is an error that names it") {
  TableTest writer(handler_type("video.writer"), {{"path", "tcp://127.0.0.1:1"}});
  CHECK(contains(failure_within(writer, 3),
                 "cannot write 'tcp://127.0.0.1:1': nothing takes connections there (Connection refused)"));
}

} // namespace millrace::media
