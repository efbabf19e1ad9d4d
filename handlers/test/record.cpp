// test.record: writes down what reached the end of a graph.
#include <millrace/handler.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "handlers/test/mixing.h"

namespace millrace::handlers {
namespace {

constexpr const char* kRecordManual = &R"(
Writes a line of text for every tick: the index, which inputs had a value (one character an edge, 1
or 0), and a hash of all their numbers. It takes up to eight tensors of int64, any of which may be
missing. The file is replaced at the start and complete after the end. Tests that run one graph in
many ways compare this file.

    test.number count=100 seed=7 ! test.record path=numbers.txt
)"[1];

class TickRecorder final : public Handler {
 public:
  TickRecorder() { blocking(); }

  void start() override {
    file_.reset(std::fopen(path_->c_str(), "wb"));
    if (!file_) refuse();
  }

  void process(Tick& tick, Cpu&) {
    if (!file_) throw std::logic_error("'" + *path_ + "' is closed");
    char present[9] = {};
    uint64_t hash = 0;
    for (uint32_t i = 0; i < in_.count(); ++i) {
      const bool there = in_.present(tick, i);
      present[i] = there ? '1' : '0';
      hash = joined(hash, there ? hash_of(in_(tick, i).elements<int64_t>()) : kAbsent);
    }
    if (std::fprintf(file_.get(), "%llu %s %016llx\n", static_cast<unsigned long long>(tick.index()), present,
                     static_cast<unsigned long long>(hash)) < 0)
      refuse();
  }

  void drain() override {
    if (file_ && std::fclose(file_.release()) != 0) refuse();
  }
  void stop() override { file_.reset(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void refuse() const {
    throw std::runtime_error("cannot write '" + *path_ + "': " + std::strerror(errno));
  }

  Inputs<Tensor> in_{*this, "in", 8, optional, dtypes<int64_t>(), help("of any shape")};
  Param<std::string> path_{*this, "path", "", "the file to write", required, writes_path};
  std::unique_ptr<std::FILE, Close> file_;
};

} // namespace

const mr_handler_type& test_record_type() {
  static const mr_handler_type type =
      detail::Type<TickRecorder>::table("test.record", "Writes down what reached the end of a graph", kRecordManual);
  return type;
}

} // namespace millrace::handlers
