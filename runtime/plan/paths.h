// The files that the handlers of a graph read and write (parameters declared with mr::reads_path or mr::writes_path).
#pragma once

#include <string>
#include <vector>

#include "observe/error.h"
#include "plugin/handler_info.h"

namespace millrace::graph {
class Confine;
struct Graph;
struct Handler;
struct Param;
} // namespace millrace::graph

namespace millrace::plan {

struct Facts;

// The parameter's text as the handler gets it. A relative path in a pipeline file is completed by the file's folder,
// and file:// is removed. "-", addresses ("http://…"), and other text of a one-line pipeline or --set stay as they are.
std::string completed_path(const plugin::HandlerInfo::Param& param, const graph::Param& given);

// Refuses (MR0317) a path that begins with a word which only a shell replaces: ~ or $HOME.
void refuse_home(const plugin::HandlerInfo::Param& param, const graph::Param& given);

// Refuses (MR0413) a file that is read and written, or written twice, by any handlers: by name, by link or by its place
// on the disk. Looks at the disk. A pattern is compared with the names that it may stand for.
void refuse_shared_files(const graph::Graph& graph, const Facts& facts);

// Refuses (MR0422) files of these handlers that are not in the folder. Defaults of parameters are the plugin's own and
// are not looked at. With `kept`, all mistakes are added to it.
void refuse_outside(const graph::Graph& graph, const Facts& facts, const graph::Confine& confine,
                    std::vector<Error>* kept);
void refuse_outside(const graph::Handler& declared, const plugin::HandlerInfo& info, const graph::Confine& confine);
// The same for one parameter, with a path as the handler gets it.
void refuse_outside(const std::string& handler, const plugin::HandlerInfo::Param& param, const std::string& path,
                    const Place& place, const graph::Confine& confine);

} // namespace millrace::plan
