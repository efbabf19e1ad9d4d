// A plugin that sets a locale with a decimal comma, as a library does that was written for a program with windows.
#include <millrace/handler.h>

#include <clocale>
#include <cstdlib>
#include <stdexcept>

namespace {

namespace mr = millrace;

class Foreign final : public mr::Handler {
 public:
  void start() override { std::setlocale(LC_NUMERIC, "comma"); } // a test has made it

  void process(mr::Tick& tick, mr::Cpu&) {
    std::setlocale(LC_NUMERIC, "comma");
    // Other libraries that this handler calls read their numbers so.
    if (std::strtod("2.5", nullptr) != 2.5)
      throw std::runtime_error("2.5 is " + std::to_string(std::strtod("2.5", nullptr)));
    const mr::ImageSpan picture = out_.modify(tick, in_);
    picture.row(0)[0] = static_cast<uint8_t>(*gain_ * 10);
  }

 private:
  mr::Input<mr::Image> in_{*this, "video", mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out_{*this, "video", mr::in_place(in_)};
  mr::Param<double> gain_{*this, "gain", 1.0, "ten times this is the first pixel", mr::range(0, 25), mr::live};
};

} // namespace

MILLRACE_HANDLER(Foreign, "test.foreign", "Sets a locale with a decimal comma")
MILLRACE_PLUGIN("foreign", "1.0.0")
