// Keeps the files of a run within one folder: `--confine DIR`, for pipelines that came from elsewhere.
//
// A pipeline file says which files its handlers read and write, and they do so with the rights of the person who runs
// it. With a Confine, a path is refused before anything is opened unless all that it may name lies in the folder.
// Links are followed to their ends, in the middle of a path too, and a link whose target does not exist yet is one. A
// path with a pattern stands for all names that begin as it does.
//
// It looks at names before the run. It is no jail: somebody who can change the folder meanwhile can put a link there,
// a hard link is a file of the folder, and a plugin that opens files which no parameter names is not stopped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/stray_word.h"
#include "observe/error.h"

namespace millrace::graph {

class Confine {
 public:
  // Throws Failure (MR0122) unless `folder` is a folder.
  explicit Confine(const std::string& folder);

  // The folder, without links.
  const std::string& folder() const { return folder_; }
  // Why the path may not be used: "it leads to /etc/passwd"; "" if it may. Relative paths begin at the working folder.
  // "" and "-" name no file. Addresses, devices, and lists whose entries name other files may not be used.
  std::string objection(const std::string& path, bool writes) const;
  // The same for one name alone: "" if it lies in the folder. It need not exist.
  std::string objection_to_place(const std::filesystem::path& path) const;
  // Refuses a file that an option of the command names (MR0122). "" and "-" are no file.
  void require(const std::string& option, const std::string& path, bool writes) const;

 private:
  class Look;
  std::string folder_;
};

// As load(). Patterns of files in the pipeline look into no folder outside of `confine` (MR0422); null: anywhere.
Graph load_confined(const std::string& pipeline, const Confine* confine, std::vector<Error>* kept = nullptr,
                    const FindType& find_type = {});

} // namespace millrace::graph
