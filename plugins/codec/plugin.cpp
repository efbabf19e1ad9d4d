// The plugin's one exported symbol.
#include "millrace/handler.h"

MILLRACE_PLUGIN("codec", "0.1.0")
