// An error with a place, made of the sentence with which a handler refuses parameters, formats or what it should open.
#pragma once

#include <string>

#include "observe/error.h"

namespace millrace::graph {
struct Handler;
}
namespace millrace::plugin {
class Answers;
struct HandlerInfo;
} // namespace millrace::plugin

namespace millrace::plan {

struct ProbeAnswer;

// `begins`, such as "video (video.file) could not start: ", stands before the handler's own sentence. A last line "try:
// key=value" of the sentence becomes the suggested edit, if the handler has that parameter, or the key is `type`; a
// path has to be one that the pipeline gives. The place is that of the parameter which the edit names, or whose path
// the sentence quotes, or, with code 402, which the sentence names; else the handler's.
Error refusal(int code, const std::string& begins, const graph::Handler& declared, const plugin::HandlerInfo& info,
              const std::string& sentence);

// The same, with the sentence of the handler's last failure, and with the code of it if the handler gave one.
Error refusal(int code, const std::string& begins, const graph::Handler& declared, const plugin::Answers& answers);

// The handler could not be opened (MR0604, or the code that it gave), as its probe() says.
Error not_opened(const graph::Handler& declared, const plugin::HandlerInfo& info, const ProbeAnswer& answer);

} // namespace millrace::plan
