// SPDX-License-Identifier: BSL-1.0
/// @file
/// The derivatives of the problems by `fuse(grad(f))`, with which all other packages are compared.
#include "../functions.hpp"
#include "problems.hpp"

namespace bench {
namespace {
namespace vv = varve;
template <vv::index_t... D>
using in = vv::tensor_ref<double const, D...>;
template <vv::index_t... D>
using out = vv::tensor_ref<double, D...>;

constexpr auto rosenbrock_gradient = vv::fuse(vv::grad(rosenbrock<rosenbrock_problem::inputs>));
constexpr auto logistic_gradient = vv::fuse(vv::grad(logistic_sum<logistic_problem::samples>));
constexpr auto softmax_gradient =
    vv::fuse(vv::grad<0, 1>(softmax_regression<softmax_problem::samples, softmax_problem::classes>));
constexpr auto mlp_gradient = vv::fuse(vv::grad<0, 1, 2, 3, 4, 5>(mlp<mlp_problem::samples>));
constexpr auto layer_norm_gradient = vv::fuse(vv::grad<0, 1, 2>([](auto x, auto w, auto b, auto g) {
  return vv::sum(g * vv::gelu(vv::layer_norm(x, vv::shape<layer_norm_problem::size>, w, b)));
}));
constexpr auto attention_gradient = vv::fuse(vv::grad<0, 1, 2>([](auto q, auto k, auto v, auto g) {
  return vv::sum(g * vv::mm(vv::softmax(vv::mm(q, vv::transpose(k)) * 0.125, vv::axis<1>), v));
}));
constexpr auto mixture_gradient = vv::fuse(vv::grad<0, 1, 2>(mixture<mixture_problem::size>::log_likelihood));
constexpr auto lorenz_gradient = vv::fuse(vv::grad<0, 1, 2, 3, 4, 5>(last_x<lorenz_problem::steps>));
constexpr auto all_greeks = vv::fuse(vv::vmap(greeks));
constexpr auto bundle_jacobian = vv::fuse(vv::vmap(reprojection_rows, vv::in_dims<1>, vv::out_dims<-1>));
constexpr auto arm_jacobian = vv::fuse(vv::vmap(tool_rows, vv::in_dims<1>, vv::out_dims<-1>));
} // namespace

template <>
void derivatives<rosenbrock_problem>(double const* x, double* d) {
  constexpr auto n = rosenbrock_problem::inputs;
  rosenbrock_gradient.into(out<n>(d))(in<n>(x));
}
template <>
void derivatives<logistic_problem>(double const* w, double* d) {
  using p = logistic_problem;
  logistic_gradient.into(out<p::inputs>(d))(in<p::inputs>(w), in<p::samples, p::inputs>(p::x.data()),
                                            in<p::samples>(p::y.data()));
}
template <>
void derivatives<softmax_problem>(double const* w, double* d) {
  using p = softmax_problem;
  static auto const labels = [] {
    vv::array<std::int64_t, p::samples> r{};
    for (int i = 0; i < p::samples; ++i) r[i] = p::label(i);
    return r;
  }();
  constexpr int b = p::features * p::classes;
  softmax_gradient.into(out<p::features, p::classes>(d), out<p::classes>(d + b))(
      in<p::features, p::classes>(w), in<p::classes>(w + b), in<p::samples, p::features>(p::x.data()), labels);
}
template <>
void derivatives<mlp_problem>(double const* w, double* d) {
  using p = mlp_problem;
  constexpr int m = p::features, h = p::hidden;
  mlp_gradient.into(out<m, h>(d), out<h>(d + p::b1), out<h, h>(d + p::W2), out<h>(d + p::b2), out<h, 1>(d + p::W3),
                    out<1>(d + p::b3))(in<m, h>(w), in<h>(w + p::b1), in<h, h>(w + p::W2), in<h>(w + p::b2),
                                       in<h, 1>(w + p::W3), in<1>(w + p::b3), in<p::samples, m>(p::x.data()),
                                       in<p::samples, 1>(p::y.data()));
}
template <>
void derivatives<layer_norm_problem>(double const* x, double* d) {
  using p = layer_norm_problem;
  constexpr int w = p::weight, n = p::size;
  layer_norm_gradient.into(out<p::rows, n>(d), out<n>(d + w), out<n>(d + w + n))(
      in<p::rows, n>(x), in<n>(x + w), in<n>(x + w + n), in<p::rows, n>(p::cotangent.data()));
}
template <>
void derivatives<attention_problem>(double const* x, double* d) {
  using p = attention_problem;
  constexpr int n = p::n, m = n * n;
  attention_gradient.into(out<n, n>(d), out<n, n>(d + m), out<n, n>(d + 2 * m))(
      in<n, n>(x), in<n, n>(x + m), in<n, n>(x + 2 * m), in<n, n>(p::cotangent.data()));
}
template <>
void derivatives<mixture_problem>(double const* x, double* d) {
  using p = mixture_problem;
  constexpr int n = p::components;
  mixture_gradient.into(out<n>(d), out<n, p::size>(d + p::means), out<n, p::factor>(d + p::factors))(
      in<n>(x), in<n, p::size>(x + p::means), in<n, p::factor>(x + p::factors), in<p::size, p::samples>(p::x.data()));
}
template <>
void derivatives<lorenz_problem>(double const* x, double* d) {
  lorenz_gradient.into(d[0], d[1], d[2], d[3], d[4], d[5])(x[0], x[1], x[2], x[3], x[4], x[5]);
}
template <>
void derivatives<greeks_problem>(double const* x, double* d) {
  constexpr auto n = greeks_problem::points;
  all_greeks.into(out<n>(d), out<n>(d + n), out<n>(d + 2 * n), out<n>(d + 3 * n), out<n>(d + 4 * n),
                  out<n>(d + 5 * n))(in<n>(x), in<n>(x + n), in<n>(x + 2 * n), in<n>(x + 3 * n), in<n>(x + 4 * n));
}
template <>
void derivatives<bundle_problem>(double const* x, double* d) {
  using p = bundle_problem;
  static vv::array<double, p::outputs, p::block> const seen{};
  for (int k = 0; k < p::points; k += p::block)
    bundle_jacobian.into(out<p::outputs, p::inputs, p::block>(d + k * p::outputs * p::inputs))(
        in<p::inputs, p::block>(x + k * p::inputs), seen);
}
template <>
void derivatives<arm_problem>(double const* x, double* d) {
  using p = arm_problem;
  for (int k = 0; k < p::points; k += p::block)
    arm_jacobian.into(out<p::outputs, p::inputs, p::block>(d + k * p::outputs * p::inputs))(
        in<p::inputs, p::block>(x + k * p::inputs));
}
} // namespace bench
