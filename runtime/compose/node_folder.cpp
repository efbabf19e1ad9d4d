// See node_folder.h.
#include "compose/node_folder.h"

#include "embed/machine_file.h"
#include "observe/error.h"
#include "observe/error_codes.h"

namespace millrace::compose {

std::filesystem::path node_folder() {
  const std::string folder = embed::config_folder();
  if (folder.empty())
    throw Failure(Error{code::bad_identity,
                        "this machine has no place for a node's key",
                        {},
                        {"it is kept in $XDG_CONFIG_HOME/millrace or ~/.config/millrace, and neither variable is set"},
                        "",
                        "HOME=DIR millrace identity"});
  return folder;
}

} // namespace millrace::compose
