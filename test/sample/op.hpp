// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The table of operator samples: one row per operator. A row is a generic function, the domains of its operands with
/// the shapes of its static form, and further shapes for its dynamic form. `visit` receives each; from a row come all
/// laws, in both worlds.
#include "row.hpp"

#include <varve/op/all.hpp>

namespace sample {
namespace vv = varve;

/// An operand: its domain, and its shape where shapes are types.
template <domain D, index_t... S>
struct on {
  static constexpr domain values = D;
  static constexpr dims shape() { return vv::ints<S...>::to_dims(); }
  template <class T>
  using array = vv::static_value<T, vv::ints<S...>>;
};
using shapes = std::vector<std::vector<dims>>;

inline shapes unary_shapes() { return {{dims{}}, {dims{0}}, {dims{4}}, {dims{2, 3}}, {dims{2, 1, 3}}}; }
inline shapes binary_shapes() {
  return {{dims{}, dims{}},         {dims{3}, dims{}},     {dims{}, dims{2, 2}},
          {dims{2, 1}, dims{1, 3}}, {dims{0, 3}, dims{1}}, {dims{2, 3}, dims{2, 3}}};
}
inline shapes ternary_shapes() {
  return {{dims{}, dims{}, dims{}},
          {dims{2, 1}, dims{3}, dims{}},
          {dims{2}, dims{3, 1}, dims{3, 2}},
          {dims{0}, dims{1}, dims{0}}};
}

/// Calls `visit(name, function, constant, further shapes, operands...)` for the elementwise operators.
template <class V>
void visit_pointwise(V const& visit) {
  using enum domain;
  auto unary = [&](char const* name, auto f, auto operand, bool constant = false) {
    visit(name, f, constant, unary_shapes(), operand);
  };
  auto binary = [&](char const* name, auto f, auto a, auto b, bool constant = false) {
    visit(name, f, constant, binary_shapes(), a, b);
  };
  on<real, 2, 3> const x;
  on<real, 3> const y;
  on<positive, 2, 3> const p;
  on<nonzero, 2, 3> const z;
  unary("neg", [](auto const& a) { return vv::neg(a); }, x);
  unary("abs", [](auto const& a) { return vv::abs(a); }, z);
  unary("sign", [](auto const& a) { return vv::sign(a); }, z);
  unary("exp", [](auto const& a) { return vv::exp(a); }, x);
  unary("log", [](auto const& a) { return vv::log(a); }, p);
  unary("sqrt", [](auto const& a) { return vv::sqrt(a); }, p);
  unary("sin", [](auto const& a) { return vv::sin(a); }, x);
  unary("cos", [](auto const& a) { return vv::cos(a); }, x);
  unary("tanh", [](auto const& a) { return vv::tanh(a); }, x);
  unary("sigmoid", [](auto const& a) { return vv::sigmoid(a); }, x);
  unary("expm1", [](auto const& a) { return vv::expm1(a); }, x);
  unary("log1p", [](auto const& a) { return vv::log1p(a); }, p);
  unary("reciprocal", [](auto const& a) { return vv::reciprocal(a); }, z);
  unary("rsqrt", [](auto const& a) { return vv::rsqrt(a); }, p);
  unary("square", [](auto const& a) { return vv::square(a); }, x);
  unary("erf", [](auto const& a) { return vv::erf(a); }, x);
  unary("log1p_exp", [](auto const& a) { return vv::log1p_exp(a); }, x);
  unary("gelu", [](auto const& a) { return vv::gelu(a); }, x);
  unary("gelu", [](auto const& a) { return vv::gelu(a, vv::approximate::tanh); }, x);
  unary("silu", [](auto const& a) { return vv::silu(a); }, x);
  unary("softplus", [](auto const& a) { return vv::softplus(a, 2, 1.5); }, x);
  unary("relu", [](auto const& a) { return vv::relu(a); }, z);
  unary("to", [](auto const& a) { return vv::to(a, vv::type<float>); }, x);
  unary("detach", [](auto const& a) { return vv::detach(a); }, x, true);
  unary("clone", [](auto const& a) { return vv::clone(a); }, x);
  unary("contiguous", [](auto const& a) { return vv::contiguous(a); }, x);
  unary("full_like", [](auto const& a) { return vv::full_like(a, 2.5); }, x, true);
  unary("new_full", [](auto const& a) { return vv::new_full(a, vv::shape<2, 2>, -1); }, x, true);
  unary("zeros_like", [](auto const& a) { return vv::zeros_like(a); }, x, true);
  unary("ones_like", [](auto const& a) { return vv::ones_like(a); }, x, true);
  binary("add", [](auto const& a, auto const& b) { return vv::add(a, b); }, x, y);
  binary("sub", [](auto const& a, auto const& b) { return vv::sub(a, b); }, x, y);
  binary("mul", [](auto const& a, auto const& b) { return vv::mul(a, b); }, x, y);
  binary("div", [](auto const& a, auto const& b) { return vv::div(a, b); }, x, on<nonzero, 3>{});
  binary("pow", [](auto const& a, auto const& b) { return vv::pow(a, b); }, p, y);
  binary("copysign", [](auto const& a, auto const& b) { return vv::copysign(a, b); }, x, y);
  binary("maximum", [](auto const& a, auto const& b) { return vv::maximum(a, b); }, x, y);
  binary("minimum", [](auto const& a, auto const& b) { return vv::minimum(a, b); }, x, y);
  binary("lt", [](auto const& a, auto const& b) { return vv::lt(a, b); }, x, y, true);
  binary("le", [](auto const& a, auto const& b) { return vv::le(a, b); }, x, y, true);
  binary("gt", [](auto const& a, auto const& b) { return vv::gt(a, b); }, x, y, true);
  binary("ge", [](auto const& a, auto const& b) { return vv::ge(a, b); }, x, y, true);
  binary("eq", [](auto const& a, auto const& b) { return vv::eq(a, b); }, x, y, true);
  binary("ne", [](auto const& a, auto const& b) { return vv::ne(a, b); }, x, y, true);
  visit(
      "where", [](auto const& c, auto const& a, auto const& b) { return vv::where(c, a, b); }, false, ternary_shapes(),
      on<flag, 2, 1>{}, y, on<real>{});
  visit(
      "clamp", [](auto const& a, auto const& lo, auto const& hi) { return vv::clamp(a, lo - 2.5, hi); }, false,
      ternary_shapes(), x, y, on<real>{});
}

/// Reductions and contractions.
template <class V>
void visit_reductions(V const& visit) {
  using enum domain;
  on<real, 2, 3> const m;
  on<real, 2, 3, 4> const t;
  on<real, 3> const v;
  auto const reduced = shapes{{dims{}}, {dims{4}}, {dims{3, 2}}, {dims{2, 3, 2}}};
  auto const cubes = shapes{{dims{1, 3, 2}}, {dims{2, 3, 1}}, {dims{3, 4, 2}}};

  visit(
      "sum", [](auto const& x) { return vv::sum(x); }, false, shapes{{dims{}}, {dims{0}}, {dims{4}}, {dims{2, 3, 2}}},
      m);
  visit(
      "sum", [](auto const& x) { return vv::sum(x, vv::axis<-1>, vv::keepdim); }, false,
      shapes{{dims{}}, {dims{0}}, {dims{2, 0}}, {dims{3, 2}}}, m);
  visit(
      "sum", [](auto const& x) { return vv::sum(x, vv::axis<2, 0>); }, false, shapes{{dims{2, 0, 2}}, {dims{2, 3, 2}}},
      t);
  visit("mean", [](auto const& x) { return vv::mean(x, vv::axis<0>); }, false, reduced, m);
  visit("amax", [](auto const& x) { return vv::amax(x, vv::axis<-1>); }, false, reduced, m);
  visit("amax", [](auto const& x) { return vv::amax(x, vv::axis<0, 2>, vv::keepdim); }, false, cubes, t);
  visit("amin", [](auto const& x) { return vv::amin(x); }, false, reduced, m);
  visit("argmax", [](auto const& x) { return vv::argmax(x, vv::axis<-1>); }, true, reduced, m);
  visit("argmax", [](auto const& x) { return vv::argmax(x); }, true, reduced, m);
  visit("logsumexp", [](auto const& x) { return vv::logsumexp(x, vv::axis<-1>); }, false, reduced, m);
  visit("softmax", [](auto const& x) { return vv::softmax(x, vv::axis<0>); }, false, reduced, m);
  visit("log_softmax", [](auto const& x) { return vv::log_softmax(x, vv::axis<-1>); }, false, reduced, m);
  visit(
      "layer_norm", [](auto const& x, auto const& w, auto const& b) { return vv::layer_norm(x, vv::shape<3>, w, b); },
      false, shapes{{dims{3}, dims{3}, dims{}}, {dims{2, 2, 3}, dims{3}, dims{3}}}, m, v, v);
  visit(
      "layer_norm", [](auto const& x) { return vv::layer_norm(x, vv::shape<2, 3>, vv::none, vv::none, 0.5); }, false,
      shapes{{dims{2, 3}}, {dims{4, 2, 3}}}, m);
  visit(
      "mm", [](auto const& a, auto const& b) { return vv::mm(a, b); }, false,
      shapes{{dims{2, 3}, dims{3, 1}}, {dims{2, 0}, dims{0, 2}}, {dims{2, 2, 3}, dims{2, 3, 2}}}, m, on<real, 3, 4>{});
  visit(
      "mm", [](auto const& a, auto const& b) { return vv::mm(a, b, vv::ints<1, 0>{}); }, false,
      shapes{{dims{3, 2}, dims{3, 4}}}, m, on<real, 2, 4>{});
  visit(
      "mm", [](auto const& a, auto const& b) { return vv::mm(a, b, vv::ints<0, 1>{}); }, false,
      shapes{{dims{2, 3}, dims{4, 3}}}, m, on<real, 4, 3>{});
  visit(
      "mm", [](auto const& a, auto const& b) { return vv::mm(a, b, vv::ints<1, 1>{}); }, false,
      shapes{{dims{3, 2}, dims{4, 3}}}, m, on<real, 4, 2>{});
  visit(
      "matmul", [](auto const& a, auto const& b) { return vv::matmul(a, b); }, false,
      shapes{{dims{3}, dims{3}},
             {dims{2, 3}, dims{3}},
             {dims{3}, dims{3, 2}},
             {dims{2, 2, 3}, dims{3, 2}},
             {dims{2, 1, 2, 3}, dims{2, 3, 1}},
             {dims{3}, dims{2, 3, 2}},
             {dims{0, 3}, dims{3, 2}}},
      m, v);
  visit(
      "dot", [](auto const& a, auto const& b) { return vv::dot(a, b); }, false,
      shapes{{dims{0}, dims{0}}, {dims{4}, dims{4}}}, v, v);
}

/// Views, joins and indexing.
template <class V>
void visit_views(V const& visit) {
  using enum domain;
  on<real, 2, 3> const m;
  on<real, 2, 3, 4> const t;
  visit(
      "reshape", [](auto const& x) { return vv::reshape(x, vv::shape<3, -1>); }, false,
      shapes{{dims{3}}, {dims{6}}, {dims{2, 3}}, {dims{3, 0}}}, m);
  visit(
      "permute", [](auto const& x) { return vv::permute(x, vv::axis<2, 0, -2>); }, false,
      shapes{{dims{2, 3, 4}}, {dims{0, 1, 2}}}, t);
  visit("transpose", [](auto const& x) { return vv::transpose(x); }, false, shapes{{dims{2, 3}}, {dims{2, 3, 1}}}, m);
  visit(
      "transpose", [](auto const& x) { return vv::transpose(x, vv::axis<0>, vv::axis<-1>); }, false,
      shapes{{dims{}}, {dims{3}}, {dims{2, 3, 4}}}, t);
  visit(
      "expand", [](auto const& x) { return vv::expand(x, vv::shape<2, 3, 4>); }, false,
      shapes{{dims{}}, {dims{4}}, {dims{3, 1}}, {dims{2, 3, 4}}}, on<real, 3, 1>{});
  visit(
      "squeeze", [](auto const& x) { return vv::squeeze(x); }, false, shapes{{dims{}}, {dims{1}}, {dims{2, 1, 3}}},
      on<real, 1, 3>{});
  visit(
      "squeeze", [](auto const& x) { return vv::squeeze(x, vv::axis<-1>); }, false,
      shapes{{dims{}}, {dims{1, 1}}, {dims{2, 3}}}, on<real, 1, 3, 1>{});
  visit(
      "unsqueeze", [](auto const& x) { return vv::unsqueeze(x, vv::axis<-1>); }, false, shapes{{dims{}}, {dims{2}}}, m);
  visit(
      "unsqueeze", [](auto const& x) { return vv::unsqueeze(x, vv::axis<0>); }, false, shapes{{dims{}}, {dims{2, 0}}},
      m);
  visit(
      "slice", [](auto const& x) { return vv::slice(x, vv::axis<-1>, vv::range<1, vv::end, 2>); }, false,
      shapes{{dims{1}}, {dims{5}}, {dims{2, 4}}}, m);
  visit(
      "slice", [](auto const& x) { return vv::slice(x, vv::axis<0>, vv::range<-2, -1>); }, false,
      shapes{{dims{4}}, {dims{2, 2}}}, m);
  visit(
      "slice_backward", [](auto const& x) { return vv::slice_backward(x, vv::shape<2, 7>, vv::ints<1, 1, 7, 2>{}); },
      false, shapes{{dims{2, 3}}}, m);
  visit(
      "select", [](auto const& x) { return vv::select(x, vv::axis<-1>, vv::axis<-2>); }, false,
      shapes{{dims{2}}, {dims{2, 3}}}, m);
  visit(
      "sum_to_size", [](auto const& x) { return vv::sum_to_size(x, vv::shape<1, 3>); }, false,
      shapes{{dims{1, 3}}, {dims{2, 3}}, {dims{2, 2, 3}}}, m);
  visit(
      "broadcast_to", [](auto const& x) { return vv::broadcast_to(x, vv::shape<2, 3>); }, false,
      shapes{{dims{}}, {dims{2, 1}}, {dims{2, 3}}}, on<real, 3>{});
  visit(
      "cat", [](auto const& a, auto const& b, auto const& c) { return vv::cat(std::tuple{a, b, c}, vv::axis<-1>); },
      false, shapes{{dims{1}, dims{2}, dims{0}}, {dims{2, 1}, dims{2, 3}, dims{2, 2}}}, m, on<real, 2, 1>{}, m);
  visit(
      "cat", [](auto const& a, auto const& b) { return vv::cat(std::tuple{a, b}, vv::axis<0>); }, false,
      shapes{{dims{2, 3}, dims{1, 3}}}, m, on<real, 4, 3>{});
  visit(
      "stack", [](auto const& a, auto const& b) { return vv::stack(std::tuple{a, b}, vv::axis<-1>); }, false,
      shapes{{dims{}, dims{}}, {dims{2, 3}, dims{2, 3}}}, m, m);
  visit(
      "gather", [](auto const& x, auto const& i) { return vv::gather(x, vv::axis<-1>, i); }, false,
      shapes{{dims{3}, dims{5}}, {dims{2, 3}, dims{2, 4}}, {dims{2, 3}, dims{1, 2}}, {dims{3}, dims{0}}}, m,
      on<index, 2, 2>{});
  visit(
      "scatter_add", [](auto const& x, auto const& i, auto const& s) { return vv::scatter_add(x, vv::axis<0>, i, s); },
      false, shapes{{dims{3}, dims{5}, dims{5}}, {dims{4, 2}, dims{5, 2}, dims{5, 2}}, {dims{3}, dims{0}, dims{0}}},
      on<real, 3, 2>{}, on<index, 4, 2>{}, on<real, 4, 2>{});
  visit(
      "one_hot", [](auto const& i) { return vv::one_hot(i, vv::axis<3>); }, true,
      shapes{{dims{}}, {dims{2, 3}}, {dims{0}}}, on<index, 4>{});
}

/// Convolutions.
template <class V>
void visit_convolutions(V const& visit) {
  using enum domain;
  on<real, 2> const two;
  visit(
      "convolution",
      [](auto const& x, auto const& w, auto const& b) {
        return vv::convolution(x, w, b, vv::ints<2, 1>{}, vv::ints<1, 0>{}, vv::ints<1, 2>{}, vv::ints<0>{},
                               vv::ints<0>{}, vv::ints<2>{});
      },
      false, shapes{{dims{1, 2, 3, 3}, dims{4, 1, 2, 2}, dims{4}}, {dims{0, 2, 2, 4}, dims{2, 1, 2, 2}, dims{2}}},
      on<real, 2, 4, 3, 4>{}, on<real, 2, 2, 3, 2>{}, two);
  visit(
      "convolution",
      [](auto const& x, auto const& w) {
        return vv::convolution(x, w, vv::none, vv::ints<2>{}, vv::ints<1>{}, vv::ints<3>{}, vv::ints<1>{},
                               vv::ints<2>{}, vv::ints<2>{});
      },
      false, shapes{{dims{1, 2, 1}, dims{2, 3, 2}}, {dims{3, 6, 4}, dims{6, 1, 3}}}, on<real, 2, 4, 3>{},
      on<real, 4, 2, 2>{});
  visit(
      "conv1d", [](auto const& x, auto const& w, auto const& b) { return vv::conv1d(x, w, b); }, false,
      shapes{{dims{3, 5}, dims{4, 3, 5}, dims{4}}, {dims{2, 0, 3}, dims{1, 0, 2}, dims{1}}}, on<real, 2, 3, 5>{},
      on<real, 2, 3, 2>{}, two);
  visit(
      "conv1d",
      [](auto const& x, auto const& w) {
        return vv::conv1d(x, w, vv::none, vv::ints<3>{}, vv::ints<2>{}, vv::ints<2>{}, vv::ints<2>{});
      },
      false, shapes{{dims{1, 2, 6}, dims{6, 1, 3}}, {dims{4, 1}, dims{2, 2, 2}}}, on<real, 2, 7>{},
      on<real, 4, 1, 3>{});
  visit(
      "conv2d",
      [](auto const& x, auto const& w) { return vv::conv2d(x, w, vv::none, vv::ints<1, 2>{}, vv::ints<1>{}); }, false,
      shapes{{dims{1, 1, 4, 4}, dims{3, 1, 3, 3}}, {dims{2, 3, 9, 11}, dims{7, 3, 3, 3}}}, on<real, 2, 2, 3, 4>{},
      on<real, 3, 2, 2, 3>{});
  visit(
      "conv2d",
      [](auto const& x, auto const& w, auto const& b) {
        return vv::conv2d(x, w, b, vv::ints<1>{}, vv::padding::same, vv::ints<2, 1>{});
      },
      false, shapes{{dims{2, 2, 2, 3}, dims{1, 2, 1, 3}, dims{1}}}, on<real, 1, 3, 4>{}, on<real, 2, 1, 3, 2>{}, two);
  visit(
      "conv3d",
      [](auto const& x, auto const& w) { return vv::conv3d(x, w, vv::none, vv::ints<1>{}, vv::ints<0, 1, 0>{}); },
      false, shapes{{dims{2, 1, 3, 2, 3}, dims{3, 1, 2, 2, 1}}}, on<real, 2, 2, 2, 3>{}, on<real, 1, 2, 1, 2, 2>{});
  visit(
      "conv_transpose1d",
      [](auto const& x, auto const& w, auto const& b) {
        return vv::conv_transpose1d(x, w, b, vv::ints<2>{}, vv::ints<1>{}, vv::ints<1>{});
      },
      false, shapes{{dims{3, 1}, dims{3, 1, 4}, dims{1}}, {dims{0, 1, 2}, dims{1, 2, 3}, dims{2}}}, on<real, 2, 3, 3>{},
      on<real, 3, 2, 3>{}, two);
  visit(
      "conv_transpose2d",
      [](auto const& x, auto const& w) {
        return vv::conv_transpose2d(x, w, vv::none, vv::ints<2, 1>{}, vv::ints<0>{}, vv::ints<0>{}, vv::ints<2>{},
                                    vv::ints<1, 2>{});
      },
      false, shapes{{dims{1, 6, 5, 3}, dims{6, 2, 3, 3}}}, on<real, 4, 2, 2>{}, on<real, 4, 1, 2, 2>{});
  visit(
      "conv_transpose3d", [](auto const& x, auto const& w) { return vv::conv_transpose3d(x, w); }, false,
      shapes{{dims{2, 1, 1, 2, 2}, dims{1, 3, 2, 1, 2}}}, on<real, 1, 2, 1, 2, 2>{}, on<real, 2, 1, 2, 1, 2>{});
}

/// Regions of memory: what eager autograd records of views that are written into. `fuse` has no emission for them.
template <class V>
void visit_regions(V const& visit) {
  using enum domain;
  on<real, 2, 3> const m;
  visit(
      "new_zeros", [](auto const& x) { return vv::new_zeros(x, vv::shape<2, 2>); }, true, shapes{{dims{}}, {dims{3}}},
      m);
  visit(
      "as_strided",
      [](auto const& x) { return vv::as_strided(vv::contiguous(x), vv::shape<2, 2>, vv::ints<2, 1>{}, vv::ints<1>{}); },
      false, shapes{{dims{5}}, {dims{2, 3}}}, m);
  visit( // elements seen twice
      "as_strided",
      [](auto const& x) { return vv::as_strided(vv::contiguous(x), vv::shape<3, 2>, vv::ints<1, 1>{}, vv::ints<0>{}); },
      false, shapes{{dims{4}}, {dims{1, 5}}}, m);
  visit(
      "as_strided_backward",
      [](auto const& g) { return vv::as_strided_backward(g, vv::shape<3, 2>, vv::ints<2, 1>{}, vv::ints<1>{}); }, false,
      shapes{{dims{2, 2}}, {dims{1, 3}}}, on<real, 2, 2>{});
  visit(
      "as_strided_backward",
      [](auto const& g) { return vv::as_strided_backward(g, vv::shape<4>, vv::ints<1, 1>{}, vv::ints<0>{}); }, false,
      shapes{{dims{3, 2}}}, on<real, 2, 3>{});
  visit(
      "as_strided_scatter",
      [](auto const& x, auto const& s) { return vv::as_strided_scatter(x, s, vv::ints<3, 1>{}, vv::ints<1>{}); }, false,
      shapes{{dims{2, 3}, dims{2, 2}}, {dims{6}, dims{1, 3}}}, m, on<real, 2, 1>{});
}

/// A visitor that collects rows of the dynamic world.
inline auto collect(std::vector<row>& into) {
  return [&into]<class F, class... O>(char const* name, F, bool constant, shapes const& further, O...) {
    row r{name, {O::values...}, nullptr, {{O::shape()...}}, constant};
    r.call = [](tensor const* x) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) -> tensor {
        return F{}(x[K]...);
      }(std::index_sequence_for<O...>{});
    };
    r.shapes.insert(r.shapes.end(), further.begin(), further.end());
    into.push_back(r);
  };
}
} // namespace sample
