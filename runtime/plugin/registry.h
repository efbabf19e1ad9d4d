// Handler types that this process knows, with their declarations read once (Registry), and live handlers (Instance).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "millrace/abi.h"
#include "observe/error.h"
#include "plugin/answers.h"
#include "plugin/call_watch.h"
#include "plugin/handler_info.h"
#include "plugin/said.h"
#include "plugin/under_way.h"

namespace millrace::plugin {

// A plugin, or a type of it, that could not be used.
struct LoadFailure {
  std::string path;
  Error error; // MR05xx
};

// All handler types of one runtime; no process-wide state. Not thread safe while it loads; read-only afterwards.
class Registry {
 public:
  // Registers the built-in handlers (the table in handlers/).
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Loads one plugin, all of its types or none. Throws Failure (MR0501…) for a file that is no plugin, another ABI
  // version, a type that is known already, or a constructor that throws.
  void load(const std::string& path);
  // Loads every *.so of a folder, or those that are `wanted`, and none twice. Failures are kept, not thrown. A folder
  // that does not exist is no error.
  using Wanted = std::function<bool(const std::string& path)>;
  void scan(const std::string& folder, const Wanted& wanted = {});
  // Registers a table from this process (built-ins, tests, embedders). Throws Failure like load.
  void add(const mr_plugin& plugin, const std::string& path);

  // Null if the type is not known.
  const RegisteredType* find(const std::string& type) const;
  std::vector<const RegisteredType*> all() const; // sorted by type
  // The first type that converts() and has a parameter with this role, built-in types before others; null: none.
  const RegisteredType* find_converter(uint32_t role) const;
  const std::vector<LoadFailure>& failures() const;
  // The folders that scan() was given and that are there, in order.
  const std::vector<std::string>& folders() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The error with code MR0304 or another one for a type that is not known. It says where the type was looked for and the
// nearest type; if none is near, or if the plugin of the type failed, it lists the plugins that could not be loaded.
// The caller adds the place.
Error unknown_type(const Registry& registry, int code, const std::string& type, bool in_a_failed_plugin = false);

// A live handler. Its functions return the handler's status; on MR_ERROR `error()` has the sentence. One thread at a
// time may call it, except for interrupt().
class Instance final : public Answers {
 public:
  // Constructs the handler; `host` must outlive it. Throws Failure (MR0506) if the constructor fails.
  Instance(const RegisteredType& type, const mr_host& host, std::string name);
  ~Instance() override;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const HandlerInfo& info() const override { return type_; }
  const RegisteredType& type() const { return type_; }
  const mr_handler_type& table() const { return *type_.table; }
  const std::string& name() const { return name_; }
  void* self() const { return self_; }
  BodyMemory memory() const override {
    return {declaration_->scratch_bytes, uint64_t{declaration_->host_mib} << 20, declaration_->state_bytes,
            uint64_t{declaration_->device_mib} << 20};
  }
  // The sentence of the last failure. mr_host.fail sets it, which a thread of the handler's own may call.
  std::string error() const override;
  int fault() const override;
  // `fault`: one of MR_FAULT_*; another number is taken as MR_FAULT_NONE.
  void set_error(std::string sentence, uint32_t fault = MR_FAULT_NONE);
  // Takes the sentence of a failure of this function, so that the next failure does not find it again; never empty.
  std::string take_error(const char* function);
  std::string taken_error() const; // the sentence that was taken last

  // Parses `text` by the parameter's declaration. Throws Failure: MR0310 unknown, MR0311 wrong type, MR0312 out of
  // range, MR0313 no such choice.
  void set_param(const std::string& name, const std::string& text, const Place& place);
  mr_status bind(const std::vector<uint32_t>& edge_counts);
  mr_status probe(mr_facts& facts);
  mr_status configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) override;
  mr_status start(const mr_device_info& device);
  mr_status drain();
  mr_status stop();
  mr_status reset();
  // Removes from `accepts`, the declared format of a port, the formats that the parameters rule out. Leaves it as it is
  // if the type has no narrow().
  mr_status narrow(uint32_t port, mr_format& accepts);
  void interrupt(); // any thread

  // The sentences and counts of the handler since it was made: each sentence once, and only the first ones if they are
  // many.
  using Message = plugin::Message;
  std::vector<Message> messages() const { return said_.messages(); }
  std::map<std::string, int64_t> counts() const;
  // Any thread may call these. keep() does not call on_log; it returns true if the sentence is new.
  void log(uint32_t level, std::string_view sentence);
  bool keep(uint32_t level, std::string_view sentence);
  void count(const std::string& name, int64_t add);
  // Keeps a warning about the handler, together with its own sentences.
  void note(const std::string& sentence);

  // Set before probe(). Null: its calls are not watched.
  CallWatch* watch = nullptr;
  int64_t patience_ns = 0; // 0: the default of the watch
  // True while it is in a function that `watch` watches. Any thread.
  bool is_watched() const { return watched_calls_.load(std::memory_order_relaxed) > 0; }
  // Gives up the call that `watch` watches: it may return when all but this instance is gone. False if it has returned.
  // Otherwise the instance is neither called nor destroyed any more. Any thread.
  bool abandon_call();

  // Functions of the run, set before start(). Null: a message is only kept, and time is the machine's. `first`: the
  // sentence is new.
  std::function<void(uint32_t level, std::string_view sentence, bool first)> on_log;
  std::function<int64_t()> clock_ns;
  void* in_run = nullptr; // the handler's step, for the run's functions of mr_host; null outside a run

 private:
  class WatchedCall;
  template <class Call>
  mr_status watched(const char* function, Call&& call);
  mr_status with_sentence(mr_status status, const char* function);

  const RegisteredType& type_;
  std::string name_;
  void* self_ = nullptr;
  std::atomic<uint32_t> watched_calls_{0};
  std::mutex call_mutex_; // guards what follows, and the end of a watched call
  bool abandoned_ = false;
  const mr_declaration* declaration_ = nullptr; // that of this instance; the parts that never change are in type_
  mutable std::mutex said_mutex_;               // guards what follows
  std::string error_, taken_error_;
  int fault_ = 0; // that of error_
  std::map<std::string, int64_t> counts_;
  Said said_;
};

// Parses a parameter's text by its declaration without an instance. Strings in the result point into `text`.
mr_param_value parse_param(const HandlerInfo& info, const HandlerInfo::Param& param, const std::string& text,
                           const Place& place);

// A parameter in one line: "sigma: a number from 0 to 50 px, default 2: strength".
std::string described(const HandlerInfo::Param& param);

// The functions of mr_host that need no run: fail keeps the sentence in the Instance; log, count and now_ns work as the
// Instance is set up. The other functions refuse.
mr_host basic_host();

} // namespace millrace::plugin
