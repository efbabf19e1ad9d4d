// Writes a plan's picture as JSON; see picture_json.h.
#include "serve/picture_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "plan/picture.h"

namespace millrace::serve {

using nlohmann::ordered_json;

namespace {

template <class One, class Json>
ordered_json list_of(const std::vector<One>& all, Json&& json) {
  ordered_json list = ordered_json::array();
  for (const One& one : all) list.push_back(json(one));
  return list;
}

ordered_json json_of(const plan::PicturePort& port) { return {{"name", port.name}, {"y", port.y}}; }

ordered_json json_of(const plan::PictureLane& lane) {
  return {{"name", lane.name}, {"top", lane.top}, {"bottom", lane.bottom}};
}

ordered_json json_of(const plan::PictureBox& box) {
  const auto port = [](const plan::PicturePort& one) { return json_of(one); };
  return {{"handlers", box.handlers},
          {"name", box.name},
          {"type", box.type},
          {"inserted", box.is_inserted},
          {"lane", box.lane},
          {"x", box.x},
          {"y", box.y},
          {"width", box.width},
          {"height", box.height},
          {"inputs", list_of(box.inputs, port)},
          {"outputs", list_of(box.outputs, port)}};
}

ordered_json json_of(const plan::PictureArrow& arrow) {
  return {{"edges", arrow.edges},
          {"words", arrow.words},
          {"sync", arrow.is_sync},
          {"back", arrow.goes_back},
          {"corners", arrow.corners}};
}

} // namespace

std::string picture_json(const plan::Picture& picture) {
  const auto json = [](const auto& one) { return json_of(one); };
  const ordered_json all = {{"width", picture.width},
                            {"height", picture.height},
                            {"lanes", list_of(picture.lanes, json)},
                            {"boxes", list_of(picture.boxes, json)},
                            {"arrows", list_of(picture.arrows, json)}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace millrace::serve
