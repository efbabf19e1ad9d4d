// Reads sets of streams: their items as a map, a list or a pattern of files.
#include "graph/read_streams.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "graph/file_names.h"
#include "graph/tree_reader.h"

namespace millrace::graph {

namespace {

namespace fs = std::filesystem;

// The words that a placeholder has anyway.
constexpr const char* kOwnWords[] = {"stream", "index"};

class SetReader : TreeReader {
 public:
  SetReader(const std::string& file, std::vector<Error>* kept, const Confine* confine)
      : TreeReader(file, kept), confine_(confine) {}

  StreamSet read(const Name& name, const Value& value) const {
    check_name(name, "a set of streams");
    StreamSet set;
    set.name = name.text;
    set.place = place(name.at);
    expect(value, Value::Kind::map, "the set '" + name.text + "'", "items, max, on_error, clock",
           name.text + ": { items: … }");
    for (size_t i = 0; i < value.names.size(); ++i) {
      if (is_comment_key(value.names[i].text)) continue;
      const auto* key = find_key(stream_keys(), value.names[i].text);
      if (!key) refuse_key(value.names[i], value.items[i], "a set of streams", stream_keys());
      if (!assign(*key, set, value.names[i], value.items[i])) read_items(set, value.items[i]);
    }
    if (!value.find("items"))
      refuse_missing(value, "the set '" + name.text + "'", *find_key(stream_keys(), "items"), name.at);
    if (set.max > 0 && set.max < set.items.size())
      throw Failure(Error{code::number_out_of_range,
                          "'max' of " + set.name + " is " + std::to_string(set.max) + ", and it has " +
                              std::to_string(set.items.size()) + " items",
                          place(value.find("max")->at),
                          {"expected as many as there are items, or more"},
                          "",
                          "max: " + std::to_string(set.items.size())});
    return set;
  }

 private:
  void read_items(StreamSet& set, const Value& items) const {
    if (items.kind == Value::Kind::scalar || items.kind == Value::Kind::null)
      expect(items, Value::Kind::map, "'items'", "streams by name, a list of them, or { glob: PATTERN }",
             is_pattern(items.text) ? "items: { glob: " + items.text + " }" : "items: { gate7: { path: gate7.avi } }");
    const bool by_pattern =
        items.names.size() == 1 && items.names[0].text == "glob" && items.items[0].kind == Value::Kind::scalar;
    if (by_pattern) return find_files(set, items.items[0]);
    if (items.items.empty())
      throw Failure(Error{code::wrong_kind_of_value,
                          "the set '" + set.name + "' has no items",
                          place(items.at),
                          {"expected one stream or more"},
                          "",
                          "items: { gate7: { path: gate7.avi } }"});
    check_count(set, items.items.size(), items.at);
    for (size_t i = 0; i < items.items.size(); ++i)
      attempt(kept_, [&] {
        if (items.kind == Value::Kind::map)
          add(set, items.names[i].text, items.names[i].at, items.items[i]);
        else
          add_of_list(set, std::to_string(i), items.items[i]);
      });
  }

  // One without a name is named by its place in the list.
  void add_of_list(StreamSet& set, const std::string& number, const Value& item) const {
    if (item.kind == Value::Kind::scalar) return add(set, item.text, item.at, Value{});
    expect(item, Value::Kind::map, "an item of '" + set.name + "'", "its fields, or a name", "{ path: gate7.avi }");
    const Value* const name = item.find("name");
    if (!name) return add(set, number, item.at, item);
    expect(*name, Value::Kind::scalar, "'name'", "a name", "name: gate7");
    Value fields = item;
    const auto at = static_cast<size_t>(name - item.items.data());
    fields.names.erase(fields.names.begin() + static_cast<std::ptrdiff_t>(at));
    fields.items.erase(fields.items.begin() + static_cast<std::ptrdiff_t>(at));
    add(set, name->text, name->at, fields);
  }

  void add(StreamSet& set, const std::string& name, Position at, const Value& fields) const {
    if (!is_stream_name(name)) {
      std::string better = as_name(name);
      throw Failure(Error{code::bad_name,
                          "a stream cannot be called '" + shown(name) + "'",
                          place(at),
                          {"expected letters, digits, '_' and '-', at most " + std::to_string(kNameLengthMax)},
                          "",
                          better.empty() ? "" : better + ": …"});
    }
    if (const Stream* earlier = set.find(name)) refuse_twice(set, *earlier, place(at));
    Stream stream;
    stream.name = name;
    stream.place = place(at);
    if (fields.kind != Value::Kind::null) {
      const std::string meant = fields.kind == Value::Kind::scalar ? shown(fields.text) : "…";
      expect(fields, Value::Kind::map, "the stream '" + name + "'", "its fields", name + ": { path: " + meant + " }");
      for (size_t i = 0; i < fields.names.size(); ++i) read_field(stream, fields.names[i], fields.items[i]);
    }
    set.items.push_back(std::move(stream));
  }

  [[noreturn]] static void refuse_twice(const StreamSet& set, const Stream& earlier, const Place& second) {
    throw Failure(Error{code::duplicate_name,
                        "two streams of '" + set.name + "' are named \"" + earlier.name + "\"",
                        second,
                        {"first at " + words_of(earlier.place)},
                        "",
                        "rename one of them"});
  }

  // Fields nest as parameters do: draw: { thickness: 4 } is draw.thickness.
  void read_field(Stream& stream, const Name& name, const Value& value) const {
    if (is_comment_key(name.text)) return;
    if (std::find(std::begin(kOwnWords), std::end(kOwnWords), name.text) != std::end(kOwnWords))
      throw Failure(Error{code::bad_name,
                          "a field cannot be called '" + name.text + "'",
                          place(name.at),
                          {"{stream} is the stream's name, and {index} its place in the set"},
                          "",
                          "another name"});
    if (name.text == "priority") check_priority(value);
    read_nested(stream.fields, kFields, name.text, name, value);
  }

  // Groups take the items of a stream as if they were due earlier, by so many per cent of the budget.
  void check_priority(const Value& value) const {
    static const KeyInfo kPriority{"priority", Takes::whole, "a percentage", "50", 0, 100};
    read_setting(kPriority, scalar(kPriority, value).text, place(value.at));
  }

  void check_count(const StreamSet& set, size_t count, Position at) const {
    if (count <= static_cast<size_t>(kStreamsMax)) return;
    throw Failure(Error{code::text_limit,
                        "the set '" + set.name + "' has more than " + std::to_string(kStreamsMax) + " streams",
                        place(at),
                        {},
                        "",
                        ""});
  }

  static bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

  // A stream for each file, named after the file, with the field `path`.
  void find_files(StreamSet& set, const Value& glob) const {
    const fs::path pattern(glob.text);
    const fs::path folder = pattern.parent_path();
    const fs::path looked_in = fs::path(file_).parent_path() / folder; // as other paths of the file
    if (const std::string why = confine_ ? confine_->objection_to_place(looked_in) : ""; !why.empty())
      throw Failure(Error{code::outside_folder,
                          "'" + shown(glob.text) + "' looks into a folder outside of '" + confine_->folder() + "'",
                          place(glob.at),
                          {why, "--confine keeps all files of the run in that folder"},
                          "",
                          ""});
    std::error_code failed;
    // A folder that is there may have any name: "shots [1]".
    if (is_pattern(folder.string()) && !fs::is_directory(looked_in, failed))
      throw Failure(Error{code::wrong_kind_of_value,
                          "'glob' cannot be '" + shown(glob.text) + "'",
                          place(glob.at),
                          {"expected a pattern in the name of the file, not of its folder"},
                          "",
                          "glob: media/*.avi"});
    std::vector<fs::path> paths;
    for (fs::directory_iterator entry(looked_in.empty() ? "." : looked_in, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const std::string name = entry->path().filename().string();
      if (::fnmatch(pattern.filename().c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
      paths.push_back(folder / name);
      check_count(set, paths.size(), glob.at);
    }
    if (paths.empty())
      throw Failure(Error{code::wrong_kind_of_value,
                          "no file fits '" + shown(glob.text) + "'",
                          place(glob.at),
                          {failed ? "the folder cannot be read: " + failed.message()
                                  : "looked in " + (looked_in.empty() ? fs::path(".") : looked_in).string()},
                          "",
                          ""});
    std::sort(paths.begin(), paths.end());
    const std::vector<std::string> names = names_of_files(paths);
    for (size_t i = 0; i < paths.size(); ++i) {
      const fs::path& path = paths[i];
      Stream stream;
      stream.name = names[i];
      stream.place = place(glob.at);
      stream.fields.push_back({"path", path.string(), stream.place, stream.place});
      set.items.push_back(std::move(stream));
    }
  }

  const Confine* const confine_;
};

} // namespace

std::vector<StreamSet> read_streams(const Value& value, const std::string& file, std::vector<Error>* kept,
                                    const Confine* confine) {
  const KeyInfo& key = *find_key(top_keys(), "streams");
  const Place at{file, value.at.line, value.at.column};
  const bool is_map = value.kind == Value::Kind::map;
  if (!is_map || value.items.empty())
    throw Failure(Error{code::wrong_kind_of_value,
                        is_map ? "'streams' names no set" : "'streams' cannot be " + described(value),
                        at,
                        {"expected sets of streams by name"},
                        "",
                        "streams: " + key.example});
  std::vector<StreamSet> sets;
  const SetReader reader(file, kept, confine);
  for (size_t i = 0; i < value.items.size(); ++i)
    attempt(kept, [&] { sets.push_back(reader.read(value.names[i], value.items[i])); });
  return sets;
}

} // namespace millrace::graph
