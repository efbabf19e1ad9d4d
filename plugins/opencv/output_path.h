// Where pictures and videos are written: folders on the way are made, and what cannot be written is said at once.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::opencv {

// Makes the folders that lead to `path`. Throws std::runtime_error, naming the folder, where that fails.
void make_folders_for(const std::string& path);

// Throws std::runtime_error where no file can be made in the folder of `path`.
void require_writable_folder(const std::string& path);

// "out/a.png" → "out/a-{index}.png".
std::string with_index(const std::string& path);

// ".mp4" of "out/demo.MP4": the extension in lower case, with its dot; "" where there is none.
std::string extension_of(const std::string& path);

// Puts `index`, at least six digits wide so that names sort, in place of every "{index}", or, where there is none, in
// place of %d or %06d.
std::string numbered_path(const std::string& pattern, uint64_t index);
bool has_index(const std::string& pattern);

} // namespace millrace::opencv
