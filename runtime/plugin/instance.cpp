// A live handler: its construction, its parameters from text, and the calls of its life, through its table.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "millrace/param_text.h"
#include "observe/error_codes.h"
#include "observe/printable.h"
#include "plugin/registry.h"

namespace millrace::plugin {

namespace {

// The most numbers of a handler in a report, which people read; others are not counted.
constexpr size_t kCountsMax = 64;

} // namespace

// A call that is under way, for CallWatch and for the handler of SIGSEGV.
class Instance::WatchedCall {
 public:
  WatchedCall(Instance& instance, const char* function)
      : instance_(instance), name_{instance.name_.c_str(), instance.type_.type.c_str(), function} {
    if (instance.watch) call_ = instance.watch->begin(instance, function);
    instance.watched_calls_.fetch_add(1, std::memory_order_relaxed);
  }
  ~WatchedCall() {
    const std::lock_guard lock(instance_.call_mutex_);
    if (instance_.abandoned_) return; // the watch may be gone
    instance_.watched_calls_.fetch_sub(1, std::memory_order_relaxed);
    if (instance_.watch) instance_.watch->end(call_);
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  Instance& instance_;
  const CallName name_;
  std::list<CallWatch::Call>::iterator call_;
  UnderWayScope here_{{[](const void* of) { return *static_cast<const CallName*>(of); }, &name_}};
};

template <class Call>
mr_status Instance::watched(const char* function, Call&& call) {
  set_error("");
  const WatchedCall here(*this, function);
  return with_sentence(call(), function);
}

Instance::Instance(const RegisteredType& type, const mr_host& host, std::string name)
    : type_(type), name_(std::move(name)) {
  if (type_.table->create(&host, this, &self_, &declaration_) == MR_OK) return;
  Error failure{code::handler_not_constructed,
                "handler '" + name_ + "' (" + type_.type + ") could not be constructed",
                {},
                {},
                {},
                {}};
  const std::string sentence = error();
  failure.notes.push_back("it said: " + (sentence.empty() ? "nothing (out of memory?)" : sentence));
  throw Failure(std::move(failure));
}

Instance::~Instance() { type_.table->destroy(self_); }

std::string Instance::error() const {
  const std::lock_guard lock(said_mutex_);
  return error_;
}

int Instance::fault() const {
  const std::lock_guard lock(said_mutex_);
  return fault_;
}

void Instance::set_error(std::string sentence, uint32_t fault) {
  const std::lock_guard lock(said_mutex_);
  fault_ = is_code_of_handlers(fault) ? static_cast<int>(fault) : 0;
  constexpr size_t kSentenceBytesMax = 4096; // a person reads it on a terminal; a trace of Python's fits
  error_ = sentence.size() > kSentenceBytesMax ? shortened(sentence, kSentenceBytesMax) : std::move(sentence);
}

namespace {

// The sentence for a failure without one: handler.h gives none for std::bad_alloc, as there may be no memory for it.
std::string said_nothing(const char* function) {
  return std::string(function) + " failed without saying why; perhaps there was no memory left";
}

} // namespace

std::string Instance::take_error(const char* function) {
  const std::lock_guard lock(said_mutex_);
  std::string sentence = std::exchange(error_, {});
  fault_ = 0;
  if (sentence.empty()) sentence = said_nothing(function);
  return taken_error_ = std::move(sentence);
}

std::string Instance::taken_error() const {
  const std::lock_guard lock(said_mutex_);
  return taken_error_;
}

// Makes sure that MR_ERROR has a sentence.
mr_status Instance::with_sentence(mr_status status, const char* function) {
  if (status == MR_ERROR && error().empty()) set_error(said_nothing(function));
  return status;
}

void Instance::set_param(const std::string& name, const std::string& text, const Place& place) {
  const HandlerInfo::Param* param = type_.find_param(name);
  if (!param) {
    std::vector<std::string> names;
    for (const HandlerInfo::Param& known : type_.params) names.push_back(known.name);
    Error failure{code::unknown_parameter,
                  type_.type + " has no parameter '" + name + "'",
                  place,
                  {},
                  nearest_name(name, names),
                  {}};
    std::string list;
    for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
    failure.notes.push_back(names.empty() ? "it has none" : "it has " + list);
    throw Failure(std::move(failure));
  }
  const mr_param_value value = parse_param(type_, *param, text, place);
  set_error("");
  const auto index = static_cast<uint32_t>(param - type_.params.data());
  if (type_.table->set_param(self_, index, &value) == MR_OK) return;
  // The declaration allows the value, but the handler's own type cannot hold it.
  Error failure{code::parameter_out_of_range,
                "parameter '" + name + "' of " + type_.type + ": '" + text + "' is refused",
                place,
                {},
                {},
                {}};
  failure.notes.push_back(error());
  throw Failure(std::move(failure));
}

mr_status Instance::bind(const std::vector<uint32_t>& edge_counts) {
  MR_ASSERT(edge_counts.size() == type_.ports.size(), "bind takes one edge count a port");
  set_error("");
  return with_sentence(type_.table->bind(self_, edge_counts.data()), "bind");
}

mr_status Instance::probe(mr_facts& facts) {
  return watched("probe", [&] { return type_.table->probe(self_, &facts); });
}

bool Instance::abandon_call() {
  const std::lock_guard lock(call_mutex_);
  if (!is_watched()) return false;
  abandoned_ = true;
  if (watch) watch->forget(*this);
  return true;
}

mr_status Instance::configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) {
  return watched("configure", [&] {
    return type_.table->configure(self_, inputs.data(), static_cast<uint32_t>(inputs.size()), outputs.data(),
                                  static_cast<uint32_t>(outputs.size()));
  });
}

mr_status Instance::start(const mr_device_info& device) {
  const auto start_on = type_.table->start_on;
  return watched("start", [&] { return start_on ? start_on(self_, &device) : type_.table->start(self_); });
}

mr_status Instance::drain() {
  return watched("drain", [&] { return type_.table->drain(self_); });
}

mr_status Instance::stop() {
  return watched("stop", [&] { return type_.table->stop(self_); });
}

mr_status Instance::reset() {
  return watched("reset", [&] { return type_.table->reset(self_); });
}

mr_status Instance::narrow(uint32_t port, mr_format& accepts) {
  if (!type_.table->narrow) return MR_OK;
  set_error("");
  return with_sentence(type_.table->narrow(self_, port, &accepts), "narrow");
}

std::map<std::string, int64_t> Instance::counts() const {
  const std::lock_guard lock(said_mutex_);
  return counts_;
}

bool Instance::keep(uint32_t level, std::string_view sentence) { return said_.add(level, sentence); }

void Instance::log(uint32_t level, std::string_view sentence) {
  const bool first = keep(level, sentence);
  if (on_log) on_log(level, sentence, first);
}

void Instance::note(const std::string& sentence) { said_.add(MR_LOG_WARNING, sentence, true); }

void Instance::count(const std::string& name, int64_t add) {
  const std::lock_guard lock(said_mutex_);
  if (counts_.size() < kCountsMax || counts_.contains(name)) counts_[name] += add;
}

void Instance::interrupt() { type_.table->interrupt(self_); }

namespace {

// The declaration in the form that param_text.h reads; it points into `choices`.
mr_param with_choices(const HandlerInfo::Param& param, std::vector<const char*>& choices) {
  mr_param declared = param.raw;
  declared.unit = param.unit.c_str();
  if (param.choices.empty()) return declared;
  for (const std::string& choice : param.choices) choices.push_back(choice.c_str());
  choices.push_back(nullptr);
  declared.choices = choices.data();
  return declared;
}

// "2,5" → "2.5"; "" if the text is no number with a decimal comma.
std::string with_point(std::string text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == text.size() ||
      text.find_first_not_of("0123456789", comma + 1) != std::string::npos)
    return "";
  if (text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) != comma) return "";
  text[comma] = '.';
  return text;
}

// A value to suggest for a text that is refused: the nearest choice, the number in it ("2px", "2,5"), the end of the
// range that it exceeds; else the default.
std::string usable_value(const HandlerInfo::Param& param, const std::string& text) {
  if (const std::string near = nearest_name(text, param.choices); !near.empty()) return near;
  const bool whole = param.raw.type == MR_PARAM_INT;
  const bool number = whole || param.raw.type == MR_PARAM_FLOAT;
  if (number && !text.empty() && text.find_first_not_of("+-.") == text.find_first_of("0123456789")) {
    const std::string pointed = with_point(text);
    size_t length = 0;
    double value = v1::detail::leading_number(pointed.empty() ? text : pointed, length);
    if (param.raw.flags & MR_PARAM_HAS_RANGE) value = std::clamp(value, param.raw.min, param.raw.max);
    if (whole) value = std::floor(value);
    if (std::isfinite(value) && std::abs(value) < 1e15) return v1::detail::number_text(value);
  }
  const bool word = param.raw.type == MR_PARAM_STRING && param.choices.empty();
  return param.default_text.empty() || word ? "…" : param.default_text;
}

} // namespace

mr_param_value parse_param(const HandlerInfo& info, const HandlerInfo::Param& param, const std::string& text,
                           const Place& place) {
  std::vector<const char*> choices;
  ParamReading reading = read_param(with_choices(param, choices), text);
  if (param.raw.type == MR_PARAM_JSON && !nlohmann::json::accept(text)) {
    reading.problem = ParamProblem::wrong_type;
    reading.expected = "JSON";
  }
  if (reading.problem == ParamProblem::none) return reading.value;
  int code = code::wrong_parameter_type;
  if (reading.problem == ParamProblem::out_of_range) code = code::parameter_out_of_range;
  if (reading.problem == ParamProblem::no_such_choice) code = code::unknown_choice;
  Error failure{code,
                "parameter '" + param.name + "' of " + info.type + ": '" + text + "' is not " + reading.expected,
                place,
                {},
                nearest_name(text, param.choices),
                assignment(place, param.name, usable_value(param, text))};
  const bool is_number = param.raw.type == MR_PARAM_INT || param.raw.type == MR_PARAM_FLOAT;
  if (is_number && !with_point(text).empty()) failure.notes.push_back("the decimal mark is a point");
  if (text.find("${") != std::string::npos)
    failure.notes.push_back("variables are not replaced in a pipeline; --set gives a value from the shell");
  failure.notes.push_back("default: " + (param.default_text.empty() ? "none" : param.default_text));
  throw Failure(std::move(failure));
}

std::string described(const HandlerInfo::Param& param) {
  std::vector<const char*> choices;
  std::string line = param.name + ": " + v1::detail::expected_text(with_choices(param, choices));
  if (param.required())
    line += ", required";
  else if (!param.default_text.empty())
    line += ", default " + param.default_text;
  return line + ": " + param.help;
}

mr_host basic_host() {
  mr_host host{};
  host.size = sizeof host;
  host.abi_version = MR_ABI_VERSION;
  // Outside a run there are no ticks, so the functions of a tick refuse.
  host.allocate = [](mr_tick*, uint32_t, uint64_t) -> mr_status { return MR_ERROR; };
  host.modify = [](mr_tick*, uint32_t, uint32_t) -> mr_status { return MR_ERROR; };
  host.adopt = [](mr_tick*, uint32_t, const void*, uint64_t, void (*)(void*), void*) -> mr_status { return MR_ERROR; };
  host.defer = [](mr_tick*) -> mr_tick* { return nullptr; };
  host.publish = [](mr_tick*) -> mr_status { return MR_ERROR; };
  host.fail = [](void* instance, const char* sentence) { static_cast<Instance*>(instance)->set_error(sentence); };
  host.fail_as = [](void* instance, uint32_t fault, const char* sentence) {
    static_cast<Instance*>(instance)->set_error(sentence, fault);
  };
  host.log = [](void* instance, uint32_t level, const char* sentence) {
    static_cast<Instance*>(instance)->log(level, sentence ? sentence : "");
  };
  host.borrow = [](void*, uint32_t, mr_block*) -> mr_status { return MR_ERROR; };
  host.give = [](mr_tick*, uint32_t, uint64_t) -> mr_status { return MR_ERROR; };
  host.give_back = [](void*, uint32_t, uint64_t) {};
  host.count = [](void* instance, const char* name, int64_t add) {
    static_cast<Instance*>(instance)->count(name, add);
  };
  host.allocate_items = [](mr_tick* const*, uint32_t, uint32_t, const uint64_t*) -> mr_status { return MR_ERROR; };
  host.fail_item = [](mr_tick*, const char*) {};
  host.share = [](void*, const char*, void* (*)(void*), void (*)(void*), void*) -> void* { return nullptr; };
  host.serve = [](void*, const mr_site*) -> mr_status { return MR_ERROR; };
  host.now_ns = [](void* instance) -> int64_t {
    const Instance& handler = *static_cast<Instance*>(instance);
    if (handler.clock_ns) return handler.clock_ns();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  return host;
}

} // namespace millrace::plugin
