// SPDX-License-Identifier: BSL-1.0
// expect: varve is included twice in this unit, as the single header and as separate headers or from two places; include one of them
#include <varve/mode/all.hpp>
#include <varve/varve.hpp>
#ifdef FAIL
#include "../../single_include/varve/varve.hpp"
#endif
