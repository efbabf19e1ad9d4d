// The windows of this process, all shown by one thread.
//
// Window toolkits belong to the thread that used them first, and to the process: they are the one thing here that two
// runtimes in a process must share. So the screen is one object, its thread begins with the first window and ends with
// the process, and who has a picture to show leaves it here and goes on. A window shows the newest picture; those that
// come faster than the screen shows them are passed over, and nobody ever waits for the screen unasked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <opencv2/core.hpp>

namespace millrace::opencv {

class Screen {
 public:
  class Window;

  static Screen& instance();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  // A window that appears with its first picture. Titles are made different by a number.
  std::shared_ptr<Window> open(const std::string& title);
  // Copies the picture (8 bit, one or three channels). Throws std::runtime_error where the window could not be opened.
  void show(Window& window, const cv::Mat& picture);
  // Waits until the newest picture is on the screen or the window is closed, at most two seconds.
  void wait_until_shown(Window& window);
  // Whether a person has closed the window.
  bool is_closed(const Window& window);
  // Takes the window off the screen; returns when it is gone.
  void close(Window& window);

 private:
  Screen() = default;
  void loop();
  // Does what is due for one window; true where the toolkit then has events to work on.
  bool serve(Window& window, std::unique_lock<std::mutex>& lock);
  std::string distinct(const std::string& title) const;

  std::mutex mutex_; // guards all below and what the windows hold, but `shown`
  std::condition_variable changed_;
  std::list<std::shared_ptr<Window>> windows_;
  bool ending_ = false;
  std::thread thread_;
};

} // namespace millrace::opencv
