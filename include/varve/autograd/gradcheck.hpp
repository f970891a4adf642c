// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/backward.hpp>
#include <varve/core/number_text.hpp>

#include <cmath>

namespace varve {

/// The error for a gradient that differs from the finite difference; the message shows both.
struct gradcheck_error : error {
  using error::error;
};
/// Options of `gradcheck`, with PyTorch's names.
struct gradcheck_options {
  double eps = 1e-6;  ///< the step of the differences
  double atol = 1e-5; ///< the absolute tolerance
  double rtol = 1e-3; ///< the tolerance relative to the differences
  /// True to throw `gradcheck_error` on a mismatch; otherwise `gradcheck` returns false.
  bool raise_exception = true;
};

namespace detail {
template <class Y>
std::vector<tensor> outputs_of(Y const& y) {
  std::vector<tensor> r;
  if constexpr (std::is_same_v<Y, std::vector<tensor>>) r = y;
  else tree_for_each([&](auto const& v) { r.push_back(v); }, y);
  return r;
}
inline bool fail_gradcheck(gradcheck_options const& o, std::string const& text) {
  if (o.raise_exception) refuse::with<gradcheck_error>(("varve: gradcheck: " + text).c_str());
  return false;
}
} // namespace detail

/// Returns true if the gradients of eager autograd agree with central differences. It checks every floating-point
/// element of `f(inputs...)`, a value or a tree of values. The derivative is taken by every element of every input that
/// requires grad. Inputs that require grad must be float64 (`dtype_error`) and contiguous (`value_error`). Inputs
/// change while it runs and are restored afterwards, also when an exception is thrown.
template <class T = tensor, class F>
bool gradcheck(F const& f, std::vector<T> const& inputs, gradcheck_options o = {}) {
  bool any = false;
  for (auto const& x : inputs) {
    if (!x.has_history()) continue;
    any = true;
    if (x.dtype() != dtype::float64)
      refuse::with<dtype_error>(
          "varve: gradcheck: inputs that require grad must be float64; differences of less are noise");
    if (!x.is_contiguous()) refuse::with<value_error>("varve: gradcheck: inputs must be contiguous; clone them first");
  }
  if (!any) refuse::with<value_error>("varve: gradcheck: at least one input must require grad");
  auto const call = [&] { return detail::outputs_of(f(inputs)); };
  std::vector<T> const y = call();
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (is_complex(y[i].dtype())) refuse::dtype_is_not_supported("gradcheck", name(y[i].dtype()));
    if (!is_floating(y[i].dtype())) continue;
    for (index_t e = 0; e < y[i].numel(); ++e) {
      std::vector<T> analytic(inputs.size());
      if (y[i].has_history()) {
        T const g = detail::constant_zeros(T(y[i].detach()));
        g.template data<double>()[e] = 1;
        std::vector<autograd::target> wanted;
        std::vector<std::size_t> at;
        for (std::size_t k = 0; k < inputs.size(); ++k)
          if (inputs[k].has_history()) wanted.push_back(inputs[k]), at.push_back(k);
        auto const r = autograd::grad<T>({y[i]}, wanted, {g}, {.retain_graph = true}, autograd::unused::zeros);
        for (std::size_t k = 0; k < at.size(); ++k) analytic[at[k]] = contiguous(T(r[k].detach()));
      }
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k].has_history()) continue;
        double* const x = inputs[k].template data<double>();
        for (index_t j = 0; j < inputs[k].numel(); ++j) {
          double const kept = x[j];
          struct restore {
            double& at;
            double value;
            ~restore() { at = value; }
          } const after{x[j], kept};
          no_grad const off;
          auto const at = [&](double v) {
            x[j] = v;
            return T(contiguous(T(call()[i]))).template data<double>()[e];
          };
          double const numeric = (at(kept + o.eps) - at(kept - o.eps)) / (2 * o.eps);
          double const exact = analytic[k].defined() ? analytic[k].template data<double>()[j] : 0;
          if (!(std::abs(numeric - exact) <= o.atol + o.rtol * std::abs(numeric)))
            return detail::fail_gradcheck(o, "output " + std::to_string(i) + " element " + std::to_string(e) +
                                                 " with respect to input " + std::to_string(k) + " element " +
                                                 std::to_string(j) + ": numeric " + detail::number_text(numeric, 10) +
                                                 ", analytic " + detail::number_text(exact, 10));
        }
      }
    }
  }
  return true;
}
/// Checks second derivatives: applies `gradcheck` to the gradient of f, weighted by fixed numbers.
template <class T = tensor, class F>
bool gradgradcheck(F const& f, std::vector<T> const& inputs, gradcheck_options o = {}) {
  auto const gradient = [&](std::vector<T> const& x) {
    set_grad_enabled const on(true);
    std::vector<autograd::target> y, wanted;
    std::vector<T> weights;
    for (auto const& v : detail::outputs_of(f(x))) {
      if (is_complex(v.dtype())) refuse::dtype_is_not_supported("gradgradcheck", name(v.dtype()));
      if (!is_floating(v.dtype()) || !v.has_history()) continue;
      T const w = detail::constant_ones(T(v.detach()));
      for (index_t k = 0; k < w.numel(); ++k) w.template data<double>()[k] = 1 + 0.37 * static_cast<double>(k % 5);
      y.push_back(v);
      weights.push_back(w);
    }
    for (auto const& v : x)
      if (v.has_history()) wanted.push_back(v);
    return autograd::grad<T>(y, wanted, weights, {.create_graph = true}, autograd::unused::zeros);
  };
  return gradcheck<T>([&](std::vector<T> const& x) { return gradient(x); }, inputs, o);
}

} // namespace varve
