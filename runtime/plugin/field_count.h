// Counts the fields of an aggregate, so that code which lists them one by one does not compile after one was added.
#pragma once

#include <cstddef>
#include <utility>

namespace millrace::plugin {

struct AnyField {
  template <class T>
  operator T() const; // never called
};

template <class T, size_t... I>
constexpr bool is_made_of(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField{})...}; };
}

// The largest number of values that T can be initialised from. An array in it counts as its elements.
template <class T, size_t N = 0>
constexpr size_t field_count() {
  if constexpr (is_made_of<T>(std::make_index_sequence<N + 1>{}))
    return field_count<T, N + 1>();
  else
    return N;
}

} // namespace millrace::plugin
