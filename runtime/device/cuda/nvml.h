// Reads gauges of a device from the driver's management library, which is loaded if it is present.
#pragma once

#include <map>
#include <string>

namespace millrace::device::cuda {

// Returns gauges by name and unit, without those that the device does not tell. `bus_id` as "0000:3B:00.0". Takes some
// microseconds to milliseconds. Any thread.
std::map<std::string, double> read_gauges(const std::string& bus_id);

} // namespace millrace::device::cuda
