// Replaces the names of instances by those of their templates; see template_names.h.
#include "plan/template_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/unfold.h"
#include "plan/explained.h"
#include "plan/format_text.h"
#include "plan/memory.h"

namespace millrace::plan {

namespace {

constexpr const char* kClockNote = "clock "; // "clock gate7: in_flight 2 of [1, 4]"
constexpr size_t kListedMax = 4;             // instances of one template that a list names if it lacks others

// Characters of a handler's or a stream's name; '~' is in the names of conversions, and '+' in those of free seats.
bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
bool is_of_handler(char c) { return is_of_name(c) || c == '~'; }
bool is_of_stream(char c) { return is_of_name(c) || c == '+'; }

// The end of ".video[3]" or "" at `at`.
size_t end_of_port(const std::string& text, size_t at) {
  if (at + 1 >= text.size() || text[at] != '.' || !is_of_name(text[at + 1])) return at;
  for (++at; at < text.size() && is_of_name(text[at]);) ++at;
  if (at < text.size() && text[at] == '[') return std::min(text.find(']', at), text.size() - 1) + 1;
  return at;
}

} // namespace

TemplateNames::TemplateNames(const Plan& plan) : clocks_(plan.clocks.size()) {
  for (const Clock& clock : plan.clocks) clock_names_.push_back(clock.name);
  for (const HandlerPlan& handler : plan.handlers) {
    if (handler.stream.empty()) continue;
    auto set =
        std::find_if(sets_.begin(), sets_.end(), [&](const StreamsOfSet& one) { return one.name == handler.for_each; });
    if (set == sets_.end()) set = sets_.insert(set, {handler.for_each, {}});
    const auto number = static_cast<uint32_t>(set - sets_.begin());
    const auto index = static_cast<uint32_t>(set->streams.size());
    const auto [at, is_new] = index_of_.try_emplace({number, handler.stream}, index);
    if (is_new) set->streams.push_back(handler.stream);
    set_of_template_[handler.written_as] = number;
    const Clock& clock = plan.clocks[handler.clock];
    if (clock.name != (clock.is_seat ? handler.for_each : "") + handler.stream) continue; // the set's
    clocks_[handler.clock] = {number, at->second};
    clock_named_[clock.name] = clocks_[handler.clock];
  }
}

size_t TemplateNames::stream_count() const {
  return std::accumulate(sets_.begin(), sets_.end(), size_t{0},
                         [](size_t sum, const StreamsOfSet& set) { return sum + set.streams.size(); });
}

TemplateNames::Stream TemplateNames::stream_of(const HandlerPlan& handler) const {
  if (handler.stream.empty()) return {};
  const uint32_t set = set_of_template_.at(handler.written_as);
  return {set, index_of_.at({set, handler.stream})};
}

TemplateNames::Stream TemplateNames::stream_of_step(const Plan& plan, const Step& step) const {
  if (empty()) return {};
  if (step.handler() != kNone) return stream_of(plan.handlers[step.handler()]);
  const Stream paced = clocks_[plan.paces[step.pace].clock];
  return paced.is_one() ? paced : stream_in(step.name);
}

TemplateNames::Stream TemplateNames::stream_of_segment(const Plan& plan, const Segment& segment) const {
  Stream one;
  for (const uint32_t s : segment.steps) {
    const Stream stream = stream_of_step(plan, plan.steps[s]);
    if (!stream.is_one() || (one.is_one() && stream != one)) return {};
    one = stream;
  }
  return one;
}

TemplateNames::Stream TemplateNames::stream_of_edge(const EdgePlan& edge) const {
  const Stream target = stream_in(edge.to);
  return target.is_one() ? target : stream_in(edge.from);
}

TemplateNames::Stream TemplateNames::stream_of_prefix(const std::string& text) const {
  if (!text.starts_with(kClockNote)) return {};
  const size_t begin = std::string_view(kClockNote).size(), end = text.find(':', begin);
  const auto at = end == std::string::npos ? clock_named_.end() : clock_named_.find(text.substr(begin, end - begin));
  return at == clock_named_.end() ? Stream{} : at->second;
}

TemplateNames::Stream TemplateNames::stream_in(const std::string& text) const {
  Stream one = stream_of_prefix(text);
  Found found;
  for (size_t at = 0; find_next(text, at, found); at = found.end) {
    if (one.is_one() && found.stream != one) return {};
    one = found.stream;
  }
  return one;
}

bool TemplateNames::find_next(const std::string& text, size_t from, Found& found) const {
  for (size_t at = text.find('@', from); at != std::string::npos; at = text.find('@', at + 1)) {
    found.begin = found.end = at;
    while (found.begin > from && is_of_handler(text[found.begin - 1])) --found.begin;
    do ++found.end;
    while (found.end < text.size() && is_of_stream(text[found.end]));
    found.handler = text.substr(found.begin, at - found.begin);
    const auto set = set_of_template_.find(found.handler);
    if (set == set_of_template_.end()) continue;
    const auto index = index_of_.find({set->second, text.substr(at + 1, found.end - at - 1)});
    if (index == index_of_.end()) continue;
    found.stream = {set->second, index->second};
    return true;
  }
  return false;
}

std::string TemplateNames::written(const Found& found) const {
  return graph::instance_name(found.handler, sets_[found.stream.set].name);
}

std::string TemplateNames::by_template(const std::string& text, const Stream& own) const {
  std::string words;
  size_t at = 0;
  if (const Stream clock = stream_of_prefix(text); clock.is_one()) {
    words = kClockNote + sets_[clock.set].name;
    at = text.find(':');
  }
  Found found;
  while (find_next(text, at, found)) {
    const bool is_own = !own.is_one() || found.stream == own;
    words += text.substr(at, found.begin - at);
    words += is_own ? written(found) : text.substr(found.begin, found.end - found.begin);
    at = found.end;
  }
  return words + text.substr(at);
}

std::string TemplateNames::with_short_lists(const std::string& text) const {
  std::string words;
  size_t at = 0;
  Found first;
  while (find_next(text, at, first)) {
    const size_t first_end = end_of_port(text, first.end);
    size_t end = first_end;
    std::set<uint32_t> streams = {first.stream.index};
    for (Found next; text.compare(end, 2, ", ") == 0 && find_next(text, end + 2, next);) {
      const bool follows = next.begin == end + 2 && next.handler == first.handler;
      if (!follows || !streams.insert(next.stream.index).second) break;
      end = end_of_port(text, next.end);
    }
    const size_t all = sets_[first.stream.set].streams.size();
    const bool is_short = streams.size() < 2 || (streams.size() < all && streams.size() <= kListedMax);
    words += text.substr(at, first.begin - at);
    if (is_short) {
      words += text.substr(first.begin, first_end - first.begin);
      at = first_end;
      continue;
    }
    const std::string port = text.substr(first.end, first_end - first.end);
    words += fmt::format("{}{} ({})", written(first), port.substr(0, port.find('[')), streams.size());
    at = end;
  }
  return words + text.substr(at);
}

std::vector<std::string> TemplateNames::clock_names(const std::vector<uint32_t>& clocks) const {
  std::vector<size_t> counts(sets_.size());
  for (const uint32_t c : clocks)
    if (clocks_[c].is_one()) ++counts[clocks_[c].set];
  std::vector<std::string> names;
  for (const uint32_t c : clocks) {
    const Stream stream = clocks_[c];
    const bool is_counted = stream.is_one() && counts[stream.set] != 1;
    if (!is_counted) names.push_back(clock_names_[c]);
    if (!is_counted || counts[stream.set] == 0) continue;
    names.push_back(fmt::format("{} ({})", sets_[stream.set].name, counts[stream.set]));
    counts[stream.set] = 0; // named
  }
  return names;
}

Plan TemplateNames::named_by_template(const Plan& plan) const {
  Plan named = plan;
  const auto rename = [&](std::string& text, const Stream& own) { text = by_template(text, own); };
  for (size_t h = 0; h < plan.handlers.size(); ++h) {
    const Stream own = stream_of(plan.handlers[h]);
    rename(named.handlers[h].name, own);
    rename(named.handlers[h].reason, own);
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) rename(named.steps[s].name, stream_of_step(plan, plan.steps[s]));
  for (EdgePlan& edge : named.edges) {
    const Stream own = stream_of_edge(edge);
    const bool is_list = own.is_one() && !stream_in(edge.to).is_one(); // an entry for each stream: "wall.layers[3]"
    if (is_list) edge.to.resize(std::min(edge.to.find('['), edge.to.size()));
    for (std::string* text : {&edge.from, &edge.to, &edge.note}) rename(*text, own);
  }
  for (uint32_t c = 0; c < clocks_.size(); ++c)
    if (clocks_[c].is_one()) named.clocks[c].name = sets_[clocks_[c].set].name;
  for (CrossingPlan& crossing : named.crossings) // "gate7/0>2": each has paces of its own
    if (const Stream own = clocks_[plan.paces[crossing.from].clock]; own.is_one())
      crossing.name = sets_[own.set].name + "/*";
  for (InsertedPlan& inserted : named.inserted) {
    const Stream own = stream_of(plan.handlers[inserted.handler]);
    for (std::string* text : {&inserted.source, &inserted.reason}) rename(*text, own);
    for (std::string& reader : inserted.readers) rename(reader, own);
  }
  for (TransferPlan& transfer : named.transfers)
    rename(transfer.reason, stream_of_step(plan, plan.steps[transfer.step]));
  for (Ring& ring : named.rings)
    for (std::string& reason : ring.reasons)
      rename(reason, stream_of_step(plan, plan.steps[plan.outputs[ring.output].step]));
  for (std::string& note : named.notes) rename(note, stream_in(note));
  return named;
}

} // namespace millrace::plan
