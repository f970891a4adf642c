// SPDX-License-Identifier: BSL-1.0
// The random numbers of the compiled library, beyond `randn`.
#define VARVE_DEFINES 5
#include <varve/random.hpp>
#include <varve/varve.hpp>

namespace varve::detail {
template struct library_operator<rand_t, 2>;
template struct library_operator<randint_t, 3>;
template struct library_operator<randperm_t, 2>;
template struct library_operator<bernoulli_of_bits_t, 0>;
template struct library_operator<normal_of_bits_t, 0>;
template struct library_operator<poisson_of_bits_t, 0>;
template struct library_operator<multinomial_of_bits_t, 1>;
} // namespace varve::detail
