// A locale with a decimal comma, made here: no machine has to have one.
#pragma once

#include <stdlib.h>

#include <clocale>
#include <filesystem>
#include <fstream>
#include <locale>
#include <string>
#include <system_error>

namespace millrace::test {

// While it lives, the process has such a locale, as a host program with a window system has it in half of Europe: for C
// functions (setlocale), and for C++ streams (std::locale::global). 1234.5 is 1.234,5 there.
class CommaLocale {
 public:
  CommaLocale() {
    std::string folder = (std::filesystem::temp_directory_path() / "mr-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    std::filesystem::create_directory(folder_ / "comma");
    // glibc's LC_NUMERIC as localedef writes it: magic, places, comma, point, groups of three, both again, the charset.
    constexpr unsigned char kFile[] = {0x14, 0x11, 0x03, 0x20, 0x06, 0, 0,    0,    0x20, 0,   0,    0, 0x22, 0,
                                       0,    0,    0x24, 0,    0,    0, 0x28, 0,    0,    0,   0x2c, 0, 0,    0,
                                       0x30, 0,    0,    0,    0x2c, 0, 0x2e, 0,    0x03, 3,   0,    0, 0x2c, 0,
                                       0,    0,    0x2e, 0,    0,    0, 0x55, 0x54, 0x46, '-', '8',  0};
    std::ofstream(folder_ / "comma" / "LC_NUMERIC", std::ios::binary)
        .write(reinterpret_cast<const char*>(kFile), sizeof kFile);
    setenv("LOCPATH", folder_.c_str(), 1);
    is_set_ = std::setlocale(LC_NUMERIC, "comma") != nullptr;
    before_ = std::locale::global(std::locale(std::locale::classic(), new Comma)); // the locale owns the facet
  }
  ~CommaLocale() {
    std::locale::global(before_);
    std::setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  // False on a system whose C library has locales of another form.
  bool is_set() const { return is_set_; }

 private:
  class Comma : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  std::filesystem::path folder_;
  std::locale before_;
  bool is_set_ = false;
};

} // namespace millrace::test
