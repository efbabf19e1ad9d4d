// The thread that shows windows; see screen.h.
#include "plugins/opencv/screen.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <opencv2/highgui.hpp>

namespace millrace::opencv {

namespace {

constexpr int kPumpMs = 8; // pause between two looks at the windows: screens show at most 120 pictures a second
constexpr std::chrono::seconds kShownMax{2}; // a slower screen counts as hung

// Opens a window that a person may resize and that shows only the picture.
void open_at_size(const std::string& title, const cv::Size& size) {
  cv::namedWindow(title, cv::WINDOW_NORMAL | cv::WINDOW_KEEPRATIO | cv::WINDOW_GUI_NORMAL);
  cv::resizeWindow(title, size);
}

} // namespace

//              first picture                    the person closes it
//   waiting ───────────────────► open ──────────────────────────────► closed
//      │                          │                                    │
//      └──────────────────────────┴────────── close() ─────────────────┴──► gone
class Screen::Window {
 public:
  enum class State { waiting, open, closed, gone };

  explicit Window(std::string title) : title_(std::move(title)) {}

  const std::string title_;
  State state_ = State::waiting;
  bool leaving_ = false; // close() was called
  cv::Mat next_;         // the newest picture
  uint64_t given_ = 0, shown_count_ = 0;
  std::string failure_;
  cv::Mat shown_; // only used by the screen's thread
};

using State = Screen::Window::State;

Screen& Screen::instance() {
  static Screen screen;
  return screen;
}

Screen::~Screen() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string Screen::distinct(const std::string& title) const {
  std::string candidate = title;
  const auto taken = [&](const std::shared_ptr<Window>& window) { return window->title_ == candidate; };
  for (int number = 2; std::any_of(windows_.begin(), windows_.end(), taken); ++number)
    candidate = title + " (" + std::to_string(number) + ")";
  return candidate;
}

std::shared_ptr<Screen::Window> Screen::open(const std::string& title) {
  const std::lock_guard lock(mutex_);
  auto window = std::make_shared<Window>(distinct(title));
  windows_.push_back(window);
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  return window;
}

void Screen::show(Window& window, const cv::Mat& picture) {
  {
    const std::lock_guard lock(mutex_);
    if (!window.failure_.empty()) throw std::runtime_error(window.failure_);
    if (window.state_ == State::closed) return;
    picture.copyTo(window.next_);
    ++window.given_;
  }
  changed_.notify_all();
}

void Screen::wait_until_shown(Window& window) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kShownMax, [&] {
    return window.shown_count_ == window.given_ || window.state_ == State::closed || !window.failure_.empty();
  });
}

bool Screen::is_closed(const Window& window) {
  const std::lock_guard lock(mutex_);
  return window.state_ == State::closed;
}

void Screen::close(Window& window) {
  std::unique_lock lock(mutex_);
  window.leaving_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return window.state_ == State::gone || ending_; });
}

// Called under the lock, which is released while the toolkit works.
bool Screen::serve(Window& window, std::unique_lock<std::mutex>& lock) {
  const State before = window.state_;
  const bool leaves = window.leaving_ || ending_;
  const uint64_t given = window.given_;
  const bool shows = !leaves && given > window.shown_count_ && before != State::closed && window.failure_.empty();
  if (shows) std::swap(window.next_, window.shown_);
  lock.unlock();
  State after = before;
  std::string failure;
  try {
    // Checked first, because showing a picture in a closed window would open a new one.
    const bool is_open = before == State::open;
    const bool was_closed = is_open && !leaves && cv::getWindowProperty(window.title_, cv::WND_PROP_VISIBLE) < 1;
    if (was_closed) after = State::closed;
    if (shows && !was_closed) {
      if (!is_open) open_at_size(window.title_, window.shown_.size());
      cv::imshow(window.title_, window.shown_);
      after = State::open;
    }
    if (leaves && is_open) cv::destroyWindow(window.title_);
  } catch (const cv::Exception& error) {
    failure = "the window '" + window.title_ + "' cannot be shown: " + error.err;
  }
  lock.lock();
  if (!failure.empty()) window.failure_ = failure;
  window.state_ = leaves ? State::gone : after;
  if (shows) window.shown_count_ = given;
  return before == State::open || after == State::open;
}

void Screen::loop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait(lock, [&] { return ending_ || !windows_.empty(); });
    bool pumped = false;
    const std::list<std::shared_ptr<Window>> served = windows_; // a copy, since open() may add windows meanwhile
    for (const std::shared_ptr<Window>& window : served) {
      pumped = serve(*window, lock) || pumped;
    }
    windows_.remove_if([](const std::shared_ptr<Window>& window) { return window->state_ == State::gone; });
    if (pumped) {
      lock.unlock();
      try {
        cv::waitKey(kPumpMs); // the toolkit's own events: drawing, moving, closing
      } catch (const cv::Exception&) {
        // A toolkit that fails here also fails at the next picture, which reports the error.
      }
      lock.lock();
    } else if (!windows_.empty() && !ending_) {
      changed_.wait_for(lock, std::chrono::milliseconds(kPumpMs));
    }
    changed_.notify_all();
  }
}

} // namespace millrace::opencv
