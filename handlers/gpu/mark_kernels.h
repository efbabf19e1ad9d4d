// Kernels of draw.marks, marks.boxes, marks.dots, marks.lines and test.points; see library.h.
#pragma once

#include <millrace/payload/marks.h>

#include <cstddef>
#include <cstdint>

#include "handlers/gpu/device_list.h"
#include "handlers/gpu/kept_count.h"
#include "handlers/gpu/library.h"
#include "handlers/gpu/mark_makers.h"
#include "handlers/gpu/mark_shapes.h"
#include "handlers/test/moving_points.h"

namespace millrace::handlers::gpu {

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
  // Makes the lines of links between the points; none without points.
  const char* (*lines)(void* stream, const DeviceList<Link>& links, const DeviceList<Point>& points,
                       const draw::LineStyle& style, const MadeList<Mark>& marks);
  // Makes `count` points for the index of `tick`, which is in device memory.
  const char* (*moving_points)(void* stream, const MovingPoints& points, const mr_device_tick* tick, uint32_t count,
                               const MadeList<Point>& made);
  // Paints the lists. `most` is the sum of their most marks; `scratch` has mark_scratch_bytes(most).
  const char* (*paint)(void* stream, const MarkLists& lists, const draw::MarkStyle& style, const DevicePicture& picture,
                       void* scratch, uint64_t most);
  KeptCount skipped; // marks
};

// The table of the CUDA module, defined in mark_kernels.cu.
const MarkKernels& mark_kernels();

} // namespace millrace::handlers::gpu
