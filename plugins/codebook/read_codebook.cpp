// codebook.read: gives a codebook that was written.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "millrace/handler.h"
#include "millrace/payload/half_floats.h"
#include "plugins/codebook/codebook_file.h"
#include "plugins/codebook/published_files.h"

namespace millrace::codebook {
namespace {

constexpr const char* kReadManual = &R"(
Gives the codebook of a file, once: what codebook.write wrote, or a published index whose path ends
with `.idx`. The file is mapped and looked at whole before anything runs. A damaged one is refused
with the section that is damaged. Outputs that the file has nothing for are empty.

    codebook.read name=book path=examples/data/waves.codebook  book.codebook ! null.sink
)"[1];

class ReadCodebook final : public Handler {
 public:
  void probe(Facts& facts) override {
    open();
    facts.tick_count(1);
    close();
  }

  void configure(const Formats& formats) override {
    if (!is_known_) return;
    formats.tensor(codebook_, dtype_of<Float16>(), {anchor_count_, dimensions_});
    formats.tensor(labels_, dtype_of<uint32_t>(), {label_count_});
    formats.tensor(deviations_, dtype_of<Float16>(), {anchor_count_, dimensions_});
  }

  void start() override { open(); }
  void stop() override { close(); }
  void reset() override { is_given_ = false; }

  void process(Tick& tick, Cpu&) {
    if (is_given_) return tick.end();
    is_given_ = true;
    const CodebookView& view = file_ ? file_->view() : published_view_;
    const int64_t book_shape[] = {anchor_count_, dimensions_}, label_shape[] = {label_count_};
    std::ranges::copy(view.anchors,
                      codebook_.allocate(tick, dtype_of<Float16>(), book_shape).elements<Float16>().begin());
    if (!view.labels.empty())
      std::ranges::copy(view.labels,
                        labels_.allocate(tick, dtype_of<uint32_t>(), label_shape).elements<uint32_t>().begin());
    if (!view.deviations.empty())
      std::ranges::copy(view.deviations,
                        deviations_.allocate(tick, dtype_of<Float16>(), book_shape).elements<Float16>().begin());
  }

 private:
  void open() {
    close();
    if (is_published_index(*path_)) {
      published_ = read_published(*path_);
      published_view_ = published_->view();
    } else {
      file_ = std::make_unique<CodebookFile>(*path_);
    }
    const CodebookView& view = file_ ? file_->view() : published_view_;
    anchor_count_ = view.anchor_count;
    dimensions_ = view.dimensions;
    label_count_ = static_cast<int64_t>(view.labels.size());
    is_known_ = true;
    is_given_ = false;
  }
  void close() {
    file_.reset();
    published_.reset();
    published_view_ = {};
  }

  Output<Tensor> codebook_{*this, "codebook", dtypes<Float16>(), rank(2), help("the anchors, [m, d]")};
  Output<Tensor> labels_{*this, "labels", dtypes<uint32_t>(), rank(1), help("the anchor of each vector, [n]")};
  Output<Tensor> deviations_{*this, "deviations", dtypes<Float16>(), rank(2),
                             help("of a cell's members from their anchor, [m, d]")};
  Param<std::string> path_{*this, "path", "", "the file", required, reads_path};

  std::unique_ptr<CodebookFile> file_;
  std::optional<PublishedCodebook> published_;
  CodebookView published_view_;
  int64_t anchor_count_ = 0, dimensions_ = 0, label_count_ = 0;
  bool is_known_ = false, is_given_ = false;
};

MILLRACE_HANDLER(ReadCodebook, "codebook.read", "Gives a codebook of a file", kReadManual)

} // namespace
} // namespace millrace::codebook
