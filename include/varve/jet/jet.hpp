// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/jet/functions.hpp>
#include <varve/jet/rules.hpp>
#include <varve/transform/scope.hpp>

/// @file
/// `jet`: derivatives of higher order along a curve, by power series (Taylor mode; `jax.experimental.jet`).
namespace varve {

namespace detail {
/// Returns the series of `f(x...)`, given series of K + 1 coefficients for each x.
template <int K, class F, class... S>
constexpr auto series_of_call(F const& f, S const&... s);

/// A call of an operator on static values, in the form that the rules below need.
template <class Op, class... S>
struct series_call {
  Op const& op;
  std::tuple<S const&...> x;

  template <class V>
  constexpr auto by_rule(V const& v) const {
    return v(std::integral_constant<series_rule, series_rule_of_tag<typename Op::tag>>{});
  }
  constexpr auto value() const {
    return std::apply([&](auto const&... s) { return op(std::get<0>(s)...); }, x);
  }
  /// Returns the derivative of the result along the coefficients K.
  template <std::size_t K, class Y>
  constexpr auto along(Y const& y) const {
    return std::apply(
        [&](auto const&... s) {
          return tangent(
              op, y, dual<std::tuple_element_t<0, S>, std::tuple_element_t<K, S>>{std::get<0>(s), std::get<K>(s)}...);
        },
        x);
  }
  template <std::size_t I, std::size_t J>
  constexpr auto product() const {
    return where_there([&](auto const& a, auto const& b) { return op(a, b); }, std::get<I>(std::get<0>(x)),
                       std::get<J>(std::get<1>(x)));
  }
  /// Returns coefficient K of operand I.
  template <std::size_t I, std::size_t K>
  constexpr auto const& at() const {
    return std::get<K>(std::get<I>(x));
  }
  template <class C>
  constexpr auto over_divisor(C const& c) const {
    return where_there([&](auto const& a) { return op(a, std::get<0>(std::get<1>(x))); }, c);
  }
  /// Returns the first N coefficients of the derivative of the result; `y` are the first N coefficients of the result.
  template <std::size_t N, class Y>
  constexpr auto derivative(Y const& y) const {
    auto const rule = [&](auto const& r, auto const&... v) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        auto const all = std::tie(v...);
        return tangent(op, r,
                       dual<nth_type<I, decltype(v)...>, nth_type<I + sizeof...(S), decltype(v)...>>{
                           std::get<I>(all), std::get<I + sizeof...(S)>(all)}...);
      }(std::index_sequence_for<S...>{});
    };
    return std::apply(
        [&](auto const&... s) {
          return series_of_call<static_cast<int>(N) - 1>(rule, y, first_coefficients<N>(s)...,
                                                         derivative_of_series<N>(s)...);
        },
        x);
  }

private:
  template <std::size_t I, class... T>
  using nth_type = std::remove_cvref_t<std::tuple_element_t<I, std::tuple<T...>>>;
};

/// A series of K + 1 coefficients of tensors.
template <int K>
using tensor_series = std::array<tensor, static_cast<std::size_t>(K) + 1>;

template <int K, class F>
tensor_series<K> series_of_boxed_call(F const& f, std::vector<tensor_series<K>> const& s);

/// A call of an operator on tensors, in the form that the rules below need.
template <int K>
struct boxed_series_call {
  boxed_op const& op;
  std::vector<tensor_series<K>> const& x;

  template <class V>
  tensor_series<K> by_rule(V const& v) const {
    using enum series_rule;
    op_handle const* const h = op.table->node();
    bool const reads = reads_result(op.table->saved_for(*op.at));
    series_rule const r = h ? series_rule_of(*h, op.table->differentiable, reads)
                            : (op.table->differentiable ? by_derivative_of_result : constant);
    switch (r) {
    case constant:
      return v(std::integral_constant<series_rule, constant>{});
    case linear:
      return v(std::integral_constant<series_rule, linear>{});
    case bilinear:
      return v(std::integral_constant<series_rule, bilinear>{});
    case quotient:
      return v(std::integral_constant<series_rule, quotient>{});
    case by_derivative:
      return v(std::integral_constant<series_rule, by_derivative>{});
    default:
      return v(std::integral_constant<series_rule, by_derivative_of_result>{});
    }
  }
  tensor value() const { return op(all(0)); }
  template <std::size_t I>
  tensor along(tensor const& y) const {
    return tangent(op, y, boxed_dual{all(0), all(I)});
  }
  template <std::size_t I, std::size_t J>
  tensor product() const {
    return where_there([&](auto const& a, auto const& b) { return op(boxed_args(a, b)); }, x[0][I], x[1][J]);
  }
  template <std::size_t I, std::size_t J>
  tensor const& at() const {
    return x[I][J];
  }
  tensor over_divisor(tensor const& c) const { return c.defined() ? op(boxed_args(c, x[1][0])) : tensor(); }
  template <std::size_t N, class Y>
  auto derivative(Y const& y) const {
    constexpr int below = static_cast<int>(N) - 1;
    std::vector<tensor_series<below>> s;
    s.push_back(first_of<below>(y));
    for (auto const& c : x) s.push_back(first_of<below>(c));
    for (auto const& c : x) {
      tensor_series<below>& d = s.emplace_back();
      for (std::size_t k = 0; k < N; ++k) d[k] = scaled_coefficient(c[k + 1], static_cast<double>(k + 1));
    }
    return series_of_boxed_call<below>(
        [&](std::vector<tensor> const& v) {
          boxed_dual d;
          for (std::size_t i = 0; i < x.size(); ++i) d.primal.push_back(v[1 + i]);
          for (std::size_t i = 0; i < x.size(); ++i) d.tangent.push_back(v[1 + x.size() + i]);
          return tangent(op, v[0], d);
        },
        s);
  }

private:
  boxed_args all(std::size_t k) const {
    boxed_args r;
    for (auto const& s : x) r.push_back(s[k]);
    return r;
  }
  template <int N, class S>
  static tensor_series<N> first_of(S const& s) {
    tensor_series<N> r;
    for (std::size_t k = 0; k <= N; ++k) r[k] = s[k];
    return r;
  }
};

/// Returns coefficients as a series: an array if all are tensors, else a tuple.
template <class... C>
constexpr auto as_series(C const&... c) {
  if constexpr ((std::is_same_v<C, tensor> && ...)) return std::array<tensor, sizeof...(C)>{c...};
  else return std::tuple<C...>(c...);
}
template <class S>
inline constexpr std::size_t terms_of = std::tuple_size_v<std::remove_cvref_t<S>>;
/// Appends one coefficient to a series of k coefficients. `d` is coefficient k - 1 of its derivative.
template <class S, class D>
constexpr auto with_next(S const& s, D const& d) {
  constexpr std::size_t k = terms_of<S>;
  return std::apply([&](auto const&... c) { return as_series(c..., scaled_coefficient(d, 1.0 / double(k))); }, s);
}
/// Extends a series to order K, one order at a time, for operators whose derivative reads the result.
template <std::size_t K, series_rule R, class Call, class S>
constexpr auto grown_to(Call const& call, S const& s) {
  constexpr std::size_t n = terms_of<S>;
  if constexpr (n == K + 1) return s;
  else return grown_to<K, R>(call, with_next(s, std::get<n - 1>(call.template derivative<n>(s))));
}
/// Returns a value as a series of N coefficients; `zero` stands for a coefficient that is 0.
template <std::size_t N, class Y, class Zero>
constexpr auto padded(Y const& y, Zero const& zero) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return as_series(y, (static_cast<void>(K), zero)...);
  }(std::make_index_sequence<N - 1>{});
}
template <std::size_t K, class Call, std::size_t... I>
constexpr auto product_of_order(Call const& call, std::index_sequence<I...>) {
  return sum_of_coefficients(call.template product<I, K - I>()...);
}
/// Extends the quotient z of x and y to order K, one order at a time: y_0 z_k = x_k - y_1 z_{k-1} - ... - y_k z_0.
template <std::size_t K, series_rule R, class Call, class S>
constexpr auto quotient_to(Call const& call, S const& z) {
  constexpr std::size_t k = terms_of<S>;
  if constexpr (k == K + 1) return z;
  else {
    auto const rest = [&]<std::size_t... J>(std::index_sequence<J...>) {
      return sum_of_coefficients(where_there([](auto const& a, auto const& b) { return neg(mul(a, b)); },
                                             call.template at<1, J + 1>(), std::get<k - 1 - J>(z))...);
    }(std::make_index_sequence<k>{});
    auto const next = call.over_divisor(sum_of_coefficients(call.template at<0, k>(), rest));
    return quotient_to<K, R>(call, std::apply([&](auto const&... c) { return as_series(c..., next); }, z));
  }
}
/// Returns the series of a result by the rule of its operator.
template <int K, class Zero, class Call>
constexpr auto series_of_result(Call const& call) {
  constexpr std::size_t n = static_cast<std::size_t>(K) + 1;
  auto const y = call.value();
  return call.by_rule([&]<series_rule R>(std::integral_constant<series_rule, R>) {
    if constexpr (R == series_rule::constant) return padded<n>(y, Zero());
    else if constexpr (R == series_rule::linear)
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return as_series(y, call.template along<I + 1>(y)...);
      }(std::make_index_sequence<n - 1>{});
    else if constexpr (R == series_rule::bilinear)
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return as_series(y, product_of_order<I + 1>(call, std::make_index_sequence<I + 2>{})...);
      }(std::make_index_sequence<n - 1>{});
    else if constexpr (R == series_rule::quotient) return quotient_to<n - 1, R>(call, as_series(y));
    else if constexpr (R == series_rule::by_derivative) {
      auto const d = call.template derivative<n - 1 + 0 * static_cast<std::size_t>(R)>(padded<n - 1>(y, Zero()));
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return as_series(y, scaled_coefficient(std::get<I>(d), 1.0 / double(I + 1))...);
      }(std::make_index_sequence<n - 1>{});
    } else return grown_to<n - 1, R>(call, as_series(y));
  });
}
} // namespace detail

/// The interpreter of `jet` on static values: it computes with series of K + 1 coefficients in place of values. `Lv` is
/// a `static_level`; tensors use `jet_layer`.
template <class Lv, int K>
struct jet_interpreter : Lv {
  static constexpr char const* kind = "jet";
  static constexpr dispatch_key_set keys{};

  template <class X>
  static constexpr auto open(X const& x) {
    if constexpr (is_seen<X>) {
      if constexpr (at_level<X, Lv::level>) return std::tuple_cat(std::make_tuple(x.value), x.extra);
      else return detail::padded<static_cast<std::size_t>(K) + 1>(x, none);
    } else return detail::padded<static_cast<std::size_t>(K) + 1>(x, none);
  }
  template <class S>
  constexpr auto close(S const& s) const {
    return std::apply(
        [&]<class Y, class... C>(Y const& y, C const&... c) {
          if constexpr ((is_none<C> && ...)) return y;
          else return seen<jet_interpreter, Y, std::tuple<C...>>{y, *this, std::tuple<C...>(c...)};
        },
        s);
  }
  /// Wraps a constant: the other coefficients of its series are zeros.
  template <class V>
  constexpr auto lift_with(V const& v, V const& zeros) const {
    return close(detail::padded<static_cast<std::size_t>(K) + 1>(v, zeros));
  }
  /// Lifts all coefficients, including those that are 0.
  template <class V, class L>
  constexpr auto lift_payload(V const& v, L const& lift) const {
    auto const coefficient = [&](auto const& c) {
      if constexpr (is_none<decltype(c)>) return lift(detail::constant_zeros(v.value));
      else return lift(c);
    };
    return std::apply([&](auto const&... c) { return close(std::make_tuple(lift(v.value), coefficient(c)...)); },
                      v.extra);
  }
  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      using series = detail::static_series<jet_interpreter, K>;
      if constexpr (requires { op.on_true; }) return series{*this}.of_cond(op, x...);
      else if constexpr (requires { op.carried; }) return detail::series_of_loop(series{*this}, op, detail::pack(x...));
      else {
        static_assert(never<no_rule_of<Op, jet_interpreter>>,
                      "varve: jet: this operator with functions has no rule for jet; write it in operators");
        return op(std::get<0>(open(x))...); // instantiate nothing more after the message
      }
    } else return called(op, open(x)...);
  }

private:
  template <class Op, class... S>
  constexpr auto called(Op const& op, S const&... s) const {
    return close(detail::series_of_result<K, none_t>(detail::series_call<Op, S...>{op, {s...}}));
  }
};

namespace detail {
/// Wraps series as values of a static level and unwraps results.
template <int N, class Tag, int K>
struct static_jet_scope {
  using interpreter = jet_interpreter<static_level<N, Tag>, K>;
  /// Returns a series as a value at this level. A coefficient that is `none` is 0.
  template <class... C>
  static constexpr auto attach(std::tuple<C...> const& s) {
    return std::apply([](auto const& y, auto const&... c) { return attached(y, c...); }, s);
  }
  template <class Body>
  static constexpr auto run(Body const& body) {
    return body();
  }
  template <class Y>
  static constexpr auto series(Y const& y) {
    if constexpr (value<Y>) check_exit<N, Y>();
    return interpreter::open(y);
  }

private:
  template <class Y, class... C>
  static constexpr auto attached(Y const& y, C const&... c) {
    if constexpr ((is_none<C> && ...)) return y;
    else if constexpr (is_none<Y>) return attached(constant_zeros(first_value(c...)), c...);
    else return interpreter{}.close(std::tuple<Y, C...>(y, c...));
  }
  template <class C, class... R>
  static constexpr auto first_value(C const& c, R const&... r) {
    if constexpr (is_none<C>) return first_value(r...);
    else return c;
  }
};

/// A layer of the thread's stack that computes with series of tensors. A value stores its first coefficient; its
/// `extra` stores the next one, and so on, nested.
template <class On, int K>
class jet_layer : layer {
  friend struct boxed_series<jet_layer, K>;

public:
  jet_layer() : layer(kind_) {
    level_.self = this, object = &level_;
    pushed::name(*this, this_thread_state.transforms);
  }
  jet_layer(jet_layer const&) = delete;

  tensor attach(tensor_series<K> const& s) const {
    int last = K;
    while (last > 0 && !s[last].defined()) --last;
    if (last == 0) return s[0];
    tensor r;
    for (int k = last; k > 0; --k) r = wrapped(s[k].defined() ? s[k] : as_tensor(false), r); // none is a bool
    return wrapped(s[0].defined() ? s[0] : tensor(constant_zeros(dependent<tensor, On>(s[last]))), r);
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, *this);
    return body();
  }
  tensor_series<K> series(tensor const& y) const {
    tensor_series<K> r{y};
    if (!level_.mine(y)) return r;
    tensor const* at = &y;
    for (int k = 0; k <= K && at->defined(); ++k, at = &at->extra()) {
      tensor const& c = at->inner();
      if (k == 0 || c.dtype() != dtype::bool_) r[k] = c;
    }
    return r;
  }

private:
  tensor wrapped(tensor const& c, tensor const& rest) const {
    return tensor::wrap(c, id, layer::level, rest, {}, c.sizes());
  }
  static tensor process(layer& l, boxed_op const& op, boxed_args const& x) {
    auto const& self = static_cast<jet_layer const&>(l);
    bool any = false;
    for (auto const& t : x) any = any || self.level_.mine(t);
    if (!any) return op(x);
    if (op.table->kind == op_kind::mutation)
      refuse::with<transform_error>((std::string("varve: jet: ") + op.name() +
                                     " writes into its operand, which jet cannot follow; write jet(functionalize(f))")
                                        .c_str());
    std::vector<tensor_series<K>> s;
    for (auto const& t : x) s.push_back(self.series(t));
    return self.attach(series_of_result<K, tensor>(boxed_series_call<K>{op, s}));
  }
  static boxed_args process_hop(layer& l, boxed_hop const& call, boxed_args const& x) {
    return boxed_series<jet_layer, K>{static_cast<jet_layer*>(&l)}.of_call(call, x);
  }
  static constexpr layer_kind kind_{
      .name = "jet", .role = layer_role::other, .process = &process, .process_hop = &process_hop};
  dynamic_level level_;
};

template <int K, class F, class... S>
constexpr auto series_of_call(F const& f, S const&... s) {
  if constexpr (K == 0) return as_series(f(std::get<0>(s)...));
  else {
    using scope = static_jet_scope<next_level<F, S...>, F, K>;
    return scope::series(f(scope::attach(s)...));
  }
}
template <int K, class F>
tensor_series<K> series_of_boxed_call(F const& f, std::vector<tensor_series<K>> const& s) {
  std::vector<tensor> x;
  if constexpr (K == 0) {
    for (auto const& c : s) x.push_back(c[0]);
    return {f(x)};
  } else {
    jet_layer<dependent<void, F>, K> scope;
    for (auto const& c : s) x.push_back(scope.attach(c));
    return scope.series(scope.run([&] { return f(x); }));
  }
}

constexpr double factorial(std::size_t n) { return n < 2 ? 1 : static_cast<double>(n) * factorial(n - 1); }
/// Converts a derivative of order k to a coefficient of the series: divides by k!.
template <class C>
constexpr auto coefficient_of_derivative(C const& c, std::size_t k) {
  if constexpr (std::is_same_v<C, tensor>)
    return k < 2 ? dependent<tensor, C>(c) : scaled_coefficient(c, 1 / factorial(k));
  else return scaled_coefficient(c, 1 / factorial(k));
}
template <class Y, class C>
constexpr auto derivative_of_coefficient(Y const& y, C const& c, std::size_t k) {
  if constexpr (is_none<C>) return constant_zeros(y);
  else if constexpr (std::is_same_v<C, tensor>) {
    using T = dependent<tensor, C>;
    if (!c.defined()) return T(constant_zeros(y));
    return k < 2 ? T(c) : T(mul(c, factorial(k)));
  } else return scaled_coefficient(c, factorial(k));
}
/// Returns t if its dtype is floating or complex; refuses it otherwise.
inline tensor floating_tensor(tensor t) {
  require_floating(t, "jet", true);
  return t;
}
template <bool Dynamic, class X>
constexpr auto argument_of_jet(X const& x) {
  if constexpr (Dynamic) return floating_tensor(as_tensor(plain(x)));
  else {
    auto const v = plain(x);
    static_assert(!static_and_not_floating<std::remove_cvref_t<decltype(v)>>(),
                  "varve: jet: primals and series must be floating; write 2.0 for 2, or convert to a floating dtype");
    return v;
  }
}
template <bool Dynamic, class P, class... C>
constexpr auto series_of_argument(P const& primal, C const&... c) {
  auto const p = argument_of_jet<Dynamic>(primal);
  auto const same = [&](auto const& d) {
    if constexpr (Dynamic) {
      if (!(p.sizes() == d.sizes())) refuse::shapes_do_not_match("jet (primal and series)", p.sizes(), d.sizes());
      return to(d, p.dtype());
    } else {
      if constexpr (is_ints<decltype(shape_of(p))> && is_ints<decltype(shape_of(d))>)
        static_assert(std::is_same_v<decltype(shape_of(p)), decltype(shape_of(d))>,
                      "varve: jet: each of a series must have the shape of its primal");
      return to(d, type_fact(p));
    }
  };
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return as_series(p, coefficient_of_derivative(same(argument_of_jet<Dynamic>(c)), K + 1)...);
  }(std::index_sequence_for<C...>{});
}
template <class T>
inline constexpr bool is_series = false;
template <class... C>
inline constexpr bool is_series<std::tuple<C...>> = true;
/// Refuses series of different lengths. Returns whether they have the same length.
template <std::size_t Arguments, class... S>
consteval bool are_of_one_order() {
  constexpr bool as_many = sizeof...(S) == Arguments && Arguments > 0;
  static_assert(as_many, "varve: jet: primals and series must be tuples of the same, positive size");
  if constexpr (!as_many) return false;
  else {
    constexpr std::size_t order = std::tuple_size_v<std::tuple_element_t<0, std::tuple<S...>>>;
    constexpr bool alike = order > 0 && ((std::tuple_size_v<S> == order) && ...);
    static_assert(alike, "varve: jet: all arguments need derivatives up to the same order, at least 1");
    return alike;
  }
}
/// Returns a result and the derivatives of each of its leaves.
template <std::size_t K, class Scope, class Y>
constexpr auto derivatives_of(Scope const& scope, Y const& y) {
  auto const coefficients = [&](auto const& v) {
    if constexpr (requires { scope.series(v); }) return scope.series(v);
    else return scope.series(as_tensor(v));
  };
  auto const derivatives = [&](auto const& v) {
    auto const s = coefficients(v);
    return [&]<std::size_t... J>(std::index_sequence<J...>) {
      return std::make_tuple(derivative_of_coefficient(std::get<0>(s), std::get<J + 1>(s), J + 1)...);
    }(std::make_index_sequence<K>{});
  };
  return std::pair(tree_map([&](auto const& v) { return std::get<0>(coefficients(v)); }, y), tree_map(derivatives, y));
}
template <class F, class... P, class... S>
constexpr auto jet_of_series(F const& f, std::tuple<P...> const& primals, std::tuple<S...> const& series) {
  if constexpr (!are_of_one_order<sizeof...(P), S...>()) return primals; // instantiate nothing more after the message
  else {
    constexpr std::size_t K = std::tuple_size_v<std::tuple_element_t<0, std::tuple<S...>>>;
    constexpr bool dynamic = any_dynamic<P..., S...>;
    auto const run = [&]<std::size_t... I>(auto& scope, std::index_sequence<I...>) {
      auto const in = std::tuple(scope.attach(
          std::apply([&](auto const&... c) { return series_of_argument<dynamic>(std::get<I>(primals), c...); },
                     std::get<I>(series)))...);
      return derivatives_of<K>(scope, scope.run([&] { return call_with(f, in, std::index_sequence_for<P...>{}); }));
    };
    if constexpr (dynamic) {
      jet_layer<dependent<void, F>, static_cast<int>(K)> scope;
      return run(scope, std::index_sequence_for<P...>{});
    } else {
      static_jet_scope<next_level<F, P..., S...>, F, static_cast<int>(K)> scope{};
      return run(scope, std::index_sequence_for<P...>{});
    }
  }
}
} // namespace detail

/// Computes the derivatives of f along a curve through x whose derivatives are x1, x2, ... (`jax.experimental.jet`).
/// `jet(f, std::tuple{x}, std::tuple{x1, x2, ...})` returns `std::pair(f(x), std::tuple{y1, y2, ...})`. For several
/// arguments, the last parameter is a tuple of such tuples, all of the same length K. `f` may return a tree; then there
/// is such a tuple for each of its leaves. The K-th derivative of a function of one number is y_K for x1 = 1 and zeros.
/// `jet` runs `f` once, with K + 1 numbers in place of one. A product costs K (K + 1) / 2 products, where K nested
/// `jvp`s need 2^K. Every operator with a `jvp` rule is supported. Works on static values and on tensors; composes with
/// the other transforms, `fuse`, `compile` and `make_fx`. Errors: `shape_error` and `dtype_error` as for `jvp`;
/// `transform_error` if `f` writes in place or calls a custom function.
template <class F, class... P, class... S>
constexpr auto jet(F f, std::tuple<P...> const& primals, std::tuple<S...> const& series) {
  if constexpr (sizeof...(P) == 1 && !(detail::is_series<S> && ...))
    return detail::jet_of_series(f, primals, std::make_tuple(series));
  else return detail::jet_of_series(f, primals, series);
}

} // namespace varve
