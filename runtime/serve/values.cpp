// Puts together what the pipeline declares and what has changed since; see values.h.
#include "serve/values.h"

#include <nlohmann/json.hpp>

#include "exec/param_change.h"
#include "graph/graph.h"
#include "observe/error.h"
#include "observe/secrets.h"
#include "plan/plan.h"
#include "plan/prepare.h"
#include "plugin/info_json.h"
#include "plugin/registry.h"

namespace millrace::serve {

using nlohmann::ordered_json;
using ParamInfo = plugin::HandlerInfo::Param;

namespace {

ordered_json json_of(const plugin::HandlerInfo& info, const ParamInfo& param, const std::string& text) {
  return plugin::to_json(param, plugin::parse_param(info, param, text, {}), without_secrets(text));
}

ordered_json parameters_of(const plugin::HandlerInfo& info, const graph::Handler& declared,
                           const exec::HandlerValues& values) {
  ordered_json all = ordered_json::object();
  for (const ParamInfo& param : info.params) {
    ordered_json& said = all[param.name];
    said = ordered_json::object();
    if (!param.required()) said["value"] = said["default"] = json_of(info, param, param.default_text);
    if (!values.is_as_planned) said.erase("value");
    for (const graph::Param& written : declared.params)
      if (written.name == param.name && values.is_as_planned)
        said["value"] = said["declared"] = json_of(info, param, written.text);
    said["live"] = param.live();
  }
  for (const exec::ChangedParam& changed : values.changed) {
    const ParamInfo* const param = info.find_param(changed.param);
    ordered_json& said = all[changed.param]; // a value of `batch:` is no parameter of the type
    said["value"] = param ? json_of(info, *param, changed.text) : ordered_json(changed.text);
    said["live"] = true;
    said["tick"] = changed.tick;
    said["by"] = changed.by;
  }
  return all;
}

} // namespace

std::string values_json(const plan::Plan& plan, const graph::Graph& graph,
                        const std::vector<exec::HandlerValues>& values, const std::string& handler) {
  ordered_json all = ordered_json::object();
  std::vector<std::string> names;
  for (const exec::HandlerValues& one : values) {
    const plan::HandlerPlan& planned = plan.handlers[one.handler];
    names.push_back(one.name);
    if (!handler.empty() && handler != one.name && handler != planned.written_as) continue;
    const plugin::HandlerInfo& info = plan.type_of(planned);
    all[one.name] = {{"type", planned.type},
                     {"parameters", parameters_of(info, plan::declared_of(plan, graph, one.handler), one)}};
  }
  if (all.empty() && !handler.empty()) throw Failure(exec::no_handler_named(handler, names));
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace millrace::serve
