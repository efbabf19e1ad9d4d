// Finds the value that an input reads on a tick, and holds values for as long as they are needed (semantics.md 2.3).
#include "exec/presence.h"

#include <algorithm>

#include "exec/body.h"
#include "exec/stream_epochs.h"

namespace millrace::exec {

void hold(const Slot& slot) { memory::hold(slot.block); }

void release(Slot& slot) {
  memory::release(slot.block);
  slot = Slot{};
}

const Slot* read(StepRun& step, InputRun& input, uint64_t ordinal, Slot& room) {
  if (!input.output) return nullptr;
  const auto initial = [&]() -> const Slot* {
    if (!input.initial_empty) return nullptr;
    const size_t output = static_cast<size_t>(input.output - step.run->planned.outputs.data());
    room = Slot{};
    room.value = &step.run->planned.empty_values[output];
    return &room;
  };
  const auto [back, at] = look_back(step, input, ordinal);
  if (back == Back::before_first) return initial();
  Slot* const slot = back == Back::there ? &input.output->at(at) : nullptr;
  const bool device_decides = step.on.device && !decides_now(step.on, input);
  const bool there = slot && (device_decides ? slot->value != nullptr : present(*step.run, *slot));
  if (!input.repeat_last) return there ? slot : nullptr;
  if (there) {
    remember(input, *slot);
    return slot;
  }
  return input.last.value ? &input.last : initial();
}

Cause why_empty(const StepRun& step, const InputRun& input, uint64_t ordinal) {
  const auto [back, at] = look_back(step, input, ordinal);
  return back == Back::there ? input.output->at(at).cause : Cause::silent;
}

Earlier look_back(const StepRun& step, const InputRun& input, uint64_t ordinal) {
  if (input.delay == 0) return {Back::there, ordinal};
  PaceRun& pace = *step.pace;
  const uint64_t first = root_of(pace).first_index; // the epoch's
  if (pace.is_clock)
    return ordinal < first + input.delay ? Earlier{Back::before_first, 0} : Earlier{Back::there, ordinal - input.delay};
  // After a gate, ordinals count the ticks that were let in, but a delay counts all ticks.
  const uint64_t index = pace.info(ordinal).index;
  if (index < first + input.delay) return {Back::before_first, 0};
  for (uint64_t back = 1; back <= std::min<uint64_t>(input.delay, ordinal); ++back) {
    const uint64_t other = pace.info(ordinal - back).index;
    if (other <= index - input.delay) return {other == index - input.delay ? Back::there : Back::never, ordinal - back};
  }
  return {Back::never, 0};
}

void remember(InputRun& input, const Slot& slot) {
  hold(slot);
  release(input.last);
  input.last = slot;
  input.last.presence_pending = false;
}

void keep(InputRun& input, const Slot& slot) {
  Slot& oldest = input.kept[input.kept_next++ % input.kept.size()];
  release(oldest);
  oldest = slot;
  hold(oldest);
}

} // namespace millrace::exec
