// Finds the boxes and arrows of a plan and has them laid out; see picture.h.
#include "plan/picture.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "observe/secrets.h"
#include "plan/domain.h"
#include "plan/explained.h"
#include "plan/format_text.h"
#include "plan/layers.h"
#include "plan/plan.h"
#include "plan/template_names.h"
#include "plugin/handler_info.h"

namespace millrace::plan {

namespace {

constexpr int kHead = 40, kPortRow = 14, kSide = 10, kBetweenPorts = 18;
constexpr int kNameLetter = 8, kSmallLetter = 6; // widths in a font of fixed width
constexpr size_t kLettersMax = 32;

std::string cut(const std::string& name) {
  return name.size() > kLettersMax ? name.substr(0, kLettersMax - 1) + "…" : name;
}
int letters(const std::string& name) { return static_cast<int>(std::min(name.size(), kLettersMax)); }

class Drawing {
 public:
  explicit Drawing(const Plan& plan) : names_(plan), plan_(plan), named_(names_.named_by_template(plan)) {}

  Picture made() {
    find_boxes();
    find_arrows();
    size_boxes();
    lay_out();
    return std::move(picture_);
  }

 private:
  // A port of a box, as the picture names it.
  struct End {
    size_t box = SIZE_MAX;
    std::string port;
  };

  // Handlers on other nodes are in bands of these nodes, below those of the domains here.
  uint32_t lane_of(const HandlerPlan& handler) const {
    const bool is_here = plan_.nodes.empty() || handler.node == plan_.node;
    return is_here ? handler.domain : static_cast<uint32_t>(plan_.domains.size()) + handler.node;
  }

  void find_boxes() {
    std::map<std::tuple<std::string, std::string, uint32_t>, size_t> known; // by name, type and lane
    for (uint32_t h = 0; h < named_.handlers.size(); ++h) {
      const HandlerPlan& handler = named_.handlers[h];
      const auto [at, is_new] =
          known.try_emplace({handler.name, handler.type, lane_of(handler)}, picture_.boxes.size());
      if (is_new) {
        PictureBox& box = picture_.boxes.emplace_back();
        box.name = handler.name;
        box.type = handler.type;
        box.lane = lane_of(handler);
        box.is_inserted = std::any_of(plan_.inserted.begin(), plan_.inserted.end(),
                                      [&](const InsertedPlan& inserted) { return inserted.handler == h; });
      }
      picture_.boxes[at->second].handlers.push_back(h);
      box_of_[plan_.handlers[h].name] = at->second;
    }
  }

  // `words`: an end of the edge, such as "blur@gate.video"; `named`: the same by template.
  End end_of(const std::string& words, const std::string& named) const {
    const auto found = box_of_.find(words.substr(0, words.rfind('.')));
    if (found == box_of_.end()) return {};
    return {found->second, named.substr(named.rfind('.') + 1)};
  }

  static void add_port(std::vector<PicturePort>& ports, const std::string& name) {
    if (std::none_of(ports.begin(), ports.end(), [&](const PicturePort& port) { return port.name == name; }))
      ports.push_back({name, 0});
  }

  void find_arrows() {
    std::map<std::tuple<size_t, size_t, std::string>, size_t> known; // by boxes and words
    for (uint32_t e = 0; e < named_.edges.size(); ++e) {
      const EdgePlan& edge = named_.edges[e];
      const End from = end_of(plan_.edges[e].from, edge.from), to = end_of(plan_.edges[e].to, edge.to);
      if (from.box == SIZE_MAX || to.box == SIZE_MAX) continue;
      std::string words = edge.from + " → " + edge.to + ", " + policy_word(edge.policy);
      if (edge.delay > 0) words += ", " + std::to_string(edge.delay) + " before";
      const auto [at, is_new] = known.try_emplace({from.box, to.box, words}, picture_.arrows.size());
      if (is_new) {
        picture_.arrows.push_back({{}, words, edge.policy == graph::Policy::sync, edge.delay > 0, {}});
        ends_.push_back({from, to});
        add_port(picture_.boxes[from.box].outputs, from.port);
        add_port(picture_.boxes[to.box].inputs, to.port);
      }
      picture_.arrows[at->second].edges.push_back(e);
    }
  }

  // Ports stand in the order of their declaration, and those of a list by their numbers.
  void size_boxes() {
    for (PictureBox& box : picture_.boxes) {
      const plugin::HandlerInfo& info = plan_.type_of(plan_.handlers[box.handlers[0]]);
      int widest = 0;
      for (std::vector<PicturePort>* ports : {&box.inputs, &box.outputs}) {
        const auto rank = [&](const PicturePort& port) {
          const auto* const declared =
              info.find_port(port.name.substr(0, port.name.find('[')), ports == &box.inputs ? MR_INPUT : MR_OUTPUT);
          return std::tuple(declared ? declared - info.ports.data() : PTRDIFF_MAX, port.name.size(), port.name);
        };
        std::sort(ports->begin(), ports->end(),
                  [&](const PicturePort& a, const PicturePort& b) { return rank(a) < rank(b); });
        int most = 0;
        for (size_t n = 0; n < ports->size(); ++n) {
          PicturePort& port = (*ports)[n];
          port.y = kHead + static_cast<int>(n) * kPortRow + kPortRow / 2;
          most = std::max(most, letters(port.name) * kSmallLetter);
        }
        widest += most;
      }
      const size_t rows = std::max(box.inputs.size(), box.outputs.size());
      box.height = kHead + static_cast<int>(rows) * kPortRow + kPortRow / 2;
      const int count = box.handlers.size() > 1 ? 6 * kNameLetter : 0; // " (64)"
      box.width = 2 * kSide + std::max({letters(box.name) * kNameLetter + count, letters(box.type) * kSmallLetter,
                                        widest + kBetweenPorts});
    }
  }

  static int down_of(const std::vector<PicturePort>& ports, const std::string& name) {
    return std::find_if(ports.begin(), ports.end(), [&](const PicturePort& port) { return port.name == name; })->y;
  }

  void lay_out() {
    std::vector<LayerBox> boxes;
    for (const PictureBox& box : picture_.boxes) boxes.push_back({box.width, box.height, box.lane});
    std::vector<LayerArrow> arrows;
    for (size_t a = 0; a < picture_.arrows.size(); ++a) {
      const auto& [from, to] = ends_[a];
      arrows.push_back({static_cast<uint32_t>(from.box), static_cast<uint32_t>(to.box),
                        down_of(picture_.boxes[from.box].outputs, from.port),
                        down_of(picture_.boxes[to.box].inputs, to.port), picture_.arrows[a].goes_back});
    }
    const LayeredPicture layout =
        lay_out_layers(boxes, arrows, static_cast<uint32_t>(plan_.domains.size() + plan_.nodes.size()));
    picture_.width = layout.width;
    picture_.height = layout.height;
    for (size_t b = 0; b < boxes.size(); ++b)
      std::tie(picture_.boxes[b].x, picture_.boxes[b].y) = std::pair(layout.boxes[b].x, layout.boxes[b].y);
    for (size_t a = 0; a < arrows.size(); ++a) {
      picture_.arrows[a].goes_back = layout.goes_back[a] != 0;
      for (const Spot& spot : layout.arrows[a]) picture_.arrows[a].corners.push_back({spot.x, spot.y});
    }
    for (size_t lane = 0; lane < layout.lanes.size(); ++lane) {
      const bool is_here = lane < plan_.domains.size();
      const std::string& name = is_here ? plan_.domains[lane].name : plan_.nodes[lane - plan_.domains.size()];
      picture_.lanes.push_back({is_here ? name : "node " + name, layout.lanes[lane].first, layout.lanes[lane].second});
    }
  }

  const TemplateNames names_;
  const Plan& plan_;
  const Plan named_; // by template
  Picture picture_;
  std::map<std::string, size_t> box_of_;  // by the name of each handler
  std::vector<std::pair<End, End>> ends_; // by arrow
};

// ---- SVG -----------------------------------------------------------------------------------------------------------

constexpr const char* kStyle =
    "text{font:10px ui-monospace,monospace;fill:#555}"
    ".name{font-size:13px;font-weight:bold;fill:#111}"
    ".box{fill:#fff;stroke:#555}.inserted{stroke-dasharray:4 3}"
    ".lane{fill:#f2f4f8}.lane:nth-of-type(even){fill:#f6f2ec}"
    ".arrow{fill:none;stroke:#467;stroke-width:1.3}.other{stroke-dasharray:5 3}.back{stroke:#a55}";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : without_secrets(text)) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += letter;
    }
  }
  return out;
}

std::string attribute(const char* name, int value) {
  return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
}
std::string text_at(int x, int y, const std::string& words, const char* more = "") {
  return "<text" + attribute("x", x) + attribute("y", y) + more + ">" + escaped(words) + "</text>\n";
}
std::string titled(const std::string& words) { return "<title>" + escaped(words) + "</title>"; }

// An arrow that goes back has straight parts, the others are curves that begin and end level.
std::string path_of(const PictureArrow& arrow) {
  const auto at = [](int x, int y) { return std::to_string(x) + " " + std::to_string(y); };
  std::string path = "M" + at(arrow.corners[0].first, arrow.corners[0].second);
  for (size_t n = 1; n < arrow.corners.size(); ++n) {
    const auto [x, y] = arrow.corners[n];
    const auto [before_x, before_y] = arrow.corners[n - 1];
    const int middle = (before_x + x) / 2;
    path += arrow.goes_back || before_y == y ? " L" + at(x, y)
                                             : " C" + at(middle, before_y) + " " + at(middle, y) + " " + at(x, y);
  }
  return path;
}

std::string svg_of(const PictureBox& box) {
  std::string text = "<g>" + titled(box.name + " (" + box.type + ")") + "<rect class=\"box" +
                     (box.is_inserted ? " inserted" : "") + "\"" + attribute("x", box.x) + attribute("y", box.y) +
                     attribute("width", box.width) + attribute("height", box.height) + " rx=\"5\"/>\n";
  const std::string count = box.handlers.size() > 1 ? " (" + std::to_string(box.handlers.size()) + ")" : "";
  text += text_at(box.x + kSide, box.y + 17, cut(box.name) + count, " class=\"name\"");
  text += text_at(box.x + kSide, box.y + 31, cut(box.type));
  for (const PicturePort& port : box.inputs) text += text_at(box.x + kSide, box.y + port.y + 3, cut(port.name));
  for (const PicturePort& port : box.outputs)
    text += text_at(box.x + box.width - kSide, box.y + port.y + 3, cut(port.name), " text-anchor=\"end\"");
  return text + "</g>\n";
}

} // namespace

Picture picture_of(const Plan& plan) { return Drawing(plan).made(); }

std::string svg_of(const Picture& picture) {
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", picture.width) +
                     attribute("height", picture.height) + " viewBox=\"0 0 " + std::to_string(picture.width) + " " +
                     std::to_string(picture.height) + "\">\n<style>" + kStyle +
                     "</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
                     "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#467\"/></marker></defs>\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  for (const PictureLane& lane : picture.lanes) {
    if (lane.bottom == lane.top) continue;
    text += "<rect class=\"lane\"" + attribute("x", 4) + attribute("y", lane.top - 12) +
            attribute("width", picture.width - 8) + attribute("height", lane.bottom - lane.top + 16) + " rx=\"6\"/>\n";
    text += text_at(10, lane.top - 1, lane.name);
  }
  for (const PictureArrow& arrow : picture.arrows)
    text += "<path class=\"arrow" + std::string(arrow.is_sync ? "" : " other") + (arrow.goes_back ? " back" : "") +
            "\" marker-end=\"url(#tip)\" d=\"" + path_of(arrow) + "\">" + titled(arrow.words) + "</path>\n";
  for (const PictureBox& box : picture.boxes) text += svg_of(box);
  return text + "</svg>\n";
}

} // namespace millrace::plan
