// Kernels of draw.marks, marks.boxes, marks.dots and test.points; see library.h.
#pragma once

#include <millrace/payload/marks.h>

#include <cstddef>
#include <cstdint>

#include "handlers/gpu/library.h"
#include "handlers/gpu/mark_makers.h"
#include "handlers/gpu/mark_shapes.h"
#include "handlers/test/moving_points.h"

namespace millrace::handlers::gpu {

// A list whose length only the device knows.
template <class T>
struct DeviceList {
  const T* records = nullptr;
  const uint64_t* count = nullptr;
  uint32_t most = 0; // records; 0: there is no list

  MR_BOTH uint32_t size() const {
    if (most == 0) return 0;
    return *count < most ? static_cast<uint32_t>(*count) : most;
  }
};

template <class T>
DeviceList<T> on_device(const mr_input& list, uint64_t most) {
  if (!list.value) return {};
  return {reinterpret_cast<const T*>(list.data), &Cuda::value_of(list)->as.records.count, static_cast<uint32_t>(most)};
}

// A list that a kernel makes; both places are in device memory.
template <class T>
struct MadeList {
  T* records;
  uint64_t* count;
};

// The lists that one painter lays over a picture, in this order.
inline constexpr uint32_t kMarkListsMax = 8;
struct [[gnu::visibility("hidden")]] MarkLists { // hidden like its members
  DeviceList<Mark> lists[kMarkListsMax];
  uint32_t count = 0;
};

// The painter's memory on a device. It begins with the number of marks that were skipped, which stays from tick to
// tick. Then there is room for each mark of all lists.
struct PreparedMarks {
  uint64_t* skipped;
  draw::MarkShape* shapes;
  draw::PixelArea* areas; // those of the shapes, for blocks that look at all of them
  uint8_t* strokes;       // kBeginsStroke, kIsAlone
};
inline constexpr uint8_t kBeginsStroke = 1; // it is the first mark of its stroke
inline constexpr uint8_t kIsAlone = 2;      // and the only one, as its number says, of one colour from end to end
inline uint64_t mark_scratch_bytes(uint64_t marks) {
  return 256 + marks * (sizeof(draw::MarkShape) + sizeof(draw::PixelArea) + sizeof(uint8_t));
}
inline PreparedMarks prepared_marks(void* scratch, uint64_t marks) {
  auto* const bytes = static_cast<uint8_t*>(scratch);
  auto* const shapes = reinterpret_cast<draw::MarkShape*>(bytes + 256);
  auto* const areas = reinterpret_cast<draw::PixelArea*>(shapes + marks);
  return {static_cast<uint64_t*>(scratch), shapes, areas, reinterpret_cast<uint8_t*>(areas + marks)};
}

struct MarkKernels {
  // Makes marks of boxes, then of points.
  const char* (*boxes)(void* stream, const DeviceList<Box>& boxes, const DeviceList<Point>& points,
                       const draw::BoxMarkStyle& style, const MadeList<Mark>& marks);
  const char* (*dots)(void* stream, const DeviceList<Point>& points, const draw::DotStyle& style,
                      const MadeList<Mark>& marks);
  // Makes `count` points for the index of `tick`, which is in device memory.
  const char* (*moving_points)(void* stream, const MovingPoints& points, const mr_device_tick* tick, uint32_t count,
                               const MadeList<Point>& made);
  // Paints the lists. `most` is the sum of their most marks; `scratch` has mark_scratch_bytes(most).
  const char* (*paint)(void* stream, const MarkLists& lists, const draw::MarkStyle& style, const DevicePicture& picture,
                       void* scratch, uint64_t most);
  // Sets the count of skipped marks to 0.
  const char* (*begin_count)(void* stream, void* scratch);
  // Reads the count, once the stream has nothing more to do. False if that is not so within a second, or if the device
  // has failed.
  bool (*read_count)(void* stream, const void* scratch, uint64_t& skipped);
};

// The table of the CUDA module, defined in mark_kernels.cu.
const MarkKernels& mark_kernels();

} // namespace millrace::handlers::gpu
