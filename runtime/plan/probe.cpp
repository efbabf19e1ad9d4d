// Probes sources on threads of their own and gives up those that do not answer; see probe.h.
#include "plan/probe.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "observe/error.h"
#include "observe/signal_stack.h"
#include "observe/start_thread.h"
#include "plugin/registry.h"

namespace millrace::plan {

namespace {

using ProbeTime = std::chrono::steady_clock;
using Instances = std::vector<std::unique_ptr<plugin::Instance>*>;

// An interrupt that comes just before its call blocks is lost, so it is given again after this long.
constexpr std::chrono::milliseconds kInterruptAgain{10};
// How soon it is seen that no answer is waited for any more, and how long an interrupted call has then.
constexpr std::chrono::milliseconds kLookIfOver{50};

// A call tells its end here. A call that was given up may do so when the caller has long gone.
struct ProbeEnds {
  std::mutex mutex;
  std::condition_variable changed;
};

struct ProbeCall {
  plugin::Instance* instance;
  size_t index; // that of its answer
  ProbeTime::time_point interrupt_at, give_up_at;
  std::string late; // the error, if it has to be interrupted
  bool interrupted = false;
  // under ProbeEnds::mutex
  mr_facts facts{};
  mr_status status = MR_ERROR;
  bool returned = false;
};

ProbeAnswer answer_of(const plugin::Instance& instance, mr_status status, const mr_facts& facts) {
  if (status == MR_OK) return {facts, "", 0};
  const std::string sentence = instance.error();
  return {facts, sentence.empty() ? "it was interrupted" : sentence, instance.fault()};
}

ProbeAnswer probe_here(plugin::Instance& instance, mr_facts facts) {
  const mr_status status = instance.probe(facts);
  return answer_of(instance, status, facts);
}

std::string in_seconds(std::chrono::nanoseconds time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

// Instances whose calls were given up. Never freed: their calls may outlast everything.
struct GivenUp {
  std::mutex mutex;
  std::vector<std::unique_ptr<plugin::Instance>> instances;
};
GivenUp& given_up() {
  static auto* const all = new GivenUp;
  return *all;
}
void keep_given_up(std::unique_ptr<plugin::Instance> instance) {
  const std::lock_guard lock(given_up().mutex);
  given_up().instances.push_back(std::move(instance));
}

class Probes {
 public:
  Probes(const Instances& instances, const mr_facts& first, const ProbeLimits& limits,
         std::vector<ProbeAnswer>& answers)
      : instances_(instances), first_(first), limits_(limits), answers_(answers) {}

  // Each of these instances.
  void run(const std::vector<size_t>& sources) {
    for (const size_t source : sources) {
      while (calls_.size() == kProbesMax) wait();
      begin(source);
    }
    while (!calls_.empty()) wait();
  }

 private:
  struct UnderWay {
    std::shared_ptr<ProbeCall> call;
    std::thread thread;
  };

  // If there is no thread left, the source is probed here, which only takes longer.
  void begin(size_t index) {
    plugin::Instance& instance = **instances_[index];
    const int64_t patience = instance.patience_ns > 0 ? instance.patience_ns : limits_.patience_ns;
    const std::chrono::nanoseconds grace(limits_.grace_ns), limit = std::chrono::nanoseconds(patience) + grace;
    const ProbeTime::time_point now = ProbeTime::now();
    auto call = std::make_shared<ProbeCall>(ProbeCall{&instance, index, now + limit, now + limit + grace,
                                                      "it did not answer within " + in_seconds(limit), false, first_});
    try {
      std::thread thread = start_thread("the thread that probes " + instance.name(), [call, ends = ends_] {
        const SignalStack stack(true); // a crash in a probe is explained on any thread
        mr_facts facts = call->facts;
        const mr_status status = call->instance->probe(facts);
        const std::lock_guard lock(ends->mutex);
        call->facts = facts;
        call->status = status;
        call->returned = true;
        ends->changed.notify_all();
      });
      calls_.push_back({std::move(call), std::move(thread)});
    } catch (const Failure&) {
      answers_[index] = probe_here(instance, first_);
    }
  }

  // Until one has returned or was given up, or for a short time.
  void wait() {
    std::unique_lock lock(ends_->mutex);
    ProbeTime::time_point look_at = ProbeTime::time_point::max();
    for (const UnderWay& one : calls_) look_at = std::min(look_at, one.call->interrupt_at);
    if (limits_.over) look_at = std::min(look_at, ProbeTime::now() + kLookIfOver);
    look_at = std::max(look_at, ProbeTime::now() + kInterruptAgain);
    ends_->changed.wait_until(lock, look_at, [&] {
      return std::any_of(calls_.begin(), calls_.end(), [](const UnderWay& one) { return one.call->returned; });
    });
    for (auto one = calls_.begin(); one != calls_.end();) one = look(*one) ? calls_.erase(one) : std::next(one);
  }

  // Called under the lock. True if it is over.
  bool look(UnderWay& one) {
    ProbeCall& call = *one.call;
    if (call.returned) {
      one.thread.join(); // it has nothing left to do but let the lock go
      answers_[call.index] = answer_of(*call.instance, call.status, call.facts);
      if (call.interrupted && call.status != MR_OK) answers_[call.index].error = call.late;
      return true;
    }
    const ProbeTime::time_point now = ProbeTime::now();
    if (limits_.over && limits_.over->load() && now < call.interrupt_at) {
      call.interrupt_at = now;
      call.give_up_at = now + kLookIfOver;
    }
    if (now < call.interrupt_at) return false;
    if (now < call.give_up_at || !call.instance->abandon_call()) {
      call.interrupted = true;
      call.instance->interrupt();
      return false;
    }
    one.thread.detach();
    keep_given_up(std::move(*instances_[call.index]));
    answers_[call.index] = {{}, call.late + ", and did not return when it was interrupted"};
    return true;
  }

  const Instances& instances_;
  const mr_facts first_;
  const ProbeLimits limits_;
  std::vector<ProbeAnswer>& answers_;
  std::shared_ptr<ProbeEnds> ends_ = std::make_shared<ProbeEnds>();
  std::list<UnderWay> calls_;
};

} // namespace

std::vector<ProbeAnswer> probe_all(const std::vector<std::unique_ptr<plugin::Instance>*>& instances,
                                   const mr_facts& first, const ProbeLimits& limits) {
  std::vector<ProbeAnswer> answers(instances.size());
  std::vector<size_t> sources, others;
  for (size_t i = 0; i < instances.size(); ++i) ((*instances[i])->info().is_source() ? sources : others).push_back(i);
  if (sources.size() > 1 || (limits.of_one && !sources.empty()))
    Probes(instances, first, limits, answers).run(sources);
  else
    others.insert(others.end(), sources.begin(), sources.end());
  for (const size_t i : others) answers[i] = probe_here(**instances[i], first);
  return answers;
}

bool any_probe_goes_on() {
  const std::lock_guard lock(given_up().mutex);
  return !given_up().instances.empty();
}

} // namespace millrace::plan
