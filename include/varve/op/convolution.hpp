// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/convolution.hpp>
#include <varve/op/add.hpp>
#include <varve/op/convolution_attributes.hpp>
#include <varve/op/permute.hpp>
#include <varve/op/slice.hpp>

/// @file
/// Convolutions, transposed or not, are one operator; the bias is added separately. Gradients are again convolutions:
/// the one with respect to the input swaps transposed and not transposed, the one with respect to the weight exchanges
/// batch and channels, stride and dilation. Batch rules are convolutions with more samples, channels or groups.
/// Therefore all of these nest.
namespace varve {

namespace detail {
/// Returns the axes of a value of the same rank, the first two exchanged.
inline constexpr auto exchanged = [](dims const& sizes) {
  dims r{1, 0};
  for (int k = 2; k < sizes.n; ++k) r.push_back(k);
  return r;
};
constexpr index_t quotient(index_t a, index_t b) { return b > 0 ? a / b : 0; } // 0 groups have no channels
/// Shapes of the same elements. `flat_from` flattens the dimensions from `k` on; `joined` joins dimension `k` with the
/// next; `split_channels` splits dimension 1 into `n` and the rest.
constexpr dims flat_from(dims sizes, int k) {
  index_t const rest = numel(sizes.sub(k, sizes.n));
  while (sizes.n > k) sizes.erase(k);
  return sizes.push_back(rest);
}
constexpr dims joined(dims sizes, int k) {
  sizes[k] *= sizes[k + 1];
  return sizes.erase(k + 1);
}
constexpr dims split_channels(dims sizes, index_t n) {
  sizes.insert(1, n);
  sizes[2] = quotient(sizes[2], n);
  return sizes;
}
/// Cuts a value to the first elements along each axis, where it has more than wanted.
template <int Axis, value V, fact S>
constexpr auto cut(V const& v, S const& sizes) {
  if constexpr (Axis == 5) return v;
  else {
    auto const range = on_dims(
        [](dims const& s) {
          int const axis = Axis < s.n ? Axis : s.n - 1;
          return dims{axis, 0, s[axis], 1};
        },
        sizes);
    auto const have = on_dims([](dims const& s, dims const& r) { return dims{r[0], 0, s[static_cast<int>(r[0])], 1}; },
                              shape_of(v), range);
    return cut<Axis + 1>(
        choose(same_fact(have, range), identity, [&](auto const& u) { return bind<slice_t>(range)(u); }, v), sizes);
  }
}
} // namespace detail

/// A convolution without bias, transposed or not; bilinear in input and weight. Attributes {stride}, {padding},
/// {dilation..., transposed, groups, output_padding...}. The input is padded with zeros. It is unspecified whether
/// products of this padding with infinite weights are computed, which would yield NaN.
template <>
struct rules<convolution_t> : rule::bilinear {
  static constexpr operator_class planned_as = operator_class::convolution;
  static constexpr saved_values saved{{saved_values::operand(1), saved_values::operand(0)}};
  static constexpr op_kind kind = op_kind::contraction;
  static constexpr auto schema = "(Tensor input, Tensor weight, int[] stride, int[] padding, int[] "
                                 "dilation_transposed_groups_output_padding) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    int const n = in[0].sizes.n - 2;
    bool fits = n >= 1 && at[0].n == n && at[1].n == n && at[2].n == 2 * n + 2;
    for (int k = 0; fits && k < n; ++k) fits = at[0][k] >= 1 && at[1][k] >= 0 && at[2][k] >= 1 && at[2][n + 2 + k] >= 0;
    if (!fits || at[2][n + 1] < 1)
      refuse::argument_is_invalid("convolution", "stride, padding, or {dilation..., is it transposed?, groups, output "
                                                 "padding...} do not fit the input");
    return at;
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    if (in[0].type != in[1].type) refuse::dtypes_differ("convolution", name(in[0].type), name(in[1].type));
    if (in[0].type == dtype::bool_) refuse::dtype_is_not_supported("convolution", name(in[0].type));
    return {in[0].type, detail::convolution_result(in[0].sizes, in[1].sizes, at[0], at[1], at[2])};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x, strided<T const> w) {
    kernel::convolve_directly<T>({at, x.sizes, w.sizes, out.sizes}, x.data, w.data, out.data);
  }
  template <std::same_as<tensor> T>
  static T make(attributes const& at, T const& x, T const& w) {
    meta const in[] = {meta_of(x), meta_of(w)};
    meta const m = shape(at, in, 2);
    T r = tensor::empty(m.sizes, m.type);
    T const a = x.is_contiguous() ? x : detail::contiguous_copy(x),
            b = w.is_contiguous() ? w : detail::contiguous_copy(w);
    kernel::convolve<>(m.type, {at, x.sizes(), w.sizes(), m.sizes}, a.raw(), b.raw(), r.raw());
    return r;
  }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const& op, value auto const& g, value auto const&, value auto const& x,
                            value auto const& w) {
    auto const rest = on_dims(detail::rest_of_the_other_way, op.a, op.b, op.c, shape_of(x), shape_of(g), shape_of(w));
    return detail::cut<2>(bind<convolution_t>(op.a, op.b, rest)(g, w), shape_of(x));
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const& op, value auto const& g, value auto const&, value auto const& x,
                            value auto const& w) {
    return choose(
        same_fact(on_dims(detail::is_transposed, op.a, op.c), ints<1>{}),
        [&](auto const& u, auto const& v) { return weight_gradient(op, u, v, shape_of(w)); },
        [&](auto const& u, auto const& v) { return weight_gradient(op, v, u, shape_of(w)); }, g, x);
  }
  template <class Op, class N, class X, class W>
  static constexpr auto batch(Op const& op, N const&, X const& x, W const& w) {
    return choose(
        w.batched,
        [&](auto const& u, auto const& v) {
          return choose(
              x.batched, [&](auto const& a, auto const& b) { return over_both(op, a, b); },
              [&](auto const& a, auto const& b) { return over_weights(op, a, b); }, u, v);
        },
        [&](auto const& u, auto const& v) { return over_inputs(op, u, v); }, x.value, w.value);
  }

private:
  /// Returns the weight's gradient. Batch and channels of both operands are exchanged; then `field` is convolved with
  /// `places`. This sums, for each tap, the products of all pairs that the tap connects.
  template <class Op, value F, value P, fact S>
  static constexpr auto weight_gradient(Op const& op, F const& field, P const& places, S const& sizes) {
    auto const groups = on_dims(detail::groups_of, op.a, op.c);
    auto const by_channel = choose(
        same_fact(groups, ints<1>{}), [](auto const& v) { return permute(v, on_dims(detail::exchanged, shape_of(v))); },
        [&](auto const& v) {
          auto const apart =
              reshape(v, on_dims([](dims const& s,
                                    dims const& g) { return detail::flat_from(detail::split_channels(s, g[0]), 3); },
                                 shape_of(v), groups));
          auto to = [](dims const& s, dims const& g) {
            dims r = s;
            r[0] = detail::quotient(s[1], g[0]), r[1] = g[0] * s[0];
            return r;
          };
          return reshape(permute(apart, ints<2, 1, 0, 3>{}), on_dims(to, shape_of(v), groups));
        },
        field);
    auto const samples = permute(places, on_dims(detail::exchanged, shape_of(places)));
    auto const r = bind<convolution_t>(on_dims(detail::dilation_of, op.a, op.c), op.b,
                                       on_dims(detail::rest_of_weight_gradient, op.a, op.c))(by_channel, samples);
    return detail::reshape_to(detail::cut<2>(permute(r, on_dims(detail::exchanged, shape_of(r))), sizes), sizes);
  }
  /// Maps over inputs only: they become more samples.
  template <class Op, value X, value W>
  static constexpr auto over_inputs(Op const& op, X const& x, W const& w) {
    auto const y = op(reshape(x, on_dims([](dims const& s) { return detail::joined(s, 0); }, shape_of(x))), w);
    auto apart = [](dims const& s, dims const& from) {
      dims r = s;
      r[0] = from[1];
      return r.insert(0, from[0]);
    };
    return reshape(y, on_dims(apart, shape_of(y), shape_of(x)));
  }
  /// Returns the number of result channels of one of the mapped weights, [n, ...].
  static constexpr index_t channels(dims const& w, index_t groups, bool transposed) {
    return transposed ? w[2] * groups : w[1];
  }
  /// Maps over inputs and weights: they become more groups.
  template <class Op, value X, value W>
  static constexpr auto over_both(Op const& op, X const& x, W const& w) {
    auto const by_sample = permute(x, on_dims(detail::exchanged, shape_of(x)));
    auto const all =
        reshape(by_sample, on_dims([](dims const& s) { return detail::joined(s, 1); }, shape_of(by_sample)));
    auto const weights = reshape(w, on_dims([](dims const& s) { return detail::joined(s, 0); }, shape_of(w)));
    auto const y =
        bind<convolution_t>(op.a, op.b, on_dims(detail::with_more_groups, op.a, op.c, shape_of(w)))(all, weights);
    auto to = [](dims const& s, dims const& from, dims const& g, dims const& t) {
      dims r = s;
      r[1] = channels(from, g[0], t[0] != 0);
      return r.insert(1, from[0]);
    };
    auto const apart = reshape(y, on_dims(to, shape_of(y), shape_of(w), on_dims(detail::groups_of, op.a, op.c),
                                          on_dims(detail::is_transposed, op.a, op.c)));
    return permute(apart, on_dims(detail::exchanged, shape_of(apart)));
  }
  /// Maps over weights only: they become more result channels within each group.
  template <class Op, value X, value W>
  static constexpr auto over_weights(Op const& op, X const& x, W const& w) {
    auto const groups = on_dims(detail::groups_of, op.a, op.c);
    auto const transposed = on_dims(detail::is_transposed, op.a, op.c);
    auto pieces = [](dims const& s, dims const& g, dims const& t) {
      return detail::flat_from(t[0] ? s : detail::split_channels(s, g[0]), 2);
    };
    auto together = [](dims const& s, dims const& t) {
      dims r = s;
      r[t[0] ? 2 : 1] *= s[0];
      return r.erase(0);
    };
    auto const apart =
        reshape(w, on_dims(pieces, shape_of(w), groups,
                           transposed)); // all of one group in one dimension; if transposed, all of one input channel
    auto const y = op(x, reshape(permute(apart, ints<1, 0, 2>{}), on_dims(together, shape_of(w), transposed)));
    auto by_group = [](dims const& s, dims const& from, dims const& g, dims const& t) {
      return dims{s[0], g[0], from[0], detail::quotient(channels(from, g[0], t[0] != 0), g[0]), numel(s.sub(2, s.n))};
    };
    auto to = [](dims const& s, dims const& from, dims const& g, dims const& t) {
      dims r = s;
      r[1] = channels(from, g[0], t[0] != 0);
      return r.insert(0, from[0]);
    };
    auto const parts =
        permute(reshape(y, on_dims(by_group, shape_of(y), shape_of(w), groups, transposed)), ints<2, 0, 1, 3, 4>{});
    return reshape(parts, on_dims(to, shape_of(y), shape_of(w), groups, transposed));
  }
};

template <value X, value W, class B, class S, class P, class D, class T, class O, class G>
constexpr auto convolution_t::operator()(X const& input, W const& weight, B const& bias, S const& stride, P const& pad,
                                         D const& dilation, T const& transposed, O const& output_padding,
                                         G const& groups) const {
  using detail::as_fact;
  auto const sizes = shape_of(input);
  auto const s = on_dims(detail::convolution_stride, as_fact(stride), sizes);
  auto const p = on_dims(detail::convolution_padding, as_fact(pad), sizes);
  if constexpr (detail::refused<std::remove_const_t<decltype(s)>, std::remove_const_t<decltype(p)>>) return input;
  else {
    auto const rest = on_dims(detail::all_of_convolution, as_fact(dilation), as_fact(transposed),
                              as_fact(output_padding), as_fact(groups), s, sizes);
    auto const fits =
        on_dims(detail::convolution_result, sizes, shape_of(weight), s, p, rest); // an error here has a short message
    if constexpr (detail::refused<std::remove_const_t<decltype(rest)>, std::remove_const_t<decltype(fits)>>)
      return input;
    else if constexpr (is_none<B>) return bind<convolution_t>(s, p, rest)(input, weight);
    else {
      auto const y = bind<convolution_t>(s, p, rest)(input, weight);
      return add(
          y, reshape(bias, on_dims(detail::bias_sizes, shape_of(bias), shape_of(y), type_fact(bias), type_fact(y))));
    }
  }
}

} // namespace varve
