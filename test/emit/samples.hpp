// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Graphs that are written as C++ by one program and compiled into another, which compares.
#include <varve/by_name/all.hpp>
#include <varve/export/emit_cpp.hpp>
#include <varve/varve.hpp>

#include <vector>

namespace emit {
namespace vv = varve;
using vv::dims;
using vv::dtype;
using vv::index_t;
using vv::tensor;

struct sample {
  std::string name;
  vv::graph g;
  vv::boxed_args in;
};

inline tensor counting(dims const& sizes, dtype type = dtype::float32, double step = 0.25, double start = -3) {
  tensor t = tensor::empty(sizes, type);
  vv::on_dtype(type, "test", [&]<class T>() {
    for (index_t k = 0; k < t.numel(); ++k)
      static_cast<T*>(t.raw())[k] =
          vv::kernel::cast<T>(start + step * static_cast<double>(k % 97)); // also what does not fit
  });
  return t;
}
template <class F, class... X>
sample traced(char const* name, F const& f, X const&... x) {
  return {name, vv::make_fx(f)(x...), vv::boxed_args(x...)};
}

inline constexpr auto elementwise = [](tensor const& x, tensor const& p, tensor const& y) {
  tensor const q = vv::where(x > y, vv::exp(x) - vv::neg(y), vv::log(p) / p);
  return std::tuple(q, vv::abs(x) + vv::sign(x) * vv::sqrt(p), vv::sin(x) - vv::cos(y), vv::tanh(x) * vv::sigmoid(y),
                    vv::relu(x) + vv::pow(p, y), vv::maximum(x, y) * vv::minimum(x, y), x < y, x <= y, x >= y, x == y,
                    x != y, vv::where(x == x, 1.0, y), vv::clamp(x, -1.0, 1.0));
};
inline constexpr auto reductions = [](tensor const& x, tensor const& row, tensor const& column) {
  tensor const t = vv::tanh(x * row) * 2.0 + column;
  return std::tuple(t, vv::sum(t, vv::axis<1>), vv::amax(t, vv::axis<0>), vv::sum(t * x, vv::axis<0>),
                    vv::sum(vv::neg(t * row), vv::axis<0>), vv::sum(t), vv::amin(t), vv::exp(t - vv::amax(t)),
                    vv::softmax(t, vv::axis<1>), vv::sum(vv::permute(x, dims{1, 0}), vv::axis<0>));
};
inline constexpr auto layers = [](tensor const& w, tensor const& v, tensor const& x, tensor const& y) {
  return vv::mean(vv::logsumexp(vv::matmul(vv::tanh(vv::matmul(x, w)), v), vv::axis<1>) -
                  vv::sum(vv::matmul(vv::tanh(vv::matmul(x, w)), v) * y, vv::axis<1>));
};
inline constexpr auto neighbours = [](tensor const& x) {
  tensor const d = vv::slice(x, vv::axis<0>, 1, 41) - vv::slice(x, vv::axis<0>, 0, 40);
  return vv::sum(d * d * vv::slice(x, vv::axis<0>, 1, 41)) + vv::sum(vv::slice(x, vv::axis<0>, 2, 40, 3));
};
inline constexpr auto picks = [](tensor const& x, tensor const& i) {
  tensor const h = vv::tanh(x),
               picked = vv::gather(h, vv::axis<0>, vv::expand(vv::reshape(i, dims{3, 1}), dims{3, 30}));
  return std::tuple(picked, vv::argmax(h, vv::axis<1>), vv::argmax(h, vv::axis<0>),
                    vv::cat(std::tuple(h, picked), vv::axis<0>), vv::slice(h, vv::axis<1>, 3, 21, 4),
                    vv::one_hot(i, vv::axis<12>),
                    vv::scatter_add(x, vv::axis<0>, vv::expand(vv::reshape(i, dims{3, 1}), dims{3, 30}), picked),
                    vv::reshape(vv::permute(h, dims{1, 0}), dims{360}));
};
/// Axes alone, and none: names that stand without a loop around them, temporaries without elements.
inline constexpr auto lone = [](tensor const& x, tensor const& i, tensor const& none, tensor const& a,
                                tensor const& k) {
  return std::tuple(vv::argmax(x, vv::axis<0>), vv::argmax(vv::neg(x), vv::axis<0>), vv::argmax(a, vv::axis<0>),
                    vv::gather(x, vv::axis<0>, i), vv::scatter_add(x, vv::axis<0>, i, vv::gather(x, vv::axis<0>, i)),
                    vv::scatter_add(x, vv::axis<0>, none, vv::slice(x * 2.0, vv::axis<0>, 1, 1)),
                    vv::gather(a, vv::axis<0>, k), vv::scatter_add(a, vv::axis<0>, k, a * 2.0));
};
inline constexpr auto mixed = [](tensor const& a, tensor const& b, tensor const& c, tensor const& e) {
  tensor const p = a > c;
  return std::tuple(a + 1, a * 3 - a, vv::sum(a), a + b, c * c, c + a, p, vv::where(p, b, e), vv::sum(p), vv::amax(a),
                    a / c, vv::to(e, dtype::int32), b * e, vv::to(b, dtype::bool_), vv::sum(c), vv::neg(a),
                    vv::zeros({5}), vv::to(e, dtype::float32));
};
/// Few elements of narrow dtypes, which are summed as int64.
inline constexpr auto narrow = [](tensor const& a, tensor const& b, tensor const& c) {
  auto const all = [](tensor const& x) {
    return std::tuple(vv::sum(x), vv::sum(x + x), vv::sum(x * x, vv::axis<0>), vv::sum(x + x, vv::axis<1>),
                      vv::sum(x * x));
  };
  return std::tuple_cat(all(a), all(b), all(c));
};
/// Integers of 32 bits whose products no double holds.
inline constexpr auto integers = [](tensor const& a, tensor const& m) {
  return std::tuple(vv::to(a * a, vv::type<double>), vv::to(vv::square(a), vv::type<double>), vv::sum(vv::abs(a) > a),
                    (a * a + a) < a, vv::mm(m, m), vv::pow(m, 2), vv::to(m, vv::type<std::uint8_t>));
};
/// ... and in registers of integers.
inline constexpr auto whole = [](tensor const& a, tensor const& m, tensor const& u) {
  return std::tuple(a * a + a, vv::square(a) - 7, vv::abs(a), vv::where(a < 0, a, -a), vv::amax(m, vv::axis<0>),
                    vv::amin(m * m), u * u + u, vv::to(u, vv::type<std::int32_t>) - 1000,
                    vv::to(a, vv::type<std::uint8_t>), vv::to(m, vv::type<bool>), u + u < 100);
};
/// ... of 64 bits.
inline constexpr auto exact = [](tensor const& a, tensor const& b, tensor const& s) {
  tensor const p = a * b + a;
  return std::tuple(p, vv::sum(p), vv::sum(a * b, vv::axis<0>), vv::sum(p - b, vv::axis<1>), vv::pow(b, 3),
                    vv::square(b) - a, vv::where(a < b, p, -b), vv::amax(p, vv::axis<1>), vv::amin(p),
                    vv::to(p, vv::type<std::int32_t>) * 3, vv::to(p, vv::type<std::uint8_t>), vv::sum(a < b),
                    vv::mm(a, vv::transpose(b, vv::axis<0>, vv::axis<1>)), vv::slice(p, vv::axis<1>, 1, 9, 2) * s,
                    s * s - 3, vv::sum(vv::to(p, vv::type<std::int32_t>) * vv::to(a, vv::type<std::int32_t>)));
};
inline constexpr auto functions = [](tensor const& c, tensor const& xs) {
  auto const [last, ys] = vv::scan(
      [&](tensor const& u, tensor const& x) {
        tensor const n = vv::tanh(u * 0.9 + x);
        return std::pair(n, n * n + c);
      },
      c, xs);
  tensor const z = vv::cond(
      vv::sum(last) > 0.0,
      [&](tensor const& a) {
        return vv::cond(
            vv::sum(a) > 100.0, [](tensor const& u) { return u; }, [](tensor const& u) { return u * 2.0; }, a);
      },
      [&](tensor const& a) { return a - c; }, last);
  return std::tuple(z, ys);
};

inline constexpr auto smooth = [](tensor const& x) {
  tensor const h = vv::layer_norm(x, dims{37}), t = vv::softplus(vv::expm1(x * 0.1)) + vv::log1p(vv::square(x)) +
                                                    vv::erf(x) * vv::rsqrt(vv::abs(x) + 1.0) +
                                                    vv::reciprocal(x * x + 2.0);
  return vv::sum(vv::gelu(h) * vv::silu(t) + vv::gelu(x, vv::approximate::tanh));
};
inline constexpr auto convolved = [](tensor const& x, tensor const& w, tensor const& b) {
  return vv::sum(vv::relu(vv::conv2d(x, w, b, 2, 1))) +
         vv::sum(vv::tanh(vv::conv_transpose2d(x, w, vv::none, 1, dims{1, 0}, 0, 1, 2)));
};
/// A loop whose gradient walks back over as many rows as there were steps.
inline constexpr auto repeated = [](tensor const& x, tensor const& w) {
  tensor const y =
      vv::while_loop<16>([](auto const& y, auto const&) { return vv::sum(y * y) < 100.0; },
                         [](auto const& y, auto const& w) { return tensor(vv::tanh(w) * y + y * y); }, x, w);
  return vv::sum(y * w);
};

/// Every elementwise operator that takes such operands, whatever there are.
inline constexpr auto every = [](tensor const& x, tensor const& y) {
  std::vector<tensor> r;
  for (std::string const& name : vv::ops::names()) {
    auto const* const op = vv::ops::find(name.c_str());
    if (!op || op->kind != vv::op_kind::pointwise || op->node()->arity > 2) continue;
    try {
      r.push_back((op->node()->arity == 1 ? vv::ops::call(name, {x}) : vv::ops::call(name, {x, y}))[0].as<tensor>());
    } catch (vv::error const&) { // not of this dtype
    }
  }
  return r;
};

inline std::vector<sample> samples() {
  std::vector<sample> all;
  for (bool wide : {false, true}) {
    dtype const t = wide ? dtype::float64 : dtype::float32;
    auto name = [&](char const* n) { return std::string(n) + (wide ? "_double" : ""); };
    all.push_back(traced(name("elementwise").c_str(), elementwise, counting({3, 37}, t), counting({37}, t, 0.5, 0.5),
                         counting({3, 1}, t)));
    all.push_back(traced(name("reductions").c_str(), reductions, counting({37, 29}, t), counting({29}, t, 0.03),
                         counting({37, 1}, t, 0.1)));
    all.push_back(traced(name("smooth").c_str(), vv::value_and_grad(smooth), counting({3, 37}, t, 0.11)));
    all.push_back(traced(name("layers").c_str(), vv::grad<0, 1>(layers), counting({9, 6}, t, 0.05),
                         counting({6, 4}, t, 0.03), counting({32, 9}, t, 0.02), counting({32, 4}, t, 0.01)));
    all.push_back(traced(name("convolved").c_str(), vv::grad<0, 1, 2>(convolved), counting({2, 3, 6, 5}, t, 0.02, -0.9),
                         counting({3, 3, 3, 2}, t, 0.01, -0.4), counting({3}, t, 0.1, 0)));
    all.push_back(traced(name("neighbours").c_str(), vv::grad(neighbours), counting({41}, t)));
  }
  all.push_back(
      traced("every", every, counting({37}, dtype::float32, 0.125, -4), counting({37}, dtype::float32, 1, 1)));
  all.push_back(
      traced("every_double", every, counting({37}, dtype::float64, 0.125, -4), counting({37}, dtype::float64, 1, 1)));
  all.push_back(traced("every_integer", every, counting({37}, dtype::int32, 3, 1), counting({37}, dtype::int32, 1, 1)));
  all.push_back(traced("hessian", vv::hessian(neighbours), counting({41}, dtype::float64)));
  all.push_back(traced(
      "wide_layer", [](tensor const& x, tensor const& w) { return vv::relu(vv::matmul(x, w)); }, counting({70, 80}),
      counting({80, 90}, dtype::float32, 0.01)));
  all.push_back(
      traced("picks", picks, counting({12, 30}), tensor({std::int64_t(2), std::int64_t(0), std::int64_t(11)})));
  all.push_back(traced("lone", lone, counting({7}), tensor({std::int64_t(6), std::int64_t(0), std::int64_t(6)}),
                       counting({0}, dtype::int64), counting({}), counting({}, dtype::int64, 0, 0)));
  all.push_back(traced("mixed", mixed, counting({41}, dtype::int64, 1, -7), counting({41}),
                       counting({41}, dtype::uint8, 1, 1), counting({41}, dtype::float64)));
  all.push_back(traced("narrow", narrow, counting({2, 3}, dtype::uint8, 50, 3),
                       counting({2, 3}, dtype::int32, 30000, -60000), counting({2, 3}, dtype::bool_, 0.5, -1)));
  all.push_back(traced("narrow_wide", narrow, counting({5, 30}, dtype::uint8, 50, 3),
                       counting({5, 30}, dtype::int32, 30000, -60000), counting({5, 30}, dtype::bool_, 0.5, -1)));
  all.push_back(traced("integers", integers, counting({40}, dtype::int32, 107374182, -2147483648.0),
                       counting({9, 9}, dtype::int32, 30000, -60000)));
  all.push_back(traced("whole", whole, counting({40}, dtype::int32, 107374182, -2147483648.0),
                       counting({9, 9}, dtype::int32, 30000, -60000), counting({37}, dtype::uint8, 50, 3)));
  all.push_back(traced("exact", exact, counting({5, 9}, dtype::int64, 123456789123456789.0, -4e18),
                       counting({5, 9}, dtype::int64, -98765432198765432.0, 3e18),
                       counting({}, dtype::int64, 1, -3e18)));
  all.push_back(traced(
      "small", [](tensor const& a, tensor const& b) { return std::tuple(a * b + 1.0, vv::tanh(a)); }, counting({}),
      counting({}, dtype::float64)));
  all.push_back(traced(
      "nothing", [](tensor const& x) { return std::tuple(vv::sum(x, vv::axis<0>), x + 1.0, vv::sum(x)); },
      counting({0, 3})));
  all.push_back(traced("functions", functions, counting({5}), counting({7, 5}, dtype::float32, 0.1)));
  all.push_back(
      traced("functions_even", functions, counting({5}, dtype::float32, -0.1), counting({6, 5}, dtype::float32, -0.1)));
  all.push_back(traced("repeated", vv::value_and_grad<0, 1>(repeated), counting({5}, dtype::float64, 0.05, 0.4),
                       counting({5}, dtype::float64, 0.1, 0.2)));
  all.push_back(traced("repeated_never", vv::value_and_grad<0, 1>(repeated), counting({5}, dtype::float64, 0.05, 20),
                       counting({5}, dtype::float64, 0.1, 0.2)));
  // Of the compiler's own tracer, with array constants.
  constexpr auto g = vv::trace(
      [](auto x) {
        return vv::sum(x * vv::array<float, 3>{1, -0.1f, 1e-30f} + vv::array<float, 3>{2, 4, 8}, vv::axis<1>);
      },
      vv::spec<float, 40, 3>);
  all.push_back({"constants", g.thaw(), vv::boxed_args(counting({40, 3}))});
  return all;
}
} // namespace emit
