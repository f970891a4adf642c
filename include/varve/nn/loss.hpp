// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/diagonals.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/composite/norms.hpp>
#include <varve/composite/xlogy.hpp>
#include <varve/dispatch/composite.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/expm1.hpp>
#include <varve/op/gather.hpp>
#include <varve/op/gelu.hpp>
#include <varve/op/maximum.hpp>
#include <varve/op/one_hot.hpp>
#include <varve/op/reciprocal.hpp>
#include <varve/op/relu.hpp>
#include <varve/op/softmax.hpp>
#include <varve/op/sqrt.hpp>
#include <varve/rule/one_pass.hpp>

/// @file
/// Losses of `torch.nn.functional`. They are computed for each element and reduced by `reduction`: the mean (the
/// default), the sum, or `none`.
namespace varve {

/// How a loss is reduced: `mse_loss(x, y, reduction::sum)`.
struct reduction {
  static constexpr ints<0> none{};
  static constexpr ints<1> mean{};
  static constexpr ints<2> sum{};
  /// The sum divided by the size of axis 0, for `kl_div`.
  static constexpr ints<3> batchmean{};
};

namespace detail {
/// Reduces the losses of all elements.
template <value Y, class R>
constexpr auto reduced_loss(Y const& y, R const& how) {
  auto const is = [&](auto const& one) { return same_fact(as_fact(how), one); };
  auto const by_rows = [&](auto const& v) {
    auto const rows = on_dims([](dims const& s) { return dims{s.n ? s[0] : extent(1)}; }, shape_of(v));
    return div(varve::sum(v), index_t(to_dims(rows)[0]));
  };
  auto const sums = [&](auto const& v) {
    return choose(is(reduction::batchmean), by_rows, [](auto const& u) { return varve::sum(u); }, v);
  };
  return choose(
      is(reduction::none), identity,
      [&](auto const& v) { return choose(is(reduction::mean), [](auto const& u) { return mean(u); }, sums, v); }, y);
}
/// Multiplies by weights unless they are `none`.
template <value Y, class W>
constexpr auto weighted(Y const& y, W const& weight) {
  if constexpr (is_none<W>) return y;
  else return mul(y, weight);
}
} // namespace detail

/// Squares of the differences.
inline constexpr struct mse_loss_t : composite_operator<mse_loss_t> {
  static constexpr auto op_name = "mse_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}) {
    return detail::reduced_loss(square(sub(input, target)), how);
  }
} mse_loss{};

/// Absolute differences.
inline constexpr struct l1_loss_t : composite_operator<l1_loss_t> {
  static constexpr auto op_name = "l1_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}) {
    return detail::reduced_loss(abs(sub(input, target)), how);
  }
} l1_loss{};

namespace detail {
/// The smooth L1 loss of a difference x: 0.5 x^2 / beta where |x| < beta, |x| - beta / 2 elsewhere. The operand `scale`
/// is 0.5 / beta.
struct smooth_l1_formula {
  static constexpr auto op_name = "smooth_l1_loss";
  static constexpr int arity = 3;
  static bool is_built_in() { return are_built_in<abs_t, sign_t, lt_t, mul_t, sub_t, where_t>(); }
  template <value X, value B, value S>
  constexpr auto operator()(X const& x, B const& beta, S const& scale) const {
    auto const d = abs(x);
    auto const within = lt(d, beta); // an infinite square would make the gradient NaN
    return where(within, mul(square(where(within, x, 0)), scale), sub(d, mul(beta, 0.5)));
  }
};
/// The Huber loss of a difference x: 0.5 x^2 where |x| <= delta, delta (|x| - delta / 2) elsewhere.
struct huber_formula {
  static constexpr auto op_name = "huber_loss";
  static constexpr int arity = 2;
  static bool is_built_in() { return are_built_in<abs_t, sign_t, le_t, mul_t, sub_t, where_t>(); }
  template <value X, value D>
  constexpr auto operator()(X const& x, D const& delta) const {
    auto const d = abs(x);
    auto const within = le(d, delta);
    return where(within, mul(square(where(within, x, 0)), 0.5), mul(sub(d, mul(delta, 0.5)), delta));
  }
};
/// Computes an elementwise formula of one value and numbers, in one pass if possible.
template <class F, value X, class... C>
constexpr auto in_one_pass(X const& x, C const&... c) {
  if constexpr (is_one_tensor<X>)
    if (X y = whole_function<F>::call(x, c...); y.defined()) return y;
  return F{}(x, c...);
}
/// The formula `F` of the difference of two values.
template <class F>
struct of_difference {
  template <value X, value Y, class... C>
  constexpr auto operator()(X const& x, Y const& y, C const&... c) const {
    return F{}(sub(x, y), c...);
  }
};
/// Computes the elementwise formula `F` of the difference of two values and numbers. Two floating tensors of one dtype
/// and shape take one pass if nothing watches their calls.
template <class F, value X, value Y, class... C>
constexpr auto difference_in_one_pass(X const& x, Y const& y, C const&... c) {
  if constexpr (is_one_tensor<X> && is_one_tensor<Y>) {
    tensor const* const both[] = {&x, &y};
    if (are_unwatched(&x, 1) && are_unwatched(&y, 1) && are_floats(both, 2) && x.sizes() == y.sizes() &&
        are_built_in<sub_t>() && F::is_built_in()) {
      tensor const numbers[] = {tensor::from_number(c)...};
      return [&]<std::size_t... K>(std::index_sequence<K...>) -> X {
        tensor const* const all[] = {&x, &y, &numbers[K]...};
        return run_pointwise(one_pass_of<value_in_lanes<of_difference<F>>, F::arity + 1>, all);
      }(std::index_sequence_for<C...>{});
    }
  }
  return in_one_pass<F>(sub(x, y), c...);
}
} // namespace detail

/// 0.5 d^2 / beta where the absolute difference |d| is below `beta`, |d| - beta / 2 elsewhere.
inline constexpr struct smooth_l1_loss_t : composite_operator<smooth_l1_loss_t> {
  static constexpr auto op_name = "smooth_l1_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}, double beta = 1) {
    if (beta < 0) refuse::argument_is_invalid(op_name, "beta must not be negative");
    if (beta == 0) return detail::reduced_loss(abs(sub(input, target)), how);
    return detail::reduced_loss(
        detail::difference_in_one_pass<detail::smooth_l1_formula>(input, target, beta, 0.5 / beta), how);
  }
} smooth_l1_loss{};

/// 0.5 d^2 where the absolute difference |d| is at most `delta`, `delta (|d| - delta / 2)` elsewhere.
inline constexpr struct huber_loss_t : composite_operator<huber_loss_t> {
  static constexpr auto op_name = "huber_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}, double delta = 1) {
    if (!(delta > 0)) refuse::argument_is_invalid(op_name, "delta must be positive");
    return detail::reduced_loss(detail::difference_in_one_pass<detail::huber_formula>(input, target, delta), how);
  }
} huber_loss{};

namespace detail {
/// The cross entropy of probabilities that are 0 or 1, or nearly so. Logarithms are limited to at least -100. The
/// derivative is (x - y) / 1e-12, as in PyTorch; that of the limited logarithms would be 0 or NaN.
template <value X, value Y>
constexpr auto cross_entropy_at_ends(X const& x, Y const& y) {
  auto const p = detach(x);
  auto const yes = clamp(log(p), -100), no = clamp(log1p(neg(p)), -100);
  auto const slope = mul(square(sub(x, detach(y))), 0.5); // only its derivative matters
  return add(sub(mul(sub(y, 1), no), mul(y, yes)), mul(sub(slope, detach(slope)), 1e12));
}
} // namespace detail
/// -(y log x + (1 - y) log(1 - x)) for probabilities x. Logarithms are limited to at least -100.
inline constexpr struct binary_cross_entropy_t : composite_operator<binary_cross_entropy_t> {
  static constexpr auto op_name = "binary_cross_entropy";
  template <value X, value Y, class W = none_t, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, W const& weight = {}, R const& how = {}) {
    auto const inside = gt(mul(input, sub(1, input)), 1e-12);
    auto const known = where(inside, input, 0.5);
    auto const y = sub(mul(sub(target, 1), log1p(neg(known))), mul(target, log(known)));
    auto const all = where(inside, y, detail::cross_entropy_at_ends(input, target));
    return detail::reduced_loss(detail::weighted(all, weight), how);
  }
} binary_cross_entropy{};

/// `binary_cross_entropy` of sigmoid(x), computed without loss of precision. `pos_weight` multiplies the loss of
/// positive targets.
inline constexpr struct binary_cross_entropy_with_logits_t : composite_operator<binary_cross_entropy_with_logits_t> {
  static constexpr auto op_name = "binary_cross_entropy_with_logits";
  template <value X, value Y, class W = none_t, class R = ints<1>, class P = none_t>
  static constexpr auto body(X const& input, Y const& target, W const& weight = {}, R const& how = {},
                             P const& pos_weight = {}) {
    if (to_dims(shape_of(input)) != to_dims(shape_of(target)))
      refuse::shapes_do_not_match(op_name, to_dims(shape_of(input)), to_dims(shape_of(target)));
    auto const no = mul(sub(1, target), input);
    auto const yes = log1p_exp(neg(input));
    auto const y = [&] {
      if constexpr (is_none<P>) return add(no, yes);
      else return add(no, mul(add(mul(sub(pos_weight, 1), target), 1), yes));
    }();
    return detail::reduced_loss(detail::weighted(y, weight), how);
  }
} binary_cross_entropy_with_logits{};

/// target (log(target) - input), where `input` contains logarithms. With `log_target` the target does, too.
inline constexpr struct kl_div_t : composite_operator<kl_div_t> {
  static constexpr auto op_name = "kl_div";
  template <value X, value Y, class R = ints<1>, class L = ints<0>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}, L const& log_target = {}) {
    auto const of_logs = [&](auto const& t) { return mul(exp(t), sub(t, input)); };
    auto const of_values = [&](auto const& t) { return sub(xlogy(t, t), mul(t, input)); };
    return detail::reduced_loss(choose(same_fact(detail::as_fact(log_target), ints<1>{}), of_logs, of_values, target),
                                how);
  }
} kl_div{};

/// The Poisson loss: e^x - y x if `log_input`, where x is the logarithm of a rate, otherwise x - y log(x + eps) for a
/// rate x. `full` adds Stirling's approximation of log(y!) where y > 1.
inline constexpr struct poisson_nll_loss_t : composite_operator<poisson_nll_loss_t> {
  static constexpr auto op_name = "poisson_nll_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, bool log_input = true, bool full = false,
                             double eps = 1e-8, R const& how = {}) {
    auto y = log_input ? sub(exp(input), mul(target, input)) : sub(input, mul(target, log(add(input, eps))));
    if (full) {
      auto const above = where(gt(target, 1), target, 1);
      auto const stirling =
          add(sub(mul(above, log(above)), above), mul(log(mul(above, 6.283185307179586476925286766559)), 0.5));
      y = add(y, where(le(target, 1), 0, stirling));
    }
    return detail::reduced_loss(y, how);
  }
} poisson_nll_loss{};

/// 0.5 (log(variance) + (x - y)^2 / variance). The variance is raised to at least `eps`; this does not affect
/// derivatives. `full` adds log(2 pi) / 2. The variance has the shape of the input, or the last size is 1 or missing.
inline constexpr struct gaussian_nll_loss_t : composite_operator<gaussian_nll_loss_t> {
  static constexpr auto op_name = "gaussian_nll_loss";
  template <value X, value Y, value V, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, V const& variance, bool full = false, double eps = 1e-6,
                             R const& how = {}) {
    auto const fitting = [](dims const& v, dims const& s) {
      if (v == s) return v;
      dims r = v;
      if (v.n + 1 == s.n && s.sub(0, v.n) == v) return r.push_back(1);
      if (v.n == s.n && v.n > 0 && v[v.n - 1] == 1 && v.sub(0, v.n - 1) == s.sub(0, v.n - 1)) return v;
      refuse::shapes_do_not_match(op_name, s, v);
    };
    auto const given = reshape(variance, on_dims(fitting, shape_of(variance), shape_of(input)));
    auto const low = where(lt(detach(given), eps), sub(eps, detach(given)), 0); // does not affect the derivative
    auto const v = add(given, low);
    auto const y = mul(add(log(v), div(square(sub(input, target)), v)), 0.5);
    return detail::reduced_loss(add(y, full ? 0.91893853320467274178032973640562 : 0.0), how);
  }
} gaussian_nll_loss{};

/// x where the target is 1, max(0, margin - x) where it is -1.
inline constexpr struct hinge_embedding_loss_t : composite_operator<hinge_embedding_loss_t> {
  static constexpr auto op_name = "hinge_embedding_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, double margin = 1, R const& how = {}) {
    auto const of_dissimilar = where(ne(target, 1), clamp(sub(margin, input), 0), 0);
    return detail::reduced_loss(add(of_dissimilar, where(ne(target, -1), input, 0)), how);
  }
} hinge_embedding_loss{};

/// max(0, -target (x1 - x2) + margin).
inline constexpr struct margin_ranking_loss_t : composite_operator<margin_ranking_loss_t> {
  static constexpr auto op_name = "margin_ranking_loss";
  template <value X, value Y, value T, class R = ints<1>>
  static constexpr auto body(X const& x1, Y const& x2, T const& target, double margin = 0, R const& how = {}) {
    return detail::reduced_loss(clamp(add(mul(neg(target), sub(x1, x2)), margin), 0), how);
  }
} margin_ranking_loss{};

/// log(1 + e^(-target x)).
inline constexpr struct soft_margin_loss_t : composite_operator<soft_margin_loss_t> {
  static constexpr auto op_name = "soft_margin_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}) {
    return detail::reduced_loss(log1p_exp(mul(neg(target), input)), how);
  }
} soft_margin_loss{};

/// The mean over the last axis of -(y log sigmoid(x) + (1 - y) log sigmoid(-x)).
inline constexpr struct multilabel_soft_margin_loss_t : composite_operator<multilabel_soft_margin_loss_t> {
  static constexpr auto op_name = "multilabel_soft_margin_loss";
  template <value X, value Y, class W = none_t, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, W const& weight = {}, R const& how = {}) {
    auto const y = add(mul(target, log1p_exp(neg(input))), mul(sub(1, target), log1p_exp(input)));
    return detail::reduced_loss(mean(detail::weighted(y, weight), axis<-1>), how);
  }
} multilabel_soft_margin_loss{};

/// 1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1. Cosines are taken along the last
/// axis.
inline constexpr struct cosine_embedding_loss_t : composite_operator<cosine_embedding_loss_t> {
  static constexpr auto op_name = "cosine_embedding_loss";
  template <value X, value Y, value T, class R = ints<1>>
  static constexpr auto body(X const& x1, Y const& x2, T const& target, double margin = 0, R const& how = {}) {
    double const eps = 1e-12;
    auto const norm = [&](auto const& v) { return add(sum(square(v), axis<-1>), eps); };
    auto const cosine = div(sum(mul(x1, x2), axis<-1>), sqrt(mul(norm(x1), norm(x2))));
    auto const of_similar = where(eq(target, 1), sub(1, cosine), 0);
    return detail::reduced_loss(add(of_similar, where(eq(target, -1), clamp(sub(cosine, margin), 0), 0)), how);
  }
} cosine_embedding_loss{};

namespace detail {
/// Returns the axis of classes: 1, or 0 for a vector.
inline constexpr auto class_axis = [](dims const& s) {
  if (s.n == 0) refuse::argument_is_invalid("nll_loss", "the input has at least one axis, of classes");
  return dims{s.n > 1};
};
inline constexpr auto with_class_axis = [](dims const& t, dims const& a) {
  dims r = t;
  return r.insert(static_cast<int>(a[0]), 1);
};
inline constexpr auto without_classes = [](dims const& s, dims const& a, dims const& t) {
  dims r = s;
  r.erase(static_cast<int>(a[0]));
  if (!(r == t)) refuse::shapes_do_not_match("nll_loss", s, t);
  return dims{};
};
} // namespace detail

/// The negative log-likelihood: minus the element of the target's class. The input contains log-probabilities, [n,
/// classes, ...] or [classes]; the target is int64 without the axis of classes. Targets equal to `ignore_index` are
/// ignored. `weight` has one number for each class; the mean is then a weighted mean. A target that is no class throws
/// `index_error`.
inline constexpr struct nll_loss_t : composite_operator<nll_loss_t> {
  static constexpr auto op_name = "nll_loss";
  template <value X, value Y, class W = none_t, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, W const& weight = {}, R const& how = {},
                             index_t ignore_index = -100) {
    detail::require_index(op_name, target);
    auto const axis = on_dims(detail::class_axis, shape_of(input));
    (void)on_dims(detail::without_classes, shape_of(input), axis, shape_of(target));
    auto const counts = ne(target, ignore_index);
    auto const known = where(counts, target, 0);
    auto const at = reshape(known, on_dims(detail::with_class_axis, shape_of(target), axis));
    auto const picked = neg(detail::reshape_to(gather(input, axis, at), shape_of(target)));
    auto const shares = [&] {
      if constexpr (is_none<W>) return to(counts, type_fact(input));
      else {
        auto const row = on_dims([](dims const& s) { return dims{numel(s)}; }, shape_of(known));
        return where(counts, detail::reshape_to(gather(weight, ints<0>{}, reshape(known, row)), shape_of(known)), 0);
      }
    }();
    auto const y = where(counts, mul(picked, shares), 0);
    auto const share = [&](auto const& v) { return div(sum(v), sum(shares)); };
    return choose(
        same_fact(detail::as_fact(how), reduction::mean), share,
        [&](auto const& v) { return detail::reduced_loss(v, how); }, y);
  }
} nll_loss{};

/// `nll_loss` of log_softmax(input). A floating target contains the probabilities of classes; the loss is then minus
/// the sum of target * log_softmax(input). `label_smoothing` is the share of the target that is spread evenly over all
/// classes.
inline constexpr struct cross_entropy_t : composite_operator<cross_entropy_t> {
  static constexpr auto op_name = "cross_entropy";
  template <value X, value Y, class W = none_t, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, W const& weight = {}, R const& how = {},
                             index_t ignore_index = -100, double label_smoothing = 0) {
    auto const axis = on_dims(detail::class_axis, shape_of(input));
    auto const logs = log_softmax(input, axis);
    auto const of_classes = [&](auto const& t) {
      return of_names(logs, t, weight, how, ignore_index, label_smoothing, axis);
    };
    auto const of_shares = [&](auto const& t) { return of_probabilities(logs, t, weight, how, label_smoothing, axis); };
    return choose(detail::is_floating_fact(target), of_shares, of_classes, target);
  }

private:
  template <class L, class W, class A>
  static constexpr auto by_class(L const& logs, W const& weight, A const& axis) {
    if constexpr (is_none<W>) return logs;
    else
      return mul(logs, reshape(weight, on_dims(
                                           [](dims const& s, dims const& a) {
                                             dims r;
                                             for (int k = 0; k < s.n; ++k) r.push_back(k == a[0] ? s[k] : extent(1));
                                             return r;
                                           },
                                           shape_of(logs), axis)));
  }
  template <class L, class T, class W, class R, class A>
  static constexpr auto of_names(L const& logs, T const& target, W const& weight, R const& how, index_t ignore_index,
                                 double smoothing, A const& axis) {
    auto const hard = nll_loss(logs, target, weight, how, ignore_index);
    if (smoothing == 0) return hard;
    auto const counts = ne(target, ignore_index);
    auto const soft = where(counts, neg(sum(by_class(logs, weight, axis), axis)), 0);
    auto const shares = [&] { // the divisor of the mean
      if constexpr (is_none<W>) return sum(to(counts, type_fact(logs)));
      else return sum(nll_loss(neg(ones_like(logs)), target, weight, reduction::none, ignore_index));
    }();
    auto const mean_of = [&](auto const& v) { return div(sum(v), shares); };
    auto const spread = choose(
        same_fact(detail::as_fact(how), reduction::mean), mean_of,
        [&](auto const& v) { return detail::reduced_loss(v, how); }, soft);
    index_t const classes = to_dims(shape_of(logs))[static_cast<int>(to_dims(axis)[0])];
    return add(mul(hard, 1 - smoothing), mul(spread, smoothing / static_cast<double>(classes)));
  }
  template <class L, class T, class W, class R, class A>
  static constexpr auto of_probabilities(L const& logs, T const& target, W const& weight, R const& how,
                                         double smoothing, A const& axis) {
    auto const require_same = [](dims const& s, dims const& t) {
      if (s != t)
        refuse::shapes_do_not_match("cross_entropy: a floating target holds probabilities, as many as the input; "
                                    "numbers of classes are int64",
                                    s, t);
      return dims{};
    };
    (void)on_dims(require_same, shape_of(logs), shape_of(target));
    index_t const classes = to_dims(shape_of(logs))[static_cast<int>(to_dims(axis)[0])];
    auto const shares =
        smoothing == 0 ? mul(target, 1.0) : add(mul(target, 1 - smoothing), smoothing / static_cast<double>(classes));
    auto const y = neg(sum(mul(by_class(logs, weight, axis), shares), axis));
    auto const rows = [&](auto const& v) {
      return div(sum(v), detail::count_reduced(v, to_dims(shape_of(v)), dims{}));
    };
    return choose(
        same_fact(detail::as_fact(how), reduction::mean), rows,
        [&](auto const& v) { return detail::reduced_loss(v, how); }, y);
  }
} cross_entropy{};

/// The sum over all classes i but the target y of max(0, margin - x[y] + x[i])^p, times the weight of class y, divided
/// by the number of classes. The input is [n, classes] or [classes]; p is 1 or 2.
inline constexpr struct multi_margin_loss_t : composite_operator<multi_margin_loss_t> {
  static constexpr auto op_name = "multi_margin_loss";
  template <value X, value Y, class W = none_t, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, int p = 1, double margin = 1, W const& weight = {},
                             R const& how = {}) {
    if (p != 1 && p != 2) refuse::argument_is_invalid(op_name, "p must be 1 or 2");
    auto const rows = [](dims const& s, dims const& t) {
      bool const fits = s.n == 2 ? t == dims{s[0]} : s.n < 2 && t.n < 2 && numel(t) == 1;
      if (!fits || numel(s) == 0) refuse::shapes_do_not_match(op_name, s, t);
      return dims{s.n == 2 ? s[0] : extent(1), s.n ? s[s.n - 1] : extent(1)};
    };
    auto const sizes = on_dims(rows, shape_of(input), shape_of(target));
    auto const column = on_dims([](dims const& s) { return dims{s[0], 1}; }, sizes);
    auto const x = reshape(input, sizes);
    auto const at = reshape(target, column);
    auto const d = relu(add(sub(x, gather(x, ints<1>{}, at)), margin)); // at the margin the derivative is 0
    auto const costs = p == 1 ? mul(d, 1.0) : square(d);
    // the target's own class is included in the sum, and subtracted
    double const itself = p == 1 ? margin : margin * margin;
    auto const all = sub(sum(costs, axis<1>, keepdim), margin > 0 ? itself : 0.0);
    auto const by_weight = [&] {
      if constexpr (is_none<W>) return all;
      else
        return mul(all, reshape(gather(weight, ints<0>{},
                                       reshape(target, on_dims([](dims const& s) { return dims{s[0]}; }, sizes))),
                                column));
    }();
    auto const y = div(by_weight, index_t(to_dims(sizes)[1]));
    auto const shape = on_dims([](dims const& s) { return s.n == 2 ? dims{s[0]} : dims{}; }, shape_of(input));
    return detail::reduced_loss(reshape(y, shape), how);
  }
} multi_margin_loss{};

/// max(0, margin + distance to the positive - distance to the negative), with distances by `pairwise_distance`. With
/// `swap`, the distance from positive to negative replaces that from anchor to negative where it is smaller. All three
/// operands must have the same rank.
inline constexpr struct triplet_margin_loss_t : composite_operator<triplet_margin_loss_t> {
  static constexpr auto op_name = "triplet_margin_loss";
  template <value A, value P, value N, class R = ints<1>>
  static constexpr auto body(A const& anchor, P const& positive, N const& negative, double margin = 1, double p = 2,
                             double eps = 1e-6, bool swap = false, R const& how = {}) {
    if (!(margin > 0)) refuse::argument_is_invalid(op_name, "the margin must be positive");
    if (rank_of(anchor) != rank_of(positive) || rank_of(anchor) != rank_of(negative))
      refuse::shapes_do_not_match(op_name, to_dims(shape_of(anchor)), to_dims(shape_of(positive)));
    auto const to_positive = pairwise_distance(anchor, positive, p, eps);
    auto const to_negative = pairwise_distance(anchor, negative, p, eps);
    auto const least = swap ? minimum(to_negative, pairwise_distance(positive, negative, p, eps)) : to_negative;
    return detail::reduced_loss(clamp(add(sub(to_positive, least), margin), 0), how);
  }
} triplet_margin_loss{};

/// `triplet_margin_loss` with a user-defined distance, `distance(x, y)`
/// (`torch.nn.functional.triplet_margin_with_distance_loss`).
inline constexpr struct triplet_margin_with_distance_loss_t {
  static constexpr auto op_name = "triplet_margin_with_distance_loss";
  template <value A, value P, value N, class D = pairwise_distance_t, class R = ints<1>>
  constexpr auto operator()(A const& anchor, P const& positive, N const& negative, D const& distance = {},
                            double margin = 1, bool swap = false, R const& how = {}) const {
    if (!(margin > 0)) refuse::argument_is_invalid(op_name, "the margin must be positive");
    if (rank_of(anchor) != rank_of(positive) || rank_of(anchor) != rank_of(negative))
      refuse::shapes_do_not_match(op_name, to_dims(shape_of(anchor)), to_dims(shape_of(positive)));
    auto const to_positive = distance(anchor, positive);
    auto const to_negative = distance(anchor, negative);
    auto const least = swap ? minimum(to_negative, distance(positive, negative)) : to_negative;
    return detail::reduced_loss(clamp(add(sub(to_positive, least), margin), 0), how);
  }
} triplet_margin_with_distance_loss{};

/// The sum over pairs of a target class y and another class i of max(0, 1 - (x[y] - x[i])), divided by the number of
/// classes. The target has the shape of the input, [n, classes] or [classes]; its classes end at the first -1.
inline constexpr struct multilabel_margin_loss_t : composite_operator<multilabel_margin_loss_t> {
  static constexpr auto op_name = "multilabel_margin_loss";
  template <value X, value Y, class R = ints<1>>
  static constexpr auto body(X const& input, Y const& target, R const& how = {}) {
    auto const rows = [](dims const& s, dims const& t) {
      if (!(s == t) || s.n > 2 || numel(s) == 0) refuse::shapes_do_not_match(op_name, s, t);
      return dims{s.n == 2 ? s[0] : extent(1), s.n ? s[s.n - 1] : extent(1)};
    };
    auto const sizes = on_dims(rows, shape_of(input), shape_of(target));
    auto const x = reshape(input, sizes);
    auto const y = reshape(target, sizes);
    auto const ended = to(lt(y, 0), type_fact(x));
    auto const side = on_dims([](dims const& s) { return dims{s[1], s[1]}; }, sizes);
    auto const valid = eq(mm(ended, triu(new_full(detach(x), side, 1))), 0); // true before the first -1
    auto const at = where(valid, y, 0);
    auto const targets = scatter_add(new_full(detach(x), sizes, 0), ints<1>{}, at, to(valid, type_fact(x)));
    auto const column = on_dims([](dims const& s) { return dims{s[0], s[1], 1}; }, sizes);
    auto const row = on_dims([](dims const& s) { return dims{s[0], 1, s[1]}; }, sizes);
    auto const d = relu(sub(add(reshape(x, row), 1), reshape(gather(x, ints<1>{}, at), column)));
    auto const counts = mul(reshape(valid, column), reshape(eq(targets, 0), row));
    auto const all = div(sum(where(counts, d, 0), axis<1, 2>), index_t(to_dims(sizes)[1]));
    auto const shape = on_dims([](dims const& s) { return s.n == 2 ? dims{s[0]} : dims{}; }, shape_of(input));
    return detail::reduced_loss(reshape(all, shape), how);
  }
} multilabel_margin_loss{};

} // namespace varve
