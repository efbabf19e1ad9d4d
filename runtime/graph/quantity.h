// Names, durations and rates as a pipeline writes them: read exactly, written back in one form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/enums.h"

namespace millrace::graph {

// A letter or '_', then letters, digits, '_' and '-'; at most kNameLengthMax.
bool is_name(const std::string& text);
// Letters, digits, '_' and '-', at most kNameLengthMax: a number may name a stream.
bool is_stream_name(const std::string& text);
// Names joined by dots: family.name.
bool is_type(const std::string& text);
// `text` with characters that a name may not have replaced by '_'; "" if nothing is left.
std::string as_name(const std::string& text);

// Reads a decimal number whose value is whole: 3, -3, 3.0, 3e2. None if it is anything else, or if 64 bits do not
// hold it.
std::optional<int64_t> read_whole(const std::string& text);
// Reads "40ms" or "1.5s", in ns; units ns, us, ms, s, m. None if it is not written so, or is no whole number of ns.
std::optional<int64_t> read_duration(const std::string& text);
std::string write_duration(int64_t ns);
// Reads "30", "29.97" or "30000/1001", in lowest terms; none if it is not written so or a part exceeds kRatePartMax.
std::optional<Rational> read_rate(const std::string& text);
std::string write_rate(const Rational& rate);

} // namespace millrace::graph
