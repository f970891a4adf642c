// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/kernel/sampling.hpp>
#include <varve/op/detach.hpp>
#include <varve/random/factories.hpp>

#include <algorithm>
#include <limits>

/// @file
/// Random tensors whose distribution parameters are tensors, one parameter per element. Each operator computes its
/// result from two operands: the parameters and 60 random bits per element. Only the bits are therefore random to
/// transforms, traces and graphs. None of the operators has a derivative, as in PyTorch.
namespace varve {

namespace detail {
inline constexpr std::int64_t bits_end = INT64_C(1) << 60;
/// Returns random bits: one integer in [0, 2^60) for each element of a shape.
template <class = void>
tensor random_bits(dims const& sizes) {
  return randint(0, bits_end, sizes);
}
/// Base of operators on parameters and bits of the same shape; the rules compute an element by `of(parameter, bits)`.
template <class Tag>
struct by_bits {
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr auto schema = "(Tensor self, Tensor bits) -> Tensor";
  static constexpr int arity = 2;
  static constexpr bool differentiable = false;
  static constexpr bool only_floating = true;
  static constexpr meta shape(attributes const&, meta const* in, int) {
    require_floating(Tag::op_name, in[0].type);
    if (!(in[0].sizes == in[1].sizes)) refuse::shapes_do_not_match(Tag::op_name, in[0].sizes, in[1].sizes);
    return in[0];
  }
  template <class R, class T, class S = rules<Tag>>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> x,
                                strided<std::int64_t const> bits) {
    for_each_row(
        out.sizes,
        [&](index_t n, auto to, auto p, auto b) {
          for (index_t k = 0; k < n; ++k) to[k] = static_cast<R>(S::of(static_cast<double>(p[k]), b[k]));
        },
        out, x, bits);
  }
  template <class Op, class N, class X, class B>
  static constexpr auto batch(Op const& op, N const& n, X const& x, B const& bits) {
    return op(materialize(x, n), materialize(bits, n));
  }
};
} // namespace detail

/// Operator: 1 with the probability that the element is, else 0.
inline constexpr struct bernoulli_of_bits_t {
  static constexpr auto op_name = "bernoulli";
} bernoulli_of_bits{};
template <>
struct rules<bernoulli_of_bits_t> : detail::by_bits<bernoulli_of_bits_t> {
  static constexpr double of(double p, std::int64_t bits) {
    if (!(p >= 0 && p <= 1)) refuse::argument_is_invalid("bernoulli", "a probability is in [0, 1]");
    return kernel::uniform_of_bits(bits) < p ? 1 : 0;
  }
};
/// Operator: a normally distributed number with mean 0 and the element as standard deviation.
inline constexpr struct normal_of_bits_t {
  static constexpr auto op_name = "normal";
} normal_of_bits{};
template <>
struct rules<normal_of_bits_t> : detail::by_bits<normal_of_bits_t> {
  static constexpr double of(double deviation, std::int64_t bits) {
    if (deviation < 0) refuse::argument_is_invalid("normal", "a standard deviation must not be negative");
    return deviation * kernel::normal_of_bits(bits);
  }
};
/// Operator: a Poisson-distributed count with the element as rate.
inline constexpr struct poisson_of_bits_t {
  static constexpr auto op_name = "poisson";
} poisson_of_bits{};
template <>
struct rules<poisson_of_bits_t> : detail::by_bits<poisson_of_bits_t> {
  static double of(double rate, std::int64_t bits) {
    if (!(rate >= 0 && rate < 0x1p53)) refuse::argument_is_invalid("poisson", "a rate is in [0, 2^53)");
    return kernel::poisson_of_bits(rate, bits);
  }
};

/// Operator: indices of the last dimension, drawn with probabilities proportional to its weights, which need not sum to
/// 1. Attribute {count, replacement}. With replacement there is one random number per draw, and the weights are summed
/// once. Without replacement there is one random number per weight, and the indices with the least -log(u) / weight are
/// drawn in ascending order (a race of exponential clocks).
inline constexpr struct multinomial_of_bits_t {
  static constexpr auto op_name = "multinomial";
} multinomial_of_bits{};
template <>
struct rules<multinomial_of_bits_t> {
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr auto schema = "(Tensor self, int[] count_replacement, Tensor bits) -> Tensor";
  static constexpr int arity = 2;
  static constexpr bool differentiable = false;
  static constexpr bool only_floating = true;
  template <class>
  using result = std::int64_t;
  static constexpr attributes checked(attributes const& at, meta const*) {
    if (at[0].n != 2) refuse::argument_is_invalid("multinomial", "how many, and whether places come back");
    return at;
  }
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    detail::require_floating("multinomial", in[0].type);
    dims s = in[0].sizes;
    bool const again = at[0][1] != 0;
    if (s.n < 1 || s[s.n - 1] == 0) refuse::argument_is_invalid("multinomial", "there must be a weight");
    if (at[0][0] < 1) refuse::argument_is_invalid("multinomial", "there must be a draw");
    if (!again && at[0][0] > s[s.n - 1])
      refuse::argument_is_invalid("multinomial", "without replacement there are no more draws than weights");
    dims bits = s;
    s[s.n - 1] = at[0][0];
    if (again) bits = s;
    if (!(in[1].sizes == bits)) refuse::shapes_do_not_match("multinomial", bits, in[1].sizes);
    return {dtype::int64, s};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> w,
                                strided<std::int64_t const> bits) {
    int const last = out.sizes.n - 1;
    index_t const n = w.sizes[last], count = out.sizes[last];
    bool const again = at[0][1] != 0;
    dims rows = out.sizes;
    rows[last] = 1;
    if (numel(rows) == 0) return;
    list<double> row(static_cast<std::size_t>(n), 0.0);
    list<index_t> place(static_cast<std::size_t>(n), index_t{0});
    for_each_index(rows, [&](dims const& i) {
      row_of<R> const to{&out.at(i), out.strides[last]};
      row_of<T const> const from{&w.at(i), w.strides[last]};
      row_of<std::int64_t const> const b{&bits.at(i), bits.strides[last]};
      index_t const possible = sum_weights(n, from, row.data());
      if (again) draw_again(count, to, n, row.data(), b);
      else if (possible < count)
        refuse::argument_is_invalid("multinomial", "without replacement there must be as many positive weights as "
                                                   "draws");
      else draw_once(count, to, n, from, row.data(), place.data(), b);
    });
  }
  template <class Op, class N, class X, class B>
  static constexpr auto batch(Op const& op, N const& n, X const& x, B const& bits) {
    return op(materialize(x, n), materialize(bits, n));
  }

private:
  /// Computes the cumulative sums of the weights and returns how many weights are positive.
  template <class T>
  static constexpr index_t sum_weights(index_t n, row_of<T const> w, double* sums) {
    double sum = 0;
    index_t positive = 0;
    for (index_t k = 0; k < n; ++k) {
      auto const v = static_cast<double>(w[k]);
      if (!(v >= 0 && v <= (std::numeric_limits<double>::max)()))
        refuse::argument_is_invalid("multinomial", "a weight must be finite and not negative");
      positive += v > 0;
      sums[k] = sum += v;
    }
    if (!(sum > 0 && sum <= (std::numeric_limits<double>::max)()))
      refuse::argument_is_invalid("multinomial", "the weights must sum to a positive finite number");
    return positive;
  }
  template <class R>
  static constexpr void draw_again(index_t count, row_of<R> to, index_t n, double const* sums,
                                   row_of<std::int64_t const> bits) {
    for (index_t j = 0; j < count; ++j) {
      double const at = kernel::uniform_of_bits(bits[j]) * sums[n - 1];
      index_t low = 0, high = n - 1; // finds the first index whose cumulative sum exceeds `at`
      while (low < high) {
        index_t const middle = low + (high - low) / 2;
        if (sums[middle] > at) high = middle;
        else low = middle + 1;
      }
      // skips weights of 0, in case `at` was rounded up to the total
      while (low > 0 && sums[low] == sums[low - 1]) --low;
      to[j] = low;
    }
  }
  template <class R, class T>
  static constexpr void draw_once(index_t count, row_of<R> to, index_t n, row_of<T const> w, double* when,
                                  index_t* place, row_of<std::int64_t const> bits) {
    for (index_t k = 0; k < n; ++k) {
      double const u = (static_cast<double>(bits[k] >> 7) + 0.5) * 0x1p-53, v = static_cast<double>(w[k]);
      place[k] = k;
      when[k] = v > 0 ? -kernel::log(u) / v : std::numeric_limits<double>::infinity();
    }
    auto const earlier = [when](index_t a, index_t b) { return when[a] < when[b] || (when[a] == when[b] && a < b); };
    std::partial_sort(place, place + count, place + n, earlier);
    for (index_t j = 0; j < count; ++j) to[j] = place[j];
  }
};

/// Returns 1 with the probability given by the element of `p`, else 0, in the dtype of p (`torch.bernoulli`). Throws
/// `value_error` for elements outside of [0, 1].
template <class T>
  requires std::is_same_v<T, tensor>
tensor bernoulli(T const& p, generator_ref g = {}) {
  detail::require_floating("bernoulli", p.dtype());
  return detail::drawn_from(
      g, [&]() -> tensor { return bind<bernoulli_of_bits_t>()(detach(p), detail::random_bits(p.sizes())); },
      "bernoulli");
}
/// Returns 1 with the same probability p for all elements, else 0, in the shape and dtype of x
/// (`torch.bernoulli(x, p)`).
template <class T>
  requires std::is_same_v<T, tensor>
tensor bernoulli(T const& x, double p, generator_ref g = {}) {
  detail::needs_real("bernoulli", x);
  if (!(p >= 0 && p <= 1)) refuse::argument_is_invalid("bernoulli", "a probability is in [0, 1]");
  return detail::drawn_from(
      g, [&]() -> tensor { return to(T(lt(T(rand(x.sizes(), dtype::float64)), p)), x.dtype()); }, "bernoulli");
}
/// Returns normally distributed numbers (`torch.normal`). The mean, the standard deviation or both are tensors. Throws
/// `value_error` for a negative standard deviation.
template <class T>
  requires std::is_same_v<T, tensor>
tensor normal(T const& mean, T const& deviation, generator_ref g = {}) {
  detail::require_floating("normal", deviation.dtype());
  dims const sizes = broadcast(mean.sizes(), deviation.sizes());
  T const wide = expand(detach(deviation), sizes);
  return detail::drawn_from(
      g,
      [&]() -> tensor { return add(T(detach(mean)), T(bind<normal_of_bits_t>()(wide, detail::random_bits(sizes)))); },
      "normal");
}
template <class T>
  requires std::is_same_v<T, tensor>
tensor normal(double mean, T const& deviation, generator_ref g = {}) {
  return normal(T(full({}, mean, deviation.dtype())), deviation, g);
}
/// Returns normally distributed numbers with one mean and one standard deviation for all elements, of given sizes. An
/// overload takes a tensor of means instead of the sizes.
template <class T = tensor>
T normal(double mean, double deviation, dims const& sizes, generator_ref g = {}, dtype type = get_default_dtype()) {
  if (!(deviation >= 0)) refuse::argument_is_invalid("normal", "a standard deviation must not be negative");
  return detail::drawn_from(g, [&]() -> T { return add(T(mul(T(randn(sizes, type)), deviation)), mean); }, "normal");
}
template <class T>
  requires std::is_same_v<T, tensor>
tensor normal(T const& mean, double deviation, generator_ref g = {}) {
  return add(T(detach(mean)), T(normal(0, deviation, mean.sizes(), g, mean.dtype())));
}
/// Returns Poisson-distributed counts whose rates are the elements of `rate`, in its dtype (`torch.poisson`). Throws
/// `value_error` unless 0 <= rate < 2^53.
template <class T>
  requires std::is_same_v<T, tensor>
tensor poisson(T const& rate, generator_ref g = {}) {
  detail::require_floating("poisson", rate.dtype());
  return detail::drawn_from(
      g, [&]() -> tensor { return bind<poisson_of_bits_t>()(detach(rate), detail::random_bits(rate.sizes())); },
      "poisson");
}
/// Returns `count` indices (int64) of the last dimension of a vector or matrix of weights, drawn with probabilities
/// proportional to the weights (`torch.multinomial`). Throws `value_error` if a weight is negative or not finite or if
/// weights sum to 0. Without replacement, more draws than positive weights are an error, too.
template <class T>
  requires std::is_same_v<T, tensor>
tensor multinomial(T const& weights, index_t count, bool replacement = false, generator_ref g = {}) {
  if (weights.dim() < 1 || weights.dim() > 2)
    refuse::argument_is_invalid("multinomial", "a vector or a matrix of weights is expected");
  dims sizes = weights.sizes();
  if (replacement) sizes[sizes.n - 1] = count;
  if (count < 1) refuse::argument_is_invalid("multinomial", "there must be a draw");
  return detail::drawn_from(
      g,
      [&]() -> tensor {
        return bind<multinomial_of_bits_t>(dims{count, replacement})(detach(weights), detail::random_bits(sizes));
      },
      "multinomial");
}

} // namespace varve
