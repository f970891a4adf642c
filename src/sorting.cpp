// SPDX-License-Identifier: BSL-1.0
// The scans, sorts and scatters of the compiled library.
#define VARVE_DEFINES 5
#include <varve/indexing.hpp>
#include <varve/sorting.hpp>
#include <varve/varve.hpp>

namespace varve::detail {
template struct library_operator<recurrence_t, 2>;
template struct library_operator<running_place_t, 2>;
template struct library_operator<argsort_t, 3>;
template struct library_operator<kth_place_t, 2>;
template struct library_operator<scatter_by_t, 2>;
} // namespace varve::detail
