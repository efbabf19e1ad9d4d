// test.record: writes down what reached the end of a graph.
#include <millrace/handler.h>

#include <array>
#include <cstdio>

#include "handlers/file/written_file.h"
#include "handlers/test/mixing.h"

namespace millrace::handlers {
namespace {

constexpr const char* kRecordManual = &R"(
Writes a line of text for every tick: the index, which inputs had a value (one character an edge, 1
or 0), and a hash of all their numbers. It takes up to eight tensors of int64, any of which may be
missing. The file is replaced at the first value and complete after the end. Tests that run one
graph in many ways compare this file.

    test.number count=100 seed=7 ! test.record path=numbers.txt
)"[1];

class TickRecorder final : public Handler {
 public:
  TickRecorder() { blocking(); }

  void start() override { file_.open(*path_); }

  void process(Tick& tick, Cpu&) {
    char present[9] = {};
    uint64_t hash = 0;
    for (uint32_t i = 0; i < in_.count(); ++i) {
      const bool there = in_.present(tick, i);
      present[i] = there ? '1' : '0';
      hash = joined(hash, there ? hash_of(in_(tick, i).elements<int64_t>()) : kAbsent);
    }
    std::array<char, 64> line; // 20 digits, 8 edges, 16 digits
    const int size =
        std::snprintf(line.data(), line.size(), "%llu %s %016llx\n", static_cast<unsigned long long>(tick.index()),
                      present, static_cast<unsigned long long>(hash));
    file_.write({reinterpret_cast<const uint8_t*>(line.data()), static_cast<size_t>(size)});
    file_.end_value();
  }

  void drain() override { file_.close(); }
  void stop() override { file_.break_off(); }
  void interrupt() override { file_.interrupt(); }

 private:
  Inputs<Tensor> in_{*this, "in", 8, optional, dtypes<int64_t>(), help("of any shape")};
  Param<std::string> path_{*this, "path", "", "the file to write", required, writes_path};
  WrittenFile file_;
};

} // namespace

const mr_handler_type& test_record_type() {
  static const mr_handler_type type =
      detail::Type<TickRecorder>::table("test.record", "Writes down what reached the end of a graph", kRecordManual);
  return type;
}

} // namespace millrace::handlers
