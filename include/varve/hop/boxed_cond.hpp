// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_operator.hpp>
#include <varve/hop/boxed_some_lanes.hpp>
#include <varve/hop/cond.hpp>
#include <varve/hop/drawing_function.hpp>

/// @file
/// `cond` on tensors. Operands come in packs of run-time size and the types of functions are erased; otherwise the
/// rules are those of `rules<cond_t>`.
namespace varve {

namespace detail {
template <class = void>
higher_order_operator& cond_operator();

/// True if the predicate has one value for all transforms. The branch can then be chosen as by a C++ `if`.
inline bool is_decided(tensor const& p) {
  if (p.is_wrapped() && is_traced(p.layer())) return false; // the program would be valid for this value only
  if (p.is_wrapped()) return p.sizes() == p.inner().sizes() && is_decided(p.inner());
  return p.has_data() && !trace_layer::is_traced_by_mode(p);
}

/// A call of `cond` with its functions. Calling it continues below the layer `self`.
struct boxed_cond : boxed_forms {
  using tag = cond_t;
  static constexpr char const* backward_name = "CondBackward";
  boxed_function on_true, on_false;
  layer* self = nullptr;
  /// The functions without the generator state, if that state is one of their operands.
  boxed_function bare_true{}, bare_false{};

  boxed_cond(boxed_function t, boxed_function f, layer* l = nullptr)
      : on_true(std::move(t)), on_false(std::move(f)), self(l) {}
  boxed_cond with(boxed_function t, boxed_function f) const { return {std::move(t), std::move(f), self}; }
  template <class = void>
  boxed_cond drawing() const {
    boxed_cond r(closed_function{drawing_fn{on_true}}, closed_function{drawing_fn{on_false}}, self);
    r.bare_true = on_true, r.bare_false = on_false;
    r.reach.push_back(0); // no derivative by the generator state
    for (auto const of : reach) r.reach.push_back(of << 1);
    return r;
  }
  template <class P>
  boxed_function pull_fn(boxed_function const& f, P const& x) const {
    if (!bare_true) return boxed_forms::pull_fn(f, x);
    return drawing_pull_fn{f.is(on_true) ? bare_true : bare_false, x.size() - 1, used};
  }
  static tensor const& predicate(boxed_args const& p) { return p[0]; }
  template <class P>
  static boxed_args on_lanes(boxed_function const& f, P const& which, boxed_args const& x) {
    return detail::on_lanes(f, which, x);
  }
  template <class... P>
  boxed_args operator()(boxed_args const& first, P const&... packs) const {
    return call_below(self, boxed_hop{&cond_operator<>(), {on_true, on_false}}, first, packs...);
  }

  static constexpr bool passes_results = true;
  static boxed_cond of(boxed_hop const& c, layer* l) { return {c.functions[0], c.functions[1], l}; }
  boxed_args run(boxed_args const& x) const {
    return (static_cast<bool>(x[0]) ? on_true : on_false)(part(x, 1, x.size()));
  }
  template <class In, class F>
  static auto on_packs(In const&, boxed_args const& x, F const& f) {
    return f(part(x, 0, 1), part(x, 1, x.size()));
  }
  template <class Tag, class In, class P>
  P record(In const& in, P const& p, P const& x) const {
    boxed_cond op = *this;
    P captures;
    P const below = opened(in, x), which = [&] {
      P const q = opened(in, p);
      lowered const off;
      return P(lanes_where({}, q[0]), lanes_where({}, q[0], false));
    }();
    auto const t = traced(on_true, below, captures, 1, which[0]), f = traced(on_false, below, captures, 1, which[1]);
    t.refuse_writes(), f.refuse_writes();
    op.on_true = t.call, op.on_false = f.call;
    for (std::size_t k = 0; k < t.reach.size(); ++k) op.reach.push_back(t.reach[k] | f.reach[k]);
    if (!t.draws && !f.draws) return rules<Tag>::grad(recording_level<>{in}, op, p, joined(x, captures));
    P const y = rules<Tag>::grad(recording_level<>{in}, op.drawing(), p, joined(rng_state_below<P>(), x, captures));
    return part(y, 1, y.size());
  }
  template <class Tag, class P>
  static P trace(trace_layer& around, boxed_hop const& c, P const& x) {
    return around.record_branches(
        &hop_handle<Tag>, x, c.functions, {},
        [&](auto const& p, auto const& on_true, auto const& on_false) -> tensor {
          bool const metadata_alone = !p.is_wrapped() && !p.has_data();
          if (metadata_alone && on_true.object())
            if (tensor const either = on_true.object()->either(on_true, on_false); either.defined()) return either;
          require_alike(on_true, on_false);
          if (metadata_alone) return on_true;
          if (is_decided(p)) return static_cast<bool>(p) ? on_true : on_false;
          return around.beneath([&] { return where(as_condition(p), on_true, on_false); }); // a transform below maps it
        },
        [&](trace_layer& on_true, trace_layer& on_false) {
          around.beneath([&] {
            auto const p = around.real_operand(x[0]);
            on_true.lanes = lanes_where(around.lanes, p);
            on_false.lanes = lanes_where(around.lanes, p, false);
            return p;
          });
        });
  }
};
#if VARVE_DEFINES
template <class T>
higher_order_operator& cond_operator() {
  static auto* const op =
      new boxed_operator<dependent<cond_t, T>, boxed_cond>; // never destroyed, so that it outlives every call
  (void)&known_from_start<&cond_operator<T>>;
  return *op;
}
#endif

/// True if nothing but transforms observes the call: no trace and no mode.
inline bool only_transforms_watch() {
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    if (l->kind->is_trace()) return false;
  return this_thread_state.excluded.empty() &&
         (this_thread_state.included - dispatch_key_set(dispatch_key::transform)).empty();
}
/// Returns t; a plain number as a result becomes an ordinary value.
inline tensor no_number(tensor const& t) { return t.defined() && t.is_number() && !t.is_wrapped() ? t.alias() : t; }
template <class T, class F, class... X>
auto cond_on_tensors(tensor const& pred, T const& true_fn, F const& false_fn, X const&... x) {
  constexpr bool seen_statically = ((level_of<X> > 0) || ...);
  bool subclass = false;
  auto const look = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) subclass = subclass || v.object();
  };
  (look(x), ...);
  if constexpr (seen_statically) {
    return static_cast<bool>(pred) ? true_fn(x...) : false_fn(x...);
  } else {
    using Y = decltype(tensors_of(true_fn(as_tensor(plain(x))...)));
    static_assert(std::is_same_v<Y, decltype(tensors_of(false_fn(as_tensor(plain(x))...)))>,
                  "varve: cond: both functions must return the same tree of values");
    if (only_transforms_watch() && is_decided(pred) && !subclass)
      return tree_map(no_number,
                      static_cast<bool>(pred) ? Y(tensors_of(true_fn(x...))) : Y(tensors_of(false_fn(x...))));
    Y last{}; // the structure of the results: the size of a vector is known to the functions only
    auto const box = [&last]<class G>(G const& f) -> boxed_function {
      return [&f, &last](boxed_args const& a) {
        return [&]<std::size_t... K>(std::index_sequence<K...>) {
          last = tensors_of(f(a[static_cast<int>(K)]...));
          return flatten(last);
        }(std::index_sequence_for<X...>{});
      };
    };
    boxed_args const y = cond_operator<>()({box(true_fn), box(false_fn)}, boxed_args(pred, as_tensor(plain(x))...));
    int k = 0;
    return tree_map([&](auto const&) { return no_number(y[k++]); }, last);
  }
}
} // namespace detail

/// Returns the boxed operator of `cond`, on which rules for further interpreters, modes and subclasses are registered.
template <class = void>
higher_order_operator& cond_operator() {
  return detail::cond_operator<>();
}

} // namespace varve
