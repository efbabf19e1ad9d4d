// Settles the format of each output and input in the order of the data. If two sides share no pixel format, it asks for
// a conversion; pixels.cpp finds the formats that need the fewest conversions, and of those the least time.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "millrace/payload.h"
#include "observe/error_codes.h"
#include "plan/between.h"
#include "plan/check_formats.h"
#include "plan/conversion_times.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "plan/format_text.h"
#include "plan/groups.h"
#include "plan/machine.h"
#include "plan/pixels.h"
#include "plan/refusal.h"
#include "plugin/answers.h"

namespace millrace::plan {

namespace {

// The format of a port before it is settled: all that the port accepts.
mr_format unset(const mr_format& accepts) {
  mr_format format = accepts;
  format.size = sizeof(mr_format);
  return format;
}

// The words that parameters with MR_ROLE_TURN use, by MR_TURN_*.
constexpr const char* kTurnNames[MR_TURN_COUNT] = {"",         "horizontal", "vertical",  "both",
                                                   "rotate90", "rotate270",  "transpose", "transverse"};

constexpr const char* kNothingConverts = "there is no handler that converts what it carries";
constexpr const char* kUpright = "upright"; // part of a conversion's name

constexpr uint64_t kAllPixels = ((1ull << MR_PIXEL_COUNT) - 1) & ~1ull;

class Negotiation {
 public:
  explicit Negotiation(Draft& draft)
      : draft_(draft),
        readers_(draft.handlers.size()),
        settled_(draft.edges.size()),
        convert_(draft.types.converter(MR_ROLE_PIXELS)),
        times_(draft.machine, convert_) {
    for (uint32_t h = 0; h < draft.handlers.size(); ++h) {
      DraftHandler& handler = draft.handlers[h];
      handler.inputs.clear();
      for (uint32_t port : handler.input_port) handler.inputs.push_back(unset(handler.accepts[port]));
      readers_[h].resize(handler.output_count);
    }
    for (uint32_t e = 0; e < draft.edges.size(); ++e)
      readers_[draft.edges[e].source][draft.edges[e].source_output].push_back(e);
    find_conversions();
  }

  std::vector<Conversion> run() {
    // Delayed edges come from handlers that are configured later: the second round sees what the first one found. It
    // also sees the sizes that handlers downstream give their pictures; the time of a conversion depends on them.
    const bool delayed = std::any_of(draft_.edges.begin(), draft_.edges.end(),
                                     [](const DraftEdge& edge) { return edge.declared->delay > 0; });
    const auto is_done = [&] {
      const bool has_prices = !conversions_.empty() || !draft_.machine.bodies.empty();
      return round_ > 1 || (round_ == 1 && !delayed && !(resizes_ && has_prices));
    };
    for (; !is_done(); ++round_) {
      conversions_.clear();
      for (uint32_t h : draft_.order) {
        for (uint32_t e : draft_.handlers[h].input_edge)
          if (e != kNone && (round_ > 0 || draft_.edges[e].declared->delay == 0)) accept(e);
        for (uint32_t e : draft_.handlers[h].more_edges)
          if (round_ > 0 || draft_.edges[e].declared->delay == 0) accept_more(e);
        configure(h);
      }
    }
    std::vector<Conversion> wanted;
    // Pictures on their side are turned first: what their readers want depends on the turned picture.
    const bool turns = std::any_of(conversions_.begin(), conversions_.end(),
                                   [](const auto& one) { return one.first.wish == kUpright; });
    for (const auto& [key, edges] : conversions_)
      if (!turns || key.wish == kUpright)
        wanted.push_back({edges, key.type, key.wish, key.settings,
                          convert_ && key.type == convert_->type ? elsewhere_[{key.source, key.output}] : ""});
    return wanted;
  }

 private:
  using Output = std::pair<uint32_t, uint32_t>; // handler and flat output

  // A conversion after an output: edges that want the same share it.
  struct Wanted {
    uint32_t source, output;
    std::string type, wish;
    Settings settings;
    friend auto operator<=>(const Wanted&, const Wanted&) = default;
  };

  // The choice for an edge: its reader gets the format `gets` if the output has the format `gives`.
  struct Settled {
    uint64_t gives = 0, gets = 0;
    uint32_t round = 0; // counts from 1
  };

  // Finds the types that convert, and the pixel formats that the one for pixels declares to read and make.
  void find_conversions() {
    turn_ = draft_.types.converter(MR_ROLE_TURN);
    scale_ = draft_.types.converter(MR_ROLE_WIDTH);
    if (!convert_) return;
    const auto* to = convert_->find_role(MR_ROLE_PIXELS);
    for (const auto& port : convert_->ports)
      if (port.is_input()) reads_ = port.raw.accepts.pixel_formats;
    for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel)
      if (std::find(to->choices.begin(), to->choices.end(), kPixelNames[pixel]) != to->choices.end())
        makes_ |= 1ull << pixel;
  }

  const mr_format& accepts(const DraftEdge& edge) const {
    const DraftHandler& target = draft_.handlers[edge.target];
    return target.accepts[target.input_port[edge.target_input]];
  }

  uint64_t takes(const DraftEdge& edge) const {
    const uint64_t declared = accepts(edge).kind == MR_KIND_IMAGE ? accepts(edge).pixel_formats : 0;
    return declared ? declared : kAllPixels;
  }

  void configure(uint32_t h) {
    DraftHandler& handler = draft_.handlers[h];
    handler.outputs.clear();
    for (uint32_t o = 0; o < handler.output_count; ++o) {
      const auto& port = handler.info->ports[handler.output_port[o]];
      mr_format format = unset(handler.accepts[handler.output_port[o]]);
      if (port.raw.like >= 0) {
        const uint32_t flat = handler.first[static_cast<uint32_t>(port.raw.like)];
        if (flat < handler.inputs.size()) {
          const uint64_t counts = format.record_count_max;
          format = handler.inputs[flat];
          if (format.kind == MR_KIND_RECORDS && !format.record_count_max) format.record_count_max = counts;
        }
      }
      handler.outputs.push_back(format);
    }
    const std::vector<mr_format>& given = draft_.facts.handlers[h].outputs;
    const bool is_given = given.size() == handler.outputs.size() && !given.empty();
    if (is_given) handler.outputs = given;
    if (!is_given && !draft_.facts.probed && handler.is_source()) return;
    if (!is_given && handler.answers->configure(handler.inputs, handler.outputs) != MR_OK)
      throw Failure(refusal(code::incompatible_formats,
                            handler.declared->name + " (" + handler.info->type + ") refuses: ", *handler.declared,
                            *handler.answers));
    for (uint32_t o = 0; o < handler.output_count; ++o) {
      const int32_t like = handler.info->ports[handler.output_port[o]].raw.like;
      if (like >= 0 && handler.first[static_cast<uint32_t>(like)] < handler.inputs.size()) {
        const mr_format& in = handler.inputs[handler.first[static_cast<uint32_t>(like)]];
        resizes_ |= in.width != handler.outputs[o].width || in.height != handler.outputs[o].height;
      }
      const std::string fault = format_fault(handler.outputs[o], handler.info->ports[handler.output_port[o]].raw);
      if (!fault.empty())
        throw Failure(Error{code::incompatible_formats,
                            draft_.port_name(h, false, o) + " (" + handler.info->type + ") " + fault,
                            handler.declared->place,
                            {},
                            "",
                            "a handler with this mistake cannot be used"});
      settle_pixels(h, o);
      ask_to_turn(h, o);
    }
  }

  // A picture on its side is turned upright once, for all readers.
  void ask_to_turn(uint32_t h, uint32_t output) {
    const mr_format& format = draft_.handlers[h].outputs[output];
    if (format.kind != MR_KIND_IMAGE || format.turn == MR_TURN_NONE || format.turn >= MR_TURN_COUNT) return;
    for (const uint32_t e : readers_[h][output]) {
      const DraftHandler& reader = draft_.handlers[draft_.edges[e].target];
      if (reader.declared->inserted && reader.info->converts(MR_ROLE_TURN)) continue;
      if (!turn_) refuse(draft_.edges[e], kNothingConverts, "a picture on its side", "one that is upright", "");
      Wanted conversion{h, output, turn_->type, kUpright, {}};
      set_role(conversion.settings, *turn_, MR_ROLE_TURN, kTurnNames[format.turn]);
      conversions_[std::move(conversion)].push_back(e);
    }
  }

  // Asks for the size that keeps the picture's shape with square pixels; no side is made smaller.
  void ask_for_square(uint32_t e, const mr_format& gives) {
    const DraftEdge& edge = draft_.edges[e];
    const uint64_t num = gives.aspect_num, den = gives.aspect_den;
    const uint64_t width = num > den ? (gives.width * num + den / 2) / den : gives.width;
    const uint64_t height = num > den ? gives.height : (gives.height * den + num / 2) / num;
    if (!scale_) refuse(edge, kNothingConverts, "pixels that are not square", "square ones", "");
    Wanted conversion{edge.source, edge.source_output, scale_->type, "square", {}};
    set_role(conversion.settings, *scale_, MR_ROLE_WIDTH, std::to_string(width));
    set_role(conversion.settings, *scale_, MR_ROLE_HEIGHT, std::to_string(height));
    conversions_[std::move(conversion)].push_back(e);
  }

  void ask_for_pixels(uint32_t e, const mr_format& gives, uint64_t wanted) {
    const DraftEdge& edge = draft_.edges[e];
    conversions_[{edge.source, edge.source_output, convert_->type, std::string(name_of_pixel(wanted)),
                  times_.settings_for(gives, wanted)}]
        .push_back(e);
  }

  // Chooses the format of an output and of all readers that it reaches by `like`, unless the output that this one is
  // like settled them before.
  void settle_pixels(uint32_t h, uint32_t output) {
    mr_format& format = draft_.handlers[h].outputs[output];
    if (format.kind != MR_KIND_IMAGE) return;
    const std::vector<uint32_t>& readers = readers_[h][output];
    const auto is_settled = [&](uint32_t e) {
      return settled_[e].gives == format.pixel_formats && settled_[e].round == round_ + 1;
    };
    if (std::popcount(format.pixel_formats) == 1 && std::all_of(readers.begin(), readers.end(), is_settled)) return;
    PixelTree tree;
    tree.choices = format.pixel_formats ? format.pixel_formats & kAllPixels : kAllPixels;
    if (tree.choices == 0) return; // no known format, so no known size: check_settled() refuses it
    tree.reads = reads_;
    tree.makes = makes_;
    std::vector<Output> outputs;
    const std::vector<uint32_t> edges = grow(tree, outputs, h, output);
    std::vector<uint32_t> seen;
    for (const uint32_t e : readers) tree.colours += colours_at_ends(e, seen);
    const PixelChoice choice = choose_pixels(tree);
    format.pixel_formats = 1ull << choice.format;
    const auto name_of = [&](uint32_t o) { return draft_.port_name(outputs[o].first, false, outputs[o].second); };
    for (const uint32_t o : choice.converted) elsewhere_[outputs[o]] = elsewhere_words(tree, choice, o, name_of);
    std::vector<uint64_t> gives(tree.outputs.size(), format.pixel_formats);
    for (size_t o = 0; o < tree.outputs.size(); ++o) {
      for (const uint32_t r : tree.outputs[o]) {
        settled_[edges[r]] = {gives[o], 1ull << choice.gets[r], round_ + 1};
        for (const uint32_t next : tree.readers[r].passes_to) gives[next] = settled_[edges[r]].gets;
      }
    }
  }

  // Adds all that an output reaches by `like` to `tree` and `outputs`. Returns the edge of each of the tree's readers.
  std::vector<uint32_t> grow(PixelTree& tree, std::vector<Output>& outputs, uint32_t h, uint32_t output) const {
    std::vector<uint32_t> edges;
    outputs = {{h, output}};
    for (uint32_t at = 0; at < outputs.size(); ++at) {
      tree.outputs.emplace_back();
      // In the first round the handlers downstream have not said their sizes.
      const auto& known = draft_.handlers[outputs[at].first].outputs;
      mr_format picture = known.empty() ? draft_.handlers[h].outputs[output] : known[outputs[at].second];
      ByPixel& bytes = tree.bytes.emplace_back();
      for (uint32_t pixel = 1; pixel < MR_PIXEL_COUNT; ++pixel) bytes[pixel] = bytes_as(picture, pixel);
      auto& conversion_ns = tree.conversion_ns.emplace_back();
      for (uint32_t from = 1; from < MR_PIXEL_COUNT; ++from)
        for (uint32_t to = 1; to < MR_PIXEL_COUNT; ++to)
          conversion_ns[from][to] = times_.conversion_ns(picture, from, to);
      for (const uint32_t e : readers_[outputs[at].first][outputs[at].second]) {
        const DraftEdge& edge = draft_.edges[e];
        const bool may_convert = !edge.declared->forbid_convert && !draft_.handlers[edge.target].declared->inserted;
        PixelTree::Reader reader{takes(edge), may_convert, {}, times_.own_ns(draft_.handlers[edge.target], picture)};
        for (const uint32_t o : outputs_like(edge)) {
          const Output next{edge.target, o};
          if (std::find(outputs.begin(), outputs.end(), next) != outputs.end()) continue; // by a delay, to itself
          reader.passes_to.push_back(static_cast<uint32_t>(outputs.size()));
          outputs.push_back(next);
        }
        tree.outputs[at].push_back(static_cast<uint32_t>(tree.readers.size()));
        tree.readers.push_back(std::move(reader));
        edges.push_back(e);
      }
    }
    return edges;
  }

  // Counts the readers at the ends downstream of an edge that would take colours. It looks through handlers that pass
  // pictures on and through conversions that were inserted before, so that every round counts the same.
  uint32_t colours_at_ends(uint32_t e, std::vector<uint32_t>& seen) const {
    if (std::find(seen.begin(), seen.end(), e) != seen.end()) return 0; // by a delay
    seen.push_back(e);
    const DraftEdge& edge = draft_.edges[e];
    std::vector<uint32_t> passed_on = outputs_like(edge);
    if (passed_on.empty() && draft_.handlers[edge.target].declared->inserted) passed_on = {0};
    uint32_t count = 0;
    bool is_end = true;
    for (const uint32_t o : passed_on) {
      for (const uint32_t reader : readers_[edge.target][o]) {
        is_end = false;
        count += colours_at_ends(reader, seen);
      }
    }
    return is_end ? (takes(edge) & ~(1ull << MR_PIXEL_GRAY8)) != 0 : count;
  }

  // The outputs of an edge's reader that are like what it gets by this edge.
  std::vector<uint32_t> outputs_like(const DraftEdge& edge) const {
    const DraftHandler& target = draft_.handlers[edge.target];
    std::vector<uint32_t> found;
    for (uint32_t o = 0; o < target.output_count; ++o) {
      const int32_t like = target.info->ports[target.output_port[o]].raw.like;
      if (like >= 0 && target.first[static_cast<uint32_t>(like)] == edge.target_input) found.push_back(o);
    }
    return found;
  }

  // Gives an input the format of its edge; asks for a conversion if one was chosen or is the only way.
  void accept(uint32_t e) {
    const DraftEdge& edge = draft_.edges[e];
    DraftHandler& target = draft_.handlers[edge.target];
    const auto& port = target.info->ports[target.input_port[edge.target_input]];
    const mr_format gives = draft_.handlers[edge.source].outputs[edge.source_output];
    mr_format& gets = target.inputs[edge.target_input] = gives;
    gets.held = gets.adopted = 0; // concern its source alone
    gets.turn = MR_TURN_NONE;
    if (port.raw.accepts.kind != MR_KIND_ANY && gives.kind != port.raw.accepts.kind && gives.kind != MR_KIND_ANY)
      refuse(edge, "the two ends of an edge carry different payloads", described_kind(gives.kind), port.type_name, "",
             {}, &gives);
    if (port.raw.accepts.kind == MR_KIND_TENSOR && gives.kind == MR_KIND_TENSOR && gives.dtype_bits)
      check_tensor(edge, gives);
    const bool meets = takes(edge) & gives.pixel_formats;
    if (gives.kind == MR_KIND_IMAGE && settled_[e].gives == gives.pixel_formats)
      gets.pixel_formats = settled_[e].gets;
    else if (port.raw.accepts.kind == MR_KIND_IMAGE && accepts(edge).pixel_formats && !meets)
      gets.pixel_formats = first_made_for(edge, gives.pixel_formats);
    if (port.raw.accepts.kind == MR_KIND_IMAGE && !(takes(edge) & gets.pixel_formats) && gets.pixel_formats)
      refuse_pixels(edge, gives.pixel_formats);
    if (gets.pixel_formats != gives.pixel_formats) {
      const uint64_t wanted = std::exchange(gets.pixel_formats, gives.pixel_formats);
      ask_for_pixels(e, gives, wanted);
      gets = converted(gets, wanted);
      return;
    }
    if ((port.raw.flags & MR_PORT_SQUARE) && gives.aspect_num != gives.aspect_den && gives.aspect_den > 0)
      ask_for_square(e, gives);
  }

  // A further stream's items at an input of a group: what the input takes has room for them too.
  void accept_more(uint32_t e) {
    const DraftEdge& edge = draft_.edges[e];
    mr_format& gets = draft_.handlers[edge.target].inputs[edge.target_input];
    const mr_format before = gets;
    accept(e);
    const std::string differs = take_both(before, gets);
    if (!differs.empty()) refuse_formats_of_items(draft_, edge, differs, before, gets);
  }

  // Nothing converts tensors, so the two ends have to agree.
  void check_tensor(const DraftEdge& edge, const mr_format& gives) const {
    const mr_format& wants = accepts(edge);
    if (!takes_dtype(wants, gives)) refuse_dtype(edge, gives, wants.dtypes);
    if (!takes_rank(wants, gives))
      refuse(edge, "the two ends of an edge share no number of dimensions", describe_rank(gives.rank),
             describe_ranks(wants.ranks),
             "a handler between them that gives tensors of " + describe_ranks(wants.ranks));
  }

  [[noreturn]] void refuse_dtype(const DraftEdge& edge, const mr_format& gives, uint32_t dtypes) const {
    const TypeEdit edit = edit_to_dtypes(draft_.handlers[edge.source], dtypes);
    const std::string to = describe_dtypes(dtypes);
    refuse(edge, "the two ends of an edge share no element type", name_of(dtype_of(gives)), to,
           edit.text.empty() ? "a handler between them that gives " + to : edit.text, edit.place);
  }

  // The reader's first format to which the given one can be converted; the given one if there is none.
  uint64_t first_made_for(const DraftEdge& edge, uint64_t gives) const {
    const uint64_t can = edge.declared->forbid_convert || !(reads_ & gives) ? 0 : takes(edge) & makes_;
    return can ? can & (~can + 1) : gives;
  }

  [[noreturn]] void refuse_pixels(const DraftEdge& edge, uint64_t gives) const {
    const std::string from = describe_pixels(gives), to = describe_pixels(takes(edge));
    const std::string what = "the two ends of an edge share no pixel format, and ";
    if (edge.declared->forbid_convert)
      refuse(edge, what + "it forbids a conversion", from, to, "remove convert: forbid");
    if (!reads_) refuse(edge, what + kNothingConverts, from, to, "");
    refuse(edge, what + "no conversion between them is known", from, to,
           convert_->type + " reads " + describe_pixels(reads_) + " and makes " + describe_pixels(makes_));
  }

  [[noreturn]] void refuse(const DraftEdge& edge, const std::string& what, const std::string& from,
                           const std::string& to, const std::string& edit, const Place& place = {},
                           const mr_format* payload = nullptr) const {
    Error error{code::incompatible_formats,
                what,
                place.line > 0 ? place : edge.declared->place,
                {draft_.port_name(edge.source, false, edge.source_output) + " gives " + from,
                 draft_.port_name(edge.target, true, edge.target_input) + " takes " + to},
                "",
                edit};
    const DraftHandler& target = draft_.handlers[edge.target];
    const auto& port = target.info->ports[target.input_port[edge.target_input]];
    throw Failure(payload ? with_handler_between(error, draft_, edge, *payload, from, port) : error);
  }

  Draft& draft_;
  std::vector<std::vector<std::vector<uint32_t>>> readers_; // by handler and flat output: edges
  std::vector<Settled> settled_;                            // by edge
  // The types that convert pixel formats, turn, and scale to square pixels; null if there is none.
  const plugin::HandlerInfo *convert_ = nullptr, *turn_ = nullptr, *scale_ = nullptr;
  const ConversionTimes times_;
  uint64_t reads_ = 0, makes_ = 0;                    // pixel formats, by convert_
  std::map<Wanted, std::vector<size_t>> conversions_; // the edges that each serves
  std::map<Output, std::string> elsewhere_;           // by the output that is converted: what another place costs
  uint32_t round_ = 0;
  bool resizes_ = false; // an output is like an input, but of another size
};

} // namespace

std::vector<Conversion> negotiate(Draft& draft) {
  std::vector<Conversion> conversions = Negotiation(draft).run();
  if (conversions.empty()) check_settled(draft);
  return conversions;
}

} // namespace millrace::plan
