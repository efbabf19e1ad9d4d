// See plan_json.h. Each struct of a plan lists its fields once, for both directions, and the compiler counts them: one
// that is forgotten does not compile.
#include "tests/plan/plan_json.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "observe/error.h"
#include "observe/error_codes.h"
#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/group_plan.h"
#include "plan/memory.h"
#include "plan/pace.h"
#include "plan/plan.h"
#include "plugin/field_count.h"
#include "plugin/info_json.h"

namespace {

using millrace::plugin::field_count;

// The words for the values of an enumeration.
template <class Enum>
using Words = std::initializer_list<std::pair<Enum, const char*>>;

template <class Enum>
const char* word_of(Words<Enum> words, Enum value) {
  return std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.first == value; })->second;
}

template <class Enum>
Enum value_of(Words<Enum> words, const char* type, const std::string& text) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.second == text; });
  if (at == words.end())
    throw millrace::Failure(millrace::code::bad_saved_plan, std::string("a plan knows no ") + type + " '" + text + "'");
  return at->first;
}

} // namespace

#define MR_WORDS(Type, ...)                                                                           \
  static void to_json(nlohmann::json& out, Type value) { out = word_of<Type>({__VA_ARGS__}, value); } \
  static void from_json(const nlohmann::json& in, Type& value) { value = value_of<Type>({__VA_ARGS__}, #Type, in); }
#define MR_NAMED(field) #field,
#define MR_FIELDS(Type, ...)                                                                                        \
  static_assert(                                                                                                    \
      field_count<Type>() == std::initializer_list<const char*>{NLOHMANN_JSON_PASTE(MR_NAMED, __VA_ARGS__)}.size(), \
      "each field of " #Type " is written and read");                                                               \
  NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Type, __VA_ARGS__)

template <>
struct nlohmann::adl_serializer<mr_format> {
  static void to_json(json& out, const mr_format& format) { out = millrace::plugin::to_json(format); }
  static void from_json(const json& in, mr_format& format) { format = millrace::plugin::read_format(in); }
};

template <>
struct nlohmann::adl_serializer<millrace::plugin::HandlerInfo> {
  static void to_json(json& out, const millrace::plugin::HandlerInfo& info) { out = millrace::plugin::to_json(info); }
  static void from_json(const json& in, millrace::plugin::HandlerInfo& info) {
    info = millrace::plugin::read_handler_info(in);
  }
};

template <>
struct nlohmann::adl_serializer<mr_facts> {
  static void to_json(json& out, const mr_facts& facts) { out = millrace::plugin::to_json(facts); }
  static void from_json(const json& in, mr_facts& facts) { facts = millrace::plugin::read_facts(in); }
};

template <class Value>
struct nlohmann::adl_serializer<std::optional<Value>> {
  static void to_json(json& out, const std::optional<Value>& value) { out = value ? json(*value) : json(nullptr); }
  static void from_json(const json& in, std::optional<Value>& value) {
    if (!in.is_null()) value = in.get<Value>();
  }
};

namespace millrace {
MR_FIELDS(Place, file, line, column)
} // namespace millrace

namespace millrace::graph {
MR_WORDS(Policy, {Policy::sync, "sync"}, {Policy::latest, "latest"}, {Policy::queue, "queue"}, {Policy::align, "align"})
MR_WORDS(Full, {Full::block, "block"}, {Full::drop_oldest, "drop_oldest"}, {Full::drop_newest, "drop_newest"})
MR_WORDS(Delivery, {Delivery::automatic, "automatic"}, {Delivery::live, "live"}, {Delivery::reliable, "reliable"})
MR_WORDS(OnError, {OnError::fail, "fail"}, {OnError::skip, "skip"}, {OnError::restart, "restart"},
         {OnError::bypass, "bypass"})
MR_WORDS(ClockMode, {ClockMode::automatic, "automatic"}, {ClockMode::realtime, "realtime"}, {ClockMode::free, "free"},
         {ClockMode::source, "source"})
MR_FIELDS(Rational, numerator, denominator)
MR_FIELDS(Param, name, text, place, name_place)
MR_WORDS(Late, {Late::automatic, "automatic"}, {Late::drop, "drop"}, {Late::keep, "keep"})
MR_FIELDS(Batch, size, wait_ns, budget_ns, max, in_flight, late, of_rows, place)
MR_FIELDS(Handler, name, type, params, every, device, clock, node, for_each, written_as, stream, group, on_error,
          budget_ns, patience_ns, concurrency, batch, refused, inserted, place, type_place, for_each_place)
} // namespace millrace::graph

namespace millrace::plan {

MR_WORDS(DomainKind, {DomainKind::cpu, "cpu"}, {DomainKind::sim, "sim"}, {DomainKind::cuda, "cuda"})
MR_WORDS(Bodies, {Bodies::on_host, "on_host"}, {Bodies::simulated, "simulated"}, {Bodies::enqueued, "enqueued"})
MR_WORDS(PaceKind, {PaceKind::clock, "clock"}, {PaceKind::decoupled, "decoupled"}, {PaceKind::far, "far"},
         {PaceKind::batch, "batch"})
MR_WORDS(BatchRule, {BatchRule::free, "free"}, {BatchRule::fixed, "fixed"}, {BatchRule::learnt, "learnt"})
MR_WORDS(ChannelKind, {ChannelKind::gate, "gate"}, {ChannelKind::latest, "latest"}, {ChannelKind::queue, "queue"},
         {ChannelKind::align, "align"})

MR_FIELDS(Domain, name, node, kind, index, bodies, host_memory, records_on_host, pushes, bytes_limit)
MR_FIELDS(HandlerPlan, name, type, written_as, stream, for_each, info, facts, step, domain, clock, node, every, gap,
          lanes, on_error, budget_ns, cost_ns, waits, reason, edge_counts, first_entry)
MR_FIELDS(EdgePlan, from, to, policy, delay, source_output, target_step, target_input, note)
MR_FIELDS(TransferPlan, step, edges, route, bytes, predicted_us, one_by_one_us, guessed, reason)
MR_FIELDS(AccessPlan, step, input, edge, domain, bytes, predicted_us, copy_us)
MR_FIELDS(InsertedPlan, handler, declared, from, to, source, readers, reason, elsewhere, predicted_us, width, height,
          bytes)
MR_FIELDS(Feed, channel, first, count)
MR_FIELDS(Pace, kind, node, clock, stage, parent, gate, entry, level, feeds, way_ns, led_by, rows, window, room, gap,
          slots, sources, generated, ticks_max)
MR_FIELDS(Clock, name, mode, rate, live, driver, in_flight, in_flight_least, pending, set, fails_alone, restarts,
          has_room, is_seat, is_group, absent, held_ns, held_ticks, owed_ticks, crowd_ticks, circle, leaders,
          rounding_ns)
MR_FIELDS(Channel, kind, from, to, depth, capacity, full, busy, queued, on_firing, every_tick, far, lag, within_ns,
          rounding_ns, same_clock, initial_empty, edges, entries)
MR_FIELDS(CrossingPlan, name, node, channel, departs, from, to, delivery)
MR_FIELDS(GroupPlan, name, set, clock, entry, deal, handlers, gives, items_max, in_flight, rule, size, wait_ns,
          budget_ns, drop_late, of_rows, curve_ns)
MR_FIELDS(Segment, pace, domain, lane, lanes, home, pinned, blocking, heavy, thread, steps)
MR_FIELDS(Region, domain, slots, steps)
MR_FIELDS(Output, step, port, name, domain, format, origin, pack, ring, retain, forwards, in_place, owns, lasting, kept,
          connected)
MR_FIELDS(Ring, output, domain, length, dynamic, capacity, pinned, dense, lasting, pack, reasons)
MR_FIELDS(StepInput, output, delay, edge, required, idle_without, initial_empty, repeat_last, keeps, calls)
MR_FIELDS(HandlerStep, handler, owes, on_value, scratch_bytes, taken_bytes, state_bytes, gathers)
static_assert(sizeof(SourceStep) == sizeof(HandlerStep));
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourceStep, handler, owes, on_value, scratch_bytes, taken_bytes, state_bytes,
                                   gathers) // derived: as its base
MR_FIELDS(FinishStep, body)
MR_FIELDS(CopyStep, readers, members, presumed)
MR_FIELDS(GateStep, channel)
MR_FIELDS(EntryStep, channel)
MR_FIELDS(PostStep, channel)
MR_FIELDS(ResolveStep, channel)
using Reader = GiveStep::Reader;
MR_FIELDS(Reader, every, required)
MR_FIELDS(GiveStep, group, stream, allowance, owes, results, readers, rows_input)
MR_FIELDS(DealStep, group)

} // namespace millrace::plan

// {"is": "copy", "readers": …}
template <>
struct nlohmann::adl_serializer<millrace::plan::StepKind> {
  using Kind = millrace::plan::StepKind;
  static constexpr std::array kNames = {"handler", "source", "finish",  "copy", "gate",
                                        "entry",   "post",   "resolve", "give", "deal"};
  static_assert(kNames.size() == std::variant_size_v<Kind>);

  static void to_json(json& out, const Kind& kind) {
    std::visit([&](const auto& own) { out = own; }, kind);
    out["is"] = kNames[kind.index()];
  }
  static void from_json(const json& in, Kind& kind) { read(in, kind, std::make_index_sequence<kNames.size()>{}); }

 private:
  template <size_t... I>
  static void read(const json& in, Kind& kind, std::index_sequence<I...>) {
    const std::string name = in.at("is");
    const bool known = ((name == kNames[I] && (kind = in.get<std::variant_alternative_t<I, Kind>>(), true)) || ...);
    if (!known)
      throw millrace::Failure(millrace::code::bad_saved_plan, "a plan has no kind of step that is called " + name);
  }
};

namespace millrace::plan {

MR_FIELDS(Step, kind, name, pace, segment, domain, inputs, outputs, after, every, level, region)

// All but the record types that formats of outputs point to. This does not compile if Plan has more fields, or fewer.
[[maybe_unused]] void name_each_field(const Plan& plan) {
  [[maybe_unused]] const auto& [name, nodes, node, domains, types, handlers, edges, clocks, paces, steps, outputs,
                                records, rings, channels, crossings, groups, segments, regions, transfers, accesses,
                                inserted, notes, said, memory, workers, threads, library_threads, latency_us, guessed] =
      plan;
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Plan, name, nodes, node, domains, types, handlers, edges, clocks, paces, steps,
                                   outputs, rings, channels, crossings, groups, segments, regions, transfers, accesses,
                                   inserted, notes, said, memory, workers, threads, library_threads, latency_us,
                                   guessed)

} // namespace millrace::plan

namespace millrace::test {

nlohmann::json write_plan(const plan::Plan& plan) {
  nlohmann::json json = plan;
  json["records"] = nlohmann::json::array();
  for (const auto& type : plan.records) json["records"].push_back(plugin::to_json(type->raw));
  for (size_t o = 0; o < plan.outputs.size(); ++o)
    for (size_t r = 0; r < plan.records.size(); ++r)
      if (plan.outputs[o].format.records == &plan.records[r]->raw) json["outputs"][o]["records"] = r;
  return json;
}

plan::Plan read_plan(const nlohmann::json& json) {
  try {
    plan::Plan plan = json;
    for (const auto& type : json.at("records")) plan.records.push_back(plugin::read_record_type(type));
    for (size_t o = 0; o < plan.outputs.size(); ++o) {
      const auto& output = json["outputs"][o];
      if (output.contains("records"))
        plan.outputs[o].format.records = &plan.records.at(output["records"].get<size_t>())->raw;
    }
    return plan;
  } catch (const nlohmann::json::exception& wrong) {
    throw Failure(code::bad_saved_plan, std::string("the plan cannot be read: ") + wrong.what());
  } catch (const std::out_of_range&) {
    throw Failure(code::bad_saved_plan, "the plan cannot be read: an output has a record type that is not there");
  }
}

} // namespace millrace::test
