// Holds sentences back until their number is shown; see line_fold.h.
#include "observe/line_fold.h"

#include <algorithm>
#include <utility>

namespace millrace {

bool LineFold::shows(const LogRecord& record) {
  const size_t at = record.handler.find('@'); // "video@gate": the instance of a template for one stream
  if (at == std::string::npos) return true;
  const std::string written_as(record.handler.substr(0, at));
  const auto known = std::find_if(sentences_.begin(), sentences_.end(), [&](const Sentence& one) {
    return one.level == record.level && one.written_as == written_as && one.text == record.text;
  });
  if (known == sentences_.end()) {
    if (sentences_.size() < kSentencesMax)
      sentences_.push_back({record.level, written_as, std::string(record.text), "", 0, 0});
    return true;
  }
  if (known->held++ == 0) {
    known->next = record.handler;
    known->since_ns = record.time_ns;
  }
  return false;
}

void LineFold::look(int64_t now_ns, bool all, const std::function<void(const LogRecord&)>& show) {
  for (Sentence& sentence : sentences_) {
    if (sentence.held == 0 || (!all && now_ns - sentence.since_ns < kHeldNs)) continue;
    const size_t others = std::exchange(sentence.held, 0) - 1;
    const std::string more = " and " + std::to_string(others) + (others == 1 ? " other" : " others");
    LogRecord record{};
    record.level = sentence.level;
    record.time_ns = sentence.since_ns;
    const std::string who = sentence.next + (others > 0 ? more : "");
    record.handler = who;
    record.text = sentence.text;
    show(record);
  }
}

} // namespace millrace
