// Marks over a picture of 3840 × 2160 rgba8 on one thread: millrace, OpenCV and Cairo in turns, in one process.
//
// usage: peer_marks ROUNDS      prints JSON: for each work the milliseconds of each round, by program
//
// All paint the same places and colours. OpenCV's boxes have square corners, since it has no others.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "handlers/draw/mark_painter.h"
#include "handlers/image/picture.h"
#include "tests/peers/turns.h"

#ifdef PEER_OPENCV
#include <opencv2/imgproc.hpp>
#endif
#ifdef PEER_CAIRO
#include <cairo.h>
#endif

using namespace millrace;

namespace {

constexpr int kWidth = 3840, kHeight = 2160;
constexpr double kPi = 3.14159265358979;

std::vector<Mark> boxes(int count) {
  peers::Numbers any(1);
  std::vector<Mark> marks(static_cast<size_t>(count));
  for (Mark& mark : marks) {
    mark.kind = static_cast<int32_t>(MarkKind::box);
    mark.at[0] = any(130, 3700);
    mark.at[1] = any(110, 2040);
    mark.at[2] = any(150, 250);
    mark.at[3] = any(100, 200);
    mark.width = 2;
    mark.roundness = 0.3f;
    for (int c = 0; c < 3; ++c) mark.color[c] = any(0, 1);
  }
  return marks;
}

std::vector<Mark> lines(int count, float width) {
  peers::Numbers any(2);
  std::vector<Mark> marks(static_cast<size_t>(count));
  for (Mark& mark : marks) {
    const float turn = any(0, 2 * kPi);
    mark.at[0] = any(410, 3400);
    mark.at[1] = any(410, 1700);
    mark.at[2] = mark.at[0] + 400 * std::cos(turn);
    mark.at[3] = mark.at[1] + 400 * std::sin(turn);
    mark.width = width;
    for (int c = 0; c < 3; ++c) mark.color[c] = any(0, 1);
  }
  return marks;
}

void add_ours(peers::Jobs& jobs, const std::vector<Mark>& marks, const ImageSpan& picture) {
  auto painter = std::make_shared<handlers::MarkPainter>();
  painter->reserve(marks.size(), kWidth, kHeight);
  jobs["millrace"] = [painter, &marks, picture] {
    painter->begin(picture, {false, false, Pixel::rgba8});
    painter->add(marks);
    painter->paint();
  };
}

#ifdef PEER_OPENCV
void add_opencv(peers::Jobs& jobs, const std::vector<Mark>& marks, const ImageSpan& picture) {
  cv::setNumThreads(1);
  const cv::Mat canvas(kHeight, kWidth, CV_8UC4, picture.row(0), picture.stride());
  jobs["OpenCV"] = [canvas, &marks]() mutable {
    for (const Mark& mark : marks) {
      const cv::Scalar color(255 * mark.color[0], 255 * mark.color[1], 255 * mark.color[2], 255);
      const auto at = [](double x, double y) { return cv::Point(cvRound(x * 16), cvRound(y * 16)); };
      const int width = cvRound(mark.width);
      if (mark.kind == 0)
        cv::line(canvas, at(mark.at[0], mark.at[1]), at(mark.at[2], mark.at[3]), color, width, cv::LINE_AA, 4);
      else
        cv::rectangle(canvas, at(mark.at[0] - mark.at[2] / 2, mark.at[1] - mark.at[3] / 2),
                      at(mark.at[0] + mark.at[2] / 2, mark.at[1] + mark.at[3] / 2), color, width, cv::LINE_AA, 4);
    }
  };
}
#endif

#ifdef PEER_CAIRO
void add_cairo(peers::Jobs& jobs, const std::vector<Mark>& marks, const ImageSpan& picture) {
  const std::shared_ptr<cairo_surface_t> surface(
      cairo_image_surface_create_for_data(picture.row(0), CAIRO_FORMAT_RGB24, kWidth, kHeight,
                                          static_cast<int>(picture.stride())),
      cairo_surface_destroy);
  const std::shared_ptr<cairo_t> cairo(cairo_create(surface.get()), cairo_destroy);
  jobs["Cairo"] = [surface, cairo, &marks] {
    cairo_t* const to = cairo.get();
    for (const Mark& mark : marks) {
      cairo_set_source_rgb(to, mark.color[0], mark.color[1], mark.color[2]);
      cairo_set_line_width(to, mark.width);
      if (mark.kind == 0) {
        cairo_set_line_cap(to, CAIRO_LINE_CAP_ROUND);
        cairo_move_to(to, mark.at[0], mark.at[1]);
        cairo_line_to(to, mark.at[2], mark.at[3]);
      } else {
        const double left = mark.at[0] - mark.at[2] / 2, top = mark.at[1] - mark.at[3] / 2, right = left + mark.at[2],
                     bottom = top + mark.at[3], corner = mark.roundness * std::min(mark.at[2], mark.at[3]) / 2;
        cairo_new_sub_path(to);
        cairo_arc(to, right - corner, top + corner, corner, -kPi / 2, 0);
        cairo_arc(to, right - corner, bottom - corner, corner, 0, kPi / 2);
        cairo_arc(to, left + corner, bottom - corner, corner, kPi / 2, kPi);
        cairo_arc(to, left + corner, top + corner, corner, kPi, 3 * kPi / 2);
        cairo_close_path(to);
      }
      cairo_stroke(to);
    }
    cairo_surface_flush(surface.get());
  };
}
#endif

peers::Times measure(const std::vector<Mark>& marks, int rounds) {
  handlers::Picture picture(Pixel::rgba8, kWidth, kHeight);
  peers::Jobs jobs;
  add_ours(jobs, marks, picture.span());
#ifdef PEER_OPENCV
  add_opencv(jobs, marks, picture.span());
#endif
#ifdef PEER_CAIRO
  add_cairo(jobs, marks, picture.span());
#endif
  return peers::in_turns(jobs, rounds);
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31;
  peers::print_json({{"100 boxes, 2 px", measure(boxes(100), rounds)},
                     {"1,000 boxes, 2 px", measure(boxes(1000), rounds)},
                     {"500 lines of 400 px, 1 px", measure(lines(500, 1), rounds)},
                     {"500 lines of 400 px, 2 px", measure(lines(500, 2), rounds)}});
}
