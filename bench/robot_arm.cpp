// SPDX-License-Identifier: BSL-1.0
/// @file
/// Forward kinematics of an arm of seven joints and its Jacobian: the position of the tool with respect to all angles,
/// time per configuration. Blocks hold 64 configurations, number by number. By hand: the geometric Jacobian, whose
/// columns are cross products of each joint's axis with the way from the joint to the tool.
#include "functions.hpp"
#include "measure.hpp"

namespace vv = varve;
namespace k = varve::kernel;
using vv::array, vv::index_t;

namespace {
constexpr index_t joints = bench::joints, block_size = 64;
using bench::links, bench::point;
constexpr auto jacobian = vv::fuse(vv::vmap(bench::tool_rows, vv::in_dims<1>, vv::out_dims<-1>));
constexpr auto jacobian_reverse =
    vv::fuse(vv::vmap(vv::jacrev(bench::tool_of_array), vv::in_dims<1>, vv::out_dims<-1>));
constexpr auto jacobian_forward =
    vv::fuse(vv::vmap(vv::jacfwd(bench::tool_of_array), vv::in_dims<1>, vv::out_dims<-1>));
constexpr auto jacobian_reverse_fast =
    vv::fuse(vv::vmap(vv::jacrev(bench::tool_of_array), vv::in_dims<1>, vv::out_dims<-1>), vv::fast_math);
constexpr auto jacobian_forward_fast =
    vv::fuse(vv::vmap(vv::jacfwd(bench::tool_of_array), vv::in_dims<1>, vv::out_dims<-1>), vv::fast_math);

struct block {
  alignas(64) array<double, joints, block_size> angles;
  alignas(64) array<double, 3, joints, block_size> jacobian;
};

#define KEEP __attribute__((noinline)) void
KEEP fused(block& b) { jacobian.into(b.jacobian)(b.angles); }
KEEP fused_reverse(block& b) { jacobian_reverse.into(b.jacobian)(b.angles); }
KEEP fused_forward(block& b) { jacobian_forward.into(b.jacobian)(b.angles); }
KEEP fused_reverse_fast(block& b) { jacobian_reverse_fast.into(b.jacobian)(b.angles); }
KEEP fused_forward_fast(block& b) { jacobian_forward_fast.into(b.jacobian)(b.angles); }

template <class V>
V cross(V const& a, V const& b, V const& c, V const& d) {
  return k::fnma<double>(b, c, a * d);
} // a d - b c
KEEP hand(block& b) {
  using V = k::batch<double>;
  for (index_t i = 0; i < block_size; i += static_cast<index_t>(k::lanes<double>)) {
    point<V> axis[joints], origin[joints];
    V const one(1.0), zero(0.0);
    point<V> x{one, zero, zero}, y{zero, one, zero}, z{zero, zero, one}, p{zero, zero, zero};
#pragma GCC unroll 8
    for (int j = 0; j < joints; ++j) {
      axis[j] = z, origin[j] = p;
      V const q = k::load(b.angles.data + j * block_size + i), c = k::cos(q), s = k::sin(q), l(links[j].length);
      point<V> const u{k::fma<double>(s, y.x, c * x.x), k::fma<double>(s, y.y, c * x.y),
                       k::fma<double>(s, y.z, c * x.z)};
      point<V> const v{k::fnma<double>(s, x.x, c * y.x), k::fnma<double>(s, x.y, c * y.y),
                       k::fnma<double>(s, x.z, c * y.z)};
      if (links[j].length != 0)
        p = {k::fma<double>(l, z.x, p.x), k::fma<double>(l, z.y, p.y), k::fma<double>(l, z.z, p.z)};
      x = u;
      if (links[j].quarter == 0) y = v;
      else if (links[j].quarter > 0) y = z, z = {-v.x, -v.y, -v.z};
      else y = {-z.x, -z.y, -z.z}, z = v;
    }
    V const o(bench::tool_offset);
    point<V> const end{k::fma<double>(o, x.x, p.x), k::fma<double>(o, x.y, p.y), k::fma<double>(o, x.z, p.z)};
#pragma GCC unroll 8
    for (int j = 0; j < joints; ++j) {
      point<V> const d{end.x - origin[j].x, end.y - origin[j].y, end.z - origin[j].z}, a = axis[j];
      k::store<double>(b.jacobian.data + (0 * joints + j) * block_size + i, cross(a.y, a.z, d.y, d.z));
      k::store<double>(b.jacobian.data + (1 * joints + j) * block_size + i, cross(a.z, a.x, d.z, d.x));
      k::store<double>(b.jacobian.data + (2 * joints + j) * block_size + i, cross(a.x, a.y, d.x, d.y));
    }
  }
}

void bench_robot_arm(benchmark::State& state, void (*f)(block&)) {
  static block a, b;
  bench::fill(a.angles, 0, 3), bench::fill(b.angles, 0, 3);
  hand(b);
  f(a), bench::agree(state, a.jacobian, b.jacobian, 1e-13);
  bench::measure(state, [&] { f(a); });
}
BENCHMARK_CAPTURE(bench_robot_arm, fused, fused);
BENCHMARK_CAPTURE(bench_robot_arm, fused_reverse, fused_reverse);
BENCHMARK_CAPTURE(bench_robot_arm, fused_forward, fused_forward);
BENCHMARK_CAPTURE(bench_robot_arm, fused_reverse_fast, fused_reverse_fast);
BENCHMARK_CAPTURE(bench_robot_arm, fused_forward_fast, fused_forward_fast);
BENCHMARK_CAPTURE(bench_robot_arm, hand, hand);
} // namespace

BENCHMARK_MAIN();
