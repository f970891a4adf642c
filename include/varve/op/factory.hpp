// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fwd.hpp>

namespace varve {

/// Function templates that return static values: `zeros<float, 2, 3>()`, `ones<double, 4>()`, `full<float, 2>(0.5f)`,
/// `arange<double, 6>()`. Where an operator expects a value, `zeros`, `ones` or `arange` with template arguments can be
/// written without parentheses. The run-time forms (`zeros({2, 3})`) are in `op/create.hpp`.
template <class T, index_t... D>
constexpr array<T, D...> full(T v) {
  array<T, D...> r{};
  for (index_t k = 0; k < r.size(); ++k) r.data[k] = v;
  return r;
}
template <class T, index_t... D>
constexpr array<T, D...> zeros() {
  return full<T, D...>(T(0));
}
template <class T, index_t... D>
constexpr array<T, D...> ones() {
  return full<T, D...>(T(1));
}
/// Returns 0, 1, ..., N - 1.
template <class T, index_t N>
constexpr array<T, N> arange() {
  array<T, N> r{};
  for (index_t k = 0; k < N; ++k) r.data[k] = static_cast<T>(k);
  return r;
}
/// Returns the N x N identity matrix.
template <class T, index_t N>
constexpr array<T, N, N> eye() {
  array<T, N, N> r{};
  for (index_t k = 0; k < N; ++k) r.data[k * N + k] = T(1);
  return r;
}

} // namespace varve
