// Controls and their values; see controls.h.
#include "plugins/viewer/controls.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace millrace::viewer {

using nlohmann::ordered_json;

namespace {

using Chosen = std::optional<ControlValue>; // nothing: nobody has chosen

// The double that people mean by a float: 0.3F is 0.3.
double plain(float value) {
  char text[32];
  const char* const end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

// The text of a record's bytes, which ends with a zero or with the bytes.
template <size_t N>
std::string text_of(const uint8_t (&bytes)[N]) {
  return {std::begin(bytes), std::find(std::begin(bytes), std::end(bytes), uint8_t{0})};
}

template <size_t N>
Chosen name_in(const uint8_t (&bytes)[N]) {
  return bytes[0] ? Chosen(text_of(bytes)) : Chosen();
}
Chosen number_if(bool is_chosen, double number) { return is_chosen ? Chosen(number) : Chosen(); }
Chosen range_if(bool is_chosen, float low, float high) {
  return is_chosen ? Chosen(std::array{plain(low), plain(high)}) : Chosen();
}
Chosen crop(const ViewChoice& chosen, size_t axis) {
  return range_if(chosen.has_crop[axis], chosen.look.crop_low[axis], chosen.look.crop_high[axis]);
}
Chosen place(const ViewChoice& chosen, size_t axis) {
  const int32_t at = chosen.dims.steps[axis];
  return number_if(at >= 0, at);
}

// The fields that a control can change. `axis`: the one across which the slice lies.
struct Key {
  std::string_view name;
  ViewControlKind kind;
  Chosen (*chosen)(const Control& control, const ViewChoice& chosen, size_t axis);
};
using Kind = ViewControlKind;
using Offered = const Control&;
using Choice = const ViewChoice&;
constexpr Key kKeys[] = {
    {"look.mode", Kind::choice, [](Offered, Choice v, size_t) { return name_in(v.look.mode); }},
    {"look.map", Kind::choice, [](Offered, Choice v, size_t) { return name_in(v.look.map); }},
    {"look.contrast", Kind::range,
     [](Offered, Choice v, size_t) { return range_if(v.has_contrast, v.look.low, v.look.high); }},
    {"look.gamma", Kind::number, [](Offered, Choice v, size_t) { return number_if(v.has_gamma, plain(v.look.gamma)); }},
    {"look.opacity", Kind::number,
     [](Offered, Choice v, size_t) { return number_if(v.has_opacity, plain(v.look.opacity)); }},
    {"look.iso", Kind::number, [](Offered, Choice v, size_t) { return number_if(v.look.iso > 0, plain(v.look.iso)); }},
    {"look.crop_x", Kind::range, [](Offered, Choice v, size_t) { return crop(v, 0); }},
    {"look.crop_y", Kind::range, [](Offered, Choice v, size_t) { return crop(v, 1); }},
    {"look.crop_z", Kind::range, [](Offered, Choice v, size_t) { return crop(v, 2); }},
    {"dims.axis", Kind::choice,
     [](Offered control, Choice v, size_t) {
       const auto axis = static_cast<size_t>(v.dims.axis);
       if (v.dims.axis < 0) return Chosen();
       return Chosen(axis < control.choices.size() ? control.choices[axis] : std::to_string(axis));
     }},
    {"dims.step", Kind::number, [](Offered, Choice v, size_t axis) { return place(v, axis); }},
    {"dims.step_0", Kind::number, [](Offered, Choice v, size_t) { return place(v, 0); }},
    {"dims.step_1", Kind::number, [](Offered, Choice v, size_t) { return place(v, 1); }},
    {"dims.step_2", Kind::number, [](Offered, Choice v, size_t) { return place(v, 2); }},
    {"dims.step_3", Kind::number, [](Offered, Choice v, size_t) { return place(v, 3); }},
    {"dims.level", Kind::number, [](Offered, Choice v, size_t) { return number_if(v.dims.level >= 0, v.dims.level); }},
};
constexpr std::string_view kKindNames[] = {"choice", "number", "range"}; // as in ViewControlKind

const Key* find_key(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return k.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

std::vector<std::string> names_in(const uint8_t* bytes, size_t size) {
  std::vector<std::string> names;
  for (const uint8_t *at = bytes, *const end = bytes + size; at < end && *at;) {
    const uint8_t* const zero = std::find(at, end, uint8_t{0});
    names.emplace_back(at, zero);
    at = zero + 1;
  }
  return names;
}

std::string sentence_of(double number) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), number).ptr};
}
std::string sentence_of(const ControlValue& value) {
  if (const auto* const name = std::get_if<std::string>(&value)) return "\"" + *name + "\"";
  if (const auto* const number = std::get_if<double>(&value)) return sentence_of(*number);
  const auto& [low, high] = std::get<std::array<double, 2>>(value);
  return sentence_of(low) + " to " + sentence_of(high);
}

std::string allowed(const Control& control) {
  if (control.kind != ViewControlKind::choice) return sentence_of(control.low) + " to " + sentence_of(control.high);
  std::string names;
  for (const std::string& name : control.choices) names += (names.empty() ? "" : ", ") + name;
  return names;
}

bool allows(const Control& control, const ControlValue& value) {
  if (const auto* const name = std::get_if<std::string>(&value))
    return std::find(control.choices.begin(), control.choices.end(), *name) != control.choices.end();
  if (const auto* const number = std::get_if<double>(&value)) return *number >= control.low && *number <= control.high;
  const auto& [low, high] = std::get<std::array<double, 2>>(value);
  return low >= control.low && low <= high && high <= control.high;
}

// Why a control makes no sense; "": it does.
std::string why_senseless(const ViewControl& given, const Control& control) {
  const Key* const key = find_key(control.key);
  if (!key) {
    std::string known;
    for (const Key& one : kKeys) known += (known.empty() ? "" : ", ") + std::string(one.name);
    return "there is no such key, but there are " + known;
  }
  if (given.kind != static_cast<int32_t>(key->kind))
    return "its kind is " + std::to_string(given.kind) + ", and should be " +
           std::to_string(static_cast<int32_t>(key->kind)) + ", a " +
           std::string(kKindNames[static_cast<size_t>(key->kind)]);
  if (key->kind == ViewControlKind::choice && control.choices.empty()) return "it has no choices";
  const bool has_numbers = std::isfinite(control.low) && std::isfinite(control.high) && std::isfinite(control.step);
  if (key->kind != ViewControlKind::choice && !(has_numbers && control.low <= control.high && control.step >= 0))
    return "it goes from " + sentence_of(control.low) + " to " + sentence_of(control.high) + " by steps of " +
           sentence_of(control.step) + ", and low should be at most high";
  if (!allows(control, control.own_value))
    return "its value is " + sentence_of(control.own_value) + ", and may be " + allowed(control);
  return "";
}

Control control_of(const ViewControl& given) {
  Control control = {static_cast<ViewControlKind>(given.kind),
                     text_of(given.key),
                     text_of(given.label),
                     plain(given.low),
                     plain(given.high),
                     plain(given.step),
                     names_in(given.choices, sizeof given.choices),
                     plain(given.value[0]),
                     {}};
  if (control.kind == ViewControlKind::range)
    control.own_value = std::array{plain(given.value[0]), plain(given.value[1])};
  if (control.kind == ViewControlKind::choice) {
    const double at = given.value[0];
    const bool is_place = at >= 0 && at < static_cast<double>(control.choices.size());
    control.own_value = is_place ? control.choices[static_cast<size_t>(at)] : "number " + sentence_of(at);
  }
  if (std::any_of(std::begin(given.histogram), std::end(given.histogram), [](uint32_t count) { return count > 0; }))
    control.histogram.assign(std::begin(given.histogram), std::end(given.histogram));
  return control;
}

ordered_json json_of(const ControlValue& value) {
  return std::visit([](const auto& one) { return ordered_json(one); }, value);
}

} // namespace

std::vector<std::string> Controls::offer(std::span<const ViewControl> controls) {
  std::vector<std::string> left_out;
  controls_.clear();
  for (const ViewControl& given : controls) {
    Control control = control_of(given);
    const bool is_second =
        std::any_of(controls_.begin(), controls_.end(), [&](const Control& other) { return other.key == control.key; });
    const std::string why = is_second ? "there is one of that key already" : why_senseless(given, control);
    if (why.empty())
      controls_.push_back(std::move(control));
    else
      left_out.push_back("the control \"" + control.key + "\" is left out: " + why);
  }
  return left_out;
}

// Nobody knows the axis of a handler that offers none to choose: then it is the first.
size_t Controls::axis(const ViewChoice& chosen) const {
  if (chosen.dims.axis >= 0) return static_cast<size_t>(chosen.dims.axis);
  for (const Control& control : controls_) {
    if (control.key != "dims.axis") continue;
    const auto own =
        std::find(control.choices.begin(), control.choices.end(), std::get<std::string>(control.own_value));
    return std::min(static_cast<size_t>(own - control.choices.begin()), kAxes - 1);
  }
  return 0;
}

ControlValue Controls::value(const Control& control, const ViewChoice& chosen) const {
  return find_key(control.key)->chosen(control, chosen, axis(chosen)).value_or(control.own_value);
}

std::string Controls::why_refused(const ViewChoice& before, const ViewChoice& after) const {
  const bool is_other_axis = axis(before) != axis(after); // the controls do not know its places yet
  for (const Control& control : controls_) {
    if (is_other_axis && control.key == "dims.step") continue;
    const ControlValue is = value(control, before), wished = value(control, after);
    if (wished == is || allows(control, wished)) continue;
    return control.key + " is " + sentence_of(wished) + ", and may be " + allowed(control) + "; " + sentence_of(is) +
           " counts";
  }
  return "";
}

ordered_json Controls::description(const ViewChoice& chosen) const {
  ordered_json all = ordered_json::array();
  for (const Control& control : controls_) {
    ordered_json one = {{"kind", kKindNames[static_cast<size_t>(control.kind)]},
                        {"key", control.key},
                        {"label", control.label},
                        {"value", json_of(value(control, chosen))}};
    if (control.kind == ViewControlKind::choice) {
      one["choices"] = control.choices;
    } else {
      one["low"] = control.low;
      one["high"] = control.high;
      one["step"] = control.step;
    }
    if (!control.histogram.empty()) one["histogram"] = control.histogram;
    all.push_back(std::move(one));
  }
  return all;
}

ordered_json Controls::values(const ViewChoice& chosen) const {
  ordered_json all = ordered_json::object();
  for (const Control& control : controls_) all[control.key] = json_of(value(control, chosen));
  return all;
}

} // namespace millrace::viewer
