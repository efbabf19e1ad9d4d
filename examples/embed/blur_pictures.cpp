// An application that embeds millrace: it draws pictures, a pipeline blurs them, and the application reads the results.
#include <millrace/runtime.h>

#include <cstdio>
#include <thread>
#include <vector>

namespace mr = millrace;

namespace {

constexpr uint32_t kWidth = 64, kHeight = 48;
constexpr int kPictures = 10;

// Black on the left, white from column `edge` on.
std::vector<uint8_t> draw(uint32_t edge) {
  std::vector<uint8_t> pixels(kWidth * kHeight);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = i % kWidth < edge ? 0 : 255;
  return pixels;
}

void push_all(mr::Runtime& runtime) {
  for (int n = 0; n < kPictures; ++n) {
    const std::vector<uint8_t> pixels = draw(20 + static_cast<uint32_t>(n));
    mr::PictureRef picture{mr::Pixel::gray8, kWidth, kHeight, {}};
    picture.planes[0].data = pixels.data();
    runtime.push("camera", picture); // copied: `pixels` may go
  }
  runtime.end("camera");
}

int run() {
  mr::Runtime runtime;
  runtime.load("app.source name=camera format=gray8 width=64 height=48 ! image.blur sigma=1 ! app.sink name=view");
  runtime.set("blur.sigma", "2");
  runtime.start();

  std::thread camera([&] { push_all(runtime); });
  int pulled = 0;
  while (const std::optional<mr::Value> value = runtime.pull("view")) {
    const uint8_t* row = value->image().row(kHeight / 2);
    if (++pulled == kPictures)
      std::printf("the edge of picture %d is soft: %d %d %d %d\n", static_cast<int>(value->index()), row[10], row[28],
                  row[29], row[50]);
  }
  camera.join();

  const mr::Outcome outcome = runtime.wait();
  std::printf("%d pictures in, %d out\n", static_cast<int>(outcome.ticks), pulled);
  if (!outcome.ok) std::fprintf(stderr, "%s\n", outcome.error.c_str());
  return outcome.ok ? 0 : 1;
}

} // namespace

int main() {
  try {
    return run();
  } catch (const mr::RuntimeError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
