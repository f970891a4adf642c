// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/jet/series.hpp>
#include <varve/loop/boxed_scan_call.hpp>
#include <varve/loop/loop_end.hpp>

/// @file
/// The rules of `jet` for operators with functions. Each passes on the same operator over all coefficients: first those
/// of order 0 of all operands, then those of order 1, and so on. Static values and tensors share this source; operands
/// and results are packs (`hop/pack.hpp`).
namespace varve::detail {

/// Returns N times a count.
template <int N, int C>
constexpr count_t<N * C> times(count_t<C>) {
  return {};
}
template <int N>
constexpr int times(int c) {
  return N * c;
}
template <int N, int C>
constexpr count_t<C / N> divided_by(count_t<C>) {
  return {};
}
template <int N>
constexpr int divided_by(int c) {
  return c / N;
}
/// Returns the packs f(0), ..., f(N - 1), joined; the arguments are constants.
template <int N, class F>
constexpr auto joined_for_each(F const& f) {
  return [&]<int... K>(std::integer_sequence<int, K...>) {
    return joined(f(std::integral_constant<int, K>{})...);
  }(std::make_integer_sequence<int, N>{});
}
/// Returns a pack of N equal blocks, each of the values (a, b, c) of one order, as all a, then all b, then all c. `a`
/// and `b` count values of one order.
template <int N, class P, class A, class B>
constexpr auto by_kinds(P const& p, A const& a, B const& b) {
  auto const size = divided_by<N>(count_of(p));
  auto const kind = [&](auto const& from, auto const& to) {
    return joined_for_each<N>(
        [&]<int K>(std::integral_constant<int, K>) { return part(p, times<K>(size) + from, times<K>(size) + to); });
  };
  return joined(kind(a - a, a), kind(a, a + b), kind(a + b, size));
}
/// The inverse of `by_kinds`.
template <int N, class P, class A, class B>
constexpr auto by_orders(P const& p, A const& a, B const& b) {
  auto const first_c = times<N>(a) + times<N>(b);
  auto const c = divided_by<N>(count_of(p) - first_c);
  return joined_for_each<N>([&]<int K>(std::integral_constant<int, K>) {
    auto const block = [&](auto const& from, auto const& count) {
      return part(p, from + times<K>(count), from + times<K>(count) + count);
    };
    return joined(block(a - a, a), block(times<N>(a), b), block(first_c, c));
  });
}

/// A step of a loop on series. `f` takes and returns coefficients in orders.
template <int N, class F, class C, class X>
struct series_step {
  F f;
  [[no_unique_address]] C carried;
  [[no_unique_address]] X rows;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const y = spread(f, by_orders<N>(pack(v...), carried, rows));
    return by_kinds<N>(y, carried, carried - carried);
  }
};
/// A loop's condition on series, which reads the coefficients of order 0 of its result.
template <int N, class F, class C>
struct series_condition {
  F f;
  [[no_unique_address]] C carried;
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    auto const y = spread(f, by_orders<N>(pack(v...), carried, carried - carried));
    auto const n = count_of(y);
    return part(y, n - n, divided_by<N>(n));
  }
};
/// Returns the results of a loop over the operands `x`, which `in` opens and closes.
template <class In, class Op, class P>
constexpr auto series_of_loop(In const& in, Op const& op, P const& x) {
  constexpr int n = In::terms;
  auto const loop = in.on_series(op);
  auto const y = loop(by_kinds<n>(in.coefficients(x), op.carried, op.scanned));
  return in.closed(by_orders<n>(y, op.carried, op.carried - op.carried));
}

/// Opens and closes static values at a level of `jet` for the rules above.
template <class Interpreter, int K>
struct static_series {
  static constexpr int terms = K + 1;
  Interpreter in;

  template <class S>
  static constexpr auto filled(S const& s) {
    return std::apply(
        [](auto const& y, auto const&... c) {
          auto const full = [&](auto const& d) {
            if constexpr (is_none<std::remove_cvref_t<decltype(d)>>) return constant_zeros(y);
            else return d;
          };
          return std::make_tuple(y, full(c)...);
        },
        s);
  }
  template <class... X>
  constexpr auto coefficients(std::tuple<X...> const& x) const {
    return std::apply(
        [&](auto const&... v) {
          auto const all = std::make_tuple(filled(in.open(v))...);
          return joined_for_each<terms>([&]<int J>(std::integral_constant<int, J>) {
            return std::apply([](auto const&... s) { return std::make_tuple(std::get<J>(s)...); }, all);
          });
        },
        x);
  }
  template <class... C>
  constexpr auto closed(std::tuple<C...> const& c) const {
    constexpr std::size_t n = sizeof...(C) / static_cast<std::size_t>(terms);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(closed_at<I, n>(c)...);
    }(std::make_index_sequence<n>{});
  }
  /// Runs a function on coefficients in orders. Its result is a tuple of one tree for each order.
  template <class F>
  struct trees_fn {
    static_series self;
    [[no_unique_address]] F f;
    template <class... C>
    constexpr auto operator()(C const&... c) const {
      auto const y = call_with(f, self.closed(std::tuple<C...>(c...)));
      return [&]<std::size_t... J>(std::index_sequence<J...>) {
        return std::make_tuple(tree_map([&](auto const& v) { return std::get<J>(filled(self.in.open(v))); }, y)...);
      }(std::make_index_sequence<static_cast<std::size_t>(terms)>{});
    }
  };
  /// Runs a function whose result is a tuple; its results are coefficients in orders.
  template <class F>
  struct flat_fn {
    trees_fn<F> f;
    template <class... C>
    constexpr auto operator()(C const&... c) const {
      return std::apply([](auto const&... trees) { return joined(trees...); }, f(c...));
    }
  };
  template <class Op>
  constexpr auto on_series(Op const& op) const {
    using C = decltype(op.carried);
    using step = series_step<terms, flat_fn<decltype(op.f)>, C, decltype(op.scanned)>;
    auto const end = [&] {
      if constexpr (Op::end_is_open) {
        using condition = series_condition<terms, flat_fn<decltype(op.end.condition)>, C>;
        return unless_true<condition>{{{{*this, op.end.condition}}, op.carried}};
      } else return op.end;
    }();
    return op.with(step{{{*this, op.f}}, op.carried, op.scanned}, times<terms>(op.carried), times<terms>(op.scanned),
                   op.reverse, end);
  }
  /// Returns the result of a `cond`. The predicate is a constant of the series.
  template <class Op, class P, class... X>
  constexpr auto of_cond(Op const& op, P const& p, X const&... x) const {
    auto const on = [&]<class F>(F const& f) { return trees_fn<F>{*this, f}; };
    auto const y = call_with(
        [&](auto const&... c) { return op.with(on(op.on_true), on(op.on_false))(std::get<0>(in.open(p)), c...); },
        coefficients(pack(x...)));
    return std::apply(
        [&](auto const&... orders) {
          return tree_map([&](auto const&... c) { return in.close(std::make_tuple(c...)); }, orders...);
        },
        y);
  }

private:
  template <std::size_t I, std::size_t N, class C>
  constexpr auto closed_at(C const& c) const {
    return [&]<std::size_t... J>(std::index_sequence<J...>) {
      return in.close(std::make_tuple(std::get<I + J * N>(c)...));
    }(std::make_index_sequence<static_cast<std::size_t>(terms)>{});
  }
};

/// Opens and closes tensors at a layer of `jet` for the rules above.
template <class Layer, int K>
struct boxed_series {
  static constexpr int terms = K + 1;
  Layer* self;

  template <class P>
  P coefficients(P const& x) const {
    using T = dependent<tensor, P>;
    std::vector<std::array<T, static_cast<std::size_t>(terms)>> all;
    for (auto const& t : x) {
      auto s = self->series(t);
      for (int k = 1; k <= K; ++k)
        if (auto& c = s[static_cast<std::size_t>(k)]; !c.defined())
          c = has_derivatives(s[0].dtype()) ? T(constant_zeros(static_cast<T const&>(s[0])))
                                            : T(varve::full(s[0].sizes(), 0, dtype::bool_)); // means absent
      all.push_back(s);
    }
    P r;
    for (std::size_t k = 0; k <= K; ++k)
      for (auto const& s : all) r.push_back(s[k]);
    return r;
  }
  template <class P>
  P closed(P const& c) const {
    int const n = c.size() / terms;
    P r;
    for (int i = 0; i < n; ++i) {
      std::array<dependent<tensor, P>, static_cast<std::size_t>(terms)> s;
      for (int k = 0; k <= K; ++k)
        if (k == 0 || c[k * n + i].dtype() != dtype::bool_) s[static_cast<std::size_t>(k)] = c[k * n + i];
      r.push_back(self->attach(s));
    }
    return r;
  }
  /// Runs a function on coefficients in orders. The layer is put back on the stack meanwhile, so that captured values
  /// of the layer are valid.
  struct fn {
    boxed_series in;
    boxed_function f;
    template <class P>
    P operator()(P const& c) const {
      reentered const on(this_thread_state.transforms, *in.self);
      P const y = f(in.closed(c));
      lowered const off;
      return in.coefficients(y);
    }
  };
  boxed_scan on_series(boxed_scan const& op) const {
    boxed_function condition;
    if (op.condition) condition = series_condition<terms, fn, int>{{*this, op.condition}, op.carried};
    return op.with(series_step<terms, fn, int, int>{{*this, op.f}, op.carried, op.scanned}, times<terms>(op.carried),
                   times<terms>(op.scanned), op.reverse, condition);
  }
  /// Returns the results of a call. The operator's node in graphs tells which operands the functions receive; those
  /// before them are constants of the series.
  template <class P>
  P of_call(boxed_hop const& call, P const& x) const {
    if (call.op->has(dispatch_key::composite_implicit)) return call.op->decompose(call, x);
    op_handle const* const node = call.op->node();
    if (!node || node->hop.given_from < 0)
      refuse::with<transform_error>((std::string("varve: jet: ") + call.name() +
                                     " is an operator with functions that has no rule for jet; write it in operators")
                                        .c_str());
    lowered const off;
    if (node->hop.carried) return series_of_loop(*this, boxed_scan::of(call, nullptr), x);
    std::vector<boxed_function> functions;
    for (auto const& f : call.functions) functions.push_back(fn{*this, f});
    P in;
    for (int k = 0; k < node->hop.given_from; ++k) in.push_back(self->series(x[k])[0]);
    return closed(call.with(std::move(functions))(joined(in, coefficients(part(x, node->hop.given_from, x.size())))));
  }
};

} // namespace varve::detail
