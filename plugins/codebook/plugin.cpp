// Exports the plugin's one symbol.
#include "millrace/handler.h"

MILLRACE_PLUGIN("codebook", "0.1.0")
