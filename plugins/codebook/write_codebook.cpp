// codebook.write: writes a codebook to one file, or to the three published ones.
#include <span>
#include <stdexcept>
#include <string>

#include "millrace/handler.h"
#include "millrace/payload/half_floats.h"
#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/iteration_record.h"
#include "plugins/codebook/number_text.h"
#include "plugins/codebook/published_files.h"

namespace millrace::codebook {
namespace {

constexpr const char* kWriteManual = &R"(
Writes what codebook.fit makes. `layout: one_file` is a file of its own with a checksum for each of
its sections: settings, anchors, and deviations and labels if those inputs are connected.
`layout: published` writes the three files of the published index: the path ends with `.idx`, and
`.anchors.bin` and `.assign.bin` lie beside it. Each tick writes anew. A file is written beside its
place and gets its name when it is whole.

The settings are text of lines `key=value`. They have the number of vectors, anchors and dimensions,
and from `iterations` their number, the last energy and temperature; then what `settings` says, with
commas between pairs.

    test.vectors ! codebook.fit name=fit m=8  fit.codebook ! codebook.write path=out/made.codebook
)"[1];

class WriteCodebook final : public Handler {
 public:
  void configure(const Formats&) override {
    if (*layout_ == "published" && !labels_.connected())
      throw std::invalid_argument("layout=published has labels, and the input labels is not connected");
    if (*layout_ == "published" && deviations_.connected())
      throw std::invalid_argument("layout=published has no deviations, and the input deviations is connected");
    if (*layout_ == "published" && !names_published(*path_))
      throw std::invalid_argument("the path of layout=published ends with .idx, and '" + *path_ +
                                  "' does not\ntry: path=" + *path_ + ".idx");
  }

  void process(Tick& tick, Cpu&) {
    const TensorView book = codebook_(tick);
    CodebookView view;
    view.anchor_count = static_cast<uint32_t>(book.shape()[0]);
    view.dimensions = static_cast<uint32_t>(book.shape()[1]);
    view.anchors = book.elements<Float16>();
    if (labels_.present(tick)) view.labels = labels_(tick).elements<uint32_t>();
    view.settings = settings_of(tick, view);
    if (*layout_ == "published") {
      if (!labels_.present(tick))
        throw std::runtime_error("layout=published has labels, and there are none on this tick");
      return write_published(*path_, view);
    }
    if (deviations_.present(tick)) view.deviations = deviations_of(tick, view);
    write_codebook(*path_, view);
  }

 private:
  std::string settings_of(Tick& tick, const CodebookView& view) const {
    std::string text = "anchors=" + std::to_string(view.anchor_count) +
                       "\ndimensions=" + std::to_string(view.dimensions) +
                       "\nvectors=" + std::to_string(view.labels.size()) + "\n";
    if (iterations_.present(tick) && !iterations_(tick).empty()) {
      const IterationRecord& last = iterations_(tick)[iterations_(tick).size() - 1];
      text += "iterations=" + std::to_string(iterations_(tick).size()) + "\nenergy=" + number_text(last.energy) +
              "\ntemperature=" + number_text(double{last.temperature}) +
              "\nconverged=" + std::to_string(last.converged) + "\n";
    }
    for (const char letter : *settings_) text += letter == ',' ? '\n' : letter;
    return settings_->empty() ? text : text + "\n";
  }

  std::span<const Float16> deviations_of(Tick& tick, const CodebookView& view) const {
    const TensorView deviations = deviations_(tick);
    if (deviations.shape()[0] != view.anchor_count || deviations.shape()[1] != view.dimensions)
      throw std::invalid_argument("the deviations are [" + std::to_string(deviations.shape()[0]) + ", " +
                                  std::to_string(deviations.shape()[1]) + "], and the anchors [" +
                                  std::to_string(view.anchor_count) + ", " + std::to_string(view.dimensions) + "]");
    return deviations.elements<Float16>();
  }

  Input<Tensor> codebook_{*this, "codebook", dtypes<Float16>(), rank(2), help("the anchors, [m, d]")};
  Input<Tensor> labels_{*this, "labels", dtypes<uint32_t>(), rank(1), optional, help("the anchor of each vector, [n]")};
  Input<Tensor> deviations_{*this,   "deviations", dtypes<Float16>(),
                            rank(2), optional,     help("of each cell's members from its anchor, [m, d]")};
  Input<Records<IterationRecord>> iterations_{*this, "iterations", optional, help("for the settings")};
  Param<std::string> path_{*this, "path", "", "the file", required, writes_path};
  Param<std::string> layout_{*this, "layout", "one_file", "of the file", choices({"one_file", "published"})};
  Param<std::string> settings_{*this, "settings", "", "more settings to keep: key=value,key=value"};
};

MILLRACE_HANDLER(WriteCodebook, "codebook.write", "Writes a codebook to a file", kWriteManual)

} // namespace
} // namespace millrace::codebook
