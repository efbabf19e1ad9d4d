// Declarations, facts and formats as JSON and back, without loss: the declaration of a type can be kept, compared, and
// sent to a process that has no code of the type. Reading throws nlohmann::json::exception if a value is missing or of
// another type, and Failure (MR0115) if a value is not possible.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plugin/handler_info.h"

namespace millrace::plugin {

nlohmann::json to_json(const HandlerInfo& info);
HandlerInfo read_handler_info(const nlohmann::json& json);

// A value of the parameter; `text` is what it was read from, and what a string or JSON is told as.
nlohmann::json to_json(const HandlerInfo::Param& param, const mr_param_value& value, const std::string& text);

nlohmann::json to_json(const mr_record_type& type);
std::shared_ptr<const RecordType> read_record_type(const nlohmann::json& json);

nlohmann::json to_json(const mr_facts& facts);
mr_facts read_facts(const nlohmann::json& json);

// Fields that are 0 are left out. The owner of a format writes and reads its `records`.
nlohmann::json to_json(const mr_format& format);
mr_format read_format(const nlohmann::json& json);

} // namespace millrace::plugin
