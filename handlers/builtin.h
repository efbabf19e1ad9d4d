// The plugin table of the handlers that are part of millrace itself; the runtime registers it like any other plugin's.
#pragma once

#include "millrace/abi.h"

// Returns the same table on every call; it stays valid for the life of the process. May be called from any thread.
const mr_plugin* millrace_builtin_plugin();
