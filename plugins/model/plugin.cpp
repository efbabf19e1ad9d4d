// Exports the plugin's one symbol.
#include "millrace/handler.h"

MILLRACE_PLUGIN("model", "0.1")
