// Kernels of draw.boxes, draw.text and draw.waveform; see library.h.
#pragma once

#include "handlers/gpu/box_marks.h"
#include "handlers/gpu/glyph_sheet.h"
#include "handlers/gpu/library.h"
#include "handlers/gpu/waveform_light.h"
#include "handlers/gpu/ycbcr_pixel.h"

namespace millrace::handlers::gpu {

// A line of text; sheet, caption and records are in device memory.
struct TextLine {
  draw::GlyphSheet sheet;
  const uint16_t* caption; // as fill_line() takes it
  uint32_t caption_count;
  draw::ValuePlace values[draw::kValuePlacesMax];
  draw::LineRecords records[draw::kLineSourcesMax];
  Ink ink;
  int32_t x;              // x of the pen's start; negative: of the line's end, from the right edge
  int32_t baseline;       // the row under the letters
  int32_t top, bottom;    // the rows that are painted
  uint32_t outline_first; // the sheet's glyph with the outline of its first one; 0: none
  Ink outline;
  bool boxed;                  // a box is painted under the letters
  int32_t box_top, box_bottom; // its rows
  int32_t padding;             // how far the box extends beyond the line, left and right
  Ink box;
};

// One trace of a waveform monitor.
struct MonitorTrace {
  draw::PixelArea area; // in the picture, and not empty
  LevelOf channel;
  Ink ink;
  float scale; // light_scale() of its columns
};
struct Monitor {
  draw::PixelArea area; // in the picture
  bool opaque;          // painted on black, else over the picture at half its brightness
  uint32_t trace_count;
  MonitorTrace traces[3];
  uint32_t* counts; // device memory: kLevelCount numbers for each column of each trace
  // True for nv12, i420 and p010, which are painted on in RGB. The area begins at even places, and ends at even ones or
  // at the picture's edge; inks are those of rgb8.
  bool in_quads;
  YcbcrForm form; // used if the picture is in quads
};

struct DrawKernels {
  // Copies host memory to the device. If the copy is captured, `from` must stay valid and unchanged as long as the
  // capture may be replayed.
  const char* (*upload)(void* stream, void* to, const void* from, uint64_t bytes);
  // Draws `*count` boxes, later ones over earlier ones; boxes and count are in device memory.
  const char* (*boxes)(void* stream, const Box* boxes, const uint64_t* count, const draw::BoxStyle& style,
                       const DevicePicture& picture);
  // Draws the caption's line for the index and time of `tick`, which is in device memory.
  const char* (*text)(void* stream, const TextLine& line, const mr_device_tick* tick, const DevicePicture& picture);
  // Counts the levels of the whole picture, and paints over a part of it.
  const char* (*waveform)(void* stream, const Monitor& monitor, const DevicePicture& picture);
};

// The table of the CUDA module, defined in draw_kernels.cu.
const DrawKernels& draw_kernels();

} // namespace millrace::handlers::gpu
