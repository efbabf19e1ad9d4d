// A word of a one-line pipeline that is neither `!` nor key=value: guesses which parameter it was meant for.
#pragma once

#include <functional>
#include <string>

#include "graph/graph.h"
#include "observe/error.h"
#include "plugin/handler_info.h"

namespace millrace::graph {

// The declaration of a type; null if it is not known.
using FindType = std::function<const plugin::HandlerInfo*(const std::string& type)>;

// Texts as load() and parse_line() read them; a mistake is told with what the handler takes.
Graph load(const std::string& pipeline, std::vector<Error>* kept, const FindType& find_type);
Graph parse_line(const std::string& text, std::vector<Error>* kept, const FindType& find_type);

// `word` as parameters that `handler` does not have yet: "path=film.mp4", "width=640 height=360", "mode=vertical",
// "loop=true", "sigma=2"; "" if it is like none. `after_text`: the word before it ends a free text, which it may belong
// to, so that only what is sure counts.
std::string as_parameters(const std::string& word, const plugin::HandlerInfo& info, const Handler& handler,
                          bool after_text);

// "width: 64, height: 48" for "64x48", with what stands after a key and between two; "" if the word is no size.
std::string as_size(const std::string& word, const std::string& assigns, const std::string& between);

// True for a parameter whose text may be any words: no path, and none of a few choices.
bool is_free_text(const plugin::HandlerInfo::Param& param);

} // namespace millrace::graph
