// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Transforms of a row's call, whatever its number of operands.
#include "../sample/row.hpp"

#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>
#include <varve/transform/vmap.hpp>

namespace law {
using namespace sample;
namespace vv = varve;

/// Calls `g` with a sequence of `n` numbers.
template <class G>
auto with_count(std::size_t n, G const& g) {
  if (n == 1) return g(std::make_index_sequence<1>{});
  if (n == 2) return g(std::make_index_sequence<2>{});
  if (n == 3) return g(std::make_index_sequence<3>{});
  return g(std::make_index_sequence<4>{});
}
/// A row as a function of its real operands only, the others fixed.
struct of_real {
  row const& r;
  values const& x;
  template <class... V>
  tensor operator()(V const&... v) const {
    values all = x;
    auto const at = r.real();
    std::size_t k = 0;
    ((all[at[k++]] = v), ...);
    return r(all);
  }
};

/// Random directions of the real operands (null for others).
inline values directions(row const& r, values const& x, std::uint64_t seed) {
  numbers draw(seed);
  values d(x.size());
  for (auto k : r.real()) d[k] = uniform(x[k].sizes(), draw);
  return d;
}
inline std::pair<tensor, tensor> jvp(row const& r, values const& x, values const& dx) {
  auto const at = r.real();
  return with_count(at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) -> std::pair<tensor, tensor> {
    return vv::jvp(of_real{r, x}, std::tuple(x[at[K]]...), std::tuple(dx[at[K]]...));
  });
}
/// Cotangents of the real operands, at their places.
inline values vjp(row const& r, values const& x, tensor const& g) {
  auto const at = r.real();
  values c(x.size());
  with_count(at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
    auto const pulled = vv::vjp(of_real{r, x}, x[at[K]]...).second(g);
    ((c[at[K]] = std::get<K>(pulled)), ...);
    return 0;
  });
  return c;
}
/// x + h * dx in the real operands.
inline values moved(row const& r, values const& x, double h, values const& dx) {
  values y = x;
  for (auto k : r.real()) y[k] = axpy(x[k], h, dx[k]);
  return y;
}
inline tensor central_difference(tensor const& above, tensor const& below, double h) {
  tensor d = blank(above.sizes(), above.dtype());
  for (index_t k = 0; k < d.numel(); ++k) set(d, k, (element(above, k) - element(below, k)) / (2 * h));
  return d;
}
} // namespace law
