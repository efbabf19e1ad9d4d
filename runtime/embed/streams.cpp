// Adds and removes streams; see streams.h.
#include "embed/streams.h"

#include <future>
#include <utility>

#include "exec/run.h"
#include "exec/seats.h"
#include "graph/quantity.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "observe/start_thread.h"
#include "plan/make_stream.h"
#include "plugin/registry.h"

namespace millrace::embed {

Streams::Streams(const Composition& composition, exec::Run& run)
    : composition_(composition), run_(run), absent_(composition, run) {}

Streams::~Streams() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  run_.end_streams();
  if (thread_.joinable()) thread_.join();
  const Error over{code::no_place, "the run is over", {}, {}, "", ""};
  for (const Request& request : requests_) request.done(&over);
}

std::string Streams::set_meant(const std::string& said) const {
  if (!said.empty()) return said;
  std::vector<std::string> sets;
  for (const graph::StreamSet& set : composition_.graph().streams)
    if (set.max > 0) sets.push_back(set.name);
  if (sets.size() == 1) return sets[0];
  throw Failure(
      Error{code::no_place,
            sets.empty() ? "no set of streams has room for others" : "the pipeline has several sets of streams",
            {},
            {sets.empty() ? "a set with `max` has" : "they are " + listed_from("", sets)},
            "",
            sets.empty() ? "max: …, in the pipeline" : "--to " + sets[0]});
}

void Streams::add(const std::string& set, const graph::Stream& stream, exec::StreamDone done) {
  if (!graph::is_stream_name(stream.name))
    throw Failure(Error{code::bad_name,
                        "a stream cannot be called '" + printable(stream.name) + "'",
                        {},
                        {"expected letters, digits, '_' and '-'"},
                        "",
                        ""});
  const std::lock_guard lock(mutex_);
  requests_.push_back({set_meant(set), stream, std::move(done)});
  if (!thread_.joinable()) thread_ = start_thread("the thread that adds streams", [this] { loop(); });
  changed_.notify_all();
}

void Streams::remove(const std::string& set, const std::string& name, exec::StreamDone done) {
  run_.remove(set, name, std::move(done));
}

// The instances in whose places others came are destroyed here, and not by the thread of a worker.
void Streams::add_now(const Request& request) {
  const uint32_t clock = run_.take_seat(request.set, request.stream.name);
  std::shared_ptr<plan::MadeStream> made;
  try {
    plan::StreamToMake wanted{.clock = clock, .stream = request.stream};
    wanted.limits.over = &over_;
    made = std::make_shared<plan::MadeStream>(composition_.make_stream(wanted));
  } catch (...) {
    run_.give_up_seat(clock);
    throw;
  }
  std::promise<void> answered;
  run_.add(clock, {request.stream.name, made, [&](const Error* error) {
                     request.done(error);
                     answered.set_value();
                   }});
  answered.get_future().wait();
}

void Streams::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || !requests_.empty(); });
    if (over_) return;
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    try {
      add_now(request);
    } catch (const Failure& failure) {
      request.done(&failure.error());
    }
    lock.lock();
  }
}

} // namespace millrace::embed
