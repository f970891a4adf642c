// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/composite.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/sum.hpp>
#include <varve/rule/normalized_rows.hpp>

namespace varve {

namespace detail {
/// Returns the axes that `layer_norm` normalizes: the last ones, whose sizes are given. Refuses sizes that do not
/// match.
inline constexpr auto normalized_axes = [](dims const& sizes, dims const& normalized) {
  dims axes;
  bool same = normalized.n > 0 && normalized.n <= sizes.n;
  for (int k = 0; k < normalized.n && same; ++k) {
    same = sizes[sizes.n - normalized.n + k] == normalized[k];
    axes.push_back(sizes.n - normalized.n + k);
  }
  if (!same) refuse::argument_is_invalid("layer_norm", "normalized_shape must be the last sizes of the input");
  return axes;
};

/// Runs `layer_norm` of tensors as one kernel call. Its operands are x, eps (a number), and optionally weight and bias.
template <bool Weight, bool Bias>
struct whole_layer_norm {
  static constexpr int arity = 2 + Weight + Bias;
  static bool is_built_in() {
    return are_built_in<sum_t, div_t, sub_t, mul_t, add_t, detach_t, rsqrt_t, expand_t, reshape_t>();
  }
  static index_t row(attributes const& at) {
    index_t n = 1;
    for (extent s : at[0]) n *= s.bits;
    return n;
  }
  /// The operands of a kernel in order: x, w or null, b or null, eps.
  template <class T>
  struct operands {
    tensor weight, bias;
    T const *w = nullptr, *b = nullptr;
    T eps;
    template <class At>
    explicit operands(At const& at) : eps(static_cast<T>(at(1).template item<double>())) {
      if constexpr (Weight) weight = contiguous_or_copy(at(2)), w = floats_of<T>(weight);
      if constexpr (Bias) bias = contiguous_or_copy(at(2 + Weight)), b = floats_of<T>(bias);
    }
  };
  static tensor value(attributes const& at, tensor const* const* x) {
    index_t const n = row(at);
    tensor const in = contiguous_or_copy(*x[0]);
    tensor y = tensor::empty(in.sizes(), in.dtype());
    on_floats(in.dtype(), [&]<class T>() {
      operands<T> const o([&](int k) -> tensor const& { return *x[k]; });
      T const* const from = floats_of<T>(in);
      T* const to = static_cast<T*>(y.raw());
      share_rows(n, in, [&](index_t first, index_t last) {
        kernel::layer_norm_rows(last - first, n, from + first * n, o.w, o.b, o.eps, to + first * n);
      });
    });
    return y;
  }
  /// Computes the gradient of x or of the weight by one kernel, for tensors without observers.
  static tensor pull_at_once(int i, index_t n, tensor const& g, boxed_args const& x) {
    tensor const cotangent = contiguous_or_copy(g), in = contiguous_or_copy(x[0]);
    tensor r = tensor::empty(i == 0 ? in.sizes() : x[2].sizes(), in.dtype());
    on_floats(in.dtype(), [&]<class T>() {
      T const eps = static_cast<T>(x[1].template item<double>());
      T* const to = static_cast<T*>(r.raw());
      if (i != 0)
        return kernel::layer_norm_backward_weight(numel(in.sizes()).bits / n, n, floats_of<T>(cotangent),
                                                  floats_of<T>(in), eps, to);
      tensor weight;
      if constexpr (Weight) weight = contiguous_or_copy(x[2]);
      T const *const slope = floats_of<T>(cotangent), *const from = floats_of<T>(in),
                     *const w = Weight ? floats_of<T>(weight) : nullptr;
      share_rows(n, in, [&](index_t first, index_t last) {
        index_t const at = first * n;
        kernel::layer_norm_backward_rows(last - first, n, slope + at, from + at, w, eps, to + at);
      });
    });
    return r;
  }
  /// Computes the gradient by operators, which recorders and transforms can observe. (`T` is `tensor`.)
  template <class T>
  static T pull(int i, dims const& sizes, T const& g, boxed_args const& all) {
    if (i == 2 + Weight) return detail::sum_to_shape(g, sizes); // the bias, whose gradient needs no saved operands
    T const &x = all[0], &eps = all[1];
    dims const axes = normalized_axes(x.sizes(), sizes);
    auto const d = sub(x, mean(x, axes, keepdim));
    auto const scale = rsqrt(add(mean(square(d), axes, keepdim), eps));
    auto const y = mul(d, scale);
    if (i == 2) return detail::sum_to_shape(mul(g, y), sizes);
    T weighted = g;
    if constexpr (Weight) weighted = mul(g, static_cast<T const&>(all[2]));
    auto const across = add(mean(weighted, axes, keepdim), mul(y, mean(mul(weighted, y), axes, keepdim)));
    return mul(scale, sub(weighted, across));
  }
  static tensor pullback(int i, attributes const& at, tensor const& g, tensor const&, boxed_args const& x) {
    auto const body = [&] { return pull<dependent<tensor, std::bool_constant<Weight>>>(i, at[0], g, x); };
    if (i == 2 + Weight || !is_built_in() || !are_alike(g, x[0])) return body();
    auto const kernel = [&] { return pull_at_once(i, row(at), g, x); };
    tensor const* const all[] = {&g, &x[0], &x[Weight && i == 0 ? 2 : 0]};
    return whole_gradient(all, 3, kernel, body);
  }
  /// The operands that both gradients read: x and eps. The gradient of x also reads the weight.
  static constexpr std::uint16_t of_x = saved_values::operand(0) | saved_values::operand(1);
  static constexpr op_table table =
      whole_table("layer_norm", arity,
                  {{static_cast<std::uint16_t>(of_x | (Weight ? saved_values::operand(2) : 0)), 0,
                    Weight ? of_x : std::uint16_t{0}, 0}},
                  &pullback, op_kind::reduction);
  /// Returns an undefined tensor if the composition must run instead.
  template <class... P>
  static tensor call(tensor const& x, dims const& sizes, double eps, P const&... parameters) {
    index_t n = 1;
    for (extent s : sizes) n *= is_symbol(s) ? 0 : s.bits;
    if (!has_rows(x, n) || !is_built_in()) return {};
    for (tensor const* p : {&x, &parameters...})
      if (!p->defined() || p->dtype() != x.dtype() || p->is_number() || (p != &x && !(p->sizes() == sizes))) return {};
    tensor const number = tensor::from_number(eps);
    tensor const* const all[] = {&x, &number, &parameters...};
    return whole_call(table, attributes(sizes), all, arity, &value);
  }
};
template <class W, class B>
tensor layer_norm_at_once(tensor const& x, dims const& sizes, double eps, W const& weight, B const& bias) {
  using whole = whole_layer_norm<!is_none<W>, !is_none<B>>;
  if constexpr (is_none<W> && is_none<B>) return whole::call(x, sizes, eps);
  else if constexpr (is_none<B>) return whole::call(x, sizes, eps, weight);
  else if constexpr (is_none<W>) return whole::call(x, sizes, eps, bias);
  else return whole::call(x, sizes, eps, weight, bias);
}
} // namespace detail

/// `layer_norm(x, normalized_shape, weight = none, bias = none, eps = 1e-5)`: (x - mean) / sqrt(variance + eps) *
/// weight + bias. Mean and population variance are taken over the last axes, whose sizes are given. Integers are
/// refused.
///
/// The variance is computed around a mean that is constant to derivatives, minus the square of the (zero) distance to
/// the mean. The function and its derivatives of every order stay the same. The backward pass then needs no sum that
/// depends on another sum, so that one pass over a row suffices.
inline constexpr struct layer_norm_t : composite_operator<layer_norm_t> {
  static constexpr auto op_name = "layer_norm";
  template <value X, class S, class W = none_t, class B = none_t>
  static constexpr auto body(X const& x, S const& normalized_shape, W const& weight = {}, B const& bias = {},
                             double eps = 1e-5) {
    auto const axes = on_dims(detail::normalized_axes, shape_of(x), detail::as_fact(normalized_shape));
    if constexpr (detail::is_one_tensor<X> && (is_none<W> || detail::is_one_tensor<W>) &&
                  (is_none<B> || detail::is_one_tensor<B>))
      if (X y = detail::layer_norm_at_once(x, to_dims(detail::as_fact(normalized_shape)), eps, weight, bias);
          y.defined())
        return y;
    auto const m = mean(x, axes, keepdim);
    auto const fixed = detach(m);
    auto const variance = sub(mean(square(sub(x, fixed)), axes, keepdim), square(sub(m, fixed)));
    auto const y = mul(sub(x, m), rsqrt(add(variance, eps)));
    auto const scaled = [&] {
      if constexpr (is_none<W>) return y;
      else return mul(y, weight);
    }();
    if constexpr (is_none<B>) return scaled;
    else return add(scaled, bias);
  }
} layer_norm{};

} // namespace varve
