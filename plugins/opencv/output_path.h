// Prepares output paths: makes missing folders, and refuses at once what cannot be written.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::opencv {

// Makes the folders that lead to `path`. Throws std::runtime_error, naming the folder, if that fails.
void make_folders_for(const std::string& path);

// Throws std::runtime_error if no file can be made in the folder of `path`.
void require_writable_folder(const std::string& path);

// "out/a.png" → "out/a-{index}.png".
std::string with_index(const std::string& path);

// ".mp4" of "out/demo.MP4": the extension in lower case, with its dot; "" if there is none.
std::string extension_of(const std::string& path);

// Replaces every "{index}" by `index` with at least six digits, so that names sort; without "{index}" replaces %d or
// %06d.
std::string numbered_path(const std::string& pattern, uint64_t index);
bool has_index(const std::string& pattern);

} // namespace millrace::opencv
