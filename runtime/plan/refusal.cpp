// Makes an error of a handler's own sentence; see refusal.h.
#include "plan/refusal.h"

#include <algorithm>

#include "graph/graph.h"
#include "graph/params.h"
#include "observe/error_codes.h"
#include "plan/paths.h"
#include "plan/probe.h"
#include "plugin/answers.h"

namespace millrace::plan {

namespace {

bool names(const std::string& sentence, const std::string& word) {
  const auto is_letter = [&](size_t i) {
    if (i >= sentence.size()) return false;
    const char c = sentence[i];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (size_t at = sentence.find(word); at != std::string::npos; at = sentence.find(word, at + 1))
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  return false;
}

bool is_path(const plugin::HandlerInfo& info, const std::string& name) {
  const auto* known = info.find_param(name);
  return known && known->raw.flags & (MR_PARAM_READS_PATH | MR_PARAM_WRITES_PATH);
}

bool quotes_path(const std::string& sentence, const plugin::HandlerInfo& info, const graph::Param& param) {
  if (!is_path(info, param.name)) return false;
  return sentence.find("'" + completed_path(*info.find_param(param.name), param) + "'") != std::string::npos;
}

} // namespace

Error refusal(int code, const std::string& begins, const graph::Handler& declared, const plugin::HandlerInfo& info,
              const std::string& sentence) {
  constexpr std::string_view kTry = "\ntry: ";
  const size_t at = sentence.rfind(kTry);
  const std::string said = sentence.substr(0, at);
  const std::string edit = at == std::string::npos ? "" : sentence.substr(at + kTry.size());
  const size_t equals = std::min(edit.find('='), edit.size());
  std::string key = edit.substr(0, equals);
  const std::string value = edit.substr(std::min(equals + 1, edit.size()));

  Error error{code, begins + said, declared.place, {}, "", ""};
  const auto find = [&](const auto& is_meant) {
    const auto param = std::find_if(declared.params.begin(), declared.params.end(), is_meant);
    return param == declared.params.end() ? nullptr : &*param;
  };
  const graph::Param* const quoted = find([&](const graph::Param& param) { return quotes_path(said, info, param); });
  if (quoted && is_path(info, key)) key = quoted->name; // shared code says path= for every parameter with a path
  const graph::Param* meant = graph::find_param(declared.params, key);
  if (!meant) meant = quoted;
  if (!meant && code == code::incompatible_formats)
    meant = find([&](const graph::Param& param) { return names(said, param.name); });
  if (meant) error.place = meant->place;
  if (const auto* known = meant ? info.find_param(meant->name) : nullptr; known && code == code::incompatible_formats)
    error.notes.push_back(known->name + ": " + known->help);

  if (key == "type") { // another handler does what was asked for
    error.place = declared.type_place;
    error.edit = error.place.is_one_line() ? value : "type: " + value;
  } else if (meant && meant->name == key && (!is_path(info, key) || meant == quoted)) {
    error.edit = assignment(error.place, key, value);
  } else if (const auto* other = info.find_param(key); other && !is_path(info, key)) {
    const bool is_given = graph::find_param(declared.params, key);
    if (!is_given && declared.type_place.is_one_line()) {
      error.place = declared.type_place;
      error.edit = info.type + " " + assignment(error.place, key, value);
    } else if (!is_given) {
      error.edit = assignment(error.place, key, value);
    }
  } else if (edit.empty() && code == code::incompatible_formats) {
    error.edit = "`millrace inspect " + info.type + "` says what it takes";
  }
  return error;
}

Error refusal(int code, const std::string& begins, const graph::Handler& declared, const plugin::Answers& answers) {
  Error error = refusal(code, begins, declared, answers.info(), answers.error());
  if (const int fault = answers.fault()) error.code = fault;
  return error;
}

Error not_opened(const graph::Handler& declared, const plugin::HandlerInfo& info, const ProbeAnswer& answer) {
  Error error = refusal(code::probe_failed, declared.name + " (" + info.type + ") could not be opened: ", declared,
                        info, answer.error);
  if (answer.fault) error.code = answer.fault;
  return error;
}

} // namespace millrace::plan
