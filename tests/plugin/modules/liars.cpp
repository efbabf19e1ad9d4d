// Handlers that do otherwise than they declare, each in one way: `millrace check-handler` must catch every one.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "millrace/handler.h"

namespace mr = millrace;

namespace {

// The liars take a gray picture and make one of the same size.
struct Filter : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  void copy(mr::Tick& tick, uint8_t more = 0) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan made = out.allocate_like(tick, in);
    for (uint32_t y = 0; y < in.height(); ++y)
      for (uint32_t x = 0; x < in.width(); ++x) made.row(y)[x] = static_cast<uint8_t>(in.row(y)[x] + more);
  }
};

} // namespace

struct Honest final : Filter {
  Honest() {
    stateless();
    no_allocation();
  }
  void process(mr::Tick& tick, mr::Cpu&) { copy(tick, 1); }
};
MILLRACE_HANDLER(Honest, "liar.none", "Does what it declares")

struct Remembers final : Filter {
  uint8_t count = 0;
  Remembers() { stateless(); }
  void process(mr::Tick& tick, mr::Cpu&) { copy(tick, ++count); }
};
MILLRACE_HANDLER(Remembers, "liar.stateless", "Counts, and is declared stateless")

struct Cumulates final : Filter {
  uint8_t count = 0;
  void process(mr::Tick& tick, mr::Cpu&) { copy(tick, ++count); }
};
MILLRACE_HANDLER(Cumulates, "liar.forgets", "Counts on after a reset")

struct HasBoth final : Filter { // the runtime clears its state, and reset() the rest
  mr::State<uint8_t> count{*this};
  uint8_t step = 1;
  void reset() override { step = 1; }
  void process(mr::Tick& tick, mr::Cpu&) {
    count(tick)[0] = static_cast<uint8_t>(count(tick)[0] + step++);
    copy(tick, count(tick)[0]);
  }
};
MILLRACE_HANDLER(HasBoth, "liar.forgets_not", "Counts, and begins anew after a reset")

struct Allocates final : Filter {
  std::unique_ptr<int> kept;
  Allocates() { no_allocation(); }
  void process(mr::Tick& tick, mr::Cpu&) {
    kept = std::make_unique<int>(1);
    copy(tick);
  }
};
MILLRACE_HANDLER(Allocates, "liar.no_allocation", "Allocates, and is declared not to")

struct LooksBack final : Filter {
  const uint8_t* before = nullptr;
  void process(mr::Tick& tick, mr::Cpu&) {
    copy(tick, before ? *before : 0);
    before = video(tick).row(0);
  }
  void reset() override { before = nullptr; }
  void stop() override { before = nullptr; }
};
MILLRACE_HANDLER(LooksBack, "liar.keeps", "Reads the picture before, which it has not declared to keep")

struct OneLife final : Filter {
  bool stopped = false;
  void start() override {
    if (stopped) throw std::runtime_error("the door is locked");
  }
  void stop() override { stopped = true; }
  void process(mr::Tick& tick, mr::Cpu&) { copy(tick); }
};
MILLRACE_HANDLER(OneLife, "liar.lives_twice", "Cannot be started again")

struct StaysInterrupted final : Filter {
  bool interrupted = false;
  void interrupt() override { interrupted = true; }
  void process(mr::Tick& tick, mr::Cpu&) {
    if (interrupted) throw std::runtime_error("interrupted");
    copy(tick);
  }
};
MILLRACE_HANDLER(StaysInterrupted, "liar.interrupt", "Never forgets an interrupt")

struct NeedsEven final : Filter {
  void process(mr::Tick& tick, mr::Cpu&) {
    if (video(tick).width() % 2 == 1) throw std::runtime_error("odd widths are odd");
    copy(tick);
  }
};
MILLRACE_HANDLER(NeedsEven, "liar.sizes", "Accepts odd sizes and fails on them")

struct Overruns final : Filter {
  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageView in = video(tick);
    const mr::ImageSpan made = out.allocate_like(tick, in);
    std::memset(made.data(), 7, size_t{made.stride()} * made.height() + 3);
  }
};
MILLRACE_HANDLER(Overruns, "liar.works", "Writes behind the end of its picture")

struct Crashes final : Filter {
  void process(mr::Tick& tick, mr::Cpu&) {
    copy(tick);
    if (video(tick).width() == 1) std::abort();
  }
};
MILLRACE_HANDLER(Crashes, "liar.crash", "Ends the process at a picture of one column")

struct EndsEarly final : mr::Handler {
  mr::Output<mr::Image> out{*this, "video"};
  uint64_t given = 0;
  void probe(mr::Facts& facts) override { facts.tick_count(7); }
  void configure(const mr::Formats& formats) override { formats.image(out, mr::Pixel::gray8, 4, 4); }
  void process(mr::Tick& tick, mr::Cpu&) {
    if (given++ == 5) return tick.end();
    std::memset(out.allocate(tick, mr::Pixel::gray8, 4, 4).data(), 0, 4);
  }
};
MILLRACE_HANDLER(EndsEarly, "liar.end", "Tells seven ticks and gives five")

struct Owes final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  Owes() { max_pending(2); }
  std::unique_ptr<mr::Tick> owed;
  void process(mr::Tick& tick, mr::Cpu&) {
    auto next = std::make_unique<mr::Tick>(tick.defer());
    if (owed) owed->publish();
    owed = std::move(next);
  }
  void reset() override { owed.reset(); }
};
MILLRACE_HANDLER(Owes, "liar.max_pending", "Keeps its last result at the end")

struct NeedsBoxes final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video"};
  mr::Input<mr::Records<mr::Box>> boxes{*this, "boxes", mr::optional};
  void process(mr::Tick& tick, mr::Cpu&) {
    if (boxes(tick).empty()) throw std::runtime_error("no boxes");
  }
};
MILLRACE_HANDLER(NeedsBoxes, "liar.optional", "Fails without its optional input")

struct ReachesOver final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "video", mr::in_place(video)};
  void process(mr::Tick& tick, mr::Cpu&) {
    const mr::ImageSpan made = out.modify(tick, video);
    const mr::ImageView in = video(tick); // in place, this is what is being written
    for (uint32_t x = 0; x < in.width(); ++x) made.row(0)[x] = static_cast<uint8_t>(in.row(0)[in.width() - 1 - x] + 1);
  }
};
MILLRACE_HANDLER(ReachesOver, "liar.in_place", "Reads what it has written over")

struct CountsItsCall final : mr::Handler {
  mr::Input<mr::Image> video{*this, "video", mr::pixels({mr::Pixel::gray8})};
  mr::Output<mr::Image> out{*this, "video", mr::like(video)};
  CountsItsCall() { items(4); }
  void process(mr::Items& items, mr::Cpu&) {
    for (mr::Tick& item : items) {
      const mr::ImageSpan made = out.allocate_like(item, video(item));
      std::memset(made.data(), static_cast<int>(items.size()), size_t{made.stride()} * made.height());
    }
  }
};
MILLRACE_HANDLER(CountsItsCall, "liar.items", "Paints how many items its call has")

struct Choosy final : Filter {
  mr::Param<int> level{*this, "level", 1, "how much", mr::range(0, 9)};
  void process(mr::Tick& tick, mr::Cpu&) {
    if (level == 9 && tick.index() > 0) throw std::runtime_error("that was too much");
    copy(tick);
  }
};
MILLRACE_HANDLER(Choosy, "liar.parameters", "Fails at the end of a parameter's range")

struct Mute final : Filter {
  mr::Param<int> level{*this, "level", 1, ""};
  void process(mr::Tick& tick, mr::Cpu&) { copy(tick); }
};
MILLRACE_HANDLER(Mute, "liar.described", "Has a parameter that nobody explains")

MILLRACE_PLUGIN("liars", "1.0")
