// A plugin of the right version whose table cannot be right.
#include "millrace/abi.h"

extern "C" MR_EXPORT const mr_plugin* millrace_plugin() {
  static const mr_plugin plugin = {sizeof(mr_plugin), MR_ABI_VERSION, "wrong_table", "1.0", nullptr, 3, 0};
  return &plugin;
}
