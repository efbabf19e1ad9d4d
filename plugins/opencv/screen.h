// The windows of this process, all shown by one thread.
//
// A window toolkit belongs to the thread that used it first, and to the process: it is the only thing here that two
// runtimes in a process must share. So the screen is one object. Its thread starts with the first window and ends with
// the process. A handler leaves its picture here and goes on. A window shows the newest picture and skips those that
// come faster than the screen shows them. Only wait_until_shown() and close() wait for the screen.
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

  // Makes a window that appears with its first picture. A number is added to a title that is in use.
  std::shared_ptr<Window> open(const std::string& title);
  // Copies the picture (8 bit, one or three channels). Throws std::runtime_error if the window could not be opened.
  void show(Window& window, const cv::Mat& picture);
  // Waits until the newest picture is on the screen or the window is closed, at most two seconds.
  void wait_until_shown(Window& window);
  // True if a person has closed the window.
  bool is_closed(const Window& window);
  // Takes the window off the screen; returns when it is gone.
  void close(Window& window);

 private:
  Screen() = default;
  void loop();
  // Shows or closes one window, as is due. True if the toolkit then has events to process.
  bool serve(Window& window, std::unique_lock<std::mutex>& lock);
  std::string distinct(const std::string& title) const;

  std::mutex mutex_; // guards all members below and those of the windows except `shown_`
  std::condition_variable changed_;
  std::list<std::shared_ptr<Window>> windows_;
  bool ending_ = false;
  std::thread thread_;
};

} // namespace millrace::opencv
