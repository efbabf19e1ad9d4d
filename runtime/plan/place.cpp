// Where each handler runs: by what it can do and the order in which devices were named; then, where prices are known,
// by those (place_by_price.cpp).
#include <algorithm>

#include "plan/draft.h"

namespace millrace::plan {

namespace {

bool is_sim(const std::string& domain) { return domain.rfind("sim:", 0) == 0; }
bool is_cuda(const std::string& domain) { return domain.rfind("cuda:", 0) == 0; }

// "" where the handler can run there, else why it cannot.
std::string obstacle(const DraftHandler& handler, const std::string& domain) {
  if ((domain == "cpu" ? handler.facts.cost_cpu_ns : handler.facts.cost_gpu_ns) < 0)
    return "with these parameters it does not run there";
  if (domain == "cpu") return handler.info->has_cpu() ? "" : "it has no CPU body";
  if (handler.is_source()) return "a source is called by its clock, on the cpu";
  if (is_cuda(domain) && !handler.info->has_cuda()) return "it has no CUDA body";
  if (is_sim(domain) && !handler.info->has_cpu()) return "it has no CPU body for a simulated device to run";
  if (handler.info->traits & MR_TRAIT_BLOCKING) return "it blocks";
  if (!handler.info->thread.empty()) return "it needs the thread \"" + handler.info->thread + "\"";
  if (handler.info->max_pending > 0) return "its results may come later";
  for (const auto& port : handler.info->ports) {
    if (port.raw.memory == MR_MEMORY_CPU) return "its port " + port.name + " is declared cpu";
    if (port.raw.accepts.kind == MR_KIND_OBJECT) return "its port " + port.name + " carries a host object";
  }
  return "";
}

uint32_t domain_index(Draft& draft, const DraftHandler& handler, const std::string& name) {
  const auto& domains = draft.plan.domains;
  const auto at = std::find(domains.begin(), domains.end(), name);
  if (at == domains.end()) {
    std::string known;
    for (const std::string& domain : domains) known += (known.empty() ? "" : ", ") + domain;
    Error error{408,
                handler.declared->name + " is pinned to " + name + ", which is not available",
                handler.declared->place,
                {"available: " + known},
                nearest_name(name, domains),
                ""};
    const std::string kind = name.substr(0, name.find(':'));
    if (kind == "cuda")
      error.notes.push_back("cuda devices come with the CUDA module; `millrace doctor` says what is here");
    const bool may_be_added = kind == "sim" && name != kind;
    error.edit = may_be_added ? "--devices cpu," + name : assignment(handler.declared->place, "device", "cpu");
    throw Failure(std::move(error));
  }
  return static_cast<uint32_t>(at - domains.begin());
}

// A sink acts on the host; it goes to a device only where it was pinned there, or cannot do else.
bool stays_on_host(const DraftHandler& handler) {
  return handler.output_count == 0 && obstacle(handler, "cpu").empty();
}

// The domains that a handler which is not pinned may run in, in the order of --devices; those that it cannot run in go
// into `passed_over`.
std::vector<uint32_t> choices_of(Draft& draft, const DraftHandler& handler, std::string& passed_over) {
  std::vector<uint32_t> choices;
  for (const std::string& domain : draft.machine.domains) {
    const std::string why_not = obstacle(handler, domain);
    if (!why_not.empty() && choices.empty()) passed_over = domain + ": " + why_not;
    if (why_not.empty() && (domain == "cpu" || !stays_on_host(handler)))
      choices.push_back(domain_index(draft, handler, domain));
  }
  return choices;
}

} // namespace

void place(Draft& draft) {
  draft.plan.domains = {"cpu"};
  for (const std::string& domain : draft.machine.domains)
    if (domain != "cpu") draft.plan.domains.push_back(domain);
  find_hops(draft);
  std::vector<std::vector<uint32_t>> choices(draft.handlers.size());
  const auto pinned_to = [&](const DraftHandler& handler) {
    const auto saved = draft.options.places.find(handler.declared->name);
    return saved == draft.options.places.end() ? handler.declared->device : saved->second;
  };
  for (size_t h = 0; h < draft.handlers.size(); ++h) {
    DraftHandler& handler = draft.handlers[h];
    if (const std::string pin = pinned_to(handler); !pin.empty()) {
      handler.domain = domain_index(draft, handler, pin);
      const std::string why_not = obstacle(handler, pin);
      if (!why_not.empty())
        throw Failure(
            Error{408,
                  handler.declared->name + " (" + handler.info->type + ") cannot run on " + pin,
                  handler.declared->place,
                  {why_not},
                  "",
                  "remove device:"});
      handler.reason = handler.declared->device == pin ? "pinned by device:" : "as the saved plan has it";
      choices[h] = {handler.domain};
      continue;
    }
    std::string passed_over;
    choices[h] = choices_of(draft, handler, passed_over);
    if (!choices[h].empty()) {
      handler.domain = choices[h][0];
      handler.reason = "first of --devices that can run it" + (passed_over.empty() ? "" : " (" + passed_over + ")");
      continue;
    }
    if (!obstacle(handler, "cpu").empty())
      throw Failure(Error{408,
                          "no device can run " + handler.declared->name + " (" + handler.info->type + ")",
                          handler.declared->place,
                          {passed_over},
                          "",
                          ""});
    handler.domain = 0;
    handler.reason = "on the host";
    choices[h] = {0};
  }
  place_by_price(draft, choices);
}

} // namespace millrace::plan
