// Makes one run for each node, and one result of all of them; see node_runs.h.
#include "node_runs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "exec/run.h"
#include "plan/plan.h"
#include "plan/print.h"

namespace millrace::test {

NodeRuns::NodeRuns(const Pipeline& pipeline, const std::vector<std::string>& names, const Setup& setup,
                   device::VirtualTime& time, const std::vector<const device::Timeline*>& own_times,
                   const std::function<int64_t(size_t from, size_t to)>& tells_after_ns)
    : names_(names), time_(time), tells_after_ns_(tells_after_ns) {
  for (size_t n = 0; n < names_.size(); ++n) {
    Setup own = setup;
    own.nodes = names_;
    own.node = static_cast<uint32_t>(n);
    own.virtual_time = true;
    own.time = &time;
    if (!own_times.empty()) own.options.time = own_times[n];
    own.options.on_failure = [this, n](const exec::FailureRecord& failure) { tell_all(n, failure); };
    runs_.push_back(std::make_unique<Compiled>(pipeline, own));
    if (std::getenv("MILLRACE_SHOW")) std::puts(plan::print_text(runs_.back()->plan()).c_str());
  }
}

void NodeRuns::tell_all(size_t node, const exec::FailureRecord& failure) {
  for (size_t n = 0; n < runs_.size(); ++n)
    if (n != node && failure.of_stream)
      tell_stream(node, n, failure);
    else if (n != node)
      runs_[n]->live().fail(failure.error, failure.clock, failure.index);
}

void NodeRuns::tell_stream(size_t from, size_t to, exec::FailureRecord failure) {
  failure.node = names_[from];
  const auto tell = [run = &runs_[to]->live(), failure] { run->fail_stream(failure); };
  if (!tells_after_ns_) return tell();
  const auto untold = untold_.emplace(time_.now_ns() + tells_after_ns_(from, to), tell);
  time_.schedule(untold->first, [this, untold] {
    untold->second();
    untold_.erase(untold);
  });
}

std::vector<NodeRuns::Crossing> NodeRuns::crossings() const {
  std::vector<Crossing> all;
  for (size_t from = 0; from < runs_.size(); ++from)
    for (const plan::CrossingPlan& out : runs_[from]->plan().crossings) {
      if (!out.departs) continue;
      const auto to = static_cast<size_t>(std::find(names_.begin(), names_.end(), out.node) - names_.begin());
      const auto& arriving = runs_[to]->plan().crossings;
      const auto in = std::find_if(arriving.begin(), arriving.end(), [&](const plan::CrossingPlan& one) {
        return !one.departs && one.name == out.name && one.node == names_[from];
      });
      if (in == arriving.end()) throw std::logic_error("crossing " + out.name + " has no other end");
      all.push_back({from, to, &out, &*in});
    }
  return all;
}

void NodeRuns::start(exec::VirtualDriver& driver) {
  for (auto& one : runs_) {
    one->live().start();
    driver.add(one->live());
  }
}

Ran NodeRuns::wait(std::optional<size_t> dead) {
  for (const auto& [at_ns, tell] : untold_) tell(); // all nodes hear it before the end of all (fleet)
  Ran all;
  auto log = std::make_shared<ValueLog>();
  for (auto& one : runs_) {
    const Ran ran = one->wait();
    const bool is_dead = dead && &one == &runs_[*dead];
    if (is_dead) {
      if (&one == &runs_[0]) throw std::logic_error("the first node tells how it ended");
    } else if (&one == &runs_[0]) {
      static_cast<Result&>(all) = ran;
    } else {
      all.report.handlers.insert(all.report.handlers.end(), ran.report.handlers.begin(), ran.report.handlers.end());
      all.report.cut_again = all.report.cut_again || ran.report.cut_again;
      if (ran.ok != all.ok || ran.error.what != all.error.what)
        throw std::logic_error("nodes disagree: “" + all.error.what + "” and “" + ran.error.what + "”");
    }
    for (const auto& [name, seen] : ran.all_seen()) {
      log->declare(name);
      for (const Seen& one_seen : seen) log->write(name, one_seen);
    }
  }
  all.log = log;
  return all;
}

} // namespace millrace::test
