// SPDX-License-Identifier: BSL-1.0
#include "units.hpp"

report observe_b() { return observe(); }
