// The plugin's one exported symbol.
#include "millrace/handler.h"

MILLRACE_PLUGIN("media", "0.1.0")
