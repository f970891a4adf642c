// SPDX-License-Identifier: BSL-1.0
// Calls by name of the compiled library: all families. What they call is in the other sources.
#define VARVE_DEFINES 3
#include <varve/by_name/all.hpp>

namespace varve::detail {
template std::vector<argument> call_by_name<argument>(std::string_view, std::span<argument const>,
                                                      std::span<named_argument const>);
template call_overloads overloads_of_name<argument>(std::string_view);
template std::vector<std::string> names_of_calls<argument>();
} // namespace varve::detail
