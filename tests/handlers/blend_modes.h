// Every mode of blending.
#pragma once

#include "handlers/image/blend.h"

namespace millrace::handlers {

inline constexpr BlendMode kBlendModes[] = {BlendMode::over,     BlendMode::add,       BlendMode::subtract,
                                            BlendMode::multiply, BlendMode::screen,    BlendMode::darken,
                                            BlendMode::lighten,  BlendMode::difference};

} // namespace millrace::handlers
