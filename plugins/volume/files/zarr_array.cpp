// Reads .zarray and zarr.json; see zarr_array.h.
#include "plugins/volume/files/zarr_array.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "plugins/volume/files/fault.h"
#include "plugins/volume/files/zarr_fill.h"

namespace millrace::volume {

namespace {

constexpr size_t kAxesMax = 8;                         // t, c, z, y, x and some to spare
constexpr int64_t kExtentMax = int64_t{1} << 31;       // an axis that a place is chosen on
constexpr uint64_t kChunkBytesMax = uint64_t{1} << 30; // each thread decodes one; chunks have some megabytes

constexpr const char* kArray2 = "/.zarray";
constexpr const char* kNode3 = "/zarr.json";

std::vector<int64_t> extents(const Metadata& list) {
  std::vector<int64_t> numbers;
  for (const Metadata& one : list.elements(kAxesMax)) numbers.push_back(one.whole(1, kExtentMax));
  if (numbers.empty()) throw list.fault("it is empty, and a volume has three axes");
  return numbers;
}

void check_chunk(const ZarrArray& array, const Metadata& chunk) {
  if (array.chunk.size() != array.shape.size())
    throw chunk.fault("it has " + std::to_string(array.chunk.size()) + " axes, and the shape has " +
                      std::to_string(array.shape.size()));
  uint64_t bytes = array.dtype.bits / 8;
  for (const int64_t extent : array.chunk) {
    bytes *= static_cast<uint64_t>(extent); // below 2^61
    if (bytes > kChunkBytesMax) throw chunk.fault("a chunk has more than " + std::to_string(kChunkBytesMax) + " bytes");
  }
}

// ---- codecs

ChunkCodec codec_of(const Metadata& name, const std::string& others) {
  bool is_known = false;
  const ChunkCodec codec = chunk_codec(name.text(), is_known);
  if (!is_known) throw name.fault("the codec '" + name.text() + "' is not known; " + others + known_codecs() + " are");
  if (const std::string why = why_not_built(codec); !why.empty()) throw name.fault(why);
  return codec;
}

void check_blosc(const Metadata& settings) {
  const std::optional<Metadata> name = settings.find("cname");
  if (!name) return;
  if (const std::string why = why_not_in_blosc(name->text()); !why.empty()) throw name->fault(why);
}

// ---- version 2

// "<u2": byte order, kind, bytes.
void take_type_2(ZarrArray& array, const Metadata& type) {
  const std::string text = type.json().is_string() ? type.text() : "";
  const std::string_view kinds = "biufc";
  if (text.size() < 3 || std::string_view("<>|").find(text[0]) == std::string_view::npos ||
      kinds.find(text[1]) == std::string_view::npos || text.size() > 4)
    throw type.fault("it is " + type.json().dump() + ", and a volume has \"|u1\", \"<u2\" or \"<f4\"");
  const char* const kind = text[1] == 'f'   ? "float"
                           : text[1] == 'u' ? "uint"
                           : text[1] == 'i' ? "int"
                           : text[1] == 'b' ? "bool"
                                            : "complex";
  const std::string_view size = std::string_view(text).substr(2);
  const std::string name = text[1] == 'b' ? kind
                           : size == "1"  ? kind + std::string("8")
                           : size == "2"  ? kind + std::string("16")
                           : size == "4"  ? kind + std::string("32")
                                          : kind + std::string("64");
  if (name == "uint8" && size == "1")
    array.dtype = dtype_of<uint8_t>();
  else if (name == "uint16")
    array.dtype = dtype_of<uint16_t>();
  else if (name == "float32")
    array.dtype = dtype_of<float>();
  else
    throw type.fault(wrong_type(name));
  array.is_big_endian = text[0] == '>' && array.dtype.bits > 8;
}

ZarrArray array_of_2(const Metadata& metadata, const std::string& folder) {
  metadata.at("zarr_format").whole(2, 2);
  ZarrArray array;
  array.folder = folder;
  array.file = metadata.path();
  array.shape = extents(metadata.at("shape"));
  take_type_2(array, metadata.at("dtype"));
  const Metadata chunks = metadata.at("chunks");
  array.chunk = extents(chunks);
  check_chunk(array, chunks);
  const Metadata order = metadata.at("order");
  if (order.text() != "C")
    throw order.fault("it is '" + order.text() + "', and only C is read, whose last axis runs fastest");
  if (const auto filters = metadata.find("filters"); filters && !filters->elements(kAxesMax).empty())
    throw filters->fault("there are filters, and only arrays without are read");
  if (const auto compressor = metadata.find("compressor")) {
    array.codec = codec_of(compressor->at("id"), "null, ");
    if (array.codec == ChunkCodec::blosc) check_blosc(*compressor);
  }
  if (const auto separator = metadata.find("dimension_separator")) {
    const std::string text = separator->text();
    if (text != "." && text != "/") throw separator->fault("it is '" + text + "', and may be '.' or '/'");
    array.separator = text[0];
  }
  array.fill = zarr_fill(metadata, array.dtype);
  return array;
}

// ---- version 3

// The name of an extension point, which is a text or an object with "name" and "configuration".
Metadata extension_name(const Metadata& extension) {
  return extension.json().is_string() ? extension : extension.at("name");
}

std::optional<Metadata> setting(const Metadata& extension, const char* key) {
  if (!extension.json().is_object()) return std::nullopt;
  const std::optional<Metadata> settings = extension.find("configuration");
  return settings ? settings->find(key) : std::nullopt;
}

void take_type_3(ZarrArray& array, const Metadata& type) {
  const std::string name = type.json().is_string() ? type.text() : "";
  if (name == "uint8")
    array.dtype = dtype_of<uint8_t>();
  else if (name == "uint16")
    array.dtype = dtype_of<uint16_t>();
  else if (name == "float32")
    array.dtype = dtype_of<float>();
  else if (name.starts_with("int") || name.starts_with("uint") || name.starts_with("float") || name == "bool")
    throw type.fault(wrong_type(name));
  else
    throw type.fault("it is " + type.json().dump() + ", and a volume has \"uint8\", \"uint16\" or \"float32\"");
}

void take_key_encoding(ZarrArray& array, const Metadata& encoding) {
  const Metadata name = extension_name(encoding);
  const bool is_default = name.text() == "default";
  if (!is_default && name.text() != "v2") throw name.fault("it is '" + name.text() + "', and may be 'default' or 'v2'");
  array.separator = is_default ? '/' : '.';
  if (const auto separator = setting(encoding, "separator")) {
    if (separator->text() != "." && separator->text() != "/")
      throw separator->fault("it is '" + separator->text() + "', and may be '.' or '/'");
    array.separator = separator->text()[0];
  }
  if (is_default) array.key_prefix = std::string("c") + array.separator;
}

void take_bytes(ZarrArray& array, const Metadata& codec) {
  const auto endian = setting(codec, "endian");
  if (!endian && array.dtype.bits > 8) throw codec.fault("it has no 'endian', which may be 'little' or 'big'");
  if (!endian) return;
  if (endian->text() != "little" && endian->text() != "big")
    throw endian->fault("it is '" + endian->text() + "', and may be 'little' or 'big'");
  array.is_big_endian = endian->text() == "big" && array.dtype.bits > 8;
}

void take_codecs(ZarrArray& array, const Metadata& codecs) {
  bool has_bytes = false;
  for (const Metadata& codec : codecs.elements(kAxesMax)) {
    const Metadata name = extension_name(codec);
    const std::string text = name.text();
    if (text == "sharding_indexed")
      throw name.fault("it is sharded, and shards are not read yet; write it with chunks in files of their own");
    if (text == "transpose")
      throw name.fault("its axes are turned, and only C order is read, whose last axis runs fastest");
    if (text == "bytes" && !has_bytes) {
      take_bytes(array, codec);
      has_bytes = true;
      continue;
    }
    if (array.codec != ChunkCodec::none)
      throw name.fault("'" + text + "' is a second codec, and at most one packs a chunk");
    array.codec = codec_of(name, "bytes, ");
    if (!has_bytes) throw codecs.fault("'bytes' is missing, which comes before a codec that packs");
    if (const auto settings = codec.json().is_object() ? codec.find("configuration") : std::nullopt;
        settings && array.codec == ChunkCodec::blosc)
      check_blosc(*settings);
  }
  if (!has_bytes) throw codecs.fault("'bytes' is missing, which says the order of an element's bytes");
}

// A key that is not of this list must say that a reader may pass over it.
void check_keys(const Metadata& metadata) {
  constexpr std::array kKeys = {"zarr_format",        "node_type",  "shape",  "data_type",  "chunk_grid",
                                "chunk_key_encoding", "fill_value", "codecs", "attributes", "storage_transformers",
                                "dimension_names"};
  for (const std::string& key : metadata.keys()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    const nlohmann::json& value = metadata.json()[key];
    const auto must = value.is_object() ? value.find("must_understand") : value.end();
    if (!value.is_object() || must == value.end() || *must != false)
      throw metadata.at(key.c_str()).fault("this extension is not known, and does not say must_understand: false");
  }
}

void name_axes(ZarrArray& array) {
  for (size_t axis = 0; axis < array.shape.size(); ++axis) array.axes.push_back("dim_" + std::to_string(axis));
}

void take_names(ZarrArray& array, const Metadata& metadata) {
  const auto names = metadata.find("dimension_names");
  if (!names) return;
  const std::vector<Metadata> all = names->elements(kAxesMax);
  if (all.size() != array.shape.size())
    throw names->fault("there are " + std::to_string(all.size()) + ", and the shape has " +
                       std::to_string(array.shape.size()) + " axes");
  for (size_t n = 0; n < all.size(); ++n)
    if (!all[n].json().is_null()) array.axes[n] = all[n].text();
}

ZarrArray array_of_3(const Metadata& metadata, const std::string& folder) {
  metadata.at("zarr_format").whole(3, 3);
  check_keys(metadata);
  ZarrArray array;
  array.folder = folder;
  array.file = metadata.path();
  array.version = 3;
  array.shape = extents(metadata.at("shape"));
  take_type_3(array, metadata.at("data_type"));
  const Metadata grid = metadata.at("chunk_grid");
  if (extension_name(grid).text() != "regular")
    throw extension_name(grid).fault("it is '" + extension_name(grid).text() + "', and only 'regular' is known");
  const Metadata chunk = grid.at("configuration").at("chunk_shape");
  array.chunk = extents(chunk);
  check_chunk(array, chunk);
  take_key_encoding(array, metadata.at("chunk_key_encoding"));
  if (const auto transformers = metadata.find("storage_transformers");
      transformers && !transformers->elements(kAxesMax).empty())
    throw transformers->fault("there are transformers, and only arrays without are read");
  take_codecs(array, metadata.at("codecs"));
  array.fill = zarr_fill(metadata, array.dtype);
  return array;
}

} // namespace

uint64_t ZarrArray::chunk_bytes() const {
  uint64_t bytes = dtype.bits / 8;
  for (const int64_t extent : chunk) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

std::string ZarrArray::key_of(std::span<const int64_t> place) const {
  std::string key = key_prefix;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    if (axis > 0) key += separator;
    key += std::to_string(place[axis]);
  }
  return key;
}

bool is_there(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool is_zarr_array(const std::string& folder) {
  if (!is_there(folder + kNode3)) return is_there(folder + kArray2);
  return Metadata::read(folder + kNode3).at("node_type").text() == "array";
}

ZarrArray read_zarr_array(const std::string& folder) {
  const char* const name = is_there(folder + kNode3) ? kNode3 : kArray2;
  if (!is_there(folder + name)) throw cannot_read(folder, "there is no array: no .zarray and no zarr.json");
  return zarr_array_of(Metadata::read(folder + name), folder);
}

ZarrArray zarr_array_of(const Metadata& metadata, const std::string& folder) {
  const bool is_3 = metadata.at("zarr_format").whole(2, 3) == 3;
  if (is_3 && metadata.at("node_type").text() != "array") throw metadata.at("node_type").fault("it is no array");
  ZarrArray array = is_3 ? array_of_3(metadata, folder) : array_of_2(metadata, folder);
  name_axes(array);
  if (is_3) take_names(array, metadata);
  return array;
}

} // namespace millrace::volume
