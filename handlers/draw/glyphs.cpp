// Renders letters with FreeType, which lives only while a GlyphSet is made: the masks that remain are plain bytes.
#include "handlers/draw/glyphs.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <type_traits>

namespace millrace::handlers {
namespace {

// Debian and Ubuntu; Fedora; Arch; others and hand-installed ones.
constexpr std::array<const char*, 7> kFontFolders = {
    "/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/dejavu-sans-fonts",
    "/usr/share/fonts/dejavu",          "/usr/share/fonts/TTF",
    "/usr/share/fonts/truetype",        "/usr/local/share/fonts",
    "/usr/local/share/fonts/dejavu"};
constexpr uint32_t kReplacement = 0xfffd;
// Folders of fonts that may have a letter which the chosen one lacks, and how many of them are looked at.
constexpr std::array<const char*, 2> kAllFonts = {"/usr/share/fonts", "/usr/local/share/fonts"};
constexpr size_t kFontsMax = 2000;

// FreeType's unit is 1/64 pixel. Rounds up, so callers pass lengths that are positive away from the baseline.
int32_t whole_pixels_up(FT_Pos units) { return static_cast<int32_t>((units + 63) >> 6); }

struct FreeLibrary {
  void operator()(FT_Library library) const { FT_Done_FreeType(library); }
};
struct FreeFace {
  void operator()(FT_Face face) const { FT_Done_Face(face); }
};

} // namespace

uint32_t next_code_point(std::string_view& text) {
  const auto first = static_cast<uint8_t>(text[0]);
  text.remove_prefix(1);
  if (first < 0x80) return first;
  const size_t more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < more) return kReplacement;
  uint32_t code_point = first & (0x3fu >> more);
  for (size_t i = 0; i < more; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0) != 0x80) return kReplacement;
    code_point = code_point << 6 | (byte & 0x3f);
  }
  text.remove_prefix(more);
  return code_point;
}

std::string find_default_font() {
  for (const char* folder : kFontFolders) {
    const std::string path = std::string(folder) + "/DejaVuSans.ttf";
    std::error_code none;
    if (std::filesystem::is_regular_file(path, none)) return path;
  }
  return "";
}

namespace {

void append_utf8(std::string& text, uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80u | (code >> shift & 0x3fu)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0u | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0u | code >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xf0u | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

// The fonts of this machine: the default one first, the others in the order of their paths, which is the same at every
// start.
std::vector<std::string> fonts_of_machine() {
  namespace fs = std::filesystem;
  std::vector<std::string> fonts;
  for (const char* folder : kAllFonts) {
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
         !error && entry != end && fonts.size() < kFontsMax; entry.increment(error)) {
      const std::string extension = entry->path().extension().string();
      if (extension == ".ttf" || extension == ".otf" || extension == ".ttc") fonts.push_back(entry->path().string());
    }
  }
  std::sort(fonts.begin(), fonts.end());
  if (const std::string usual = find_default_font(); !usual.empty()) fonts.insert(fonts.begin(), usual);
  return fonts;
}

} // namespace

std::string quoted_letters(std::string_view text) {
  constexpr size_t kShownMax = 8;
  std::string list;
  for (size_t shown = 0; !text.empty(); ++shown) {
    if (shown == kShownMax) return list + ", …";
    list += shown == 0 ? "'" : ", '";
    append_utf8(list, next_code_point(text));
    list += "'";
  }
  return list;
}

void GlyphSet::render_from_other_fonts(void* library, uint32_t size, std::vector<uint32_t>& lacking) {
  for (const std::string& path : fonts_of_machine()) {
    if (lacking.empty()) return;
    FT_Face raw_face = nullptr;
    if (FT_New_Face(static_cast<FT_Library>(library), path.c_str(), 0, &raw_face) != 0) continue;
    const std::unique_ptr<std::remove_pointer_t<FT_Face>, FreeFace> face(raw_face);
    if (!FT_IS_SCALABLE(face.get()) || FT_Set_Pixel_Sizes(face.get(), 0, size) != 0) continue; // bitmaps have one size
    std::erase_if(lacking, [&](uint32_t code_point) {
      if (FT_Get_Char_Index(face.get(), code_point) == 0) return false;
      render(face.get(), code_point);
      return true;
    });
  }
}

GlyphSet::GlyphSet(const std::string& font, uint32_t size, std::string_view extra) {
  const std::string path = font.empty() ? find_default_font() : font;
  if (path.empty())
    throw std::runtime_error(
        "no font: DejaVuSans.ttf is in none of the usual folders; install the DejaVu fonts, or set font=FILE");
  FT_Library raw_library = nullptr;
  if (FT_Init_FreeType(&raw_library) != 0) throw std::runtime_error("FreeType cannot be initialised");
  const std::unique_ptr<std::remove_pointer_t<FT_Library>, FreeLibrary> library(raw_library);
  FT_Face raw_face = nullptr;
  if (const FT_Error error = FT_New_Face(library.get(), path.c_str(), 0, &raw_face); error != 0)
    throw std::runtime_error(error == FT_Err_Cannot_Open_Resource ? "font '" + path + "' cannot be opened"
                                                                  : "'" + path + "' is not a font that can be read");
  const std::unique_ptr<std::remove_pointer_t<FT_Face>, FreeFace> face(raw_face);
  if (FT_Set_Pixel_Sizes(face.get(), 0, size) != 0)
    throw std::runtime_error("font '" + path + "' has no size of " + std::to_string(size) + " pixels");

  for (uint32_t code_point = ' '; code_point <= '~'; ++code_point) render(face.get(), code_point);
  std::vector<uint32_t> lacking;
  while (!extra.empty()) {
    const uint32_t code_point = next_code_point(extra);
    const auto same = [code_point](const Glyph& glyph) { return glyph.code_point == code_point; };
    if (code_point < ' ' || std::any_of(glyphs_.begin(), glyphs_.end(), same)) continue;
    if (FT_Get_Char_Index(face.get(), code_point) != 0)
      render(face.get(), code_point);
    else if (std::find(lacking.begin(), lacking.end(), code_point) == lacking.end())
      lacking.push_back(code_point);
  }
  render_from_other_fonts(library.get(), size, lacking);
  for (const uint32_t code_point : lacking) {
    append_utf8(missing_, code_point);
    render(face.get(), code_point);
  }
  std::sort(glyphs_.begin(), glyphs_.end(), [](const Glyph& a, const Glyph& b) { return a.code_point < b.code_point; });
  ascent_ = whole_pixels_up(face->size->metrics.ascender);
  descent_ = whole_pixels_up(-face->size->metrics.descender);
  finish();
}

void GlyphSet::render(void* raw_face, uint32_t code_point) {
  const FT_Face face = static_cast<FT_Face>(raw_face);
  // If a font lacks the letter, FreeType gives its "missing" box, which is what a reader expects to see.
  if (FT_Load_Char(face, code_point, FT_LOAD_RENDER | FT_LOAD_TARGET_NORMAL) != 0) return;
  const FT_GlyphSlot slot = face->glyph;
  const FT_Bitmap& bitmap = slot->bitmap;
  const bool drawn = bitmap.pixel_mode == FT_PIXEL_MODE_GRAY;
  const Glyph glyph = {code_point,
                       slot->bitmap_left,
                       slot->bitmap_top,
                       drawn ? bitmap.width : 0,
                       drawn ? bitmap.rows : 0,
                       static_cast<int32_t>((slot->advance.x + 32) >> 6),
                       masks_.size()};
  for (uint32_t y = 0; y < glyph.height; ++y) {
    const uint8_t* row = bitmap.buffer + static_cast<ptrdiff_t>(y) * bitmap.pitch;
    masks_.insert(masks_.end(), row, row + glyph.width);
  }
  glyphs_.push_back(glyph);
}

GlyphSet GlyphSet::outlined(uint32_t radius) const {
  GlyphSet wide = *this;
  wide.masks_.clear();
  const auto reach = static_cast<int32_t>(radius);
  for (Glyph& glyph : wide.glyphs_) {
    const uint8_t* const from = masks_.data() + glyph.mask;
    const uint32_t rows = glyph.height, columns = glyph.width;
    glyph.mask = wide.masks_.size();
    if (rows == 0 || columns == 0) continue;
    glyph.left -= reach;
    glyph.top += reach;
    glyph.width += 2 * radius;
    glyph.height += 2 * radius;
    wide.masks_.resize(glyph.mask + size_t{glyph.width} * glyph.height);
    uint8_t* const to = wide.masks_.data() + glyph.mask;
    // The mask is laid over itself once for each offset within a disc; the loop over a row vectorises.
    for (int32_t dy = -reach; dy <= reach; ++dy)
      for (int32_t dx = -reach; dx <= reach; ++dx) {
        if (dx * dx + dy * dy > reach * reach + reach) continue; // within half a pixel of the radius
        for (uint32_t y = 0; y < rows; ++y) {
          const uint8_t* const source = from + size_t{y} * columns;
          uint8_t* const target =
              to + static_cast<size_t>(static_cast<int32_t>(y) + reach + dy) * glyph.width + (reach + dx);
          for (uint32_t x = 0; x < columns; ++x) target[x] = std::max(target[x], source[x]);
        }
      }
  }
  wide.finish();
  return wide;
}

void GlyphSet::finish() {
  masks_.resize(masks_.size() + kMaskSlack);
  for (const Glyph& glyph : glyphs_) {
    rise_ = std::max(rise_, glyph.top);
    fall_ = std::max(fall_, static_cast<int32_t>(glyph.height) - glyph.top);
  }
}

const GlyphSet::Glyph* GlyphSet::find(uint32_t code_point) const {
  const auto at = std::lower_bound(glyphs_.begin(), glyphs_.end(), code_point,
                                   [](const Glyph& glyph, uint32_t wanted) { return glyph.code_point < wanted; });
  if (at != glyphs_.end() && at->code_point == code_point) return &*at;
  return code_point == '?' ? nullptr : find('?');
}

int64_t GlyphSet::width(std::string_view text) const {
  int64_t sum = 0;
  while (!text.empty())
    if (const Glyph* glyph = find(next_code_point(text))) sum += glyph->advance;
  return sum;
}

void GlyphSet::draw(const ImageSpan& picture, std::string_view text, int64_t x, int64_t y, const Ink& ink,
                    const Rectangle& clip) const {
  const Rectangle seen = common_part(clip, {0, 0, picture.width(), picture.height()});
  each_stamp(text, x, y, seen, [&](const Stamp& stamp) {
    for (uint32_t row = 0; row < stamp.height; ++row) {
      const uint8_t* mask = stamp.mask + row * stamp.mask_stride;
      uint8_t* pixels = picture.row(stamp.top + row) + size_t{stamp.left} * ink.channel_count;
      for (size_t i = 0; i < stamp.width; ++i)
        if (mask[i] > 0) blend(pixels + i * ink.channel_count, ink, mask[i]);
    }
  });
}

} // namespace millrace::handlers
