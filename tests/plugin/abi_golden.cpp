// The layout of everything that crosses the plugin boundary, compared with a text file: a change that nobody meant does
// not pass. One that somebody meant changes the file, and MR_ABI_VERSION too unless it only adds constants, functions
// at the end of mr_host that plugins do without, or a meaning to a reserved field, which is 0 until then.
#include "millrace/abi.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

namespace {

std::string line(const char* name, size_t offset, size_t bytes) {
  return std::string("  ") + name + " " + std::to_string(offset) + " " + std::to_string(bytes) + "\n";
}
std::string heading(const char* name, size_t bytes, size_t alignment) {
  return std::string(name) + " " + std::to_string(bytes) + " bytes, aligned to " + std::to_string(alignment) + "\n";
}
#define STRUCT(type) text += heading(#type, sizeof(type), alignof(type))
#define FIELD(type, field) text += line(#field, offsetof(type, field), sizeof(type::field))
#define CONSTANT(name) text += std::string(#name " ") + std::to_string(static_cast<long long>(name)) + "\n"

std::string payload_layout() {
  std::string text;
  STRUCT(mr_header);
  FIELD(mr_header, schema);
  FIELD(mr_header, layout);
  FIELD(mr_header, kind);
  FIELD(mr_header, stream);
  FIELD(mr_header, pts_ns);
  FIELD(mr_header, duration_ns);
  FIELD(mr_header, flags);
  FIELD(mr_header, present);
  FIELD(mr_header, extent_bytes);
  STRUCT(mr_plane);
  FIELD(mr_plane, offset);
  FIELD(mr_plane, stride);
  FIELD(mr_plane, rows);
  STRUCT(mr_image);
  FIELD(mr_image, format);
  FIELD(mr_image, width);
  FIELD(mr_image, height);
  FIELD(mr_image, plane_count);
  FIELD(mr_image, color);
  FIELD(mr_image, range);
  FIELD(mr_image, primaries);
  FIELD(mr_image, transfer);
  FIELD(mr_image, aspect_num);
  FIELD(mr_image, aspect_den);
  FIELD(mr_image, planes);
  STRUCT(mr_tensor);
  FIELD(mr_tensor, dtype_code);
  FIELD(mr_tensor, dtype_bits);
  FIELD(mr_tensor, dtype_lanes);
  FIELD(mr_tensor, rank);
  FIELD(mr_tensor, shape);
  FIELD(mr_tensor, strides);
  STRUCT(mr_packet);
  FIELD(mr_packet, codec);
  FIELD(mr_packet, reserved);
  FIELD(mr_packet, dts_ns);
  STRUCT(mr_records);
  FIELD(mr_records, count);
  FIELD(mr_records, record_size);
  STRUCT(mr_object);
  FIELD(mr_object, pointer);
  FIELD(mr_object, release);
  STRUCT(mr_value);
  FIELD(mr_value, header);
  FIELD(mr_value, as);
  return text;
}

std::string format_layout() {
  std::string text;
  STRUCT(mr_format);
  FIELD(mr_format, size);
  FIELD(mr_format, kind);
  FIELD(mr_format, schema);
  FIELD(mr_format, layout);
  FIELD(mr_format, pixel_formats);
  FIELD(mr_format, width);
  FIELD(mr_format, height);
  FIELD(mr_format, size_kind);
  FIELD(mr_format, color);
  FIELD(mr_format, range);
  FIELD(mr_format, dtype_code);
  FIELD(mr_format, dtype_bits);
  FIELD(mr_format, dtype_lanes);
  FIELD(mr_format, rank);
  FIELD(mr_format, shape);
  FIELD(mr_format, shape_kind);
  FIELD(mr_format, record_size);
  FIELD(mr_format, record_count_max);
  FIELD(mr_format, bytes_max);
  FIELD(mr_format, primaries);
  FIELD(mr_format, transfer);
  FIELD(mr_format, aspect_num);
  FIELD(mr_format, aspect_den);
  FIELD(mr_format, turn);
  FIELD(mr_format, held);
  FIELD(mr_format, adopted);
  FIELD(mr_format, dtypes);
  FIELD(mr_format, ranks);
  FIELD(mr_format, records);
  STRUCT(mr_record_type);
  FIELD(mr_record_type, size);
  FIELD(mr_record_type, field_count);
  FIELD(mr_record_type, name);
  FIELD(mr_record_type, fields);
  STRUCT(mr_field);
  FIELD(mr_field, name);
  FIELD(mr_field, offset);
  FIELD(mr_field, count);
  FIELD(mr_field, dtype_code);
  FIELD(mr_field, dtype_bits);
  FIELD(mr_field, reserved);
  FIELD(mr_field, reserved_too);
  return text;
}

std::string declaration_layout() {
  std::string text;
  STRUCT(mr_facts);
  FIELD(mr_facts, size);
  FIELD(mr_facts, live);
  FIELD(mr_facts, rate_num);
  FIELD(mr_facts, rate_den);
  FIELD(mr_facts, tick_count);
  FIELD(mr_facts, cost_cpu_ns);
  FIELD(mr_facts, cost_gpu_ns);
  FIELD(mr_facts, waits);
  FIELD(mr_facts, time_num);
  FIELD(mr_facts, time_den);
  FIELD(mr_facts, follows);
  STRUCT(mr_port);
  FIELD(mr_port, size);
  FIELD(mr_port, direction);
  FIELD(mr_port, name);
  FIELD(mr_port, help);
  FIELD(mr_port, type_name);
  FIELD(mr_port, accepts);
  FIELD(mr_port, flags);
  FIELD(mr_port, memory);
  FIELD(mr_port, many_max);
  FIELD(mr_port, keeps);
  FIELD(mr_port, like);
  FIELD(mr_port, reserved);
  STRUCT(mr_param_value);
  FIELD(mr_param_value, type);
  FIELD(mr_param_value, reserved);
  FIELD(mr_param_value, as);
  STRUCT(mr_param);
  FIELD(mr_param, size);
  FIELD(mr_param, type);
  FIELD(mr_param, name);
  FIELD(mr_param, help);
  FIELD(mr_param, unit);
  FIELD(mr_param, default_value);
  FIELD(mr_param, min);
  FIELD(mr_param, max);
  FIELD(mr_param, choices);
  FIELD(mr_param, flags);
  FIELD(mr_param, role);
  FIELD(mr_param, object);
  STRUCT(mr_declaration);
  FIELD(mr_declaration, size);
  FIELD(mr_declaration, traits);
  FIELD(mr_declaration, ports);
  FIELD(mr_declaration, port_count);
  FIELD(mr_declaration, param_count);
  FIELD(mr_declaration, params);
  FIELD(mr_declaration, max_pending);
  FIELD(mr_declaration, gap);
  FIELD(mr_declaration, thread);
  FIELD(mr_declaration, cost_hint_ns);
  FIELD(mr_declaration, scratch_bytes);
  FIELD(mr_declaration, items_max);
  FIELD(mr_declaration, host_mib);
  FIELD(mr_declaration, state_bytes);
  FIELD(mr_declaration, device_mib);
  return text;
}

std::string call_layout() {
  std::string text;
  STRUCT(mr_tick_info);
  FIELD(mr_tick_info, clock);
  FIELD(mr_tick_info, epoch);
  FIELD(mr_tick_info, index);
  FIELD(mr_tick_info, media_time_ns);
  FIELD(mr_tick_info, deadline_ns);
  FIELD(mr_tick_info, trace_id);
  STRUCT(mr_input);
  FIELD(mr_input, value);
  FIELD(mr_input, data);
  STRUCT(mr_output);
  FIELD(mr_output, value);
  FIELD(mr_output, data);
  FIELD(mr_output, capacity);
  FIELD(mr_output, state);
  FIELD(mr_output, source);
  FIELD(mr_output, token);
  STRUCT(mr_tick);
  FIELD(mr_tick, size);
  FIELD(mr_tick, device);
  FIELD(mr_tick, info);
  FIELD(mr_tick, inputs);
  FIELD(mr_tick, outputs);
  FIELD(mr_tick, input_count);
  FIELD(mr_tick, output_count);
  FIELD(mr_tick, host);
  FIELD(mr_tick, context);
  FIELD(mr_tick, native_stream);
  FIELD(mr_tick, stands_in);
  FIELD(mr_tick, stream);
  FIELD(mr_tick, device_tick);
  FIELD(mr_tick, scratch);
  FIELD(mr_tick, library);
  FIELD(mr_tick, ended);
  FIELD(mr_tick, state);
  FIELD(mr_tick, follows);
  STRUCT(mr_device_tick);
  FIELD(mr_device_tick, index);
  FIELD(mr_device_tick, media_time_ns);
  FIELD(mr_device_tick, sequence);
  return text;
}

std::string page_layout() {
  std::string text;
  STRUCT(mr_site_file);
  FIELD(mr_site_file, name);
  FIELD(mr_site_file, bytes);
  FIELD(mr_site_file, size);
  STRUCT(mr_message);
  FIELD(mr_message, size);
  FIELD(mr_message, is_text);
  FIELD(mr_message, head);
  FIELD(mr_message, body);
  FIELD(mr_message, head_bytes);
  FIELD(mr_message, body_bytes);
  FIELD(mr_message, release);
  FIELD(mr_message, context);
  STRUCT(mr_peer);
  FIELD(mr_peer, size);
  FIELD(mr_peer, steers);
  FIELD(mr_peer, number);
  FIELD(mr_peer, send);
  FIELD(mr_peer, end);
  STRUCT(mr_site);
  FIELD(mr_site, size);
  FIELD(mr_site, file_count);
  FIELD(mr_site, path);
  FIELD(mr_site, title);
  FIELD(mr_site, listen);
  FIELD(mr_site, files);
  FIELD(mr_site, context);
  FIELD(mr_site, open);
  FIELD(mr_site, take);
  FIELD(mr_site, close);
  return text;
}

std::string table_layout() {
  std::string text;
  STRUCT(mr_host);
  FIELD(mr_host, size);
  FIELD(mr_host, abi_version);
  FIELD(mr_host, allocate);
  FIELD(mr_host, modify);
  FIELD(mr_host, adopt);
  FIELD(mr_host, defer);
  FIELD(mr_host, publish);
  FIELD(mr_host, fail);
  FIELD(mr_host, log);
  FIELD(mr_host, now_ns);
  FIELD(mr_host, borrow);
  FIELD(mr_host, give);
  FIELD(mr_host, give_back);
  FIELD(mr_host, count);
  FIELD(mr_host, allocate_items);
  FIELD(mr_host, fail_item);
  FIELD(mr_host, fail_as);
  STRUCT(mr_gpu);
  FIELD(mr_gpu, size);
  FIELD(mr_gpu, reserved);
  FIELD(mr_gpu, native_stream);
  FIELD(mr_gpu, scratch);
  FIELD(mr_gpu, library);
  STRUCT(mr_device_info);
  FIELD(mr_device_info, size);
  FIELD(mr_device_info, kind);
  FIELD(mr_device_info, ordinal);
  FIELD(mr_device_info, multiprocessors);
  FIELD(mr_device_info, compute_major);
  FIELD(mr_device_info, compute_minor);
  FIELD(mr_device_info, shared_bytes_max);
  FIELD(mr_device_info, memory_bytes);
  FIELD(mr_device_info, name);
  STRUCT(mr_block);
  FIELD(mr_block, data);
  FIELD(mr_block, capacity);
  FIELD(mr_block, token);
  STRUCT(mr_handler_type);
  FIELD(mr_handler_type, size);
  FIELD(mr_handler_type, reserved);
  FIELD(mr_handler_type, type);
  FIELD(mr_handler_type, summary);
  FIELD(mr_handler_type, manual);
  FIELD(mr_handler_type, create);
  FIELD(mr_handler_type, destroy);
  FIELD(mr_handler_type, set_param);
  FIELD(mr_handler_type, bind);
  FIELD(mr_handler_type, probe);
  FIELD(mr_handler_type, configure);
  FIELD(mr_handler_type, start);
  FIELD(mr_handler_type, process);
  FIELD(mr_handler_type, process_cuda);
  FIELD(mr_handler_type, process_items);
  FIELD(mr_handler_type, finish);
  FIELD(mr_handler_type, drain);
  FIELD(mr_handler_type, stop);
  FIELD(mr_handler_type, reset);
  FIELD(mr_handler_type, interrupt);
  FIELD(mr_handler_type, narrow);
  FIELD(mr_handler_type, offers);
  FIELD(mr_handler_type, finish_items);
  FIELD(mr_handler_type, start_on);
  STRUCT(mr_plugin);
  FIELD(mr_plugin, size);
  FIELD(mr_plugin, abi_version);
  FIELD(mr_plugin, name);
  FIELD(mr_plugin, version);
  FIELD(mr_plugin, types);
  FIELD(mr_plugin, type_count);
  FIELD(mr_plugin, reserved);
  return text;
}

std::string payload_constants() {
  std::string text;
  CONSTANT(MR_KIND_ANY);
  CONSTANT(MR_KIND_IMAGE);
  CONSTANT(MR_KIND_TENSOR);
  CONSTANT(MR_KIND_PACKET);
  CONSTANT(MR_KIND_RECORDS);
  CONSTANT(MR_KIND_OBJECT);
  CONSTANT(MR_PIXEL_NONE);
  CONSTANT(MR_PIXEL_GRAY8);
  CONSTANT(MR_PIXEL_RGB8);
  CONSTANT(MR_PIXEL_BGR8);
  CONSTANT(MR_PIXEL_RGBA8);
  CONSTANT(MR_PIXEL_BGRA8);
  CONSTANT(MR_PIXEL_NV12);
  CONSTANT(MR_PIXEL_I420);
  CONSTANT(MR_PIXEL_P010);
  CONSTANT(MR_PIXEL_COUNT);
  CONSTANT(MR_COLOR_SRGB);
  CONSTANT(MR_COLOR_BT601);
  CONSTANT(MR_COLOR_BT709);
  CONSTANT(MR_COLOR_BT2020);
  CONSTANT(MR_RANGE_FULL);
  CONSTANT(MR_RANGE_LIMITED);
  CONSTANT(MR_DTYPE_INT);
  CONSTANT(MR_DTYPE_UINT);
  CONSTANT(MR_DTYPE_FLOAT);
  CONSTANT(MR_DTYPE_BFLOAT);
  CONSTANT(MR_DTYPES_INT8);
  CONSTANT(MR_DTYPES_INT16);
  CONSTANT(MR_DTYPES_INT32);
  CONSTANT(MR_DTYPES_INT64);
  CONSTANT(MR_DTYPES_UINT8);
  CONSTANT(MR_DTYPES_UINT16);
  CONSTANT(MR_DTYPES_UINT32);
  CONSTANT(MR_DTYPES_UINT64);
  CONSTANT(MR_DTYPES_FLOAT16);
  CONSTANT(MR_DTYPES_FLOAT32);
  CONSTANT(MR_DTYPES_FLOAT64);
  CONSTANT(MR_DTYPES_BFLOAT16);
  CONSTANT(MR_DTYPES_ALL);
  CONSTANT(MR_FLAG_KEYFRAME);
  CONSTANT(MR_DIM_FIXED);
  CONSTANT(MR_DIM_BOUNDED);
  CONSTANT(MR_DIM_UNKNOWN);
  CONSTANT(MR_TURN_NONE);
  CONSTANT(MR_TURN_HORIZONTAL);
  CONSTANT(MR_TURN_VERTICAL);
  CONSTANT(MR_TURN_BOTH);
  CONSTANT(MR_TURN_ROTATE90);
  CONSTANT(MR_TURN_ROTATE270);
  CONSTANT(MR_TURN_TRANSPOSE);
  CONSTANT(MR_TURN_TRANSVERSE);
  CONSTANT(MR_PLANES_MAX);
  CONSTANT(MR_RANK_MAX);
  return text;
}

std::string param_constants() {
  std::string text;
  CONSTANT(MR_PARAM_BOOL);
  CONSTANT(MR_PARAM_INT);
  CONSTANT(MR_PARAM_FLOAT);
  CONSTANT(MR_PARAM_STRING);
  CONSTANT(MR_PARAM_JSON);
  CONSTANT(MR_PARAM_LIVE);
  CONSTANT(MR_PARAM_REQUIRED);
  CONSTANT(MR_PARAM_HAS_RANGE);
  CONSTANT(MR_PARAM_READS_PATH);
  CONSTANT(MR_PARAM_WRITES_PATH);
  CONSTANT(MR_PARAM_IN_PIECES);
  CONSTANT(MR_PARAM_CUTS_PATHS);
  CONSTANT(MR_PARAM_OWNS);
  CONSTANT(MR_PARAM_JOINS);
  return text;
}

std::string other_constants() {
  std::string text;
  CONSTANT(MR_OK);
  CONSTANT(MR_PENDING);
  CONSTANT(MR_NOT_YET);
  CONSTANT(MR_END);
  CONSTANT(MR_ERROR);
  CONSTANT(MR_INTERRUPTED);
  CONSTANT(MR_INPUT);
  CONSTANT(MR_OUTPUT);
  CONSTANT(MR_MEMORY_FOLLOWS);
  CONSTANT(MR_MEMORY_CPU);
  CONSTANT(MR_MEMORY_GPU);
  CONSTANT(MR_PORT_OPTIONAL);
  CONSTANT(MR_PORT_MANY);
  CONSTANT(MR_PORT_FORWARDS);
  CONSTANT(MR_PORT_IN_PLACE);
  CONSTANT(MR_PORT_REPEATS);
  CONSTANT(MR_PORT_SQUARE);
  CONSTANT(MR_PORT_DENSE);
  CONSTANT(MR_PORT_IDLE_WITHOUT);
  CONSTANT(MR_PORT_NEWEST);
  CONSTANT(MR_PORT_LASTING);
  CONSTANT(MR_ROLE_NONE);
  CONSTANT(MR_ROLE_PIXELS);
  CONSTANT(MR_ROLE_MATRIX);
  CONSTANT(MR_ROLE_RANGE);
  CONSTANT(MR_ROLE_TURN);
  CONSTANT(MR_ROLE_WIDTH);
  CONSTANT(MR_ROLE_HEIGHT);
  CONSTANT(MR_ROLE_COUNT);
  CONSTANT(MR_PARAM_DURATION);
  CONSTANT(MR_TRAIT_STATELESS);
  CONSTANT(MR_TRAIT_BLOCKING);
  CONSTANT(MR_TRAIT_CAPTURABLE);
  CONSTANT(MR_TRAIT_HOST_HEAVY);
  CONSTANT(MR_TRAIT_CPU_BODY);
  CONSTANT(MR_TRAIT_CUDA_BODY);
  CONSTANT(MR_TRAIT_FINISH);
  CONSTANT(MR_TRAIT_NO_ALLOCATION);
  CONSTANT(MR_TRAIT_ASYNCHRONOUS);
  CONSTANT(MR_TRAIT_DRAINS_FREELY);
  CONSTANT(MR_TRAIT_CONVERTS);
  CONSTANT(MR_OUTPUT_SILENT);
  CONSTANT(MR_OUTPUT_OWN);
  CONSTANT(MR_OUTPUT_FORWARDED);
  CONSTANT(MR_OUTPUT_ADOPTED);
  CONSTANT(MR_DEVICE_CPU);
  CONSTANT(MR_DEVICE_CUDA);
  CONSTANT(MR_DEVICE_SIM);
  CONSTANT(MR_FAULT_NONE);
  CONSTANT(MR_FAULT_MODEL_MISSING);
  CONSTANT(MR_FAULT_MODEL_ENGINE);
  CONSTANT(MR_FAULT_MODEL_FILE);
  CONSTANT(MR_FAULT_MODEL_PORTS);
  CONSTANT(MR_FAULT_MODEL_TYPE);
  CONSTANT(MR_FAULT_MODEL_SHAPE);
  CONSTANT(MR_FAULT_MODEL_VALUE);
  CONSTANT(MR_FAULT_MODEL_CALL);
  CONSTANT(MR_FAULT_MODEL_MEMORY);
  CONSTANT(MR_FAULT_MODEL_OPERATOR);
  CONSTANT(MR_LOG_DEBUG);
  CONSTANT(MR_LOG_INFO);
  CONSTANT(MR_LOG_WARNING);
  CONSTANT(MR_LOG_ERROR);
  CONSTANT(MR_ABI_VERSION);
  CONSTANT(MR_ITEMS_MAX);
  return text;
}

TEST_CASE("the plugin ABI is what abi_golden.txt says; whoever changes it raises MR_ABI_VERSION") {
  const std::string actual = payload_layout() + format_layout() + declaration_layout() + call_layout() + page_layout() +
                             table_layout() + payload_constants() + param_constants() + other_constants();
  const std::string written = MILLRACE_BINARY_DIR "/abi_golden.actual.txt";
  std::ofstream(written) << actual;
  std::stringstream golden;
  golden << std::ifstream(MILLRACE_SOURCE_DIR "/tests/plugin/abi_golden.txt").rdbuf();
  INFO("the ABI as it is now lies in ", written);
  CHECK(golden.str() == actual);
}

#undef STRUCT
#undef FIELD
#undef CONSTANT

} // namespace
