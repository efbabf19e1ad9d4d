// Plans streams that come later by the facts of those that are there; see stand_in.h.
#include "plan/stand_in.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "graph/unfold.h"
#include "plan/draft.h"
#include "plan/prepare.h"
#include "plugin/answers.h"

namespace millrace::plan {

namespace {

// A source that answered.
struct Model {
  mr_facts facts{};
  std::vector<mr_format> formats;
  uint64_t bytes = 0; // a tick
};

bool comes_later(const graph::Handler& declared, const HandlerFacts& source) {
  return graph::is_place_name(declared.stream) || source.absent.has_value();
}

Model model_of(const graph::Handler& declared, const HandlerFacts& source) {
  Model model{source.facts, formats_of_source(declared, source)};
  for (const mr_format& format : model.formats) model.bytes += copied_bytes(format);
  return model;
}

[[noreturn]] void refuse_absent(const graph::Handler& declared, Error error) {
  error.notes.push_back("no other stream of \"" + declared.for_each + "\" answers, so nothing says what it gives");
  throw Failure(std::move(error));
}

} // namespace

void stand_in(const graph::Graph& graph, Facts& facts) {
  std::vector<size_t> later, there;
  for (size_t h = 0; h < facts.handlers.size(); ++h) {
    const HandlerFacts& source = facts.handlers[h];
    if (graph.handlers[h].stream.empty() || !source.answers || !source.answers->info().is_source()) continue;
    (comes_later(graph.handlers[h], source) ? later : there).push_back(h);
  }
  if (later.empty()) return;
  std::map<std::string_view, Model> largest; // by template
  for (const size_t h : there) {
    Model model = model_of(graph.handlers[h], facts.handlers[h]);
    const auto [at, is_first] = largest.try_emplace(graph.handlers[h].written_as);
    if (is_first || model.bytes > at->second.bytes) at->second = std::move(model);
  }
  for (const size_t h : later) {
    const auto model = largest.find(graph.handlers[h].written_as);
    if (model == largest.end()) {
      if (!facts.handlers[h].absent) continue;
      refuse_absent(graph.handlers[h], *facts.handlers[h].absent);
    }
    facts.handlers[h].facts = model->second.facts;
    facts.handlers[h].outputs = model->second.formats;
  }
}

} // namespace millrace::plan
