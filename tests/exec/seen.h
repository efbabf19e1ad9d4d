// Logs of values for tests: each handler of a test writes the values that it saw to a log under a name.
#pragma once

#include <millrace/handler.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace millrace::test {

// Stands for the value of an input that was empty.
inline constexpr int64_t kEmpty = INT64_MIN;
// The values of one tick as a sink saw them, one for each connected input.
struct Seen {
  uint64_t index;
  int64_t media_time_ns;
  std::vector<int64_t> values;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Gives a tensor of one element.
inline void write_one(const Output<Tensor>& out, Tick& tick, int64_t value) {
  const int64_t shape[] = {1};
  out.allocate(tick, dtype_of<int64_t>(), shape).elements<int64_t>()[0] = value;
}
inline int64_t read_one(const TensorView& view) { return view.elements<int64_t>()[0]; }

// The values that the handlers of one run saw, by the name in their `log` parameter. Each Compiled has a log of its
// own, so no run sees the values of another one. Any thread may write and read.
class ValueLog {
 public:
  // A handler of the run writes to this name, so that it may be asked for.
  void declare(const std::string& name);
  void write(const std::string& name, Seen seen);
  // Throws std::out_of_range if no handler writes to the name, or if none has written yet.
  std::vector<Seen> at(const std::string& name) const;
  // Every name that was declared, also those that nothing was written to.
  std::map<std::string, std::vector<Seen>> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Seen>> seen_;
};

// While one lives, handlers that its thread makes write to this log.
class MakesHandlersFor {
 public:
  explicit MakesHandlersFor(std::shared_ptr<ValueLog> log);
  ~MakesHandlersFor();
  MakesHandlersFor(const MakesHandlersFor&) = delete;
  MakesHandlersFor& operator=(const MakesHandlersFor&) = delete;
};

// A handler's way to the log of its run. A Compiled makes all its handlers on the thread that constructs it, and this
// finds the log there: so it has to be a member of the handler.
class LogWriter {
 public:
  LogWriter();
  void write(const std::string& name, Seen seen) const;

 private:
  std::shared_ptr<ValueLog> log_;
};

} // namespace millrace::test
