// Finds handler types: registers tables of this process, opens shared libraries, and keeps their failures.
#include "plugin/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "handlers/builtin.h"
#include "observe/error_codes.h"
#include "plugin/declaration.h"
#include "plugin/foreign_names.h"

namespace millrace::plugin {
namespace fs = std::filesystem;

namespace {

// More types than any plugin has; a larger count means that the table was read wrongly.
constexpr uint32_t kTypesMax = 4096;

std::string described(const std::string& plugin, const std::string& path) {
  return "plugin '" + plugin + "'" + (path.empty() ? " (built in)" : " (" + path + ")");
}

void check_plugin(const mr_plugin& plugin, const std::string& path) {
  // Checks the version first: in a table of another version the other fields may mean anything.
  if (plugin.abi_version != MR_ABI_VERSION) {
    Error error{code::wrong_abi_version, "the plugin is for another version of the plugin ABI", {}, {}, {}, {}};
    error.notes = {"plugin: ABI " + std::to_string(plugin.abi_version) + (path.empty() ? "" : " (" + path + ")"),
                   "this millrace: ABI " + std::to_string(MR_ABI_VERSION)};
    error.edit = "build the plugin again with this millrace's headers";
    throw Failure(std::move(error));
  }
  const bool complete = plugin.size == sizeof(mr_plugin) && plugin.name && plugin.version &&
                        plugin.type_count <= kTypesMax && (plugin.type_count == 0 || plugin.types);
  if (!complete) {
    Error error{code::bad_plugin_table,
                "the plugin's table is wrong: its size, name, version or list of types",
                {},
                {},
                {},
                {}};
    if (!path.empty()) error.notes.push_back(path);
    throw Failure(std::move(error));
  }
}

[[noreturn]] void cannot_load(const std::string& path, const std::string& words) {
  Error error{code::plugin_not_loaded, "cannot load the plugin " + path, {}, {}, {}, {}};
  error.notes.push_back("the loader said: " + words);
  throw Failure(std::move(error));
}

} // namespace

namespace {

using Types = std::map<std::string, std::unique_ptr<const RegisteredType>>;

const RegisteredType* first_converter(const Types& types, uint32_t role) {
  const RegisteredType* found = nullptr;
  for (const auto& [name, type] : types)
    if (type->converts(role) && (!found || (type->path.empty() && !found->path.empty()))) found = type.get();
  return found;
}

} // namespace

// Libraries stay open for the life of the process, also those that were refused: a release function of adopted memory,
// a thread or an exit handler may run their code long after the last instance was destroyed. An open library costs its
// pages; a call into an unloaded one would crash the process.
struct Registry::State {
  Types types;
  std::array<const RegisteredType*, MR_ROLE_COUNT> converters{}; // by role
  std::vector<void*> libraries; // dlopen's handles, to recognise a library that is loaded by a second path
  std::vector<LoadFailure> failures;
  std::vector<std::string> folders;
  std::set<std::string> scanned; // files that scan() has tried
};

Registry::Registry() : state_(std::make_unique<State>()) { add(*millrace_builtin_plugin(), ""); }
Registry::~Registry() = default;

void Registry::add(const mr_plugin& plugin, const std::string& path) {
  check_plugin(plugin, path);
  // All types are read and checked before any is registered: all or none.
  std::map<std::string, std::unique_ptr<const RegisteredType>> fresh;
  for (uint32_t i = 0; i < plugin.type_count; ++i) {
    if (!plugin.types[i])
      throw Failure(code::bad_plugin_table, "the plugin's list of types has a gap: " + described(plugin.name, path));
    auto info = read_declaration(*plugin.types[i], plugin.name, path);
    const auto known = state_->types.find(info->type);
    const HandlerInfo* first = known != state_->types.end() ? known->second.get() : nullptr;
    if (const auto twin = fresh.find(info->type); twin != fresh.end()) first = twin->second.get();
    if (first) {
      Error error{code::duplicate_type, "handler type '" + info->type + "' is registered twice", {}, {}, {}, {}};
      error.notes = {"first by " + described(first->plugin, first->path), "then by " + described(plugin.name, path)};
      throw Failure(std::move(error));
    }
    const std::string type = info->type;
    fresh.emplace(type, std::move(info));
  }
  state_->types.merge(fresh);
  for (uint32_t role = 1; role < MR_ROLE_COUNT; ++role) state_->converters[role] = first_converter(state_->types, role);
}

void Registry::load(const std::string& path) {
  // The path is made absolute, because dlopen looks up a bare file name in the system's folders.
  const std::string file = fs::absolute(path).lexically_normal().string();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) cannot_load(path, "no such file");
  // dlopen would wait for a pipe.
  if (!fs::is_regular_file(file, ignored)) cannot_load(path, "it is no regular file");
  // RTLD_NOW: a missing symbol is reported now and not during a run. RTLD_LOCAL: plugins do not see each other's
  // symbols.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) cannot_load(path, dlerror());
  std::vector<void*>& libraries = state_->libraries;
  if (std::find(libraries.begin(), libraries.end(), library) != libraries.end()) return;

  void* symbol = dlsym(library, MR_PLUGIN_SYMBOL);
  if (!symbol) {
    Error error{code::not_a_plugin, "the library is no millrace plugin: " + path, {}, {}, {}, {}};
    error.notes.push_back("it does not export " MR_PLUGIN_SYMBOL);
    error.edit = "add MILLRACE_PLUGIN(\"name\", \"version\") to one of its files";
    throw Failure(std::move(error));
  }
  const mr_plugin* plugin = reinterpret_cast<mr_plugin_entry>(symbol)();
  if (!plugin) throw Failure(code::bad_plugin_table, "the plugin's entry returns no table: " + path);
  add(*plugin, path);
  libraries.push_back(library);
}

void Registry::scan(const std::string& folder, const Wanted& wanted) {
  std::error_code ignored;
  std::vector<std::string>& folders = state_->folders;
  if (fs::is_directory(folder, ignored) && std::find(folders.begin(), folders.end(), folder) == folders.end())
    folders.push_back(folder);
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".so") files.push_back(entry.path().string());
  // Sorted by name, so that the order of plugins does not depend on the file system.
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (state_->scanned.contains(file) || (wanted && !wanted(file))) continue;
    state_->scanned.insert(file);
    try {
      load(file);
    } catch (const Failure& failure) {
      state_->failures.push_back({file, failure.error()});
    }
  }
}

const RegisteredType* Registry::find(const std::string& type) const {
  const auto found = state_->types.find(type);
  return found == state_->types.end() ? nullptr : found->second.get();
}

std::vector<const RegisteredType*> Registry::all() const {
  std::vector<const RegisteredType*> infos;
  for (const auto& [type, info] : state_->types) infos.push_back(info.get());
  return infos;
}

const RegisteredType* Registry::find_converter(uint32_t role) const { return state_->converters.at(role); }

const std::vector<LoadFailure>& Registry::failures() const { return state_->failures; }

const std::vector<std::string>& Registry::folders() const { return state_->folders; }

namespace {

// Types that a build without these libraries lacks: no other type is meant.
struct OptionalType {
  const char *type, *plugin, *libraries, *packages;
};
constexpr const char* kFfmpegPackages = "libavformat-dev libavcodec-dev libswscale-dev";
constexpr OptionalType kOptionalTypes[] = {
    {"video.file", "media", "FFmpeg's libraries are", kFfmpegPackages},
    {"video.writer", "media", "FFmpeg's libraries are", kFfmpegPackages},
    {"encode.jpeg", "codec", "libjpeg-turbo is", "libturbojpeg0-dev"},
    {"decode.jpeg", "codec", "libjpeg-turbo is", "libturbojpeg0-dev"},
    {"encode.h264", "codec", "libavcodec is", "libavcodec-dev"},
    {"decode.h264", "codec", "libavcodec is", "libavcodec-dev"},
    {"view.remote", "viewer", "libjpeg-turbo or libavcodec is", "libturbojpeg0-dev libavcodec-dev"},
    {"view.events", "viewer", "libjpeg-turbo or libavcodec is", "libturbojpeg0-dev libavcodec-dev"},
};

// "detect.faces, detect.people": the types of the family of `type`, the nearest first; "" if there is none.
std::string family_of(const std::string& type, const std::vector<std::string>& types) {
  const std::string family = type.substr(0, type.find('.') + 1);
  std::vector<std::string> members;
  for (const std::string& one : types)
    if (!family.empty() && one.starts_with(family)) members.push_back(one);
  return members.empty() ? "" : listed_from(type, std::move(members));
}

} // namespace

Error unknown_type(const Registry& registry, int code, const std::string& type, bool in_a_failed_plugin) {
  std::vector<std::string> names;
  for (const HandlerInfo* info : registry.all()) names.push_back(info->type);
  Error error{code, "the handler type \"" + type + "\" is not known", {}, {}, nearest_type(type, names), ""};
  std::string looked = "looked among the built-in ones";
  for (const std::string& folder : registry.folders()) looked += ", in " + folder;
  error.notes.push_back(looked);
  if (in_a_failed_plugin) error.nearest.clear();
  for (const OptionalType& optional : kOptionalTypes) {
    if (in_a_failed_plugin || type != optional.type) continue;
    error.nearest.clear();
    error.notes.push_back(type + " is in the plugin " + optional.plugin + ", and is built where " + optional.libraries);
    error.edit = std::string("apt-get install ") + optional.packages + ", then build again";
  }
  if (type == "app.source" || type == "app.sink") {
    error.nearest.clear();
    error.notes.push_back(type +
                          " belongs to applications that embed the runtime (millrace/runtime.h); the command has no "
                          "application to join it to");
    error.edit =
        type == "app.source" ? "test.pattern or video.file in its place" : "null.sink or file.raw_writer in its place";
  }
  const ForeignName* foreign = in_a_failed_plugin ? nullptr : find_foreign_name(type);
  if (foreign) {
    const std::string words =
        foreign->words.empty() ? "" : (foreign->type.empty() ? "" : "; ") + std::string(foreign->words);
    error.notes.push_back(type + " is " + std::string(foreign->origin) + "; here " +
                          (foreign->type.empty() ? "no handler does it: " : std::string(foreign->type) + " does it") +
                          words);
    error.nearest = registry.find(std::string(foreign->type)) ? foreign->type : "";
    if (foreign->type.empty()) error.edit = "leave '" + type + "' out";
  }
  if (const std::string family = family_of(type, names);
      error.nearest.empty() && !family.empty() && !in_a_failed_plugin)
    error.notes.push_back("of this family there are " + family);
  if (!error.nearest.empty() || !error.edit.empty()) return error;
  for (const LoadFailure& failure : registry.failures()) {
    error.notes.push_back("a plugin could not be loaded: " + failure.path + ": " + failure.error.what);
    for (const std::string& note : failure.error.notes) error.notes.push_back("  " + note);
  }
  if (!in_a_failed_plugin) error.edit = "`millrace handlers` lists what there is; --plugin-path DIR adds a folder";
  return error;
}

} // namespace millrace::plugin
