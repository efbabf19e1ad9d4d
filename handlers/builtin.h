// The plugin table of the handlers that are part of millrace itself; the runtime registers it like any other plugin's.
#pragma once

#include "millrace/abi.h"

// The same table at every call; valid for the life of the process. From any thread.
const mr_plugin* millrace_builtin_plugin();
