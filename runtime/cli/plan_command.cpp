// `millrace plan` and `millrace check`: compile and say what would run, or what is wrong.
#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/pipeline.h"

namespace millrace::cli {

int plan(const PlanCommand& command) {
  const Compiled compiled = compile(command, true);
  const plan::Plan& made = compiled.composition->plan();
  write_file("-", command.json ? plan::print_json(made) : command.dot ? plan::print_dot(made) : plan::print_text(made));
  return kDone;
}

int check(const PipelineOptions& command) {
  compile(command, false);
  return kDone;
}

} // namespace millrace::cli
