// Declarations and formats as JSON and back, without loss: what a type says of itself can be kept, compared, and sent
// to where its code is not. Reading throws nlohmann::json::exception where something is missing or of another type, and
// Failure (MR0115) where it is there and cannot be.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "plugin/handler_info.h"

namespace millrace::plugin {

nlohmann::json to_json(const HandlerInfo& info);
HandlerInfo read_handler_info(const nlohmann::json& json);

nlohmann::json to_json(const mr_record_type& type);
std::shared_ptr<const RecordType> read_record_type(const nlohmann::json& json);

// What is 0 is left out. Its `records` are the owner's to write and to read.
nlohmann::json to_json(const mr_format& format);
mr_format read_format(const nlohmann::json& json);

} // namespace millrace::plugin
