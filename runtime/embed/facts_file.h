// Facts that were written down, used instead of asking the handlers: a plan without the camera.
#pragma once

#include <string>

#include "plan/prepare.h"

namespace millrace::embed {

// Puts what `json` says into the facts of handlers that were made and not probed; the handlers that it does not name
// are probed where `probe` asks for it. The form is {handler: {rate: "30000/1001", live: bool, tick_count: n, outputs:
// {port: {pixel_format, width, height}}}}. Throws Failure: MR0110 where it is not of this form, MR0301 and MR0302 for
// names that are not there, MR0604 where a probe fails.
void apply_facts(const std::string& json, bool probe, plan::Prepared& prepared);

} // namespace millrace::embed
