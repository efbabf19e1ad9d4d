// Writes and reads what nodes tell of their handlers; see told_handlers.h.
#include "node/told_handlers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/plan_json.h"
#include "plugin/info_json.h"

namespace millrace::node {

namespace {

using nlohmann::json;

json tell_format(const mr_format& format) {
  json told = plugin::to_json(format);
  if (format.records) told["records"] = plugin::to_json(*format.records);
  return told;
}

json tell_formats(const std::vector<mr_format>& formats) {
  json told = json::array();
  for (const mr_format& format : formats) told.push_back(tell_format(format));
  return told;
}

[[noreturn]] void refuse(const std::string& handler, const std::string& how) {
  throw Failure(code::other_version, "handler " + handler + " was told " + how);
}

// The compiler takes the declaration of a plugin for sound, since the registry has checked it.
void require_sound(const plugin::HandlerInfo& info) {
  const auto ports = static_cast<int64_t>(info.ports.size());
  for (const plugin::HandlerInfo::Port& port : info.ports)
    if (port.raw.like >= ports || (port.raw.like >= 0 && !info.ports[static_cast<size_t>(port.raw.like)].is_input()))
      throw Failure(code::other_version, "port " + port.name + " is like one that is no input");
}

} // namespace

mr_status ToldHandler::configure(const std::vector<mr_format>& inputs, std::vector<mr_format>& outputs) {
  const std::string asked = tell_formats(inputs).dump();
  const auto known =
      std::find_if(answers_.begin(), answers_.end(), [&](const Answer& answer) { return answer.inputs == asked; });
  if (known != answers_.end()) {
    outputs = known->outputs;
    return MR_OK;
  }
  if (!live_ && outputs.empty()) return MR_OK; // its own node asks whether it takes them
  if (!live_) {
    error_ = "the plugin of " + info_.type + " is not installed here, and its own node did not tell what it makes of " +
             (inputs.empty() ? "nothing" : "these formats");
    return MR_ERROR;
  }
  const mr_status status = live_->configure(inputs, outputs);
  if (status == MR_OK)
    answers_.push_back({asked, outputs});
  else
    error_ = live_->error();
  return status;
}

void ToldHandlers::listen(plan::HandlerFacts& handler) {
  handlers_.emplace_back(handler.answers->info(), handler.answers);
  handler.answers = &handlers_.back();
}

void ToldHandlers::take(const json& told, plan::HandlerFacts& handler) {
  try {
    plugin::HandlerInfo info = plugin::read_handler_info(told.at("info"));
    require_sound(info);
    handlers_.emplace_back(std::move(info), handler.answers);
    ToldHandler& made = handlers_.back();
    for (const json& answer : told.at("answers").get_ref<const json::array_t&>())
      made.answers_.push_back({answer.at("inputs").dump(), read_all(answer.at("outputs"))});
    handler.facts = plan::read_facts(told.at("facts"));
    handler.accepts = read_all(told.at("accepts"));
    handler.answers = &made;
  } catch (const json::exception& wrong) {
    refuse(handler.name, std::string("in words that cannot be read: ") + wrong.what());
  } catch (const Failure& wrong) {
    refuse(handler.name, "in words that cannot be read: " + wrong.error().what);
  }
  const ToldHandler& made = handlers_.back();
  const std::vector<plugin::HandlerInfo::Port>& ports = made.info_.ports;
  const auto outputs = std::count_if(ports.begin(), ports.end(), [](const auto& port) { return !port.is_input(); });
  const bool fit = std::all_of(made.answers_.begin(), made.answers_.end(), [&](const ToldHandler::Answer& answer) {
    return answer.outputs.size() == static_cast<size_t>(outputs);
  });
  if (handler.accepts.size() != ports.size() || !fit) refuse(handler.name, "with another number of ports");
}

json ToldHandlers::tell(const plan::HandlerFacts& handler) {
  plugin::HandlerInfo info = handler.answers->info();
  info.manual.clear(); // for people, and long
  json told = {{"info", plugin::to_json(info)},
               {"facts", plan::write_facts(handler.facts)},
               {"accepts", tell_formats(handler.accepts)},
               {"answers", json::array()}};
  const auto add = [&](const json& inputs, const std::vector<mr_format>& outputs) {
    told["answers"].push_back({{"inputs", inputs}, {"outputs", tell_formats(outputs)}});
  };
  if (const auto* const known = dynamic_cast<const ToldHandler*>(handler.answers))
    for (const ToldHandler::Answer& answer : known->answers_) add(json::parse(answer.inputs), answer.outputs);
  if (!handler.outputs.empty()) add(json::array(), handler.outputs); // given: nobody asked for them
  return told;
}

mr_format ToldHandlers::read(const json& format) {
  if (!format.is_object()) throw Failure(code::bad_saved_plan, "a format is no object");
  mr_format made = plugin::read_format(format);
  if (const auto records = format.find("records"); records != format.end()) {
    records_.push_back(plugin::read_record_type(*records));
    made.records = &records_.back()->raw;
  }
  return made;
}

std::vector<mr_format> ToldHandlers::read_all(const json& formats) {
  std::vector<mr_format> made;
  for (const json& format : formats.get_ref<const json::array_t&>()) made.push_back(read(format));
  return made;
}

} // namespace millrace::node
