#include "handlers/gpu/tables.h"
