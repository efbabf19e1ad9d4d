// Exports the plugin's one symbol.
#include "millrace/handler.h"

MILLRACE_PLUGIN("viewer", "0.1.0")
