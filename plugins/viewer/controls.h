// The controls that a pipeline offers to its pages, and the values that they show.
//
// A control has a key, which names a record of view.events and a field of it. The value that it shows is the one that
// somebody has chosen, or else the control's own.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "millrace/payload/view.h"
#include "plugins/viewer/view_state.h"

namespace millrace::viewer {

// So many controls has a page. More find no room on it.
inline constexpr size_t kControlsMax = 32;

// A choice's name, a number, or both ends of a range.
using ControlValue = std::variant<std::string, double, std::array<double, 2>>;

// A ViewControl whose fields make sense.
struct Control {
  ViewControlKind kind;
  std::string key, label;
  double low, high, step;
  std::vector<std::string> choices;
  ControlValue own_value;
  std::vector<uint32_t> histogram; // empty: there is none
};

class Controls {
 public:
  // These controls replace those that were offered before. Those that make no sense are left out, and the sentences say
  // why.
  std::vector<std::string> offer(std::span<const ViewControl> controls);
  void clear() { controls_.clear(); }
  bool empty() const { return controls_.empty(); }

  // The axis across which the slice lies.
  size_t axis(const ViewChoice& chosen) const;
  // A sentence if a value that changes is not one that its control allows, else "".
  std::string why_refused(const ViewChoice& before, const ViewChoice& after) const;
  // The controls for a page, each with the value that it shows.
  nlohmann::ordered_json description(const ViewChoice& chosen) const;
  // The value that each control shows, by its key.
  nlohmann::ordered_json values(const ViewChoice& chosen) const;

 private:
  ControlValue value(const Control& control, const ViewChoice& chosen) const;

  std::vector<Control> controls_;
};

} // namespace millrace::viewer
