// Objects of the run that handlers own and join by name (MR_PARAM_OWNS, MR_PARAM_JOINS; rule 4.15).
#include <algorithm>
#include <map>

#include "graph/params.h"
#include "graph/unfold.h"
#include "millrace/nearest.h"
#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

// One use of an object: the handler, and the parameter that names the object.
struct ObjectUse {
  const DraftHandler* handler;
  const plugin::HandlerInfo::Param* param;
  std::string name;
  Place place;
  std::string words() const { return handler->declared->name + " (" + handler->info->type + ")"; }
};
using ObjectUses = std::vector<ObjectUse>;

ObjectUse object_use_of(const DraftHandler& handler, const plugin::HandlerInfo::Param& param) {
  const graph::Handler& declared = *handler.declared;
  const graph::Param* const given = graph::find_param(declared.params, param.name);
  if (!given) return {&handler, &param, param.default_text, declared.place};
  return {&handler, &param, given->text, given->place};
}

void refuse_second_owner(const ObjectUse& first, const ObjectUse& second) {
  const std::string& kind = second.param->object;
  throw Failure(Error{
      code::object_owned_twice,
      "the " + kind + " \"" + second.name + "\" is owned twice: by " + first.words() + " and by " + second.words(),
      second.place,
      {"each " + kind + " has a name of its own"},
      "",
      assignment(second.place, second.param->name, second.name + "2")});
}

// `owners`: those of its kind.
void refuse_without_owner(const Draft& draft, const ObjectUse& joins, const ObjectUses& owners) {
  const std::string& kind = joins.param->object;
  std::vector<std::string> names;
  for (const ObjectUse& owner : owners) names.push_back(owner.name);
  const std::string nearest = names.size() == 1 ? names[0] : nearest_name(joins.name, names);
  Error error{code::object_without_owner,
              joins.words() + " joins the " + kind + " \"" + joins.name + "\", which nothing here owns",
              joins.place,
              {},
              nearest,
              nearest.empty() ? "" : assignment(joins.place, joins.param->name, nearest)};
  for (const ObjectUse& owner : owners)
    error.notes.push_back(owner.words() + " owns the " + kind + " \"" + owner.name + "\"");
  if (owners.empty()) {
    std::string types;
    for (const plugin::HandlerInfo* type : draft.types.all())
      for (const auto& param : type->params)
        if (param.owns() && param.object == kind) types += (types.empty() ? "" : ", ") + type->type;
    error.notes.push_back("no handler of this pipeline owns a " + kind + (types.empty() ? "" : "; one can: " + types));
    error.edit =
        types.empty() ? "leave it out" : "a handler " + types + " with " + joins.param->name + ": " + joins.name;
  }
  throw Failure(std::move(error));
}

void refuse_far(const Draft& draft, const ObjectUse& joins, const ObjectUse& owner) {
  if (graph::node_names(draft.graph).empty()) return;
  const auto node_of = [&](const ObjectUse& use) { return graph::node_of(draft.graph, *use.handler->declared); };
  const std::string here = node_of(joins), there = node_of(owner);
  if (here == there) return;
  throw Failure(Error{
      code::object_without_owner,
      joins.words() + " joins the " + joins.param->object + " \"" + joins.name + "\", and " + owner.words() +
          ", which owns it, runs on another node",
      joins.place,
      {joins.handler->declared->name + " runs on " + here + ", " + owner.handler->declared->name + " on " + there},
      "",
      "node: " + there});
}

} // namespace

void refuse_objects(const Draft& draft) {
  const auto is_known = [](const DraftHandler& handler) { return handler.info != nullptr; };
  if (!std::all_of(draft.handlers.begin(), draft.handlers.end(), is_known)) return;
  std::map<std::string, ObjectUses> owners; // by kind
  ObjectUses joiners;
  for (const DraftHandler& handler : draft.handlers)
    for (const auto& param : handler.info->params) {
      if (param.joins()) joiners.push_back(object_use_of(handler, param));
      if (!param.owns()) continue;
      const ObjectUse owns = object_use_of(handler, param);
      ObjectUses& known = owners[param.object];
      const auto first =
          std::find_if(known.begin(), known.end(), [&](const ObjectUse& other) { return other.name == owns.name; });
      if (first != known.end()) attempt(draft.kept, [&] { refuse_second_owner(*first, owns); });
      known.push_back(owns);
    }
  for (const ObjectUse& joins : joiners)
    attempt(draft.kept, [&] {
      const ObjectUses& known = owners[joins.param->object];
      const auto owner =
          std::find_if(known.begin(), known.end(), [&](const ObjectUse& other) { return other.name == joins.name; });
      if (owner == known.end()) refuse_without_owner(draft, joins, known);
      refuse_far(draft, joins, *owner);
    });
}

} // namespace millrace::plan
