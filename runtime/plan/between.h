// Suggestions for edges whose ends carry different payloads: the handler that belongs between them, with all its
// inputs. Private to runtime/plan.
#pragma once

#include <string>
#include <vector>

#include "observe/error.h"
#include "plan/draft.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

// True if a value of `from` is one that an input with `to` takes, and both say what they carry: an input that takes
// anything is no hint.
bool is_meant_for(const mr_format& from, const mr_format& to);

// An output in the graph: the handler, and the port by its index in the declaration.
struct Origin {
  uint32_t handler = kNone, port = kNone;
};
// The nearest output that is meant for an input with `takes`: of `handler` itself, of what it reads, and so on. kNone:
// there is none.
Origin nearest_origin(const Draft& draft, uint32_t handler, const mr_format& takes);

// "people", "people.boxes": the reference to an output; the port is left out if it is the only one.
std::string reference_to(const Draft& draft, const Origin& origin);
// The input that an edge leads to if it names none; null: it has to name one.
const plugin::HandlerInfo::Port* default_input(const plugin::HandlerInfo& info);
// An edge from an output to an input. It names only the ports that it has to.
graph::Edge edge_between(const Draft& draft, const Origin& origin, const std::string& target,
                         const plugin::HandlerInfo& info, const plugin::HandlerInfo::Port& input);

// The graph without the conversions that the plan has inserted.
graph::Graph without_conversions(const graph::Graph& graph);

// The whole pipeline as a line that a shell takes, in quotes; "" for a graph that no line can say.
std::string quoted_line(const graph::Graph& graph);

// Adds to the error of an edge, which carries `gives` to an input that takes something else, which handler belongs
// between the two, and the edit that puts it there; or that no handler does. Leaves an error that has an edit as it is.
Error with_handler_between(Error error, const Draft& draft, const DraftEdge& edge, const mr_format& gives,
                           const std::string& gives_name, const plugin::HandlerInfo::Port& to);

} // namespace millrace::plan
