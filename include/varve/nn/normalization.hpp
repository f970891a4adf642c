// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/diagonals.hpp>
#include <varve/composite/statistics.hpp>
#include <varve/composite/windows.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/op/layer_norm.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/pow.hpp>
#include <varve/op/softmax.hpp>

#include <cmath>

/// @file
/// Normalization layers, linear layers and attention.
namespace varve {

namespace detail {
/// Returns the shape of a vector with one number for each channel (axis 1) that broadcasts to [n, channels, ...].
inline constexpr auto channels_of = [](dims const& w, dims const& s) {
  dims r = s;
  for (int k = 0; k < s.n; ++k) r[k] = 1;
  if (s.n < 2 || w.n != 1 || w[0] != s[1]) refuse::shapes_do_not_match("a normalization by channels", s, w);
  r[1] = s[1];
  return r;
};
template <value X, class W>
constexpr auto by_channel(X const& x, W const& w) {
  return reshape(w, on_dims(channels_of, shape_of(w), shape_of(x)));
}
/// Multiplies by a weight and adds a bias for each channel, unless they are `none`.
template <value Y, class W, class B>
constexpr auto scaled_by_channel(Y const& y, W const& weight, B const& bias) {
  auto const scaled = [&] {
    if constexpr (is_none<W>) return y;
    else return mul(y, by_channel(y, weight));
  }();
  if constexpr (is_none<B>) return scaled;
  else return add(scaled, by_channel(y, bias));
}
/// Returns (x - mean) / sqrt(variance + eps), with mean and variance along axes.
template <value X, class A>
constexpr auto standardized(X const& x, A const& axes, double eps) {
  auto const d = sub(x, mean(x, axes, keepdim));
  return mul(d, rsqrt(add(mean(square(d), axes, keepdim), eps)));
}
} // namespace detail

/// x times the transpose of a matrix [out, in], plus a bias (`torch.nn.functional.linear`). The weight may also be a
/// vector [in].
inline constexpr struct linear_t : composite_operator<linear_t> {
  static constexpr auto op_name = "linear";
  template <value X, value W, class B = none_t>
  static constexpr auto body(X const& x, W const& weight, B const& bias = {}) {
    auto const order = [](dims const& s) {
      if (s.n < 1 || s.n > 2) refuse::argument_is_invalid(op_name, "the weight is a matrix or a vector");
      return s.n == 2 ? dims{1, 0} : dims{0};
    };
    auto const y = matmul(x, permute(weight, on_dims(order, shape_of(weight))));
    if constexpr (is_none<B>) return y;
    else return add(y, bias);
  }
} linear{};

/// For each k, x1 w[k] x2 plus a bias, with x1 [.., a], x2 [.., b], w [out, a, b] (`torch.nn.functional.bilinear`).
inline constexpr struct bilinear_t : composite_operator<bilinear_t> {
  static constexpr auto op_name = "bilinear";
  template <value X, value Y, value W, class B = none_t>
  static constexpr auto body(X const& x1, Y const& x2, W const& weight, B const& bias = {}) {
    auto const check = [](dims const& s, dims const& t, dims const& w) {
      if (w.n != 3 || s.n < 1 || s.n != t.n || s[s.n - 1] != w[1] || t[t.n - 1] != w[2] ||
          !(s.sub(0, s.n - 1) == t.sub(0, t.n - 1)))
        refuse::shapes_do_not_match(op_name, s, t);
      extent n = 1;
      for (int k = 0; k + 1 < s.n; ++k) n *= s[k];
      return dims{n, w[0], w[1], w[2]};
    };
    auto const sizes = on_dims(check, shape_of(x1), shape_of(x2), shape_of(weight));
    auto const left = on_dims([](dims const& s) { return dims{s[0], 1, 1, s[2]}; }, sizes);
    auto const right = on_dims([](dims const& s) { return dims{s[0], 1, s[3], 1}; }, sizes);
    auto const through = matmul(reshape(x1, left), weight); // [n, out, 1, b]
    auto const y = matmul(through, reshape(x2, right));
    auto const shape = on_dims(
        [](dims const& s, dims const& n) {
          dims r = s.sub(0, s.n - 1);
          return r.push_back(n[1]);
        },
        shape_of(x1), sizes);
    if constexpr (is_none<B>) return reshape(y, shape);
    else return add(reshape(y, shape), bias);
  }
} bilinear{};

/// x / sqrt(mean(x^2) + eps) times a weight, over the last axes, whose sizes are given
/// (`torch.nn.functional.rms_norm`). By default `eps` is the machine epsilon of the dtype. Integers are refused.
inline constexpr struct rms_norm_t : composite_operator<rms_norm_t> {
  static constexpr auto op_name = "rms_norm";
  template <value X, class S, class W = none_t, class E = none_t>
  static constexpr auto body(X const& x, S const& normalized_shape, W const& weight = {}, E const& eps = {}) {
    detail::needs_floating<rms_norm_t>(x);
    auto const axes = on_dims(detail::normalized_axes, shape_of(x), detail::as_fact(normalized_shape));
    double const least = [&] {
      if constexpr (!is_none<E>) return static_cast<double>(eps);
      else
        return dtype_of(x) == dtype::float32 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                             : std::numeric_limits<double>::epsilon();
    }();
    auto const y = mul(x, rsqrt(add(mean(square(x), axes, keepdim), least)));
    if constexpr (is_none<W>) return y;
    else return mul(y, weight);
  }
} rms_norm{};

/// Divides the channels into groups and normalizes each group over all its elements (`torch.nn.functional.group_norm`).
/// x is [n, channels, ...].
inline constexpr struct group_norm_t : composite_operator<group_norm_t> {
  static constexpr auto op_name = "group_norm";
  template <value X, class G, class W = none_t, class B = none_t>
  static constexpr auto body(X const& x, G const& groups, W const& weight = {}, B const& bias = {}, double eps = 1e-5) {
    auto const grouped = [](dims const& s, dims const& g) {
      if (s.n < 2 || g[0] < 1 || s[1] % g[0] != 0)
        refuse::argument_is_invalid(op_name, "the channels cannot be divided into so many groups");
      extent rest = s[1] / g[0];
      for (int k = 2; k < s.n; ++k) rest *= s[k];
      return dims{s[0], g[0], rest};
    };
    auto const parts = reshape(x, on_dims(grouped, shape_of(x), detail::as_fact(groups)));
    return detail::scaled_by_channel(reshape(detail::standardized(parts, axis<2>, eps), shape_of(x)), weight, bias);
  }
} group_norm{};

/// Normalizes each channel of each sample separately (`torch.nn.functional.instance_norm`). x is [n, channels, ...].
inline constexpr struct instance_norm_t : composite_operator<instance_norm_t> {
  static constexpr auto op_name = "instance_norm";
  template <value X, class W = none_t, class B = none_t>
  static constexpr auto body(X const& x, W const& weight = {}, B const& bias = {}, double eps = 1e-5) {
    auto const axes = [](dims const& s) {
      dims r;
      extent n = 1;
      for (int k = 2; k < s.n; ++k) r.push_back(k), n *= s[k];
      if (r.n == 0 || n == 1) refuse::argument_is_invalid(op_name, "more than one value for each channel is expected");
      return r;
    };
    return detail::scaled_by_channel(detail::standardized(x, on_dims(axes, shape_of(x)), eps), weight, bias);
  }
} instance_norm{};

namespace detail {
inline constexpr auto all_but_channels = [](dims const& s) {
  if (s.n < 2) refuse::argument_is_invalid("batch_norm", "at least two dimensions are expected");
  dims r{0};
  for (int k = 2; k < s.n; ++k) r.push_back(k);
  return r;
};
} // namespace detail
/// Normalizes each channel over all samples (`torch.nn.functional.batch_norm`). x is [n, channels, ...]. It uses the
/// statistics of x, or `mean` and `variance` if they are given; the caller maintains running statistics.
inline constexpr struct batch_norm_t : composite_operator<batch_norm_t> {
  static constexpr auto op_name = "batch_norm";
  template <value X, class M = none_t, class V = none_t, class W = none_t, class B = none_t>
  static constexpr auto body(X const& x, M const& mean = {}, V const& variance = {}, W const& weight = {},
                             B const& bias = {}, double eps = 1e-5) {
    static_assert(is_none<M> == is_none<V>, "varve: batch_norm takes both mean and variance, or none of them");
    if constexpr (is_none<M>) {
      auto const axes = on_dims(detail::all_but_channels, shape_of(x));
      return detail::scaled_by_channel(detail::standardized(x, axes, eps), weight, bias);
    } else {
      auto const d = sub(x, detail::by_channel(x, mean));
      return detail::scaled_by_channel(mul(d, rsqrt(add(detail::by_channel(x, variance), eps))), weight, bias);
    }
  }
} batch_norm{};

/// x / (k + alpha * mean of squares over `size` neighbouring channels)^beta, for x [n, channels, ...]
/// (`torch.nn.functional.local_response_norm`).
inline constexpr struct local_response_norm_t : composite_operator<local_response_norm_t> {
  static constexpr auto op_name = "local_response_norm";
  template <value X, class N>
  static constexpr auto body(X const& x, N const& size, double alpha = 1e-4, double beta = 0.75, double k = 1) {
    auto const flat = [](dims const& s, dims const& n) {
      if (s.n < 3) refuse::argument_is_invalid(op_name, "at least three dimensions are expected");
      if (n[0] < 1) refuse::argument_is_invalid(op_name, "the size must be positive");
      extent rest = 1;
      for (int d = 2; d < s.n; ++d) rest *= s[d];
      return dims{s[0], rest, s[1]};
    };
    auto const n = detail::as_fact(size);
    auto const turned = on_dims(flat, shape_of(x), n); // channels last
    auto const after = on_dims([](dims const& m) { return dims{m[0] / 2, (m[0] - 1) / 2}; }, n);
    auto const rows = on_dims([](dims const& s) { return dims{s[0], s[2], s[1]}; }, turned);
    auto const squares = transpose(reshape(square(x), rows), axis<1>, axis<2>);
    auto const neighbours = unfold(constant_pad_nd(squares, after), axis<2>, n, ints<1>{});
    auto const means =
        reshape(transpose(div(sum(neighbours, axis<-1>), index_t(to_dims(n)[0])), axis<1>, axis<2>), shape_of(x));
    return div(x, pow(add(mul(means, alpha), k), beta));
  }
} local_response_norm{};

/// softmax(q k^T / sqrt(d) + mask) v for q [.., l, d], k [.., s, d] and v [.., s, e]
/// (`torch.nn.functional.scaled_dot_product_attention`, without dropout). A bool mask is true where attention is
/// allowed; a floating mask is added. `scale` replaces 1 / sqrt(d).
inline constexpr struct scaled_dot_product_attention_t : composite_operator<scaled_dot_product_attention_t> {
  static constexpr auto op_name = "scaled_dot_product_attention";
  template <value Q, value K, value V, class M = none_t, class S = none_t>
  static constexpr auto body(Q const& q, K const& k, V const& v, M const& mask = {}, bool causal = false,
                             S const& scale = {}) {
    if (rank_of(q) < 2 || rank_of(k) < 2 || rank_of(v) < 2)
      refuse::argument_is_invalid(op_name, "queries, keys and values are matrices");
    index_t const d = to_dims(shape_of(q))[rank_of(q) - 1];
    double const factor = [&] {
      if constexpr (is_none<S>) return 1 / std::sqrt(static_cast<double>(d));
      else return static_cast<double>(scale);
    }();
    auto const scores = mul(matmul(q, transpose(k)), factor);
    constexpr double never = -std::numeric_limits<double>::infinity();
    auto const seen_from = [&](auto const& s) {
      if constexpr (is_none<M>) return s;
      else
        return choose(
            detail::is_floating_fact(mask), [&](auto const& u) { return add(u, mask); },
            [&](auto const& u) { return where(mask, u, never); }, s);
    };
    auto const masked = seen_from(scores);
    if (!causal) return matmul(softmax(masked, axis<-1>), v);
    auto const after = triu(ones_like(masked), 1);
    return matmul(softmax(where(eq(after, 1), never, masked), axis<-1>), v);
  }
} scaled_dot_product_attention{};

} // namespace varve
