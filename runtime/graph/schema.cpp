// The JSON Schema of the pipeline file, from the tables that the parser reads by.
#include <nlohmann/json.hpp>

#include "graph/keys.h"
#include "graph/limits.h"

namespace millrace::graph {

namespace {

using Json = nlohmann::ordered_json;

std::string name_pattern() { return "[A-Za-z_][A-Za-z0-9_-]{0," + std::to_string(kNameLengthMax - 1) + "}"; }
Json scalar() { return Json::array({"string", "number", "boolean"}); }
Json ref(const char* name) { return {{"$ref", std::string("#/$defs/") + name}}; }

// Names joined by dots: a handler's type, and the names of its parameters.
Json type_name() { return {{"type", "string"}, {"pattern", "^" + name_pattern() + "(\\." + name_pattern() + ")*$"}}; }

// The schema of a key's value. Keys that shape the graph get theirs from shape().
Json property(const KeyInfo& key) {
  Json schema;
  schema["description"] = key.takes == Takes::not_yet ? "not there yet; reserved for " + key.help : key.help;
  switch (key.takes) {
    case Takes::text: schema["type"] = scalar(); break;
    case Takes::name: schema.update(ref("name")); break;
    case Takes::whole:
      schema["type"] = "integer";
      schema["minimum"] = key.min;
      schema["maximum"] = key.max;
      break;
    case Takes::range: {
      const Json number = {{"type", "integer"}, {"minimum", key.min}, {"maximum", key.max}};
      schema["anyOf"] = {number, {{"type", "array"}, {"items", number}, {"minItems", 2}, {"maxItems", 2}}};
      break;
    }
    case Takes::duration:
      schema["type"] = "string";
      schema["pattern"] = "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m)$";
      break;
    case Takes::durations:
      schema["type"] = "string";
      schema["pattern"] = "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m)(/[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m))?$";
      break;
    case Takes::rate:
      schema["type"] = Json::array({"number", "string"});
      schema["exclusiveMinimum"] = 0;
      schema["maximum"] = key.max;
      schema["pattern"] = "^[0-9]+(\\.[0-9]+|/[0-9]+)?$";
      break;
    case Takes::word: schema["enum"] = key.words; break;
    case Takes::flag: schema["type"] = "boolean"; break;
    case Takes::devices: {
      const Json device = {{"type", "string"}, {"pattern", "^(cpu|" + name_pattern() + ":[0-9]+)$"}};
      schema["anyOf"] = {device, {{"type", "array"}, {"items", device}, {"minItems", 1}}};
      break;
    }
    case Takes::not_yet: schema["not"] = Json::object(); break;
    case Takes::shape: break;
  }
  return schema;
}

template <class Keys>
Json object(const Keys& keys) {
  Json schema;
  schema["type"] = "object";
  for (const auto& key : keys) schema["properties"][key.name] = property(key);
  schema["patternProperties"] = {{"^x-", true}};
  schema["additionalProperties"] = false;
  return schema;
}

Json named(const char* definition) {
  return {{"type", "object"}, {"propertyNames", ref("name")}, {"additionalProperties", ref(definition)}};
}

// Adds the schema of a key that the parser reads itself, after its description.
void shape(Json& schema, const char* key, const Json& shape) { schema["properties"][key].update(shape); }

Json handler() {
  Json schema = object(handler_keys());
  schema["description"] = "every key that is not listed is a parameter of the handler's type";
  schema["required"] = {"type"};
  schema["propertyNames"] = type_name();
  schema["additionalProperties"] = {{"type", {"string", "number", "boolean", "array", "object"}}};
  shape(schema, "type", type_name());
  shape(schema, "input", ref("input"));
  const KeyInfo& size = *find_key(batch_keys(), "size");
  const Json items = {{"type", "integer"}, {"minimum", size.min}, {"maximum", size.max}};
  shape(schema, "batch", {{"anyOf", {items, ref("batch")}}});
  shape(schema, "for_each", ref("name"));
  schema["not"] = {{"required", {"for_each", "batch"}}};
  shape(schema, "inputs", {{"type", "object"}, {"propertyNames", ref("name")}, {"additionalProperties", ref("input")}});
  return schema;
}

Json batch() {
  Json schema = object(batch_keys());
  schema["minProperties"] = 1;
  Json sizes;
  const KeyInfo& max = *find_key(batch_keys(), "max");
  for (int64_t size = max.min; size <= max.max; size *= 2) sizes.push_back(size);
  shape(schema, "max", {{"enum", sizes}});
  for (const char* fixed : {"size", "wait"})
    for (const char* learnt : {"budget", "late"}) {
      const Json both = {{"required", {fixed, learnt}}};
      schema["not"]["anyOf"].push_back(both);
    }
  return schema;
}

// A set of streams: items by name, as a list, or by a pattern of files.
Json stream_set() {
  const Json stream_name = {{"type", Json::array({"string", "integer"})},
                            {"pattern", "^[A-Za-z0-9_-]{1," + std::to_string(kNameLengthMax) + "}$"}};
  const Json fields = {
      {"type", Json::array({"object", "null"})}, {"propertyNames", type_name()}, {"maxProperties", kParamsMax}};
  const Json by_name = {{"type", "object"},
                        {"propertyNames", {{"pattern", stream_name["pattern"]}}},
                        {"additionalProperties", fields},
                        {"minProperties", 1},
                        {"maxProperties", kStreamsMax}};
  const Json by_pattern = {{"type", "object"},
                           {"properties", {{"glob", {{"type", "string"}}}}},
                           {"required", {"glob"}},
                           {"additionalProperties", false}};
  Json list = {{"type", "array"}, {"minItems", 1}, {"maxItems", kStreamsMax}};
  list["items"]["anyOf"] = {stream_name, fields};
  Json schema = object(stream_keys());
  schema["required"] = {"items"};
  shape(schema, "items", {{"anyOf", {by_pattern, by_name, list}}});
  return schema;
}

} // namespace

std::string json_schema() {
  Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "millrace pipeline";
  schema.update(object(top_keys()));
  schema["required"] = {"version", "handlers"};
  schema["not"] = {{"required", {"clock", "clocks"}}};
  shape(schema, "version", {{"const", 1}});
  shape(schema, "clock", ref("clock"));
  shape(schema, "clocks", named("clock"));
  Json nodes = named("node");
  nodes["minProperties"] = 1;
  nodes["maxProperties"] = kNodesMax;
  shape(schema, "nodes", nodes);
  Json streams = named("streams");
  streams["minProperties"] = 1;
  shape(schema, "streams", streams);
  Json handlers = named("handler");
  handlers["minProperties"] = 1;
  handlers["maxProperties"] = kHandlersMax;
  shape(schema, "handlers", handlers);

  Json& definitions = schema["$defs"];
  definitions["name"] = {{"type", "string"}, {"pattern", "^" + name_pattern() + "$"}};
  definitions["reference"] = {{"description", "handler (its only output) or handler.port; draw@gate7: an instance"},
                              {"type", "string"},
                              {"pattern", "^" + name_pattern() + "(@[A-Za-z0-9_-]+)?(\\." + name_pattern() + ")?$"}};
  definitions["edge"] = object(edge_keys());
  definitions["edge"]["required"] = {"from"};
  shape(definitions["edge"], "from", ref("reference"));
  definitions["entry"] = {{"anyOf", {ref("reference"), ref("edge")}}};
  definitions["input"] = {{"anyOf", {ref("entry"), {{"type", "array"}, {"items", ref("entry")}, {"minItems", 1}}}}};
  definitions["clock"] = object(clock_keys());
  definitions["node"] = object(node_keys());
  definitions["streams"] = stream_set();
  definitions["batch"] = batch();
  definitions["handler"] = handler();
  return schema.dump(2) + "\n";
}

} // namespace millrace::graph
