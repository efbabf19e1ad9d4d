// Makes one live handler as the graph declares it. Private to runtime/plan.
#pragma once

#include <memory>
#include <vector>

#include "plan/prepare.h"

namespace millrace::plan {

struct Step;

// The handler's type. Throws Failure (MR0304).
const plugin::RegisteredType& find_type(const graph::Graph& graph, const plugin::Registry& registry,
                                        const graph::Handler& declared);
// Makes it and sets its parameters. Throws Failure (MR0310…). With `kept`, mistakes of its parameters are added to it.
std::unique_ptr<plugin::Instance> make(const graph::Graph& graph, const graph::Handler& declared,
                                       const plugin::RegisteredType& info, const mr_host& host,
                                       plugin::CallWatch* watch, std::vector<Error>* kept = nullptr);
// The format that each port takes or makes with the parameters that are set. Throws Failure (MR0402).
std::vector<mr_format> narrowed(plugin::Instance& instance, const graph::Handler& declared);
// Tells it the formats that the plan has settled for its step.
void configure(plugin::Instance& instance, const Plan& plan, const Step& step);
// The facts of a handler that was not probed.
mr_facts no_facts();

} // namespace millrace::plan
