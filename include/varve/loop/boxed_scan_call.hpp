// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_some_lanes.hpp>
#include <varve/hop/drawing_function.hpp>
#include <varve/loop/loop_end.hpp>
#include <varve/loop/scan_step.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/slice.hpp>
#include <varve/trace/region.hpp>

/// @file
/// Loops over tensors as interpreters process them: the counterpart of `scan_call`.
namespace varve {

struct scan_t;

namespace detail {
template <class = void>
higher_order_operator& scan_operator();

/// A loop with its functions. Calling it continues below the layer `self`. `scan_call` describes the kinds of loops and
/// how they end.
struct boxed_scan {
  using tag = scan_t;
  higher_order_operator* op;
  boxed_function f;
  boxed_function condition; // none: the loop ends after the last row
  int carried, scanned;
  bool reverse, counted;
  extent length;
  bool outputs;
  layer* self = nullptr;
  /// The step without the generator state, if that state is the first carried value.
  boxed_function bare{};
  used_results used{};
  list<std::uint64_t> reach{}; // of the step if it is a graph: `reached_inputs`

  static boxed_scan of(boxed_hop const& c, layer* self) {
    dims const &how = c.at[0], &size = c.at[1];
    return {c.op,
            c.functions[0],
            c.functions.size() > 1 ? c.functions[1] : boxed_function(),
            static_cast<int>(how[0]),
            static_cast<int>(how[1]),
            how[2] != 0,
            how[3] != 0,
            size[0],
            size[1] != 0,
            self};
  }
  attributes at() const { return attributes(dims{carried, scanned, reverse, counted}, dims{length, outputs}); }
  std::vector<boxed_function> functions() const { return condition ? std::vector{f, condition} : std::vector{f}; }
  /// Returns a loop with other functions and counts. A `map` that then carries something becomes a `scan`.
  template <class = void>
  boxed_scan with(boxed_function g, int c, int x, bool backwards) const {
    return with(std::move(g), c, x, backwards, condition);
  }
  template <class = void>
  boxed_scan with(boxed_function g, int c, int x, bool backwards, boxed_function w) const {
    boxed_scan r = *this;
    if (carried == 0 && c > 0) r.op = &scan_operator<>();
    r.f = alike(f, std::move(g)), r.condition = alike(condition, std::move(w));
    r.carried = c, r.scanned = x, r.reverse = backwards;
    r.used = {}, r.reach = {};
    return r;
  }
  /// Returns `made` as a function that stores no values if the original function stores none.
  static boxed_function alike(boxed_function const& of, boxed_function made) {
    return made && of.holds<closed_function>() ? boxed_function(closed_function{std::move(made)}) : made;
  }
  /// Returns the loop that carries the generator state in front.
  template <class B = boxed_function>
  boxed_scan drawing() const {
    boxed_scan r = with(drawing_fn{f}, carried + 1, scanned, reverse,
                        condition ? B(condition_behind_count<B>{condition}) : condition);
    r.bare = f;
    r.reach.push_back(0); // no derivative by the generator state
    for (auto const of : reach) r.reach.push_back(of << 1);
    return r;
  }
  boxed_scan here() const {
    boxed_scan r = *this;
    r.self = nullptr;
    return r;
  }
  template <class I>
  boxed_scan on_duals(I const& in) const {
    using dual = dependent<boxed_dual_fn, I>;
    boxed_function const w =
        condition ? boxed_function(dual_condition<dual, int>{{in.self, condition}, carried}) : condition;
    return with(scan_dual<dual, int, int>{{in.self, f}, carried, scanned}, 2 * carried, 2 * scanned, reverse, w);
  }
  template <class B = boxed_function>
  boxed_scan saving() const {
    boxed_scan r = with(counting_step<scan_saving<B, int>>{{f, carried}}, carried + 1, scanned, reverse,
                        condition_behind_count<B>{condition});
    r.outputs = true;
    return r;
  }
  template <class D = dims>
  static boxed_args no_steps() {
    return boxed_args(varve::full(D{}, 0, dtype::int64));
  }
  template <class B = boxed_function>
  boxed_scan over_count() const {
    boxed_scan r = with(step_without_count<B, int>{f, carried}, carried, scanned, reverse, B());
    r.op = &scan_operator<>(), r.counted = r.outputs = true;
    r.used = used, r.reach = reach;
    if (bare) r.bare = step_without_count<B, int>{bare, carried - 1};
    return r;
  }
  /// Completes the set of results that have cotangents: later steps also supply cotangents for carried values.
  void close_used() { used = used.in_steps(carried, reach); }
  /// True if an operand can have a cotangent, given the used results.
  bool reaches(int operand) const {
    return reach.empty() || (operand < carried && used[operand]) || used.reach(reach, operand);
  }
  template <class P>
  boxed_function pull_fn(P const& operands) const {
    if (bare) return drawing_pull_fn{bare, operands.size() - 1, used};
    return boxed_pull_fn{f, operands.size(), used};
  }
  template <class D>
  static boxed_args tangents(D const& d) {
    return boxed_dual_fn::full(d);
  }
  template <class V, class A>
  static V is_differentiable(V const& v, A const& close) {
    return has_derivatives(v.dtype()) ? V(close(v)) : v;
  }
  template <class I, class P>
  bool ends_apart(I const& in, P const& x) const {
    return counted && in.mine(x[carried + scanned]);
  }
  template <class I, class P>
  boxed_args most_steps(I const&, P const& x) const {
    lowered const off;
    return boxed_args(greatest_or_zero(x[carried + scanned].inner()));
  }
  template <class P>
  boxed_args row_numbers(P const& x) const {
    return boxed_args(arange(static_cast<index_t>(rows(x))));
  }
  template <class I, class O>
  boxed_args mapped(I const& in, O const& o) const {
    boxed_args x;
    std::vector<bool> flags;
    for (int k = 0; k < o.value.size(); ++k) {
      bool const is = !o.value[k].is((*o.from)[k]);
      auto const& v = o.value[k];
      using T = std::remove_cvref_t<decltype(v)>;
      if (k < carried) x.push_back(T(materialize(operand<T, bool>{v, is}, dims{batch_level::of(*in.self).batch_size})));
      else if (k < carried + scanned && is) x.push_back(T(transpose(v, ints<0>{}, ints<1>{})));
      else x.push_back(v);
      flags.push_back(is || k < carried);
    }
    if (!condition) return with(boxed_batched_fn{in.self, f, std::move(flags)}, carried, scanned, reverse)(x);
    using inner = dependent<boxed_function, I>;
    boxed_function const some = some_lane<dependent<boxed_batched_fn, I>>{{in.self, condition, flags}},
                         step = keeping_step<inner, inner, int>{condition, f, carried};
    return with(boxed_batched_fn{in.self, step, std::move(flags)}, carried, scanned, reverse, some)(x);
  }
  template <class... P>
  boxed_args operator()(boxed_args const& first, P const&... packs) const {
    return boxed_forms::call_below(self, boxed_hop{op, functions(), at()}, first, packs...);
  }

  /// Returns the number of rows to walk through or to fill, or 0 if only running the steps determines it.
  template <class P>
  extent rows(P const& x) const {
    return length > 0 || !scanned ? length : x[carried].sizes()[0];
  }
  /// Returns the operands of one step.
  template <class P>
  P operands_of_step(P const& x, index_t row) const {
    using T = std::remove_cvref_t<decltype(x[0])>;
    P r = part(x, 0, carried);
    for (int k = carried; k < x.size(); ++k) {
      T const& v = x[k];
      if (k >= carried + scanned) r.push_back(v);
      else if (!(v.sizes()[0] == 0)) r.push_back(T(select(v, 0, row)));
      // the loop has no rows and makes no step
      else r.push_back(T(varve::full(v.sizes().sub(1, v.dim()), 0, v.dtype())));
    }
    return r;
  }
  /// Returns those of the given lanes (undefined = all) that make a first step, if that differs between lanes.
  template <class P>
  P going(std::remove_cvref_t<decltype(std::declval<P>()[0])> const& lanes, P const& step) const {
    bool maps = false;
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      maps = maps || l->kind->role == layer_role::vmap;
    return P(condition && maps ? lanes_where(lanes, condition(step)[0]) : lanes);
  }
  /// Runs the loop.
  template <class P>
  P run(P const& x) const {
    using T = std::remove_cvref_t<decltype(x[0])>;
    for (auto const& t : x)
      if (!t.defined()) refuse_undefined(op->name());
    P now = part(x, 0, carried);
    index_t const steps = counted ? x[carried + scanned].template item<index_t>() : static_cast<index_t>(length);
    std::vector<P> all;
    index_t k = 0;
    for (; condition ? goes_on(k, x, now) : k < steps; ++k) {
      P step = operands_of_step(x, reverse ? steps - 1 - k : k);
      for (int q = 0; q < carried; ++q) step[q] = now[q];
      P const y = unwritten(f, step);
      require_same_metadata(now, y);
      now = part(y, 0, carried);
      if (y.size() > carried) all.push_back(part(y, carried, y.size()));
    }
    P r;
    for (auto const& t : now) { // no result may be an operand or another result
      bool alias = false;
      for (auto const& o : x) alias = alias || t.shares_storage(o);
      for (auto const& o : r) alias = alias || t.shares_storage(o);
      r.push_back(alias ? T(clone(t)) : t);
    }
    if (!outputs) return r;
    if (k == 0) all.push_back(not_made(operands_of_step(x, 0)));
    P const like = k == 0 ? part(all[0], carried, all[0].size()) : all.empty() ? P() : all[0];
    index_t const all_rows = rows(x), unused = (all_rows > 0 ? all_rows : k) - k;
    for (int q = 0; q < like.size(); ++q) {
      T const& first = like[q];
      std::vector<T> parts;
      for (index_t i = 0; i < k; ++i) parts.push_back(all[static_cast<std::size_t>(reverse ? k - 1 - i : i)][q]);
      if (k) parts = {T(stack(parts, 0))};
      if (unused || !k) parts.push_back(T(varve::full(dims(first.sizes()).insert(0, unused), 0, first.dtype())));
      r.push_back(parts.size() > 1 ? T(cat(parts, 0)) : parts[0]);
    }
    return r;
  }

  /// Calls a function and refuses it if it writes into its operands.
  template <class P>
  P unwritten(boxed_function const& g, P const& x) const {
    std::vector<dependent<std::uint32_t, P>> versions;
    for (auto const& t : x) versions.push_back(t.writes());
    P const y = g(x);
    for (int q = 0; q < x.size(); ++q)
      if (x[q].writes() != versions[static_cast<std::size_t>(q)])
        refuse::with<transform_error>((std::string("varve: ") + op->name() +
                                       ": the function writes into one of its operands; use functional operators")
                                          .c_str());
    return y;
  }

private:
  /// Runs a step to find the shapes of its outputs when the loop makes no step. It works on copies and restores the
  /// generator.
  template <class P>
  P not_made(P const& x) const {
    generator_guard const as_before(default_generator);
    return f(tree_map([](auto const& t) { return std::remove_cvref_t<decltype(t)>(clone(t)); }, x));
  }
  /// Returns whether another step follows after k steps.
  template <class P>
  bool goes_on(index_t k, P const& x, P const& now) const {
    P const go = unwritten(condition, joined(now, part(x, carried, x.size())));
    if (go.size() != 1 || go[0].dim() || go[0].dtype() != dtype::bool_)
      refuse::argument_is_invalid(op->name(), "the condition must give one bool");
    if (!static_cast<bool>(go[0])) return false;
    if (length > 0 && k == length)
      refuse::loop_takes_more_steps_than_its_bound(op->name(), static_cast<index_t>(length));
    return true;
  }
  template <class P>
  void require_same_metadata(P const& before, P const& after) const {
    if (after.size() < carried) refuse::argument_is_invalid(op->name(), "the step gave fewer values than are carried");
    std::vector<meta> a, b;
    bool same = true;
    for (int q = 0; q < carried; ++q) {
      a.push_back({before[q].dtype(), before[q].sizes()}), b.push_back({after[q].dtype(), after[q].sizes()});
      same = same && a.back() == b.back();
    }
    if (!same) refuse::values_must_keep_shape_and_dtype(op->name(), a.data(), b.data(), carried);
  }
};
} // namespace detail

} // namespace varve
