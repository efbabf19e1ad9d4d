// Reads JSON with errors that name the key; see metadata.h.
#include "plugins/volume/files/metadata.h"

#include <utility>

#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/input_file.h"

namespace millrace::volume {

namespace {

// Metadata of a group may hold those of all arrays in it, some kilobytes each.
constexpr uint64_t kMetadataBytesMax = 16 << 20;
constexpr int kDepthMax = 64; // lists in lists: a function that shows a value calls itself for each

// A value as a sentence shows it.
std::string shown_json(const nlohmann::json& value) {
  constexpr size_t kShownMax = 60;
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kShownMax ? text : text.substr(0, kShownMax) + "…";
}

} // namespace

Metadata Metadata::read(const std::string& path) {
  const InputFile file(path);
  if (file.size() > kMetadataBytesMax)
    throw cannot_read(path, "it has " + std::to_string(file.size()) + " bytes, and metadata at most " +
                                std::to_string(kMetadataBytesMax));
  const std::vector<uint8_t> bytes = file.first_bytes(kMetadataBytesMax);
  return parse({bytes.begin(), bytes.end()}, path);
}

Metadata Metadata::parse(const std::string& text, const std::string& path) {
  auto document = std::make_shared<Document>();
  document->path = path;
  const auto bound = [&path](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDepthMax)
      throw cannot_read(path, "it has lists or objects in each other, more than " + std::to_string(kDepthMax));
    return true;
  };
  try {
    document->json = nlohmann::json::parse(text, bound);
  } catch (const nlohmann::json::parse_error& error) {
    throw cannot_read(path, "it is no JSON: the mistake is at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw cannot_read(path, "a number in it is beyond 1.8e308");
  }
  if (!document->json.is_object())
    throw cannot_read(path, "it is " + shown_json(document->json) + ", and should be an object");
  const nlohmann::json& json = document->json;
  return {std::move(document), json, ""};
}

VolumeFileError Metadata::fault(const std::string& why) const {
  return cannot_read(path(), key_.empty() ? why : key_ + ": " + why);
}

Metadata Metadata::at(const char* key) const {
  const bool is_object = value_->is_object();
  if (is_object)
    if (const auto found = value_->find(key); found != value_->end())
      return {document_, *found, key_.empty() ? key : key_ + "." + key};
  throw fault(is_object ? std::string("it has no '") + key + "'"
                        : "it is " + shown_json(*value_) + ", and should be an object");
}

std::optional<Metadata> Metadata::find(const char* key) const {
  if (!value_->is_object()) throw fault("it is " + shown_json(*value_) + ", and should be an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return at(key);
}

std::string Metadata::text() const {
  if (!value_->is_string()) throw fault("it is " + shown_json(*value_) + ", and should be a text");
  return value_->get<std::string>();
}

int64_t Metadata::whole(int64_t least, int64_t most) const {
  // A number beyond 63 bits is compared as what it is.
  const bool is_whole = value_->is_number_integer(),
             is_huge = value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX;
  const int64_t number = is_whole && !is_huge ? value_->get<int64_t>() : 0;
  if (!is_whole || is_huge || number < least || number > most)
    throw fault("it is " + shown_json(*value_) + ", and should be a whole number from " + std::to_string(least) +
                " to " + std::to_string(most));
  return number;
}

std::vector<Metadata> Metadata::elements(size_t most) const {
  if (!value_->is_array()) throw fault("it is " + shown_json(*value_) + ", and should be a list");
  if (value_->size() > most)
    throw fault("it has " + std::to_string(value_->size()) + " elements, and may have " + std::to_string(most));
  std::vector<Metadata> all;
  for (size_t n = 0; n < value_->size(); ++n)
    all.push_back({document_, (*value_)[n], key_ + "[" + std::to_string(n) + "]"});
  return all;
}

std::vector<std::string> Metadata::keys() const {
  std::vector<std::string> all;
  if (value_->is_object())
    for (const auto& item : value_->items()) all.push_back(item.key());
  return all;
}

} // namespace millrace::volume
