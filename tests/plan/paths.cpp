// Paths that handlers read and write: completed by the file that says them, and compared before anything is opened.
#include "plan/paths.h"

#include <doctest/doctest.h>
#include <millrace/handler.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/prepare.h"
#include "plugin/registry.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

struct Reads final : Handler {
  Output<Tensor> out{*this, "out"};
  Param<std::string> path{*this, "path", "", "what it reads", reads_path};
  void configure(const Formats& formats) override { formats.tensor(out, dtype_of<int64_t>(), {1}); }
  void process(Tick& tick, Cpu&) { tick.end(); }
};
struct Writes final : Handler {
  Input<Tensor> in{*this, "in"};
  Param<std::string> path{*this, "path", "", "what it writes", writes_path, in_pieces};
  Param<std::string> list{*this, "list", "", "another file that it writes", writes_path};
  Param<std::string> title{*this, "title", "", "no path"};
  Param<std::string> piece{*this, "piece", "", "how long a piece is", cuts_paths};
  Param<std::string> segment{*this, "segment", "", "says nothing of its paths"};
  void process(Tick&, Cpu&) {}
};

const mr_plugin& path_plugin() {
  static const mr_handler_type types[] = {detail::Type<Reads>::table("f.read", "", ""),
                                          detail::Type<Writes>::table("f.write", "", "")};
  static const mr_handler_type* const pointers[] = {&types[0], &types[1]};
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "paths", "1", pointers, 2, 0};
  return plugin;
}

// A folder of the test's own, with what is put into it.
class Scratch {
 public:
  Scratch() : folder_(fs::temp_directory_path() / ("millrace-paths-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "deep");
    std::ofstream(folder_ / "film.mp4") << "a film";
  }
  ~Scratch() { fs::remove_all(folder_); }
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
};

// The failure with which these uses of files are refused; code 0 where they are not.
Error meeting(const std::vector<std::string>& read, const std::vector<std::string>& written,
              const std::string& piece = "", const std::string& list = "", const std::string& segment = "") {
  plugin::Registry registry;
  registry.add(path_plugin(), "");
  graph::Graph graph;
  const auto add = [&](const std::string& name, const std::string& type, const std::string& path) {
    graph::Handler handler;
    handler.name = name;
    handler.type = type;
    handler.place = {"pipeline", 1, 1};
    handler.params.push_back({"path", path, {"pipeline", 1, 7}, {"pipeline", 1, 2}});
    const auto give = [&](const char* param, const std::string& text) {
      if (type == "f.write" && !text.empty()) handler.params.push_back({param, text, {"pipeline", 1, 9}, {}});
    };
    give("piece", piece);
    give("list", list);
    give("segment", segment);
    graph.handlers.push_back(handler);
  };
  for (size_t i = 0; i < read.size(); ++i) add("in" + std::to_string(i), "f.read", read[i]);
  for (size_t i = 0; i < written.size(); ++i) add("out" + std::to_string(i), "f.write", written[i]);
  const mr_host host = plugin::basic_host();
  try {
    plan::prepare(graph, registry, host, false);
  } catch (const Failure& failure) {
    return failure.error();
  }
  return {};
}

std::string completed(const std::string& text, const std::string& file, int line, bool is_path = true) {
  plugin::Registry registry;
  registry.add(path_plugin(), "");
  return plan::completed_path(*registry.find("f.write")->find_param(is_path ? "path" : "title"),
                              {"path", text, {file, line, 3}, {file, line, 1}});
}

} // namespace

TEST_CASE("a relative path is relative to the pipeline file that says it, and to nothing else") {
  CHECK(completed("a.mp4", "pipelines/street.yaml", 4) == "pipelines/a.mp4");
  CHECK(completed("../media/a.mp4", "pipelines/street.yaml", 4) == "media/a.mp4");
  CHECK(completed("a.mp4", "street.yaml", 4) == "a.mp4");
  CHECK(completed("/tmp/a.mp4", "pipelines/street.yaml", 4) == "/tmp/a.mp4");
  CHECK(completed("-", "pipelines/street.yaml", 4) == "-");
  CHECK(completed("", "pipelines/street.yaml", 4).empty());
  CHECK(completed("rtsp://127.0.0.1/a", "pipelines/street.yaml", 4) == "rtsp://127.0.0.1/a");
  CHECK(completed("file:///tmp/a.mp4", "pipeline", 1) == "/tmp/a.mp4");
  CHECK(completed("a.mp4", "pipeline", 1) == "a.mp4");                     // one line
  CHECK(completed("a.mp4", "--set out.path=a.mp4", 0) == "a.mp4");         // the command line
  CHECK(completed("a.mp4", "pipelines/street.yaml", 4, false) == "a.mp4"); // no path
}

TEST_CASE("a file that is read and written, or written twice, is refused with both handlers and another name") {
  const Scratch scratch;
  const std::string film = scratch / "film.mp4";
  const Error both = meeting({film}, {film});
  CHECK(both.code == 413);
  CHECK(both.what == "a file is read and written by one pipeline");
  REQUIRE(both.notes.size() == 2);
  CHECK(both.notes[0] == "in0 (f.read) reads " + film + ", its path");
  CHECK(both.notes[1] == "out0 (f.write) writes " + film + ", its path");
  CHECK(both.edit == "path=" + (scratch / "film-2.mp4"));
  const Error twice = meeting({}, {scratch / "new.mp4", scratch / "new.mp4"});
  CHECK(twice.code == 413);
  CHECK(twice.what == "two handlers write one file");
  CHECK(meeting({film, film}, {scratch / "new.mp4"}).code == 0); // two may read it
}

TEST_CASE("a file is the same by another spelling, by a symbolic link, by a link of its folder and by a hard link") {
  const Scratch scratch;
  const std::string film = scratch / "film.mp4";
  fs::create_symlink("film.mp4", scratch.path() / "link.mp4");
  fs::create_directory_symlink(".", scratch.path() / "here");
  fs::create_hard_link(film, scratch.path() / "hard.mp4");
  for (const char* other : {"./film.mp4", "deep/../film.mp4", "link.mp4", "here/film.mp4", "hard.mp4"}) {
    INFO(other);
    CHECK(meeting({film}, {scratch / other}).code == 413);
    CHECK(meeting({scratch / other}, {film}).code == 413);
  }
  // A name that is not there yet, in a folder that is reached by a link.
  CHECK(meeting({}, {scratch / "new.mp4", scratch / "here/new.mp4"}).code == 413);
  CHECK(meeting({film}, {scratch / "other.mp4"}).code == 0);
}

TEST_CASE("a pattern is compared with what it may name") {
  const Scratch scratch;
  const auto in = [&](const std::string& name) { return scratch / name; };
  CHECK(meeting({in("*.png")}, {in("{index}.png")}).code == 413);
  CHECK(meeting({in("f*.png")}, {in("f%06d.png")}).code == 413);
  CHECK(meeting({in("f%06d.png")}, {in("f%06d.png")}).code == 413);
  CHECK(meeting({}, {in("f{index}.png"), in("f000007.png")}).code == 413);
  CHECK(meeting({in("f%03d.png")}, {in("f012.png")}).code == 413);
  CHECK(meeting({in("f{index}2-%d.png")}, {in("f12-3.png")}).code == 413); // the first number is 1
  CHECK(meeting({in("f{index}2-%d.png")}, {in("f2-3.png")}).code == 0);
  CHECK(meeting({in("f%03x.png")}, {in("f012.png")}).code == 0);
  CHECK(meeting({in("*.png")}, {in("{index}.jpg")}).code == 0);
  CHECK(meeting({in("a*.png")}, {in("b{index}.png")}).code == 0);
  CHECK(meeting({in("f+1.png")}, {in("ff1.png")}).code == 0); // no expression of a person's
}

TEST_CASE("the name of a folder that is there is no pattern") {
  const Scratch scratch;
  const std::string odd = scratch / "shots [1] %d {index}*", like = scratch / "shots [1] 5 {index}*";
  for (const std::string& folder : {odd, like}) std::filesystem::create_directory(folder);
  CHECK(meeting({odd + "/*.png"}, {odd + "/{index}.png"}).code == 413);
  CHECK(meeting({odd + "/f%06d.png"}, {odd + "/f000007.png"}).code == 413);
  CHECK(meeting({odd + "/f.png"}, {like + "/f.png"}).code == 0);
  CHECK(meeting({}, {odd + "/f-%d.png", like + "/f-1.png"}).code == 0);
}

TEST_CASE("a folder that is read is not written into where a file of it is there") {
  const Scratch scratch;
  CHECK(meeting({scratch / "."}, {scratch / "film.mp4"}).code == 413);
  CHECK(meeting({scratch / "."}, {scratch / "new.mp4"}).code == 0);
  CHECK(meeting({scratch / "deep"}, {scratch / "film.mp4"}).code == 0);
  std::ofstream(scratch / "take-007.mp4") << "a film";
  CHECK(meeting({scratch / "."}, {scratch / "take-%03d.mp4"}).code == 413);
  CHECK(meeting({scratch / "."}, {scratch / "take-{index}.mkv"}).code == 0);
}

TEST_CASE("a recording in pieces is compared by the names of its pieces, and file:// is a file") {
  const Scratch scratch;
  std::ofstream(scratch / "take-000.mp4") << "a film";
  CHECK(meeting({scratch / "take-000.mp4"}, {scratch / "take.mp4"}).code == 0);
  CHECK(meeting({scratch / "take-000.mp4"}, {scratch / "take.mp4"}, "1s").code == 413);
  CHECK(meeting({scratch / "take-000.mp4"}, {scratch / "other.mp4"}, "1s").code == 0);
  CHECK(meeting({scratch / "take-000.mp4"}, {scratch / "take.mp4"}, "", "", "1s").code == 0); // no name is special
  CHECK(meeting({scratch / "film.mp4"}, {"file://" + (scratch / "film.mp4")}).code == 413);
}

TEST_CASE("a path beside the pieces, such as their list, is one file under its own name") {
  const Scratch scratch;
  const std::string list = scratch / "all.txt";
  std::ofstream(list) << "a list";
  std::ofstream(scratch / "all-000.txt") << "no list";
  const Error both = meeting({list}, {scratch / "take.mp4"}, "1s", list);
  CHECK(both.code == 413);
  REQUIRE(both.notes.size() == 2);
  CHECK(both.notes[1] == "out0 (f.write) writes " + list + ", its list");
  CHECK(meeting({}, {scratch / "a.mp4", scratch / "b.mp4"}, "1s", list).what == "two handlers write one file");
  CHECK(meeting({scratch / "all-000.txt"}, {scratch / "take.mp4"}, "1s", list).code == 0);
}

TEST_CASE("a standard stream has one reader and one writer; devices and addresses are shared but for two writers") {
  CHECK(meeting({"-"}, {"-"}).code == 0);
  CHECK(meeting({"-", "-"}, {}).what == "two handlers read standard input");
  CHECK(meeting({}, {"-", "-"}).what == "two handlers write to standard output");
  CHECK(meeting({}, {"/dev/null", "/dev/null"}).code == 0);
  CHECK(meeting({"http://127.0.0.1/a"}, {"http://127.0.0.1/a"}).code == 0);
  CHECK(meeting({}, {"rtmp://127.0.0.1/a", "rtmp://127.0.0.1/a"}).code == 413);
}
