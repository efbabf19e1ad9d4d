// JSON documents of a Zarr, read with errors that name the file and the key.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plugins/volume/files/volume_file.h"

namespace millrace::volume {

// A value in a document, with the way to it. Copies share the document.
class Metadata {
 public:
  // Throws VolumeFileError if the file cannot be read or is no JSON.
  static Metadata read(const std::string& path);
  static Metadata parse(const std::string& text, const std::string& path);

  const std::string& path() const { return document_->path; }
  // The error "cannot read 'FILE': KEY: WHY", for the caller to throw.
  VolumeFileError fault(const std::string& why) const;

  // The following throw VolumeFileError if the value is of another type, or is missing.
  Metadata at(const char* key) const;
  // The value of a key that may be missing; null counts as missing.
  std::optional<Metadata> find(const char* key) const;
  std::string text() const;
  int64_t whole(int64_t least, int64_t most) const;
  // The elements of an array of at most `most`.
  std::vector<Metadata> elements(size_t most) const;
  std::vector<std::string> keys() const;

  const nlohmann::json& json() const { return *value_; }

 private:
  struct Document {
    std::string path;
    nlohmann::json json;
  };
  Metadata(std::shared_ptr<const Document> document, const nlohmann::json& value, std::string key)
      : document_(std::move(document)), value_(&value), key_(std::move(key)) {}

  std::shared_ptr<const Document> document_;
  const nlohmann::json* value_;
  std::string key_; // "multiscales[0].axes"; "" for the whole document
};

} // namespace millrace::volume
