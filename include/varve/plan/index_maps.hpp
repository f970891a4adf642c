// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/dims.hpp>

/// @file
/// Index maps: for each axis of a value, which index a point of an iteration space reads.
namespace varve::fusion {

/// The index in one axis of a value: `offset + coef * i[dim]`, or just `offset` if `dim` is -1.
struct axis_index {
  int dim;
  index_t offset, coef;
  friend constexpr bool operator==(axis_index const& a, axis_index const& b) {
    return a.dim == b.dim && a.offset == b.offset && a.coef == b.coef;
  }
};

/// A part of an iteration space.
struct box {
  index_t lo[max_rank]{}, hi[max_rank]{};
};

/// Returns sizes without those that are 1; an iteration space has this form.
constexpr dims squeeze(dims const& s) {
  dims r;
  for (int k = 0; k < s.n; ++k)
    if (s.v[k] != 1) r.push_back(s.v[k]);
  return r;
}

/// Sets `m` to the identity map of a value of sizes `s` over the space `squeeze(s)`.
constexpr void identity_map(dims const& s, axis_index* m) {
  int d = 0;
  for (int k = 0; k < s.n; ++k) {
    if (s.v[k] != 1) m[k] = {d++, 0, 1};
    else m[k] = {-1, 0, 0};
  }
}

} // namespace varve::fusion
