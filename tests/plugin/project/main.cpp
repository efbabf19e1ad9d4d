// The parts of millrace that the script beside it needs: `new DIR TYPE [--cuda|--items|--model]` writes a plugin
// project, `types FILE` lists the handler types of a plugin that loads.
#include <cstdio>
#include <map>
#include <string>

#include "cli/new.h"
#include "observe/error.h"
#include "plugin/registry.h"

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  try {
    using millrace::cli::Project;
    const std::map<std::string, Project> kinds = {
        {"", Project::tick}, {"--cuda", Project::cuda}, {"--items", Project::items}, {"--model", Project::model}};
    const auto kind = kinds.find(argc == 5 ? argv[4] : "");
    if (command == "new" && (argc == 4 || argc == 5) && kind != kinds.end()) {
      millrace::cli::write_plugin_project(argv[2], argv[3], kind->second);
      return 0;
    }
    if (command == "types" && argc == 3) {
      millrace::plugin::Registry registry;
      registry.load(argv[2]);
      for (const auto* info : registry.all())
        if (!info->path.empty()) std::printf("%s\n", info->type.c_str());
      return 0;
    }
  } catch (const millrace::Failure& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
  std::printf("usage: new DIR TYPE [--cuda|--items|--model] | types FILE\n");
  return 2;
}
