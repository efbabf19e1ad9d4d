// Facts from a JSON text, used instead of asking the handlers: a plan can be made without the camera.
#pragma once

#include <string>

#include "plan/prepare.h"

namespace millrace::embed {

// Puts the facts of `json` into the facts of handlers that were made and not probed. If `probe`, the handlers that it
// does not name are probed. The form is {handler: {rate: "30000/1001", live: bool, tick_count: n, outputs: {port:
// {pixel_format, width, height}}}}. Throws Failure: MR0110 if the text is not of this form, MR0301 and MR0302 for names
// that are not there, MR0604 if a probe fails.
void apply_facts(const std::string& json, bool probe, plan::Prepared& prepared);

} // namespace millrace::embed
