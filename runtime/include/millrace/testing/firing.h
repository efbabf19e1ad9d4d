// Binding and configuring in a TableTest, and the firings that it makes and checks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "millrace/testing/table_test.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {
namespace testing {

inline void TableTest::set(const std::string& name, const std::string& text) {
  for (uint32_t i = 0; i < declaration_->param_count; ++i) {
    const mr_param& param = declaration_->params[i];
    if (name != param.name) continue;
    if (started_ && !(param.flags & MR_PARAM_LIVE)) throw std::runtime_error("parameter '" + name + "' is not live");
    const ParamReading reading = read_param(param, text);
    if (reading.problem != ParamProblem::none)
      throw std::runtime_error("parameter '" + name + "': '" + text + "' is not " + reading.expected);
    if (type_.set_param(self_, i, &reading.value) != MR_OK) throw std::runtime_error(error());
    return;
  }
  std::vector<std::string> names;
  for (uint32_t i = 0; i < declaration_->param_count; ++i) names.emplace_back(declaration_->params[i].name);
  throw std::runtime_error("there is no parameter '" + name + "'; there are: " + listed_from(name, std::move(names)));
}

inline mr_status TableTest::start() {
  if (started_) return MR_OK;
  mr_status status = bind();
  if (status == MR_OK) status = type_.probe(self_, &facts_);
  if (status == MR_OK) status = configure();
  if (status == MR_OK) status = call_start();
  started_ = status == MR_OK;
  return status;
}

inline mr_status TableTest::reset() {
  state_.assign(declaration_->state_bytes);
  return call(type_.reset);
}

inline mr_status TableTest::restart() {
  if (const mr_status stopped = stop(); stopped != MR_OK) return stopped;
  if (const mr_status cleared = reset(); cleared != MR_OK) return cleared;
  const mr_status status = call_start();
  started_ = status == MR_OK;
  return status;
}

inline mr_status TableTest::bind() {
  if (bound_) return MR_OK;
  std::vector<uint32_t> edge_counts;
  for (uint32_t p = 0; p < declaration_->port_count; ++p) {
    const mr_port& port = declaration_->ports[p];
    Entry& entry = entries_[p];
    const bool input = port.direction == MR_INPUT;
    entry.first = input ? input_count_ : output_count_;
    const auto edges = static_cast<uint32_t>(entry.values.size());
    if (input && edges == 0 && !(port.flags & MR_PORT_OPTIONAL))
      throw std::logic_error("input '" + std::string(port.name) + "' is required: give it with input()");
    if (input && edges > port.many_max)
      throw std::logic_error("input '" + std::string(port.name) + "' takes fewer edges");
    edge_counts.push_back(input ? edges : uint32_t{entry.reader});
    (input ? input_count_ : output_count_) += (port.flags & MR_PORT_MANY) ? edges : 1;
  }
  bound_ = true;
  return type_.bind(self_, edge_counts.data());
}

inline mr_status TableTest::configure() {
  std::vector<mr_format> inputs(input_count_);
  output_formats_.assign(output_count_, mr_format{});
  for (uint32_t p = 0; p < declaration_->port_count; ++p) {
    const mr_port& port = declaration_->ports[p];
    const Entry& entry = entries_[p];
    if (port.direction == MR_OUTPUT) continue;
    mr_format takes = port.accepts;
    if (type_.narrow && type_.narrow(self_, p, &takes) != MR_OK) return MR_ERROR;
    if (entry.values.empty() && !(port.flags & MR_PORT_MANY)) inputs[entry.first] = takes;
    for (size_t i = 0; i < entry.values.size(); ++i) {
      inputs[entry.first + i] = detail::format_of(entry.values[i], takes, dims_);
      if (!detail::accepted(takes, inputs[entry.first + i]))
        return refuse("input '" + std::string(port.name) + "' does not take this format");
    }
  }
  for (uint32_t p = 0; p < declaration_->port_count; ++p) {
    const mr_port& port = declaration_->ports[p];
    if (port.direction == MR_INPUT) continue;
    mr_format& format = output_formats_[entries_[p].first];
    format = port.accepts;
    if (port.like >= 0 && !entries_[static_cast<uint32_t>(port.like)].values.empty())
      format = inputs[entries_[static_cast<uint32_t>(port.like)].first];
  }
  const mr_status status = type_.configure(self_, inputs.data(), input_count_, output_formats_.data(), output_count_);
  state_.assign(declaration_->state_bytes);
  for (uint32_t i = 0; status == MR_OK && i < output_count_; ++i)
    if (output_formats_[i].kind == MR_KIND_IMAGE && output_formats_[i].width == 0)
      return refuse(output_name(i) + " has no size: set it in configure(), or declare it like an input");
  return status;
}

inline mr_status TableTest::refuse(const std::string& sentence) {
  fail(this, sentence.c_str());
  return MR_ERROR;
}

inline bool TableTest::required_inputs_present() const {
  for (uint32_t p = 0; p < declaration_->port_count; ++p) {
    const mr_port& port = declaration_->ports[p];
    if (port.direction == MR_OUTPUT || (port.flags & MR_PORT_OPTIONAL)) continue;
    for (const Value& value : entries_[p].values)
      if (!value) return false;
  }
  return true;
}

inline void TableTest::prepare(Firing& firing) {
  firing.info = {0, 0, index_, static_cast<int64_t>(index_) * period_ns_, deadline_ns_, index_ + 1};
  for (uint32_t p = 0; p < declaration_->port_count; ++p) {
    const mr_port& port = declaration_->ports[p];
    if (port.direction == MR_OUTPUT) continue;
    firing.input_values.insert(firing.input_values.end(), entries_[p].values.begin(), entries_[p].values.end());
    if (entries_[p].values.empty() && !(port.flags & MR_PORT_MANY)) firing.input_values.emplace_back();
    keep_past(entries_[p], port.keeps);
  }
  for (const Value& value : firing.input_values) {
    firing.inputs.push_back(value ? mr_input{&value.raw(), value.data()} : mr_input{});
    firing.input_hashes.push_back(value ? value.block()->hash() : 0);
  }
  firing.outputs.resize(output_count_);
  firing.blocks.resize(output_count_);
  firing.tick = {sizeof(mr_tick),
                 MR_DEVICE_CPU,
                 &firing.info,
                 firing.inputs.data(),
                 firing.outputs.data(),
                 input_count_,
                 output_count_,
                 &host_,
                 this,
                 nullptr,
                 0,
                 stream_.value_or(0),
                 nullptr,
                 nullptr,
                 nullptr,
                 ended_inputs(),
                 state_.data(),
                 0}; // its clock is its own
}

inline uint64_t TableTest::ended_inputs() const {
  uint64_t bits = 0;
  for (uint32_t p = 0; p < declaration_->port_count; ++p)
    if (declaration_->ports[p].direction == MR_INPUT && entries_[p].first < 64)
      bits |= entries_[p].ended << entries_[p].first;
  return bits;
}

inline void TableTest::keep_past(const Entry& entry, uint32_t keeps) {
  for (const Value& value : entry.values) kept_.push_back(value);
  kept_bound_ = std::max<size_t>(kept_bound_, (keeps + 1) * input_count_);
  while (kept_.size() > kept_bound_) kept_.pop_front();
}

inline Result TableTest::fire(const std::shared_ptr<Firing>& firing) {
  if (!type_.process) return refused(refuse("the handler has no CPU body"));
  set_error("");
  current_ = firing;
  mr_status status = type_.process(self_, &firing->tick);
  firing->tick.state = nullptr; // finish has none
  if (status == MR_OK && type_.finish) status = type_.finish(self_, &firing->tick);
  const std::lock_guard lock(mutex_);
  current_ = nullptr;
  if ((status == MR_PENDING) != firing->deferred && status != MR_ERROR) {
    error_ = firing->deferred ? "the firing was deferred, but process did not return pending"
                              : "process returned pending without defer()";
    status = MR_ERROR;
  }
  if (status != MR_PENDING) {
    std::erase(pending_, firing);
    return settle(*firing, status);
  }
  Result owed = empty_result(*firing);
  owed.status = MR_PENDING;
  return owed;
}

inline Result TableTest::empty_result(const Firing& firing) const {
  Result result;
  result.tick = firing.info;
  for (uint32_t p = 0; p < declaration_->port_count; ++p)
    if (declaration_->ports[p].direction == MR_OUTPUT)
      result.outputs.push_back({declaration_->ports[p].name, {}, MR_OUTPUT_SILENT});
  return result;
}

inline Result TableTest::refused(mr_status status) const {
  Result result = empty_result({});
  result.status = status;
  result.error = error();
  result.fired = false;
  return result;
}

inline Result TableTest::settle(Firing& firing, mr_status status) {
  Result result = empty_result(firing);
  result.status = status;
  for (uint32_t i = 0; i < output_count_; ++i) {
    const mr_output& output = firing.outputs[i];
    std::string wrong = broken_contract(firing, i);
    if (!wrong.empty()) {
      error_ = std::move(wrong);
      result.status = MR_ERROR;
    }
    result.outputs[i].state = output.state;
    if (output.state == MR_OUTPUT_SILENT || !output.value || !output.value->header.present) continue;
    const bool forwarded = output.state == MR_OUTPUT_FORWARDED;
    if (!forwarded && stream_) output.value->header.stream = firing.tick.stream;
    result.outputs[i].value = forwarded ? firing.input_values[output.source] : Value(firing.blocks[i]);
  }
  for (size_t i = 0; i < firing.input_values.size(); ++i) {
    const Value& value = firing.input_values[i];
    const bool written_over = std::count(firing.blocks.begin(), firing.blocks.end(), value.block()) > 0;
    if (!value || written_over || value.block()->hash() == firing.input_hashes[i]) continue;
    error_ = "the handler wrote into input " + std::to_string(i) + ", which others may read";
    result.status = MR_ERROR;
  }
  if (result.status == MR_ERROR) result.error = error_.empty() ? "process failed without a sentence" : error_;
  if (result.status == MR_ERROR)
    for (Result::Output& output : result.outputs) output = {output.port, {}, MR_OUTPUT_SILENT};
  return result;
}

inline std::string TableTest::broken_contract(const Firing& firing, uint32_t i) const {
  const mr_output& output = firing.outputs[i];
  if (output.state == MR_OUTPUT_FORWARDED) {
    if (!(port_of_output(i).flags & (MR_PORT_FORWARDS | MR_PORT_REPEATS)))
      return output_name(i) + " is not declared with mr::forward or mr::may_repeat";
    return output.source < input_count_ ? "" : output_name(i) + " forwards an input that is not there";
  }
  if (!firing.blocks[i]) return "";
  if (!firing.blocks[i]->intact()) return "the handler wrote past the end of " + output_name(i);
  if (!firing.blocks[i]->intact_before()) return "the handler wrote before the beginning of " + output_name(i);
  const mr_value& value = firing.blocks[i]->value();
  const mr_format& format = output_formats_[i];
  const uint64_t capacity = firing.blocks[i]->capacity();
  const ValueFault fault = value.header.present ? find_fault(format, value, capacity) : ValueFault::none;
  return fault == ValueFault::none ? "" : output_name(i) + " " + words_of(fault, format, value, capacity);
}

inline void TableTest::start_on(const DeviceInfo& device) {
  device_ = {sizeof device_,          static_cast<uint32_t>(device.kind),
             device.ordinal,          device.multiprocessors,
             device.compute_major,    device.compute_minor,
             device.shared_bytes_max, device.memory_bytes,
             device.name.data()};
}

inline mr_status TableTest::call_start() {
  set_error("");
  return type_.start_on ? type_.start_on(self_, &device_) : type_.start(self_);
}

inline mr_status TableTest::call(mr_status (*function)(void*)) {
  set_error("");
  return function ? function(self_) : MR_OK;
}

inline void TableTest::set_error(const char* sentence) {
  const std::lock_guard lock(mutex_);
  error_ = sentence;
}

} // namespace testing
} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
