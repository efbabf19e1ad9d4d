// Sentences of the handlers of one template: the first one is shown, and the others together.
#include "observe/line_fold.h"

#include <doctest/doctest.h>

#include "observe/log_lines.h"

using namespace millrace;

namespace {

constexpr int64_t kFoldSecond = 1'000'000'000;

bool fold_shows(LineFold& fold, const std::string& handler, const std::string& text, int64_t at_ns = 0,
                LogLevel level = LogLevel::info) {
  LogRecord record;
  record.level = level;
  record.handler = handler;
  record.text = text;
  record.time_ns = at_ns;
  return fold.shows(record);
}

std::vector<std::string> fold_looked(LineFold& fold, int64_t now_ns, bool all = false) {
  std::vector<std::string> lines;
  fold.look(now_ns, all, [&](const LogRecord& record) { lines.push_back(terminal_line(record)); });
  return lines;
}

} // namespace

TEST_CASE("a sentence of eight streams is shown once at once, and once more for the seven others") {
  LineFold fold;
  CHECK(fold_shows(fold, "video@s0", "no sound"));
  for (int stream = 1; stream < 8; ++stream)
    CHECK_FALSE(fold_shows(fold, "video@s" + std::to_string(stream), "no sound", stream * kFoldSecond / 10));
  CHECK(fold_looked(fold, kFoldSecond).empty());
  CHECK(fold_looked(fold, 2 * kFoldSecond) == std::vector<std::string>{"info video@s1 and 6 others: no sound"});
  CHECK(fold_looked(fold, 9 * kFoldSecond, true).empty());
  CHECK_FALSE(fold_shows(fold, "video@s8", "no sound", 9 * kFoldSecond));
  CHECK(fold_looked(fold, 9 * kFoldSecond, true) == std::vector<std::string>{"info video@s8: no sound"});
}

TEST_CASE("other sentences, other levels, other templates and handlers of no stream are shown as they come") {
  LineFold fold;
  CHECK(fold_shows(fold, "video@a", "no sound"));
  CHECK(fold_shows(fold, "video@b", "no picture"));
  CHECK(fold_shows(fold, "video@b", "no sound", 0, LogLevel::warning));
  CHECK(fold_shows(fold, "other@b", "no sound"));
  for (int times = 0; times < 2; ++times) CHECK(fold_shows(fold, "wall", "no sound"));
  CHECK(fold_looked(fold, 9 * kFoldSecond, true).empty());
}

TEST_CASE("more different sentences than are kept are shown as they come") {
  LineFold fold;
  const auto sentence = [](size_t number) { return "sentence " + std::to_string(number); };
  for (size_t n = 0; n <= LineFold::kSentencesMax; ++n) CHECK(fold_shows(fold, "video@a", sentence(n)));
  CHECK_FALSE(fold_shows(fold, "video@b", sentence(0)));
  CHECK(fold_shows(fold, "video@b", sentence(LineFold::kSentencesMax)));
}
