// Names of streams made from names of files, which may contain anything: "Süd 1.ts", "日本.ts", "#.ts".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace millrace::graph {

// A name for each file, in the order of `files`: a name of a stream (is_stream_name), and no two are alike. It depends
// on the names of the files and not on their order, so that it stays when another file comes whose name is not similar.
// Each file gets the first of these names that is its alone:
//
//   1. its own without the extension, if a stream may have it: gate-7.ts is gate-7
//   2. the same with '_' for all that a name may not have: "gate 7.ts" is gate_7
//   3. the same with code points instead: 日本.ts is u65E5u672C, ü.ts is u00FC
//   4. with its extension: a.mp4 beside a.avi is a_mp4
//   5. with a number that is made of its whole name, if it is too long for another: gate_7-1f2e3d4c
std::vector<std::string> names_of_files(const std::vector<std::filesystem::path>& files);

} // namespace millrace::graph
