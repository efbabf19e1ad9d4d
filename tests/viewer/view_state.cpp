// Events that wait, the camera, and who has control.
#include "plugins/viewer/view_state.h"

#include <doctest/doctest.h>

#include "plugins/viewer/lease.h"

using namespace millrace;
using namespace millrace::viewer;

namespace {

ViewEvent event(ViewEventKind kind, uint32_t seq, float x = 0, float dx = 0, uint32_t buttons = 0) {
  ViewEvent made;
  made.kind = static_cast<int32_t>(kind);
  made.seq = seq;
  made.x = x;
  made.dx = dx;
  made.buttons = buttons;
  made.viewer = 1;
  return made;
}

} // namespace

TEST_CASE("Moves that follow each other are one, with the way of all of them") {
  ViewState state;
  state.add(event(ViewEventKind::move, 1, 10, 1));
  state.add(event(ViewEventKind::move, 2, 12, 2));
  state.add(event(ViewEventKind::down, 3, 12, 0, 1));
  state.add(event(ViewEventKind::move, 4, 15, 3, 1));
  state.add(event(ViewEventKind::move, 5, 20, 5, 1));
  state.add(event(ViewEventKind::move, 6, 21, 1, 0));
  REQUIRE(state.events.size() == 4);
  CHECK(state.events[0].seq == 2);
  CHECK(state.events[0].dx == 3);
  CHECK(state.events[2].seq == 5);
  CHECK(state.events[2].dx == 8);
  CHECK(state.events[3].buttons == 0);
  CHECK(state.has_pointer);
  CHECK(state.pointer[0] == 21);
  state.add(event(ViewEventKind::key_down, 7, 99));
  CHECK(state.pointer[0] == 21); // a key has no place
  state.add(event(ViewEventKind::leave, 8));
  CHECK(!state.has_pointer);
}

TEST_CASE("Events that nobody takes are bounded, and moves go first") {
  ViewState state;
  for (uint32_t n = 1; n <= kEventsMax; ++n) // moves with other buttons each time, which are not one
    state.add(n == 10 ? event(ViewEventKind::key_up, n) : event(ViewEventKind::move, n, 0, 0, n % 2));
  CHECK(state.events_lost == 0);
  for (uint32_t n = 1; n < kEventsMax; ++n) state.add(event(ViewEventKind::key_down, 10'000 + n));
  CHECK(state.events.size() == kEventsMax);
  CHECK(state.events_lost == kEventsMax - 1);
  CHECK(state.events[0].seq == 10); // the key that went up is still known
  state.add(event(ViewEventKind::key_down, 99'999));
  CHECK(state.events[0].seq == 10'001);
}

TEST_CASE("The camera zooms about a point that stays where it is, and turns within its bounds") {
  ViewState state;
  CameraChange zoom;
  zoom.op = CameraChange::Op::zoom;
  zoom.factor = 4;
  zoom.anchor[0] = 100;
  zoom.anchor[1] = -40;
  const auto shown_at_anchor = [&](int axis) {
    return state.camera.center[axis] + zoom.anchor[axis] / state.camera.zoom;
  };
  const float before[] = {shown_at_anchor(0), shown_at_anchor(1)};
  state.apply(zoom);
  CHECK(state.camera.zoom == 4);
  CHECK(shown_at_anchor(0) == doctest::Approx(before[0]));
  CHECK(shown_at_anchor(1) == doctest::Approx(before[1]));
  for (int n = 0; n < 100; ++n) state.apply(zoom);
  CHECK(state.camera.zoom == 1e4F);
  CameraChange orbit;
  orbit.op = CameraChange::Op::orbit;
  orbit.dx = 200;
  orbit.dy = 80;
  state.apply(orbit);
  state.apply(orbit);
  CHECK(state.camera.angles[0] == 40); // 400 of 360
  CHECK(state.camera.angles[1] == 90);
  state.apply(CameraChange());
  CHECK(state.camera.zoom == 1);
  CHECK(state.camera.angles[0] == 0);
}

TEST_CASE("What a page asks for stays within what handlers take, however often it asks") {
  ViewState state;
  CameraChange away;
  away.op = CameraChange::Op::zoom;
  away.factor = 0.8F;
  away.anchor[0] = 220;
  for (int n = 0; n < 100; ++n) state.apply(away);
  CameraChange pan;
  pan.op = CameraChange::Op::pan;
  pan.dx = 300;
  for (int n = 0; n < 20; ++n) state.apply(pan);
  CHECK(state.camera.zoom == 1e-4F);
  CHECK(state.camera.center[0] == -1e6F);
  ViewChoice choice;
  LookChange look;
  look.gamma = 1e6F;
  look.opacity = -3;
  look.low = -1e9F;
  look.iso = 7;
  choice.apply(look);
  CHECK(choice.look.gamma == 100);
  CHECK(choice.look.opacity == 0);
  CHECK(choice.look.low == -1e6F);
  CHECK(choice.look.iso == 1);
}

TEST_CASE("A pan goes along the axes of the picture, however the scene is turned") {
  ViewState state;
  state.camera.angles[0] = 90; // what was at the right is in front
  CameraChange pan;
  pan.op = CameraChange::Op::pan;
  pan.dx = 10;
  state.apply(pan);
  CHECK(std::abs(state.camera.center[0]) < 1e-5F);
  CHECK(state.camera.center[2] == doctest::Approx(10));
  state.camera.angles[2] = 90;
  pan.dx = 0;
  pan.dy = 4;
  state.apply(pan);
  CHECK(state.camera.center[2] == doctest::Approx(14));
}

TEST_CASE("Control is taken by input, kept by it, given up after ten seconds, and taken over") {
  Lease lease;
  CHECK(lease.holder(0) == 0);
  CHECK(lease.renew(7, 0));
  CHECK(!lease.renew(8, kLeaseNs - 1));
  CHECK(lease.renew(7, kLeaseNs - 1));
  CHECK(!lease.renew(8, kLeaseNs));
  CHECK(lease.holder(2 * kLeaseNs - 2) == 7);
  CHECK(lease.holder(2 * kLeaseNs - 1) == 0);
  CHECK(lease.renew(8, 2 * kLeaseNs));
  lease.take(9, 2 * kLeaseNs + 1);
  CHECK(lease.holder(2 * kLeaseNs + 1) == 9);
  lease.leave(8);
  CHECK(lease.holder(2 * kLeaseNs + 1) == 9);
  lease.leave(9);
  CHECK(lease.holder(2 * kLeaseNs + 1) == 0);
}
