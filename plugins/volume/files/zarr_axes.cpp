// Chooses the axes of a volume; see zarr_axes.h.
#include "plugins/volume/files/zarr_axes.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "millrace/nearest.h"
#include "plugins/volume/files/fault.h"

namespace millrace::volume {

namespace {

// "t (7), c (2), z (30)"
std::string listed(const ZarrArray& array, const std::vector<size_t>& axes) {
  std::string text;
  for (const size_t axis : axes)
    text += (text.empty() ? "" : ", ") + array.axes[axis] + " (" + std::to_string(array.shape[axis]) + ")";
  return text.empty() ? "none" : text;
}

bool is_of_space(const std::string& name) { return name == "z" || name == "y" || name == "x"; }

// Takes "t=0" into the places, and takes the axis off those that are left.
void drop_chosen(const ZarrArray& array, std::string_view choice, VolumeAxes& chosen, std::vector<size_t>& left) {
  const size_t equals = choice.find('=');
  const std::string name(choice.substr(0, equals));
  const auto found = std::find(array.axes.begin(), array.axes.end(), name);
  if (equals == choice.npos || found == array.axes.end())
    throw cannot_read(array.file, "at: '" + std::string(choice) + "' names none of the axes " +
                                      listed_from(name, array.axes) +
                                      (array.axes.empty() ? "" : "; at=" + array.axes[0] + "=0 would"));
  const auto axis = static_cast<size_t>(found - array.axes.begin());
  const std::string_view number = choice.substr(equals + 1);
  int64_t place = -1;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), place);
  if (problem != std::errc() || end != number.data() + number.size() || place < 0 || place >= array.shape[axis])
    throw cannot_read(array.file, "at: '" + std::string(choice) + "' is no place on the axis " + name +
                                      ", which has 0 to " + std::to_string(array.shape[axis] - 1));
  chosen.place[axis] = place;
  std::erase(left, axis);
}

// A volume of z, y, x in another order would be seen turned.
void check_order(const ZarrArray& array, const VolumeAxes& chosen) {
  std::array<std::string, 3> names, sorted;
  for (size_t n = 0; n < 3; ++n) names[n] = array.axes[chosen.axis[n]];
  sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == std::array<std::string, 3>{"x", "y", "z"} && names != std::array<std::string, 3>{"z", "y", "x"})
    throw cannot_read(array.file,
                      "its axes are " + names[0] + ", " + names[1] + ", " + names[2] + ", and a volume has z, y, x");
}

} // namespace

VolumeAxes choose_axes(const ZarrArray& array, const std::string& at) {
  VolumeAxes chosen;
  chosen.place.resize(array.shape.size());
  std::vector<size_t> left, all;
  for (size_t axis = 0; axis < array.shape.size(); ++axis) left.push_back(axis);
  all = left;
  for (std::string_view rest = at; !rest.empty();) {
    const size_t comma = rest.find(',');
    drop_chosen(array, rest.substr(0, comma), chosen, left);
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  }
  for (size_t n = 0; n < left.size() && left.size() > 3;) {
    const bool is_dropped = array.shape[left[n]] == 1 && !is_of_space(array.axes[left[n]]);
    is_dropped ? void(left.erase(left.begin() + static_cast<std::ptrdiff_t>(n))) : void(++n);
  }
  if (left.size() != 3) {
    std::string remedy;
    for (size_t n = 0; n + 3 < left.size(); ++n) remedy += (n == 0 ? "; at=" : ",") + array.axes[left[n]] + "=0";
    if (!remedy.empty()) remedy += " chooses one of them";
    throw cannot_read(array.file, "shape: it has the axes " + listed(array, all) + ", of which " +
                                      std::to_string(left.size()) + " are left, and a volume has three" + remedy);
  }
  std::copy(left.begin(), left.end(), chosen.axis.begin());
  check_order(array, chosen);
  return chosen;
}

} // namespace millrace::volume
