// image.writer: writes pictures into picture files, or a selection of them into one contact sheet.
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <opencv2/imgcodecs.hpp>

#include "millrace/handler.h"
#include "plugins/opencv/checked_write.h"
#include "plugins/opencv/contact_sheet.h"
#include "plugins/opencv/output_path.h"
#include "plugins/opencv/picture.h"

namespace millrace::opencv {
namespace {

constexpr const char* kImageWriterManual = &R"(
Writes every `step`-th picture into a file of its own, or, with `columns`, into one contact sheet
when the stream ends.

The path's extension chooses the format (.png, .jpg, .bmp, .tiff, .webp). Files of their own need
`{index}` in the path, which becomes the tick's index, six digits wide. If it is not there, `%06d`
or `%d` is replaced. A contact sheet has tiles `tile_width` wide, at most `tiles` of them: when it
is full, every other tile is dropped and the step doubles, so that the sheet spans a stream of any
length.

Missing folders of the path are created, and existing files are overwritten. A picture that cannot
be written is a failure with its path, its reason and the byte.

    video.file path=media/vtest.avi ! image.writer path=out/sheet.png columns=4 step=100
)"[1];

class ImageWriter final : public Handler {
 public:
  ImageWriter() { cost_hint_us(2000); }

  void start() override {
    if (*columns_ == 0 && !has_index(*path_))
      throw std::invalid_argument("the path '" + *path_ +
                                  "' needs {index} or %06d, or `columns` for a contact sheet: else each picture would "
                                  "overwrite the one before\ntry: path=" +
                                  with_index(*path_));
    if (!cv::haveImageWriter(*path_))
      throw std::invalid_argument("no picture format is known by the extension of '" + *path_ + "' (.png, .jpg, …)");
    make_folders_for(*path_);
    require_writable_folder(*path_);
    seen_ = 0;
    sheet_.reset();
    if (*columns_ > 0)
      sheet_.emplace(*columns_, *tile_width_, static_cast<uint32_t>(*tiles_), static_cast<uint64_t>(*step_));
  }

  void process(Tick& tick, Cpu&) {
    const cv::Mat picture = mat_of(video_(tick));
    if (sheet_) return sheet_->add(picture);
    if (seen_++ % static_cast<uint64_t>(*step_) == 0) write(numbered_path(*path_, tick.index()), picture);
  }

  void drain() override {
    if (!sheet_ || sheet_->tile_count() == 0) return;
    write(*path_, sheet_->compose());
    sheet_->clear();
  }

  void stop() override { sheet_.reset(); }

 private:
  static void write(const std::string& path, const cv::Mat& picture) {
    // Encodes in memory, because OpenCV does not say why it could not write a file, and does not always report the
    // failure.
    std::vector<unsigned char> bytes;
    bool encoded = false;
    std::string why = "its size or pixels are not for this format";
    try {
      encoded = cv::imencode(extension_of(path), picture, bytes);
    } catch (const cv::Exception& error) {
      why = error.err;
    }
    if (!encoded) throw std::runtime_error("cannot write the picture '" + path + "': " + why);
    write_picture_bytes(path, bytes);
  }

  Input<Image> video_{*this, "video", pixels({Pixel::bgr8}), help("the pictures")};
  Param<std::string> path_{*this,    "path",     "", "the file, with {index} or %06d where each picture has its own",
                           required, writes_path};
  Param<int> step_{*this, "step", 1, "keeps every so-many-th picture", range(1, 1e9)};
  Param<int> columns_{*this, "columns", 0, "tiles in a row of the contact sheet; 0: a file for each picture",
                      range(0, 64)};
  Param<int> tile_width_{*this, "tile_width", 320, "width of a tile of the contact sheet", range(8, 4096), unit("px")};
  Param<int> tiles_{*this, "tiles", 64, "tiles of the contact sheet at most", range(2, 1024)};

  std::optional<ContactSheet> sheet_;
  uint64_t seen_ = 0;
};

MILLRACE_HANDLER(ImageWriter, "image.writer", "Writes pictures into files or a contact sheet", kImageWriterManual)

} // namespace
} // namespace millrace::opencv
