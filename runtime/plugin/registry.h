// Handler types that this process knows: built-ins and what plugins brought, with their declarations read once.
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

  // Loads one plugin. All its types or none; throws Failure (MR0501…): no plugin, ABI mismatch, duplicate type, a
  // constructor that throws.
  void load(const std::string& path);
  // Loads every *.so of a folder, or those that are `wanted`; none twice. Failures are kept, not thrown. A folder that
  // does not exist is no error.
  using Wanted = std::function<bool(const std::string& path)>;
  void scan(const std::string& folder, const Wanted& wanted = {});
  // Registers a table from this process (built-ins, tests, embedders). Throws Failure like load.
  void add(const mr_plugin& plugin, const std::string& path);

  // Null where it is not known.
  const RegisteredType* find(const std::string& type) const;
  std::vector<const RegisteredType*> all() const; // by type
  // The first that converts() and has a parameter with this role, built-in ones before others; null: there is none.
  const RegisteredType* find_converter(uint32_t role) const;
  const std::vector<LoadFailure>& failures() const;
  // The folders that scan() was given and that are there, in order.
  const std::vector<std::string>& folders() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// MR0304 or another code for a type that is not known: where it was looked for, and the nearest one; where none is
// near, or the plugin that has it failed, what could not be loaded. The place is the caller's to add.
Error unknown_type(const Registry& registry, int code, const std::string& type, bool in_a_failed_plugin = false);

// A live handler. Its functions return what the handler said; on MR_ERROR `error()` has the sentence.
// One caller at a time, but for interrupt().
class Instance final : public Answers {
 public:
  // Constructs the handler; `host` must outlive it. Throws Failure (MR0506) where the constructor fails.
  Instance(const RegisteredType& type, const mr_host& host, std::string name);
  ~Instance() override;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const HandlerInfo& info() const override { return type_; }
  const RegisteredType& type() const { return type_; }
  const mr_handler_type& table() const { return *type_.table; }
  const std::string& name() const { return name_; }
  void* self() const { return self_; }
  // Device memory that its GPU body works in, as it said when it was last configured.
  uint64_t scratch_bytes() const override { return declaration_->scratch_bytes; }
  // The last sentence of a failure; set by mr_host.fail, which may come from a thread of the handler's own.
  std::string error() const override;
  void set_error(std::string sentence);
  // The sentence of a failure of this function, which the next one does not find again; never empty.
  std::string take_error(const char* function);
  std::string taken_error() const; // the last one that was taken

  // Parses `text` by the parameter's declaration. Throws Failure: MR0310 unknown, MR0311 wrong type, MR0312 out of
  // range, MR0313 no such choice.
  void set_param(const std::string& name, const std::string& text, const Place& place);
  mr_status bind(const std::vector<uint32_t>& edge_counts);
  mr_status probe(mr_facts& facts);
  mr_status configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) override;
  mr_status start();
  mr_status drain();
  mr_status stop();
  mr_status reset();
  // Whether the type narrows `accepts`, the format of a port as it was declared, by the parameters that were set.
  mr_status narrow(uint32_t port, mr_format& accepts);
  void interrupt(); // any thread

  // What the handler has said and counted since it was made; each sentence once, and of many the first.
  using Message = plugin::Message;
  std::vector<Message> messages() const { return said_.messages(); }
  std::map<std::string, int64_t> counts() const;
  // From any thread. keep() tells nobody; true where the sentence is new.
  void log(uint32_t level, std::string_view sentence);
  bool keep(uint32_t level, std::string_view sentence);
  void count(const std::string& name, int64_t add);
  // Keeps a warning about the handler beside what it says itself.
  void note(const std::string& sentence);

  // Set before probe(). Null: nobody watches its calls.
  CallWatch* watch = nullptr;
  int64_t patience_ns = 0; // 0: the watch's
  // Whether it is in a function that `watch` minds. Any thread.
  bool is_watched() const { return watched_calls_.load(std::memory_order_relaxed) > 0; }

  // What a run lends its handlers; set before start(). Null: a message is only kept, time is the machine's. `first`:
  // the sentence was not said before.
  std::function<void(uint32_t level, std::string_view sentence, bool first)> on_log;
  std::function<int64_t()> clock_ns;
  void* in_run = nullptr; // of the run's own functions of mr_host: its step; null outside a run

 private:
  class WatchedCall;
  template <class Call>
  mr_status watched(const char* function, Call&& call);
  mr_status with_sentence(mr_status status, const char* function);

  const RegisteredType& type_;
  std::string name_;
  void* self_ = nullptr;
  std::atomic<uint32_t> watched_calls_{0};
  const mr_declaration* declaration_ = nullptr; // of this instance; what does not change is in type_
  mutable std::mutex said_mutex_;               // guards what follows
  std::string error_, taken_error_;
  std::map<std::string, int64_t> counts_;
  Said said_;
};

// Parses a parameter's text by its declaration without an instance. Strings in the result point into `text`.
mr_param_value parse_param(const HandlerInfo& info, const HandlerInfo::Param& param, const std::string& text,
                           const Place& place);

// A parameter in a line: "sigma: a number from 0 to 50 px, default 2: strength".
std::string described(const HandlerInfo::Param& param);

// The parts of mr_host that need no run: fail (keeps the sentence in the Instance), log and now_ns (as the Instance was
// told). The rest refuses.
mr_host basic_host();

} // namespace millrace::plugin
