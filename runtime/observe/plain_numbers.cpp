// Gives a thread a locale with a decimal point; see plain_numbers.h.
#include "observe/plain_numbers.h"

namespace millrace {

namespace {

// The process's locale as it is now, with the numbers of C; null if the system could not make it.
locale_t make_plain() {
  const locale_t copy = ::duplocale(LC_GLOBAL_LOCALE);
  if (copy == nullptr) return nullptr;
  const locale_t plain = ::newlocale(LC_NUMERIC_MASK, "C", copy); // takes the copy over, if it succeeds
  if (plain == nullptr) ::freelocale(copy);
  return plain;
}

// Never freed: threads may have it until the process ends.
locale_t plain_locale() {
  static const locale_t plain = make_plain();
  return plain;
}

} // namespace

PlainNumbers::PlainNumbers() {
  if (const locale_t plain = plain_locale()) before_ = ::uselocale(plain);
}

PlainNumbers::~PlainNumbers() {
  if (before_ != nullptr) ::uselocale(before_);
}

} // namespace millrace
