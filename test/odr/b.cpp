// SPDX-License-Identifier: BSL-1.0
#include "units.hpp"

report observe_b() { return observe(); }
std::vector<double> before_main_of_b() { return early; }
