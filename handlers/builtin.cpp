// Lists the built-in handler types explicitly. Static registration would not work: a linker drops members of a static
// library that nothing refers to.
#include "handlers/builtin.h"

#include <array>

namespace millrace::handlers {
const mr_handler_type& detect_decode_type();
const mr_handler_type& detect_mask_boxes_type();
const mr_handler_type& detect_nms_type();
const mr_handler_type& draw_boxes_type();
const mr_handler_type& draw_marker_type();
const mr_handler_type& draw_marks_type();
const mr_handler_type& draw_shapes_type();
const mr_handler_type& draw_text_type();
const mr_handler_type& draw_trails_type();
const mr_handler_type& draw_waveform_type();
const mr_handler_type& file_raw_reader_type();
const mr_handler_type& file_raw_writer_type();
const mr_handler_type& flow_gate_type();
const mr_handler_type& flow_pass_type();
const mr_handler_type& flow_rate_type();
const mr_handler_type& flow_switch_type();
const mr_handler_type& image_adjust_type();
const mr_handler_type& image_blur_type();
const mr_handler_type& image_composite_type();
const mr_handler_type& image_convert_type();
const mr_handler_type& image_crop_type();
const mr_handler_type& image_flip_type();
const mr_handler_type& image_letterbox_type();
const mr_handler_type& image_normalize_type();
const mr_handler_type& image_patches_type();
const mr_handler_type& image_resize_type();
const mr_handler_type& marks_boxes_type();
const mr_handler_type& marks_dots_type();
const mr_handler_type& marks_lines_type();
const mr_handler_type& null_sink_type();
const mr_handler_type& null_source_type();
const mr_handler_type& points_from_boxes_type();
const mr_handler_type& points_links_type();
const mr_handler_type& record_from_json_type();
const mr_handler_type& record_to_json_type();
const mr_handler_type& stats_fps_type();
const mr_handler_type& stats_latency_type();
const mr_handler_type& tensor_from_npy_type();
const mr_handler_type& tensor_to_npy_type();
const mr_handler_type& tensor_top_k_type();
const mr_handler_type& test_mix_type();
const mr_handler_type& test_number_type();
const mr_handler_type& test_pattern_type();
const mr_handler_type& test_points_type();
const mr_handler_type& test_read_type();
const mr_handler_type& test_record_type();
const mr_handler_type& test_sum_type();
const mr_handler_type& test_work_type();
} // namespace millrace::handlers

const mr_plugin* millrace_builtin_plugin() {
  using namespace millrace::handlers;
  // Sorted by type name: listings show the types in this order.
  static const std::array types = {
      &detect_decode_type(), &detect_mask_boxes_type(), &detect_nms_type(),      &draw_boxes_type(),
      &draw_marker_type(),   &draw_marks_type(),        &draw_shapes_type(),     &draw_text_type(),
      &draw_trails_type(),   &draw_waveform_type(),     &file_raw_reader_type(), &file_raw_writer_type(),
      &flow_gate_type(),     &flow_pass_type(),         &flow_rate_type(),       &flow_switch_type(),
      &image_adjust_type(),  &image_blur_type(),        &image_composite_type(), &image_convert_type(),
      &image_crop_type(),    &image_flip_type(),        &image_letterbox_type(), &image_normalize_type(),
      &image_patches_type(), &image_resize_type(),      &marks_boxes_type(),     &marks_dots_type(),
      &marks_lines_type(),   &null_sink_type(),         &null_source_type(),     &points_from_boxes_type(),
      &points_links_type(),  &record_from_json_type(),  &record_to_json_type(),  &stats_fps_type(),
      &stats_latency_type(), &tensor_from_npy_type(),   &tensor_to_npy_type(),   &tensor_top_k_type(),
      &test_mix_type(),      &test_number_type(),       &test_pattern_type(),    &test_points_type(),
      &test_read_type(),     &test_record_type(),       &test_sum_type(),        &test_work_type(),
  };
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "millrace", "0.1.0", types.data(), static_cast<uint32_t>(types.size()), 0};
  return &plugin;
}
