// Writes and reads descriptions of handlers as JSON; see told_handlers.h.
#include "node/told_handlers.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "fleet/statement.h"
#include "node/reading.h"
#include "plan/facts.h"
#include "plugin/info_json.h"
#include "plugin/whole.h"

namespace millrace::node {

namespace {

using nlohmann::json;

json format_json(const mr_format& format) {
  json told = plugin::to_json(format);
  if (format.records) told["records"] = plugin::to_json(*format.records);
  return told;
}

json formats_json(const std::vector<mr_format>& formats) {
  json told = json::array();
  for (const mr_format& format : formats) told.push_back(format_json(format));
  return told;
}

mr_format read_format(const json& format, RecordTypes& records) {
  if (!format.is_object()) throw Failure(code::bad_saved_plan, "a format is no object");
  mr_format made = plugin::read_format(format);
  if (const auto type = format.find("records"); type != format.end()) {
    records.push_back(plugin::read_record_type(*type));
    made.records = &records.back()->raw;
  }
  return made;
}

std::vector<mr_format> read_formats(const json& formats, RecordTypes& records) {
  std::vector<mr_format> made;
  for (const json& format : formats.get_ref<const json::array_t&>()) made.push_back(read_format(format, records));
  return made;
}

std::string told_of(const std::string& handler) { return "what was told of handler " + handler; }

json memory_json(const plugin::BodyMemory& memory) {
  return {{"scratch", memory.scratch}, {"host", memory.host}, {"state", memory.state}, {"device", memory.device}};
}

plugin::BodyMemory read_memory(const json& memory) {
  return {plugin::Whole{memory.at("scratch")}, plugin::Whole{memory.at("host")}, plugin::Whole{memory.at("state")},
          plugin::Whole{memory.at("device")}};
}

size_t count_ports(const plugin::HandlerInfo& info, bool inputs) {
  return static_cast<size_t>(
      std::count_if(info.ports.begin(), info.ports.end(), [&](const auto& port) { return port.is_input() == inputs; }));
}

// The compiler takes the declaration of a plugin for sound, since the registry has checked it.
void require_sound(const plugin::HandlerInfo& info) {
  const auto ports = static_cast<int64_t>(info.ports.size());
  for (const plugin::HandlerInfo::Port& port : info.ports)
    if (port.raw.like >= ports || (port.raw.like >= 0 && !info.ports[static_cast<size_t>(port.raw.like)].is_input()))
      throw Failure(code::other_version, "port " + port.name + " is like one that is no input");
}

} // namespace

json read_json(const std::string& text) {
  if (fleet::nests_deeper(text, fleet::kNestingMax)) return json(json::value_t::discarded);
  return json::parse(text, nullptr, false);
}

mr_status ToldHandler::configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) {
  const std::string asked = formats_json(inputs).dump();
  const auto known =
      std::find_if(answers_.begin(), answers_.end(), [&](const Answer& answer) { return answer.inputs == asked; });
  if (known != answers_.end()) {
    outputs = known->outputs;
    memory_ = known->memory;
    return MR_OK;
  }
  mr_status status = MR_ERROR;
  if (ask_) {
    status = ask(asked, outputs);
  } else if (live_) {
    status = live_->configure(inputs, outputs);
    memory_ = live_->memory();
    if (status != MR_OK) take_error(live_->error(), live_->fault());
  } else {
    take_error("the plugin of " + info_.type +
               " is not installed here, and its own node did not tell what it makes of " +
               (inputs.empty() ? "nothing" : "these formats"));
  }
  if (status == MR_OK) answers_.push_back({asked, outputs, memory_});
  return status;
}

void ToldHandler::take_error(std::string sentence, int fault) {
  error_ = std::move(sentence);
  fault_ = is_code_of_handlers(fault) ? fault : 0;
}

mr_status ToldHandler::ask(const std::string& inputs, std::vector<mr_format>& outputs) {
  const json question = {{"handler", name_}, {"inputs", json::parse(inputs)}, {"outputs", formats_json(outputs)}};
  const json answer = read_json(ask_(question.dump()));
  return reading(told_of(name_), [&] {
    if (answer.is_object() && answer.contains("error")) {
      take_error(answer.at("error").get<std::string>(), answer.value("fault", 0));
      return MR_ERROR;
    }
    std::vector<mr_format> told = read_formats(answer.at("outputs"), records_);
    if (told.size() != outputs.size()) throw Failure(code::other_version, "it has another number of outputs");
    outputs = std::move(told);
    memory_ = read_memory(answer.at("memory"));
    return MR_OK;
  });
}

json ToldHandlers::answer(const json& question, plan::HandlerFacts& handler, RecordTypes& records) {
  return reading(told_of(handler.name), [&]() -> json {
    const std::vector<mr_format> inputs = read_formats(question.at("inputs"), records);
    std::vector<mr_format> outputs = read_formats(question.at("outputs"), records);
    const plugin::HandlerInfo& info = handler.answers->info();
    if (outputs.size() != count_ports(info, false) || (inputs.empty() && count_ports(info, true) > 0))
      throw Failure(code::other_version, "it has another number of ports");
    if (handler.answers->configure(inputs, outputs) != MR_OK)
      return {{"error", handler.answers->error()}, {"fault", handler.answers->fault()}};
    return {{"outputs", formats_json(outputs)}, {"memory", memory_json(handler.answers->memory())}};
  });
}

void ToldHandlers::listen(plan::HandlerFacts& handler) {
  handlers_.emplace_back(handler.name, handler.answers->info(), handler.answers, nullptr);
  handler.answers = &handlers_.back();
}

void ToldHandlers::take(const json& told, plan::HandlerFacts& handler, AskNode ask) {
  ToldHandler& made = reading(told_of(handler.name), [&]() -> std::reference_wrapper<ToldHandler> {
    plugin::HandlerInfo info = plugin::read_handler_info(told.at("info"));
    require_sound(info);
    handlers_.emplace_back(handler.name, std::move(info), handler.answers, std::move(ask));
    ToldHandler& read = handlers_.back();
    for (const json& answer : told.at("answers").get_ref<const json::array_t&>())
      read.answers_.push_back(
          {answer.at("inputs").dump(), read_formats(answer.at("outputs"), records_), read_memory(answer.at("memory"))});
    handler.facts = plugin::read_facts(told.at("facts"));
    handler.accepts = read_formats(told.at("accepts"), records_);
    handler.answers = &read;
    return read;
  });
  const bool fit = std::all_of(made.answers_.begin(), made.answers_.end(), [&](const ToldHandler::Answer& answer) {
    return answer.outputs.size() == count_ports(made.info_, false);
  });
  if (handler.accepts.size() != made.info_.ports.size() || !fit)
    throw Failure(code::other_version, told_of(handler.name) + " has another number of ports");
}

json ToldHandlers::tell(const plan::HandlerFacts& handler) {
  plugin::HandlerInfo info = handler.answers->info();
  info.manual.clear(); // for people, and long
  json told = {{"info", plugin::to_json(info)},
               {"facts", plugin::to_json(handler.facts)},
               {"accepts", formats_json(handler.accepts)},
               {"answers", json::array()}};
  const auto add = [&](const json& inputs, const std::vector<mr_format>& outputs, const plugin::BodyMemory& memory) {
    told["answers"].push_back(
        {{"inputs", inputs}, {"outputs", formats_json(outputs)}, {"memory", memory_json(memory)}});
  };
  if (const auto* const known = dynamic_cast<const ToldHandler*>(handler.answers))
    for (const ToldHandler::Answer& answer : known->answers_)
      add(json::parse(answer.inputs), answer.outputs, answer.memory);
  if (!handler.outputs.empty()) add(json::array(), handler.outputs, handler.answers->memory()); // given: nobody asked
  return told;
}

} // namespace millrace::node
