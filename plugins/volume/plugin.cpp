// Exports the plugin's one symbol.
#include "millrace/handler.h"

MILLRACE_PLUGIN("volume", "0.1.0")
