// `millrace plan` and `millrace check`: compile a pipeline and print its plan, or its mistakes.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "compose/pipeline.h"
#include "compose/plugins.h"
#include "plan/explained.h"
#include "plan/picture.h"
#include "plan/plan.h"
#include "plan/print.h"

namespace millrace::cli {

namespace {

// People do not read more at once, and the first mistakes may have caused the others.
constexpr size_t kMistakesMax = 20;

// Sorts by the order of the text.
void sort_by_place(std::vector<Error>& mistakes) {
  std::stable_sort(mistakes.begin(), mistakes.end(), [](const Error& a, const Error& b) {
    return std::tuple(a.place.line, a.place.column) < std::tuple(b.place.line, b.place.column);
  });
}

// For a person; a script goes by the exit code.
void print_ok(const plan::Plan& plan) {
  const size_t count = plan.handlers.size() - plan.inserted.size();
  std::fprintf(stderr, "ok, %zu handler%s\n", count, count == 1 ? "" : "s");
}

int tell(std::vector<Error> mistakes) {
  sort_by_place(mistakes);
  for (size_t i = 0; i < std::min(mistakes.size(), kMistakesMax); ++i)
    std::fprintf(stderr, "%s\n", format_error(mistakes[i]).c_str());
  if (mistakes.size() > kMistakesMax) std::fprintf(stderr, "and %zu more mistakes\n", mistakes.size() - kMistakesMax);
  return exit_code_of(mistakes[0]);
}

} // namespace

int plan(const PlanCommand& command) {
  const compose::Compiled compiled =
      command.node.empty() ? compose::compile(command, print_warning) : compose::compile_node(command, print_warning);
  const plan::Plan& made = compiled.composition->plan();
  if (!command.svg.empty()) {
    write_file(command.svg, plan::svg_of(plan::picture_of(made)));
    return kDone;
  }
  write_file("-", command.json ? plan::print_json(made) : command.dot ? plan::print_dot(made) : plan::print_text(made));
  return kDone;
}

int check(const compose::PipelineOptions& command) {
  std::vector<Error> mistakes;
  try {
    const compose::Compiled compiled = compose::compile(command, nullptr, nullptr, &mistakes);
    if (isatty(STDERR_FILENO)) print_ok(compiled.composition->plan());
    return kDone;
  } catch (const compose::PluginMissing&) {
    throw;
  } catch (const MistakesKept&) {
    return tell(std::move(mistakes));
  } catch (const Failure& failure) { // it ended the reading or the planning
    mistakes.push_back(failure.error());
    return tell(std::move(mistakes));
  }
}

} // namespace millrace::cli
