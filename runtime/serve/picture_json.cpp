// Writes a plan's picture as JSON; see picture_json.h.
#include "serve/picture_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "plan/picture.h"

namespace millrace::serve {

using nlohmann::ordered_json;

namespace {

ordered_json json_of(const plan::PictureLane& lane) {
  return {{"name", lane.name}, {"top", lane.top}, {"bottom", lane.bottom}};
}

ordered_json json_of(const plan::PicturePort& port) { return {{"name", port.name}, {"y", port.y}}; }

ordered_json json_of(const plan::PictureArrow& arrow) {
  return {{"edges", arrow.edges},
          {"words", arrow.words},
          {"sync", arrow.is_sync},
          {"back", arrow.goes_back},
          {"corners", arrow.corners}};
}

ordered_json json_of(const plan::PictureBox& box);

template <class One>
ordered_json list_of(const std::vector<One>& all) {
  ordered_json list = ordered_json::array();
  for (const One& one : all) list.push_back(json_of(one));
  return list;
}

ordered_json json_of(const plan::PictureBox& box) {
  return {{"handlers", box.handlers},
          {"name", box.name},
          {"type", box.type},
          {"inserted", box.is_inserted},
          {"lane", box.lane},
          {"x", box.x},
          {"y", box.y},
          {"width", box.width},
          {"height", box.height},
          {"inputs", list_of(box.inputs)},
          {"outputs", list_of(box.outputs)}};
}

} // namespace

std::string picture_json(const plan::Picture& picture) {
  const ordered_json all = {{"width", picture.width},
                            {"height", picture.height},
                            {"lanes", list_of(picture.lanes)},
                            {"boxes", list_of(picture.boxes)},
                            {"arrows", list_of(picture.arrows)}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace millrace::serve
