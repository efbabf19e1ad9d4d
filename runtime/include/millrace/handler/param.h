// Parameters, which read like their values.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "millrace/handler/base.h"

#pragma GCC visibility push(hidden)
namespace millrace {
inline namespace v1 {

namespace detail {
template <class V>
void assign_param(void* target, const mr_param_value& value) {
  V& v = *static_cast<V*>(target);
  if constexpr (std::same_as<V, bool>) {
    v = value.as.boolean != 0;
  } else if constexpr (std::integral<V>) {
    const auto narrowed = static_cast<V>(value.as.integer);
    const bool same = static_cast<int64_t>(narrowed) == value.as.integer && (narrowed < 0) == (value.as.integer < 0);
    if (!same) throw std::invalid_argument("the number does not fit the parameter's type");
    v = narrowed;
  } else if constexpr (std::floating_point<V>) {
    if (value.as.real > std::numeric_limits<V>::max() || value.as.real < std::numeric_limits<V>::lowest())
      throw std::invalid_argument("the number does not fit the parameter's type");
    v = static_cast<V>(value.as.real);
  } else {
    v = value.as.text;
  }
}
} // namespace detail

// A parameter: type, default and help, then range(), at_least(), choices(), unit(), live, required in any order. It
// reads like its value.
template <class V>
class Param {
 public:
  static_assert(std::is_arithmetic_v<V> || std::same_as<V, std::string>, "a parameter is a bool, a number or a string");

  template <class... Options>
  Param(Handler& owner, const char* name, V default_value, const char* help, const Options&... options)
      : value_(std::move(default_value)) {
    owner.params_.emplace_back();
    detail::ParamData& data = owner.params_.back();
    data.target = &value_;
    data.assign = &detail::assign_param<V>;
    mr_param& param = data.param;
    param.size = sizeof(mr_param);
    param.name = name;
    param.help = help;
    param.unit = "";
    if constexpr (std::same_as<V, bool>) {
      param.type = MR_PARAM_BOOL;
      param.default_value.as.boolean = value_;
    } else if constexpr (std::integral<V>) {
      param.type = MR_PARAM_INT;
      param.default_value.as.integer = static_cast<int64_t>(value_);
    } else if constexpr (std::floating_point<V>) {
      param.type = MR_PARAM_FLOAT;
      param.default_value.as.real = value_;
    } else {
      param.type = MR_PARAM_STRING;
      data.default_text = value_;
      param.default_value.as.text = data.default_text.c_str();
    }
    param.default_value.type = param.type;
    (apply(data, options), ...);
  }
  Param(const Param&) = delete;
  Param& operator=(const Param&) = delete;

  operator const V&() const { return value_; }
  const V& operator*() const { return value_; }
  const V* operator->() const { return &value_; }

 private:
  static void apply(detail::ParamData& data, Range r) {
    data.param.flags |= MR_PARAM_HAS_RANGE;
    data.param.min = r.min;
    data.param.max = r.max;
  }
  static void apply(detail::ParamData& data, const Choices& c) { data.choices = c.names; }
  static void apply(detail::ParamData& data, Unit u) { data.param.unit = u.text; }
  static void apply(detail::ParamData& data, Live) { data.param.flags |= MR_PARAM_LIVE; }
  static void apply(detail::ParamData& data, Required) { data.param.flags |= MR_PARAM_REQUIRED; }
  static void apply(detail::ParamData& data, Role r) requires std::same_as<V, std::string> || std::same_as<V, int64_t> {
    data.param.role = r.role;
  }
  static void apply(detail::ParamData& data, ReadsPath) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_READS_PATH;
  }
  static void apply(detail::ParamData& data, WritesPath) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_WRITES_PATH;
  }
  static void apply(detail::ParamData& data, InPieces) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_IN_PIECES;
  }
  static void apply(detail::ParamData& data, CutsPaths) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_CUTS_PATHS;
  }
  static void apply(detail::ParamData& data, CountsThreads) requires std::same_as<V, int64_t> {
    data.param.flags |= MR_PARAM_THREADS;
  }
  static void apply(detail::ParamData& data, Owns o) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_OWNS;
    data.param.object = o.kind;
  }
  static void apply(detail::ParamData& data, Joins j) requires std::same_as<V, std::string> {
    data.param.flags |= MR_PARAM_JOINS;
    data.param.object = j.kind;
  }
  static void apply(detail::ParamData& data, Seconds) requires std::same_as<V, double> {
    data.param.flags |= MR_PARAM_DURATION;
    data.param.unit = "s";
  }

  V value_;
};

} // namespace v1
} // namespace millrace
#pragma GCC visibility pop
