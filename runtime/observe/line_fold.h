// Folds what the handlers of one template say alike, for a terminal: eight cameras that all have no sound take two
// lines.
//
//   info video@gate: the film has no sound
//   info video@hall and 6 others: the film has no sound
//
// The first sentence is shown at once. The same sentence of other streams is held back for a second, and shown once
// with their number. It is for one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "millrace/log.h"

namespace millrace {

class LineFold {
 public:
  // Handlers may say any number of different sentences. Those beyond this number are shown as they come.
  static constexpr size_t kSentencesMax = 256;
  static constexpr int64_t kHeldNs = 1'000'000'000;

  // True if the record is to be shown now. False: it is held back.
  bool shows(const LogRecord& record);
  // Shows what was held back for its second, or with `all` whatever is held back.
  void look(int64_t now_ns, bool all, const std::function<void(const LogRecord&)>& show);

 private:
  // Handlers that said the sentence after the first one.
  struct Sentence {
    LogLevel level{};
    std::string written_as, text;
    std::string next; // the first of those that are held back
    size_t held = 0;
    int64_t since_ns = 0;
  };
  std::vector<Sentence> sentences_;
};

} // namespace millrace
