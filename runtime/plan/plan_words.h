// Descriptions of clocks, segments, steps and edges, for the printed text of a plan. Private to runtime/plan.
#pragma once

#include <string>

#include "plan/template_names.h"

namespace millrace::plan {

struct AccessPlan;
struct Channel;
struct CrossingPlan;
struct EdgePlan;
struct HandlerPlan;
struct InsertedPlan;
struct Pace;
struct Plan;
struct Ring;
struct Segment;
struct Step;
struct TransferPlan;

std::string reader_words(const InsertedPlan& inserted); // "boxes.video, other.video"
// The edges that a copy serves.
std::string edge_words(const Plan& plan, const TransferPlan& transfer);

// The plan and the names have to outlive it.
class PlanWords {
 public:
  // `by_template`: the plan is TemplateNames::named_by_template().
  PlanWords(const Plan& plan, const TemplateNames& names, bool by_template)
      : plan_(plan), names_(names), by_template_(by_template) {}

  std::string clock_words(uint32_t clock) const;
  // "cpu, worker 0, lags its clock by at most 1 tick". `home`: the words for its worker.
  std::string segment_words(const Segment& segment, const std::string& home) const;
  // "+ copy …" for a step that the plan added. For a handler what comes after its type: format, cost and reason.
  std::string step_words(uint32_t step) const;
  std::string access_words(const AccessPlan& access) const;
  // "queue, depth 2, full: block", which comes after the edge's ends.
  std::string edge_words(uint32_t edge) const;
  static std::string end_words(const CrossingPlan& crossing); // "to gpu"
  std::string crossing_words(const CrossingPlan& crossing) const;
  std::string ring_name(const Ring& ring) const;
  static std::string reason_words(const Ring& ring); // "3 in flight + 1 held by latest"
  std::string inserted_words(const InsertedPlan& inserted) const;

 private:
  std::string far_words(const Pace& pace) const;
  std::string handler_words(const Step& step, const HandlerPlan& handler) const;
  std::string copied_out_words(const Step& deal) const;
  std::string owes_words(const Step& step, const HandlerPlan& handler) const;
  std::string carried(const Step& transfer, size_t member) const;
  std::string transfer_words(const Step& step, const TransferPlan& transfer) const;
  std::string far_entry_words(const Step& entry) const;
  std::string fed_words(const Channel& channel, size_t count) const;
  std::string far_gate_words(const Step& gate, const Channel& channel) const;
  std::string channel_words(const Step& step, const Channel& channel) const;
  std::string edge_details(uint32_t index, const EdgePlan& edge) const;
  std::string link_words(uint32_t edge) const;

  const Plan& plan_;
  const TemplateNames& names_;
  const bool by_template_;
};

} // namespace millrace::plan
