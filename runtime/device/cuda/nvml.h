// What the driver's management library says of a device; loaded where it is there.
#pragma once

#include <map>
#include <string>

namespace millrace::device::cuda {

// By name and unit; what the device does not tell is left out. `bus_id` as "0000:3B:00.0". Takes some microseconds to
// milliseconds. Any thread.
std::map<std::string, double> read_gauges(const std::string& bus_id);

} // namespace millrace::device::cuda
