// Controls that handlers offer: those that make sense, and the values that they show.
#include "plugins/viewer/controls.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "some_controls.h"

using namespace millrace;
using namespace millrace::viewer;
using namespace std::string_view_literals;
using test::choice;
using test::number;

namespace {

// The sentence about the only control, which is left out.
std::string why_left_out(const ViewControl& control) {
  Controls controls;
  const std::vector<std::string> left_out = controls.offer({&control, 1});
  CHECK(controls.empty() == !left_out.empty());
  return left_out.empty() ? "" : left_out[0];
}

} // namespace

TEST_CASE("A control that makes no sense is left out with the reason, and the others stay") {
  CHECK(why_left_out(ViewControl())
            .starts_with("the control \"\" is left out: there is no such key, but there are look.mode, look.map"));
  CHECK(why_left_out(number("look.mode", "Mode", 0, 1, 0)) ==
        "the control \"look.mode\" is left out: its kind is 1, and should be 0, a choice");
  CHECK(why_left_out(choice("look.map", "", "", 0)) == "the control \"look.map\" is left out: it has no choices");
  CHECK(why_left_out(choice("look.map", "", "gray\0fire"sv, 2)) ==
        "the control \"look.map\" is left out: its value is \"number 2\", and may be gray, fire");
  CHECK(why_left_out(choice("look.map", "", "gray", std::numeric_limits<float>::quiet_NaN())).find("nan") !=
        std::string::npos);
  CHECK(why_left_out(number("look.gamma", "", 2, 1, 2)) ==
        "the control \"look.gamma\" is left out: it goes from 2 to 1 by steps of 0, and low should be at most high");
  CHECK(why_left_out(number("dims.step", "", 0, 0, 0)).empty()); // a single plane
  CHECK(!why_left_out(number("look.gamma", "", 0, std::numeric_limits<float>::infinity(), 1)).empty());
  CHECK(why_left_out(number("look.gamma", "", 1, 2, 3)) ==
        "the control \"look.gamma\" is left out: its value is 3, and may be 1 to 2");
  ViewControl range = test::some_controls()[2];
  range.value[0] = 1.25F;
  CHECK(why_left_out(range).ends_with("its value is 1.25 to 1, and may be -0.5 to 1.5"));

  std::vector<ViewControl> offered = test::some_controls();
  offered.push_back(offered[0]);
  Controls controls;
  CHECK(controls.offer(offered) ==
        std::vector<std::string>{"the control \"look.mode\" is left out: there is one of that key already"});
  CHECK(controls.values({}).size() == 4);
}

TEST_CASE("Bytes that nothing ends are read to their own end") {
  ViewControl full = choice("look.map", "", "", 0);
  std::fill(std::begin(full.label), std::end(full.label), uint8_t{'l'});
  std::fill(std::begin(full.choices), std::end(full.choices), uint8_t{'c'});
  Controls controls;
  CHECK(controls.offer({&full, 1}).empty());
  const auto described = controls.description({})[0];
  CHECK(described["label"] == std::string(sizeof full.label, 'l'));
  CHECK(described["choices"][0] == std::string(sizeof full.choices, 'c'));
  std::fill(std::begin(full.key), std::end(full.key), uint8_t{'k'});
  CHECK(controls.offer({&full, 1}).size() == 1);
}

TEST_CASE("A control shows its own value until somebody chooses, and again after a reset") {
  Controls controls;
  std::vector<ViewControl> offered = test::some_controls();
  offered.push_back(number("look.opacity", "", 0, 1, 0.5F));
  offered.push_back(number("look.iso", "", 0, 1, 0.75F));
  offered.push_back(choice("look.map", "", "gray\0fire"sv, 1));
  ViewControl crop = offered[2];
  std::copy_n("look.crop_y", 12, crop.key);
  offered.push_back(crop);
  offered.push_back(number("dims.level", "", 0, 5, 2));
  REQUIRE(controls.offer(offered).empty());
  ViewChoice chosen;
  const auto own = controls.values(chosen);
  CHECK(own.dump() ==
        R"({"look.mode":"fog","look.gamma":0.3,"look.contrast":[0.0,1.0],"dims.step":3.0,)"
        R"("look.opacity":0.5,"look.iso":0.75,"look.map":"fire","look.crop_y":[0.0,1.0],"dims.level":2.0})");
  LookChange look;
  look.low = 0.5F; // alone
  look.gamma = 0.7F;
  look.opacity = 1;
  look.iso = 0.2F;
  look.mode = "surface";
  look.map = "gray";
  look.crop[1] = {0.1F, 0.9F};
  chosen.apply(look);
  DimsChange dims;
  dims.level = 4;
  dims.step = 6;
  chosen.apply(dims, controls.axis(chosen));
  CHECK(controls.values(chosen).dump() ==
        R"({"look.mode":"surface","look.gamma":0.7,"look.contrast":[0.5,1.0],"dims.step":6.0,)"
        R"("look.opacity":1.0,"look.iso":0.2,"look.map":"gray","look.crop_y":[0.1,0.9],"dims.level":4.0})");
  CHECK(chosen.look.crop_low[1] == 0.1F);
  CHECK(chosen.look.crop_high[0] == 1);
  LookChange reset;
  reset.resets = true;
  chosen.apply(reset);
  CHECK(controls.values(chosen)["look.mode"] == "fog");
  CHECK(controls.values(chosen)["look.gamma"] == 0.3);
  CHECK(controls.values(chosen)["look.crop_y"] == own["look.crop_y"]);
  CHECK(controls.values(chosen)["dims.step"] == 6); // the slice is no part of the look
}

TEST_CASE("A step is a place on the axis that is chosen, and on the handler's own before") {
  Controls controls;
  CHECK(controls.axis({}) == 0); // nothing says which
  const std::vector<ViewControl> offered = {choice("dims.axis", "", "z\0y\0x"sv, 1), number("dims.step", "", 0, 10, 3),
                                            number("dims.step_2", "", 0, 50, 25)};
  REQUIRE(controls.offer(offered).empty());
  ViewChoice chosen;
  CHECK(controls.axis(chosen) == 1);
  DimsChange step;
  step.step = 7;
  chosen.apply(step, controls.axis(chosen));
  CHECK(chosen.dims.steps[1] == 7);
  step.step = 40;
  step.step_axis = 2;
  chosen.apply(step, controls.axis(chosen));
  CHECK(controls.values(chosen)["dims.step_2"] == 40);
  CHECK(controls.values(chosen)["dims.step"] == 7);

  ViewChoice across = chosen;
  DimsChange axis;
  axis.axis = 2;
  across.apply(axis, controls.axis(across));
  CHECK(controls.why_refused(chosen, across).empty()); // 40 may be a place on that axis
  CHECK(controls.values(across)["dims.axis"] == "x");
  axis.axis = 5;
  across.apply(axis, controls.axis(across));
  CHECK(controls.why_refused(chosen, across) == "dims.axis is \"5\", and may be z, y, x; \"y\" counts");
}
