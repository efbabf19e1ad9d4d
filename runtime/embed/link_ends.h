// Joins the ends of a run to a link: the crossings of a plan as a session takes them, and a run's departures and
// arrivals as the session calls them.
//
//   std::vector<LinkEnd> ends = make_link_ends(run, plan, "gpu", data_lanes);
//   for (LinkEnd& end : ends)
//     if (end.departure) session.add(end.plan, *end.departure);
//     else session.add(end.plan, *end.arrival);
//
// No value is copied here. A value leaves from the block that the run holds for it, and arrives in a block of the
// reader's ring. Once a first parcel has passed, nothing is allocated.
//
// An end is used by one thread at a time, the one that calls its session. The run outlives its ends, and they outlive
// the session. Run::wait() releases all blocks, so the session is not used any more when it is called.
//
// A run tells RunOptions::on_crossing when an end has something new; whoever drives the session looks at it then.
//
// Limits. A run tells one cause for the ticks between two parcels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/crossing.h"
#include "net/session.h"

namespace millrace::plan {
struct Plan;
}

namespace millrace::embed {

class LinkDeparture final : public net::Departure {
 public:
  LinkDeparture(exec::Run& run, const plan::CrossingPlan& crossing) : departure_(run, crossing) {}

  bool next(net::Parcel& parcel) override;
  void let_go(const net::Parcel& parcel, bool acknowledged) override;
  int64_t passed_ns() const override { return departure_.passed_ns(); }
  void peer_begins() override { departure_.send_changes_again(); }
  bool is_stranded() const override { return departure_.is_stranded(); }
  // Once it has grown, next() may have another parcel.
  uint64_t made() const { return departure_.made(); }
  bool is_held_up() const { return departure_.is_held_up(); }
  void peer_away(bool away) { departure_.peer_away(away); }

 private:
  exec::Departure departure_;
  exec::Parcel parcel_; // used again and again
  mr_tick_info last_{}; // the parcel before
  bool has_last_ = false;
};

class LinkArrival final : public net::Arrival {
 public:
  LinkArrival(exec::Run& run, const plan::CrossingPlan& crossing) : arrival_(run, crossing) {}

  net::Room room(uint32_t value) override;
  void arrive(const net::Parcel& parcel) override;
  uint64_t credit() const override { return arrival_.credit(); }
  void passed(int64_t media_ns) override { arrival_.passed(media_ns); }
  void stranded(bool is_stranded) override { arrival_.stranded(is_stranded); }
  void away(bool away) { arrival_.away(away); }

 private:
  exec::Arrival arrival_;
  exec::Parcel parcel_; // used again and again
};

// One crossing between this node and a peer.
struct LinkEnd {
  net::CrossingPlan plan;
  std::unique_ptr<LinkDeparture> departure; // null: it arrives here
  std::unique_ptr<LinkArrival> arrival;     // null: it departs here
  bool waits = false;                       // its clock waits for every tick: none is ever left out

  // The peer is away, or is back (semantics.md 7.9).
  void set_away(bool away) {
    if (departure)
      departure->peer_away(away);
    else
      arrival->away(away);
  }
};

// The crossings between the plan's node and the peer, in the order that both nodes' plans have them in. A crossing's
// place in it is its number on the link. They take turns on the data connections. Throws Failure (MR0819) if a link
// cannot carry one of them.
std::vector<net::CrossingPlan> link_crossings(const plan::Plan& plan, const std::string& peer, uint32_t data_lanes = 1);

// The ends of all of them.
std::vector<LinkEnd> make_link_ends(exec::Run& run, const plan::Plan& plan, const std::string& peer,
                                    uint32_t data_lanes = 1);

} // namespace millrace::embed
