// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

/// @file
/// Index maps: which element of a value a point of an iteration space takes, axis by axis.
namespace varve::loop {

/// Index of one axis of a value: `offset + coef * i[dim]`, or just `offset` when `dim` is -1.
struct axis_index {
  int dim;
  index_t offset, coef;
  friend constexpr bool operator==(axis_index const& a, axis_index const& b) {
    return a.dim == b.dim && a.offset == b.offset && a.coef == b.coef;
  }
};

/// Part of an iteration space.
struct box {
  index_t lo[max_rank]{}, hi[max_rank]{};
};

/// Sizes without the ones: what an iteration space is.
constexpr dims squeeze(dims const& s) {
  dims r;
  for (int k = 0; k < s.n; ++k)
    if (s.v[k] != 1) r.push_back(s.v[k]);
  return r;
}

/// The identity map of a value of sizes `s` over the space `squeeze(s)`.
constexpr void identity_map(dims const& s, axis_index* m) {
  int d = 0;
  for (int k = 0; k < s.n; ++k) {
    if (s.v[k] != 1) m[k] = {d++, 0, 1};
    else m[k] = {-1, 0, 0};
  }
}

} // namespace varve::loop
