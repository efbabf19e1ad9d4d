// Solves the assignment problem by shortest augmenting paths. Agents are placed one by one, each by the cheapest chain
// of moves that frees a task for it.
#include "plugins/opencv/assignment.h"

#include <limits>
#include <stdexcept>

namespace millrace::opencv {

namespace {

constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The state of the search. Invariant: reduced(a, t) >= 0 for every agent placed, = 0 for every pair chosen; so the
// pairs chosen are optimal among the agents placed (complementary slackness).
struct Search {
  std::span<const double> cost;
  uint32_t agents, tasks, columns;
  bool transposed; // agents are columns of the matrix
  std::vector<double> agent_price, task_price;
  std::vector<uint32_t> agent_of;      // by task; kNobody: free
  std::vector<double> distance;        // from the agent being placed to each task
  std::vector<uint32_t> previous_task; // on the shortest path; kNobody: the path begins here
  std::vector<char> settled;

  double reduced(uint32_t agent, uint32_t task) const {
    const uint32_t row = transposed ? task : agent, column = transposed ? agent : task;
    return cost[size_t{row} * columns + column] - agent_price[agent] - task_price[task];
  }

  // Shortens distances by paths through `agent`, which is reached via the task `via` at distance `so_far`.
  void relax(uint32_t agent, uint32_t via, double so_far) {
    for (uint32_t task = 0; task < tasks; ++task) {
      if (settled[task]) continue;
      const double through = so_far + reduced(agent, task);
      if (through < distance[task]) {
        distance[task] = through;
        previous_task[task] = via;
      }
    }
  }

  uint32_t nearest_unsettled() const {
    uint32_t best = kNobody;
    for (uint32_t task = 0; task < tasks; ++task)
      if (!settled[task] && (best == kNobody || distance[task] < distance[best])) best = task;
    return best;
  }

  // Finds the free task that is cheapest to reach for `agent` and moves each agent on the path one task along.
  void place(uint32_t agent) {
    distance.assign(tasks, kInfinity);
    previous_task.assign(tasks, kNobody);
    settled.assign(tasks, 0);
    relax(agent, kNobody, 0);
    uint32_t task = nearest_unsettled();
    while (agent_of[task] != kNobody) {
      settled[task] = 1;
      relax(agent_of[task], task, distance[task]);
      task = nearest_unsettled();
    }
    const double length = distance[task];
    agent_price[agent] += length;
    for (uint32_t t = 0; t < tasks; ++t) {
      if (!settled[t]) continue;
      agent_price[agent_of[t]] += length - distance[t];
      task_price[t] -= length - distance[t];
    }
    for (; previous_task[task] != kNobody; task = previous_task[task]) agent_of[task] = agent_of[previous_task[task]];
    agent_of[task] = agent;
  }
};

} // namespace

std::vector<int32_t> assign_least_cost(std::span<const double> cost, uint32_t rows, uint32_t columns) {
  if (cost.size() != size_t{rows} * columns) throw std::invalid_argument("the cost matrix is not rows × columns");
  std::vector<int32_t> column_of(rows, -1);
  if (rows == 0 || columns == 0) return column_of;
  const bool transposed = rows > columns; // fewer agents than tasks: every agent finds one
  Search search{cost, transposed ? columns : rows, transposed ? rows : columns, columns, transposed, {}, {}, {}, {}, {},
                {}};
  search.agent_price.assign(search.agents, 0);
  search.task_price.assign(search.tasks, 0);
  search.agent_of.assign(search.tasks, kNobody);
  for (uint32_t agent = 0; agent < search.agents; ++agent) search.place(agent);
  for (uint32_t task = 0; task < search.tasks; ++task) {
    const uint32_t agent = search.agent_of[task];
    if (agent == kNobody) continue;
    if (transposed)
      column_of[task] = static_cast<int32_t>(agent);
    else
      column_of[agent] = static_cast<int32_t>(task);
  }
  return column_of;
}

} // namespace millrace::opencv
