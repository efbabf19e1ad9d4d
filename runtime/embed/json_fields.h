// Reads JSON that a person wrote. Every key must be known and every value of its form; an error names the place and the
// nearest known name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "observe/error.h"

namespace millrace::embed {

// Reads one kind of document. All functions throw Failure with the document's code if a value is not as it must be.
class JsonFields {
 public:
  using json = nlohmann::json;
  // `what` begins the sentence of an error: "the facts cannot be used".
  JsonFields(int code, std::string what) : code_(code), what_(std::move(what)) {}

  json parse(const std::string& text) const;
  [[noreturn]] void refuse(const std::string& where, const std::string& what) const;
  [[noreturn]] void refuse_name(const std::string& what, const std::string& name,
                                const std::vector<std::string>& known) const;
  // Requires that `object` is an object and has only these keys.
  void only_keys(const json& object, const std::string& where, const std::vector<std::string>& keys) const;
  int64_t whole(const json& object, const char* key, int64_t min, int64_t max, const std::string& where) const;
  // None if the key is not there.
  std::optional<double> number(const json& object, const char* key, double min, double max,
                               const std::string& where) const;
  std::optional<std::string> text(const json& object, const char* key, const std::string& where) const;
  std::optional<bool> flag(const json& object, const char* key, const std::string& where) const;

 private:
  int code_;
  std::string what_;
};

} // namespace millrace::embed
