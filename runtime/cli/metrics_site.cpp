// Answers scrapes; see metrics_site.h.
#include "cli/metrics_site.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace millrace::cli {

namespace {

using std::chrono::steady_clock;

// A report costs some microseconds a handler, so requests share a report that is at most this old.
constexpr std::chrono::milliseconds kTextKept{100};

class LastText {
 public:
  explicit LastText(std::function<std::string()> make) : make_(std::move(make)) {}

  const std::string& now() {
    const auto now = steady_clock::now();
    if (!made_at_ || now - *made_at_ >= kTextKept) {
      text_ = make_();
      made_at_ = now;
    }
    return text_;
  }

 private:
  const std::function<std::string()> make_;
  std::string text_;
  std::optional<steady_clock::time_point> made_at_;
};

} // namespace

http::Site metrics_site(std::function<std::string()> text) {
  http::Site site;
  site.get = [last = std::make_shared<LastText>(std::move(text))](const std::string& path) -> http::Reply {
    if (path == "/healthz") return {200, "ok\n"};
    if (path == "/metrics") return {200, last->now(), "text/plain; version=0.0.4; charset=utf-8"};
    return {404, "there are /metrics and /healthz\n"};
  };
  return site;
}

} // namespace millrace::cli
