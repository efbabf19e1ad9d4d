// The files that the handlers of a graph read and write (parameters declared with mr::reads_path or mr::writes_path).
#pragma once

#include <string>

#include "graph/graph.h"
#include "plan/plan.h"

namespace millrace::plan {

// The parameter's text as the handler gets it: a relative path that a pipeline file says is completed by the file's
// folder; "-", addresses ("http://…"), and what a one-line pipeline or --set says, stay as they are.
std::string completed_path(const plugin::HandlerInfo::Param& param, const graph::Param& given);

// Refuses (MR0317) a path that begins with a word which only a shell replaces: ~ or $HOME.
void refuse_home(const plugin::HandlerInfo::Param& param, const graph::Param& given);

// Refuses (MR0413) a file that is read and written, or written twice, by name, by link or by its place on the disk,
// whichever handlers do it. Looks at the disk. A pattern is compared with what it may name.
void refuse_shared_files(const graph::Graph& graph, const Facts& facts);

} // namespace millrace::plan
