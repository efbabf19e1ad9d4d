// Reading JSON that a person wrote: every key is known, every value has its form, and what is wrong is said with its
// place and the nearest name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace::embed {

// Of one kind of document. All throw Failure with its code where something is not as it should be.
class JsonFields {
 public:
  using json = nlohmann::json;
  // `what` as the sentence begins: "the facts cannot be used".
  JsonFields(int code, std::string what) : code_(code), what_(std::move(what)) {}

  json parse(const std::string& text) const;
  [[noreturn]] void refuse(const std::string& where, const std::string& what) const;
  [[noreturn]] void refuse_name(const std::string& what, const std::string& name,
                                const std::vector<std::string>& known) const;
  // `object` is one, and has no other keys than these.
  void only_keys(const json& object, const std::string& where, const std::vector<std::string>& keys) const;
  int64_t whole(const json& object, const char* key, int64_t min, int64_t max, const std::string& where) const;
  // None where the key is not there.
  std::optional<double> number(const json& object, const char* key, double min, double max,
                               const std::string& where) const;
  std::optional<std::string> text(const json& object, const char* key, const std::string& where) const;
  std::optional<bool> flag(const json& object, const char* key, const std::string& where) const;

 private:
  int code_;
  std::string what_;
};

} // namespace millrace::embed
