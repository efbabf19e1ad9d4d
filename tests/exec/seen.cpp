// The logs of seen.h.
#include "seen.h"

#include <stdexcept>
#include <utility>

namespace millrace::test {

namespace {

// The log of the run whose handlers this thread makes at present.
thread_local std::shared_ptr<ValueLog> log_of_this_run;

} // namespace

MakesHandlersFor::MakesHandlersFor(std::shared_ptr<ValueLog> log) { log_of_this_run = std::move(log); }
MakesHandlersFor::~MakesHandlersFor() { log_of_this_run = nullptr; }

void ValueLog::declare(const std::string& name) {
  const std::lock_guard lock(mutex_);
  seen_[name];
}

void ValueLog::write(const std::string& name, Seen seen) {
  const std::lock_guard lock(mutex_);
  seen_.at(name).push_back(std::move(seen));
}

std::vector<Seen> ValueLog::at(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(name);
  if (found == seen_.end()) throw std::out_of_range("no handler writes to the log \"" + name + "\"");
  if (found->second.empty()) throw std::out_of_range("nothing was written to the log \"" + name + "\"");
  return found->second;
}

std::map<std::string, std::vector<Seen>> ValueLog::all() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

LogWriter::LogWriter() : log_(log_of_this_run) {}

void LogWriter::write(const std::string& name, Seen seen) const {
  if (!log_) throw std::logic_error("a handler that was made outside of a run writes to the log \"" + name + "\"");
  log_->write(name, std::move(seen));
}

} // namespace millrace::test
