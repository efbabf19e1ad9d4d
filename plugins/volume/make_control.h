// Controls that a handler of volumes offers, by their kinds. Their own values are those of the parameters.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "millrace/payload/view.h"

namespace millrace::volume {

inline ViewControl make_control(ViewControlKind kind, std::string_view key, std::string_view label) {
  ViewControl made;
  made.kind = static_cast<int32_t>(kind);
  std::ranges::copy(key, made.key);
  std::ranges::copy(label, made.label);
  return made;
}

// `place`: the one among the names that counts.
inline ViewControl make_choice(std::string_view key, std::string_view label, std::initializer_list<const char*> names,
                               size_t place) {
  ViewControl made = make_control(ViewControlKind::choice, key, label);
  uint8_t* at = made.choices;
  for (const std::string_view name : names) at = std::ranges::copy(name, at).out + 1;
  made.value[0] = static_cast<float>(place);
  return made;
}

inline ViewControl make_number(std::string_view key, std::string_view label, float low, float high, float value) {
  ViewControl made = make_control(ViewControlKind::number, key, label);
  made.low = low;
  made.high = high;
  made.value[0] = value;
  return made;
}

// Its own value is from 0 to 1.
inline ViewControl make_range(std::string_view key, std::string_view label, float low, float high) {
  ViewControl made = make_control(ViewControlKind::range, key, label);
  made.low = low;
  made.high = high;
  made.value[1] = 1;
  return made;
}

// The place of a name among those that there are.
inline size_t place_of(std::string_view name, std::initializer_list<const char*> names) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

} // namespace millrace::volume
