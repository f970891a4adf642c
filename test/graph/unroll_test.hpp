// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Mapped Jacobians, planned and fused.
#include <varve/fuse/fuse.hpp>
#include <varve/graph/print.hpp>
#include <varve/graph/verify.hpp>
#include <varve/op/all.hpp>
#include <varve/trace/trace.hpp>
#include <varve/transform/jacobian.hpp>

#include <limits>
#include <varve_test.hpp>

namespace unroll_test {
namespace vv = varve;
using vv::array, vv::axis, vv::index_t;
template <index_t K>
constexpr auto at = [](auto const& x) { return vv::select(x, axis<0>, axis<K>); };
inline constexpr auto stacked = [](auto const&... v) { return vv::stack(std::tuple{v...}, axis<0>); };

/// What is planned for `F` on `D...` doubles.
template <class F, index_t... D>
constexpr auto prepared = vv::freeze([] {
  vv::graph const traced = vv::trace_graph(F{}, vv::meta{vv::dtype::float64, vv::ints<D...>::to_dims(), false});
  return vv::prepare(traced);
});
/// Constants of rank > 0 and rows of numbers, and the largest rank of an elementwise value.
template <class G>
constexpr int tables(G const& g) {
  int n = 0;
  for (vv::node const& nd : g)
    n += nd.out.sizes.n > 0 && (nd.op->kind == vv::op_kind::constant || nd.op->kind == vv::op_kind::factory);
  return n;
}
template <class G>
constexpr index_t largest(G const& g) {
  index_t n = 0;
  for (vv::node const& nd : g)
    if (nd.op->kind == vv::op_kind::pointwise && vv::numel(nd.out.sizes) > n) n = vv::numel(nd.out.sizes);
  return n;
}

inline constexpr index_t many = 20;
template <class F>
constexpr auto mapped = vv::vmap(F{}, vv::in_dims<1>, vv::out_dims<-1>);
inline constexpr auto polar = [](auto const& x) {
  return stacked(at<0>(x) * vv::cos(at<1>(x)), at<0>(x) * vv::sin(at<1>(x)), at<2>(x) * at<0>(x));
};
inline constexpr auto elementwise = [](auto const& x) { return vv::sin(x) * x; };
inline constexpr auto contracted = [](auto const& x) { return stacked(vv::sum(x * x), vv::sum(vv::exp(x))); };
inline constexpr auto one_value = [](auto const& x) { return at<0>(x) * at<1>(x) / at<2>(x); };

template <index_t N>
array<double, N, many> points() {
  array<double, N, many> x;
  for (index_t k = 0; k < N * many; ++k) x.data[k] = 0.25 + 0.125 * static_cast<double>(k * 7 % 11);
  return x;
}
template <class A>
void same(A const& a, A const& b) {
  for (index_t k = 0; k < A::size(); ++k) CHECK(a.data[k] == Approx(b.data[k]).epsilon(1e-12).margin(1e-12));
}
template <class F>
void agrees(F const& f) {
  auto const x = points<3>();
  same(vv::fuse(f)(x), f(x));
}
} // namespace unroll_test
