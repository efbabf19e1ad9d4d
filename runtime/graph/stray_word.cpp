// Guesses a parameter from the form of a word; see stray_word.h.
#include "graph/stray_word.h"

#include <algorithm>
#include <string_view>

#include "graph/params.h"
#include "millrace/nearest.h"
#include "millrace/read_number.h"
#include "plugin/registry.h"

namespace millrace::graph {

namespace {

using Declared = plugin::HandlerInfo::Param;

bool is_whole(const std::string& text) {
  return !text.empty() && text.size() < 7 && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string in_quotes(const std::string& value) {
  return value.find_first_of(" \t") == std::string::npos ? value : "\"" + value + "\"";
}

// "film.mp4", "out/x", "rtsp://…", "-": what names a file or an address.
bool looks_like_a_path(const std::string& word) {
  if (word == "-" || word.find('/') != std::string::npos) return true;
  const size_t dot = word.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == word.size()) return false;
  const std::string extension = word.substr(dot + 1);
  return extension.size() < 6 && v1::detail::is_letter(extension[0]) &&
         std::all_of(extension.begin(), extension.end(),
                     [](char c) { return v1::detail::is_letter(c) || v1::detail::is_digit(c); });
}

bool is_path(const Declared& param) { return param.raw.flags & (MR_PARAM_READS_PATH | MR_PARAM_WRITES_PATH); }

class Meaning {
 public:
  Meaning(const plugin::HandlerInfo& info, const Handler& handler) : info_(info), handler_(handler) {}

  // "sigma:2": another language's '='.
  std::string with_colon(const std::string& word) const {
    const size_t colon = word.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == word.size()) return "";
    const Declared* param = named(word.substr(0, colon));
    return param ? param->name + "=" + in_quotes(word.substr(colon + 1)) : "";
  }
  // "640x360"
  std::string size(const std::string& word) const {
    return free("width") && free("height") ? as_size(word, "=", " ") : "";
  }
  std::string path(const std::string& word, bool required_alone) const {
    if (!looks_like_a_path(word)) return "";
    const Declared* best = nullptr;
    for (const Declared& param : info_.params) {
      if (!is_path(param) || !free(param.name) || (required_alone && !param.required())) continue;
      if (!best || (param.required() && !best->required())) best = &param;
    }
    return best ? best->name + "=" + in_quotes(word) : "";
  }
  std::string choice(const std::string& word) const {
    const std::string small = detail::in_small_letters(word);
    for (const Declared& param : info_.params)
      for (const std::string& one : param.choices)
        if (free(param.name) && detail::in_small_letters(one) == small) return param.name + "=" + one;
    return "";
  }
  // The name of a parameter without a value: what it has if it is left out, or the other of yes and no.
  std::string name(const std::string& word) const {
    const Declared* param = named(word);
    if (!param || !free(param->name)) return "";
    if (param->raw.type == MR_PARAM_BOOL)
      return param->name + (param->raw.default_value.as.boolean ? "=false" : "=true");
    return param->name + "=" + (param->default_text.empty() || is_path(*param) ? "…" : in_quotes(param->default_text));
  }
  std::string number(const std::string& word) const {
    if (word.find_first_of("0123456789") != (word[0] == '-' ? 1 : 0)) return "";
    for (const Declared& param : info_.params) {
      const bool is_number = param.raw.type == MR_PARAM_INT || param.raw.type == MR_PARAM_FLOAT;
      if (!is_number || !free(param.name)) continue;
      try {
        plugin::parse_param(info_, param, word, {});
        return param.name + "=" + word;
      } catch (const Failure&) { // not in its range: the next one
      }
    }
    return "";
  }

 private:
  bool free(const std::string& name) const { return info_.find_param(name) && !find_param(handler_.params, name); }
  const Declared* named(const std::string& word) const {
    std::vector<std::string> names;
    for (const Declared& param : info_.params) names.push_back(param.name);
    return info_.find_param(nearest_name(word, names));
  }

  const plugin::HandlerInfo& info_;
  const Handler& handler_;
};

} // namespace

std::string as_size(const std::string& word, const std::string& assigns, const std::string& between) {
  for (const std::string_view by : {"x", "X", "×", "*", ",", ":"}) {
    const size_t at = word.find(by);
    if (at == std::string::npos) continue;
    const std::string width = word.substr(0, at), height = word.substr(at + by.size());
    if (is_whole(width) && is_whole(height)) return "width" + assigns + width + between + "height" + assigns + height;
  }
  return "";
}

bool is_free_text(const Declared& param) {
  return param.raw.type == MR_PARAM_STRING && param.choices.empty() && !is_path(param);
}

std::string as_parameters(const std::string& word, const plugin::HandlerInfo& info, const Handler& handler,
                          bool after_text) {
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  const std::string& without_dashes = bare.empty() || v1::detail::is_digit(bare[0]) ? word : bare;
  const Meaning meaning(info, handler);
  std::string meant = meaning.size(word);
  if (meant.empty()) meant = meaning.with_colon(without_dashes);
  if (meant.empty()) meant = meaning.path(word, after_text);
  if (meant.empty()) meant = meaning.choice(without_dashes);
  if (meant.empty() && !after_text) meant = meaning.number(word);
  if (meant.empty() && !after_text) meant = meaning.name(without_dashes);
  return meant;
}

} // namespace millrace::graph
