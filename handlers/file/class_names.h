// Reads the names of a network's classes: a text file in UTF-8 whose line n is the name of class n, from 0 on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace::handlers {

// Bounds of such a file. The largest known lists have 21,843 classes (ImageNet), and no name has 150 bytes.
inline constexpr size_t kClassNamesMax = 65'536, kClassNameBytesMax = 256;

// The names, without spaces around them. Empty lines at the end are no classes; one between two classes is a class
// without a name. Throws std::runtime_error with the file's path and the line.
std::vector<std::string> read_class_names(const std::string& path);

} // namespace millrace::handlers
