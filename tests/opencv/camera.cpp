// Cameras without a camera: the list, the refusals, and the waiting, on folders and streams of the test's own.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "plugins/opencv/camera_reader.h"
#include "plugins/opencv/cameras.h"
#include "tests/file_bytes.h"
#include "tests/opencv/plugin.h"

namespace millrace::opencv {
namespace {

using testing::TableTest;

CameraFolders folders_with(const std::string& name,
                           std::initializer_list<std::pair<const char*, const char*>> devices) {
  const CameraFolders folders{scratch(name + "-list"), scratch(name + "-dev")};
  std::filesystem::create_directories(folders.devices);
  std::filesystem::create_directories(folders.list);
  for (const auto& [device, label] : devices) {
    std::filesystem::create_directories(folders.list + "/" + device);
    if (*label) put_bytes(folders.list + "/" + device + "/name", std::string(label) + "\n");
  }
  return folders;
}

// Gives a picture at every wait from number `ready_at` on.
class ScriptedCamera final : public CameraStream {
 public:
  explicit ScriptedCamera(int ready_at, bool works = true) : ready_at_(ready_at), works_(works) {}
  bool wait(int64_t) override { return waits_++ >= ready_at_; }
  bool read(cv::Mat& target) override {
    target.setTo(cv::Scalar::all(7));
    return works_;
  }
  int waits() const { return waits_; }

 private:
  std::atomic<int> waits_{0};
  const int ready_at_;
  const bool works_;
};

} // namespace

TEST_CASE("cameras are listed with their names, in natural order, and radios are left out") {
  const CameraFolders folders =
      folders_with("several", {{"video10", "Lab"}, {"video2", "HD Webcam"}, {"radio0", "FM"}, {"video0", ""}});
  const std::vector<Camera> cameras = cameras_in(folders);
  REQUIRE(cameras.size() == 3);
  CHECK(cameras[0].path == folders.devices + "/video0");
  CHECK(cameras[0].name == "");
  CHECK(cameras[1].name == "HD Webcam");
  CHECK(cameras[2].path == folders.devices + "/video10");
  CHECK(cameras_in({"/nowhere", "/dev"}).empty());
}

TEST_CASE("a number means a device, and a path itself") {
  CHECK(camera_path("3", {}) == "/dev/video3");
  CHECK(camera_path("/dev/v4l/by-id/usb-1", {}) == "/dev/v4l/by-id/usb-1");
  CHECK(camera_path("", {}) == "");
}

TEST_CASE("an absent camera is refused with what was looked for and which cameras there are") {
  const CameraFolders some = folders_with("some", {{"video0", "HD Webcam"}, {"video1", ""}});
  CHECK(camera_refusal(some.devices + "/video7", some) == "there is no camera '" + some.devices +
                                                              "/video7'; there are: " + some.devices +
                                                              "/video0 (HD Webcam), " + some.devices + "/video1");
  const CameraFolders none = folders_with("none", {});
  CHECK(camera_refusal("/no/camera", none) ==
        "there is no camera '/no/camera'; this machine has no camera (none in " + none.list + ")");
  const std::string file = scratch("a-file");
  put_bytes(file, "x");
  CHECK(camera_refusal(file, none).find("'" + file + "' is a file, not a camera") == 0);
  CHECK(camera_refusal("/dev/null", none) == "");
}

TEST_CASE("the handler refuses an absent camera, and a device that is no camera, before anything runs") {
  for (const char* device : {"/no/such/camera", "4711"}) {
    TableTest camera(handler_type("video.camera"), {{"camera", device}});
    CHECK(camera.start() == MR_ERROR);
    INFO(camera.error());
    CHECK(camera.error().find("there is no camera '") == 0);
  }
  TableTest not_a_camera(handler_type("video.camera"), {{"camera", "/dev/null"}});
  CHECK(not_a_camera.start() == MR_ERROR);
  CHECK(not_a_camera.error().find("the camera '/dev/null' cannot be used") == 0);
}

TEST_CASE("a reader waits in slices for a picture, gives up after ten seconds of silence, and tells a failure") {
  CameraReader reader;
  cv::Mat target(2, 2, CV_8UC3, cv::Scalar::all(0));
  ScriptedCamera soon(5), never(1 << 30), broken(0, false);
  CHECK(reader.next(soon, target) == CameraAnswer::picture);
  CHECK(soon.waits() == 6);
  CHECK(target.at<cv::Vec3b>(1, 1) == cv::Vec3b::all(7));
  CHECK(reader.next(never, target) == CameraAnswer::silent);
  CHECK(never.waits() == CameraReader::kSilenceMaxNs / CameraReader::kSliceNs);
  CHECK(reader.next(broken, target) == CameraAnswer::failed);
}

TEST_CASE("an interrupt ends a wait of now or the next one, once") {
  CameraReader reader;
  cv::Mat target(2, 2, CV_8UC3);
  ScriptedCamera ready(0);
  reader.interrupt();
  CHECK(reader.next(ready, target) == CameraAnswer::interrupted);
  CHECK(reader.next(ready, target) == CameraAnswer::picture);
  reader.interrupt();
  reader.clear();
  CHECK(reader.next(ready, target) == CameraAnswer::picture);

  // A camera that is waited for when the interrupt comes, from another thread.
  class Interrupting final : public CameraStream {
   public:
    explicit Interrupting(CameraReader& reader) : reader_(reader) {}
    bool wait(int64_t) override {
      std::thread([this] { reader_.interrupt(); }).join();
      return false;
    }
    bool read(cv::Mat&) override { return true; }

   private:
    CameraReader& reader_;
  };
  Interrupting camera(reader);
  CHECK(reader.next(camera, target) == CameraAnswer::interrupted);
}

} // namespace millrace::opencv
