// Gives a thread a locale of its own; see plain_numbers.h.
#include "observe/plain_numbers.h"

namespace millrace {

PlainNumbers::PlainNumbers() {
  const locale_t now = ::uselocale(nullptr);
  const locale_t copy = ::duplocale(now);
  if (copy == nullptr) return;
  plain_ = ::newlocale(LC_NUMERIC_MASK, "C", copy); // takes the copy over, if it succeeds
  if (plain_ == nullptr)
    ::freelocale(copy);
  else
    before_ = ::uselocale(plain_);
}

PlainNumbers::~PlainNumbers() {
  if (plain_ == nullptr) return;
  ::uselocale(before_);
  ::freelocale(plain_);
}

} // namespace millrace
