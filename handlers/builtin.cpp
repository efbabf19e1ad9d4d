// Lists the built-in handler types. By name and not by static registration: a static library drops what nobody names.
#include "handlers/builtin.h"

#include <array>

namespace millrace::handlers {
const mr_handler_type& draw_boxes_type();
const mr_handler_type& draw_text_type();
const mr_handler_type& file_raw_writer_type();
const mr_handler_type& flow_pass_type();
const mr_handler_type& image_blur_type();
const mr_handler_type& image_convert_type();
const mr_handler_type& image_resize_type();
const mr_handler_type& null_sink_type();
const mr_handler_type& null_source_type();
const mr_handler_type& test_mix_type();
const mr_handler_type& test_number_type();
const mr_handler_type& test_pattern_type();
const mr_handler_type& test_record_type();
const mr_handler_type& test_sum_type();
} // namespace millrace::handlers

const mr_plugin* millrace_builtin_plugin() {
  using namespace millrace::handlers;
  // Sorted by type: what lists them shows this order.
  static const std::array types = {
      &draw_boxes_type(),    &draw_text_type(),    &file_raw_writer_type(), &flow_pass_type(),   &image_blur_type(),
      &image_convert_type(), &image_resize_type(), &null_sink_type(),       &null_source_type(), &test_mix_type(),
      &test_number_type(),   &test_pattern_type(), &test_record_type(),     &test_sum_type(),
  };
  static const mr_plugin plugin = {
      sizeof(mr_plugin), MR_ABI_VERSION, "millrace", "0.1.0", types.data(), static_cast<uint32_t>(types.size()), 0};
  return &plugin;
}
