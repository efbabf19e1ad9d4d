// A plan's picture as JSON, for a page that draws it.
#pragma once

#include <string>

namespace millrace::plan {
struct Picture;
}

namespace millrace::serve {

// {"width", "height", "lanes": [{"name", "top", "bottom"}], "boxes": [{"handlers": numbers in the plan, "name", "type",
// "inserted", "lane", "x", "y", "width", "height", "inputs": [{"name", "y"}], "outputs": …}], "arrows": [{"edges":
// numbers in the plan, "words", "sync", "back", "corners": [[x, y], …]}]}, in pixels.
std::string picture_json(const plan::Picture& picture);

} // namespace millrace::serve
