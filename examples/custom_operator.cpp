// SPDX-License-Identifier: BSL-1.0
// An operator of one's own: six lines, and every transform, mode, trace and tensor knows it.
// output: softplus\(0\) = 0\.693147, its derivative 0\.5, second derivative 0\.25
// output: on tensors: 1\.31326 2\.12693
// output: the trace calls it by name: 1 softplus, 1 sigmoid
// output: fused gradient of the sum: 0\.731059 0\.880797
#include <varve/varve.hpp>

#include <cstdio>

namespace vv = varve;

/// softplus(x) = log(1 + e^x), without overflow for large x.
struct softplus_t : vv::promoting_operator<softplus_t> {
  static constexpr auto op_name = "softplus";
};
inline constexpr softplus_t softplus{};

template <>
struct vv::rules<softplus_t> : vv::rule::pointwise<1, vv::promotion::floating> {
  // The kernel is written for a number and, with the same text, for a SIMD register.
  static constexpr auto kernel(auto x) {
    return vv::kernel::maximum(x, decltype(x)(0)) + vv::kernel::log1p(vv::kernel::exp(-vv::kernel::abs(x)));
  }
  // The derivative is written in operators, so that it can be differentiated again.
  static constexpr auto partial(vv::arg_t<0>, auto const&, auto const& x) { return vv::sigmoid(x); }
};

constexpr auto first = vv::grad([](auto x) { return softplus(x); });
constexpr auto graph = vv::trace(vv::value_and_grad([](auto x) { return vv::sum(softplus(x)); }), vv::spec<double, 2>);

int main() {
  std::printf("softplus(0) = %g, its derivative %g, second derivative %g\n", softplus(0.0), first(0.0),
              vv::grad(first)(0.0));

  vv::tensor const x({1.0, 2.0});
  vv::tensor const y = softplus(x), slopes = vv::vmap(first)(x),
                   tangents = vv::jvp(softplus, std::tuple{x}, std::tuple{x}).second;
  std::printf("on tensors: %g %g, per-element derivatives %g %g, along x %g %g\n", y.data<double>()[0],
              y.data<double>()[1], slopes.data<double>()[0], slopes.data<double>()[1], tangents.data<double>()[0],
              tangents.data<double>()[1]);

  std::printf("the trace calls it by name: %d softplus, %d sigmoid\n%s", graph.count(softplus),
              graph.count(vv::sigmoid), vv::to_string(graph).c_str());
  auto const d = vv::fuse(vv::grad([](auto v) { return vv::sum(softplus(v)); }))(vv::array<double, 2>{1, 2});
  std::printf("fused gradient of the sum: %g %g\n", d[0], d[1]);
}
