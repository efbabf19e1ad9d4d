// Reports in numbers what a run did (report.cpp).
#pragma once

namespace millrace {
struct Report;
}

namespace millrace::exec {

class RunState;

Report make_report(const RunState& run);

} // namespace millrace::exec
