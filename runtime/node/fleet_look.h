// A snapshot of the fleet as one node sees it, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/report.h"

namespace millrace::node {

// Another node.
struct PeerLook {
  LinkReport link;
  std::string id, address; // it is dialled there, or came from there; "": it was not there yet
  std::string program;     // its version; "": only the coordinator knows those of others
  double since_s = 0;      // for so long it has been there, or away
};

// A crossing, as the link to its other node counts it.
struct CrossingLook {
  std::string name;
  bool departs = false;
  uint64_t sent = 0, acknowledged = 0; // parcels that leave; for those that come, how many did, twice
  // How often it was looked at, and how often ticks were held up then, by what they waited for.
  uint64_t looks = 0, waits_for_reader = 0, waits_for_wire = 0, waits_for_node = 0;
};

struct FleetLook {
  uint32_t revision = 0; // the plan's; 0: there is none yet
  bool has_started = false, is_over = false;
  std::vector<PeerLook> peers;
  std::vector<CrossingLook> crossings; // none unless a run is there
};

} // namespace millrace::node
