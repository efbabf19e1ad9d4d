// A plugin of another ABI version: what stands behind the version means something else there.
#include "millrace/abi.h"

extern "C" MR_EXPORT const mr_plugin* millrace_plugin() {
  static const mr_plugin plugin = {8, 4711, reinterpret_cast<const char*>(1), nullptr, nullptr, 77, 0};
  return &plugin;
}
