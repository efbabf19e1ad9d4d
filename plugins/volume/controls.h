// The controls that volume.render offers to people who turn a volume.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "millrace/payload/view.h"

namespace millrace::volume {

inline constexpr std::initializer_list<const char*> kModes = {"maximum", "translucent", "average", "iso"}; // as in Mode

inline constexpr size_t kControlsOffered = 9;

// With the parameters' values, which count until somebody chooses. The contrast has no histogram yet.
std::vector<ViewControl> controls_of(const std::string& mode, const std::string& map, float iso);

bool is_contrast(const ViewControl& control);

} // namespace millrace::volume
