// Adds streams to a run that goes on, and removes them (batch-design B15), for runtime.h and the control socket.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "embed/absent.h"
#include "embed/compose.h"
#include "exec/new_stream.h"

namespace millrace::exec {
class Run;
}

namespace millrace::embed {

// Makes and probes the handlers of new streams on a thread of its own, one stream after another: a camera may take its
// time to answer. Streams that are absent come by themselves. Any thread may call it.
class Streams {
 public:
  // Both must outlive it.
  Streams(const Composition& composition, exec::Run& run);
  ~Streams(); // gives up what has not begun
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // `set` "": the only one that has room. Returns at once; `done` is called when the stream has begun, or with the
  // error for which it does not: MR0203 for its name, MR0320, MR0324 and MR0303 as exec/seats.h says, MR0322, MR0604
  // and MR0605 for its handlers.
  void add(const std::string& set, const graph::Stream& stream, exec::StreamDone done);
  // Throws Failure as exec/seats.h says. `done` is called when the stream is gone.
  void remove(const std::string& set, const std::string& name, exec::StreamDone done);

 private:
  struct Request {
    std::string set;
    graph::Stream stream;
    exec::StreamDone done;
  };
  void loop();
  void add_now(const Request& request);
  std::string set_meant(const std::string& said) const;

  const Composition& composition_;
  exec::Run& run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  std::atomic<bool> over_{false};
  Absent absent_;
  std::thread thread_; // begun with the first request
};

} // namespace millrace::embed
