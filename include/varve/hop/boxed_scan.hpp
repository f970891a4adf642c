// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_inner_function.hpp>
#include <varve/hop/scan.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/slice.hpp>

/// @file
/// `scan` on tensors: operands come in packs of run-time size and the step is erased, else the rules are those of `rules<scan_t>`.
namespace varve {

namespace detail {
template <class = void>
higher_order_operator& scan_operator();

/// A call with its step; calling it lowers from the layer `self`.
struct boxed_scan {
  using tag = scan_t;
  static constexpr char const* backward_name = "ScanBackward";
  boxed_function f;
  int carried, scanned;
  index_t length;
  bool reverse;
  layer* self = nullptr;

  static boxed_scan of(boxed_hop const& c, layer* self) {
    return {c.functions[0], static_cast<int>(c.at[0][0]), static_cast<int>(c.at[0][1]), c.at[1][0], c.at[0][2] != 0, self};
  }
  attributes at() const { return attributes(dims{carried, scanned, reverse}, dims{length}); }
  boxed_scan with(boxed_function g, int c, int x, bool backwards) const { return {std::move(g), c, x, length, backwards, self}; }
  template <class I>
  boxed_function dual_fn(I const& in) const {
    return boxed_dual_fn{in.self, f};
  }
  template <class P>
  boxed_function pull_fn(P const& operands) const {
    return boxed_pull_fn{f, operands.size()};
  }
  template <class D>
  static boxed_args tangents(D const& d) {
    return boxed_dual_fn::full(d);
  }
  template <class V, class A>
  static V is_differentiable(V const& v, A const& close) {
    return is_floating(v.dtype()) ? V(close(v)) : v;
  }
  template <class I, class O>
  boxed_args mapped(I const& in, O const& o) const {
    boxed_args x;
    std::vector<bool> flags;
    for (int k = 0; k < o.value.size(); ++k) {
      bool const is = !o.value[k].is((*o.from)[k]);
      auto const& v = o.value[k];
      using T = std::remove_cvref_t<decltype(v)>;
      if (k < carried) x.push_back(T(materialize(operand<T, bool>{v, is}, dims{in.self->batch_size})));
      else if (k < carried + scanned && is) x.push_back(T(transpose(v, ints<0>{}, ints<1>{})));
      else x.push_back(v);
      flags.push_back(is || k < carried);
    }
    return with(boxed_batched_fn{in.self, f, std::move(flags)}, carried, scanned, reverse)(x);
  }
  template <class... P>
  boxed_args operator()(boxed_args const& first, P const&... packs) const {
    boxed_hop const call{&scan_operator<>(), {f}, at()};
    boxed_args const x = joined(first, packs...);
    if (!self) return call(x);
    lowered const off;
    return call(x);
  }

  /// The operands of one step.
  template <class P>
  P operands_of_step(P const& x, index_t row) const {
    P r = part(x, 0, carried);
    using T = std::remove_cvref_t<decltype(x[0])>;
    for (int k = carried; k < x.size(); ++k) r.push_back(k < carried + scanned ? T(select(static_cast<T const&>(x[k]), 0, row)) : T(x[k]));
    return r;
  }
  /// The loop itself.
  template <class P>
  P run(P const& x) const {
    using T = std::remove_cvref_t<decltype(x[0])>;
    P now = part(x, 0, carried);
    std::vector<P> outputs;
    for (index_t k = 0; k < length; ++k) {
      index_t const row = reverse ? length - 1 - k : k;
      P step = operands_of_step(x, row);
      for (int q = 0; q < carried; ++q) step[q] = now[q];
      std::vector<std::uint32_t> versions;
      for (auto const& t : step) versions.push_back(t.writes());
      P const y = f(step);
      for (int q = 0; q < step.size(); ++q)
        if (step[q].writes() != versions[static_cast<std::size_t>(q)])
          throw transform_error("varve: scan: the step writes into one of its operands; use functional operators");
      if (y.size() < carried) refuse::argument_is_invalid("scan", "the step gave fewer values than are carried");
      if (outputs.empty()) outputs.resize(static_cast<std::size_t>(y.size() - carried));
      for (int q = 0; q < carried; ++q) {
        if (!(y[q].sizes() == now[q].sizes()))
          refuse::shapes_do_not_match("scan (a carried value before and after a step)", now[q].sizes(), y[q].sizes());
        if (y[q].dtype() != now[q].dtype())
          refuse::dtype_is_not_supported("scan (a carried value after a step, of another dtype than before)", name(y[q].dtype()));
      }
      now = part(y, 0, carried);
      for (int q = carried; q < y.size(); ++q) outputs[static_cast<std::size_t>(q - carried)].push_back(y[q]);
    }
    P r;
    for (auto const& t : now) { // no result is an operand
      bool alias = false;
      for (auto const& o : x) alias = alias || t.shares_storage(o);
      r.push_back(alias ? T(clone(t)) : t);
    }
    for (auto& rows : outputs) {
      std::vector<T> all;
      for (index_t k = 0; k < length; ++k) all.push_back(rows[static_cast<int>(reverse ? length - 1 - k : k)]);
      r.push_back(stack(all, 0));
    }
    return r;
  }
};

/// The rules of `scan`, one per interpreter, from the text they share with static values.
template <class = void>
class boxed_scan_operator : public higher_order_operator {
public:
  boxed_scan_operator() : higher_order_operator(scan_t::op_name) {
    impl(dispatch_key::composite_explicit, [](boxed_hop const& c, auto const& x) { return boxed_scan::of(c, nullptr).run(x); });
    shared("jvp", [](auto const& in, auto const& op, auto const& x) { return rules<scan_t>::jvp(in, op, x); });
    shared("vmap", [](auto const& in, auto const& op, auto const& x) { return rules<scan_t>::vmap(in, op, x); });
    shared("grad", [](auto const& in, auto op, auto const& x) {
      std::remove_cvref_t<decltype(x)> captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      {
        lowered const off;
        primal = op.operands_of_step(primal, 0);
      }
      op.f = traced(op.f, primal, captures);
      return rules<scan_t>::grad(recording_level<>{in}, op, joined(x, captures));
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    template <class P>
    P operator()(layer& l, boxed_hop const& c, P const& x) const {
      auto& around = *static_cast<trace_layer*>(l.object);
      auto op = boxed_scan::of(c, nullptr);
      P real, captures;
      for (auto const& t : x) real.push_back(around.real(t));
      auto const below = [&](auto const& body) {
        lowered const off;
        temporarily_popped const further(around.hidden);
        return body();
      };
      P const first = below([&] { return op.operands_of_step(real, 0); });
      op.f = traced(op.f, first, captures, around.hidden + 1);
      P all = x, step_in = first;
      for (auto const& t : captures) {
        all.push_back(t);
        real.push_back(around.real(t));
        step_in.push_back(around.real(t));
      }
      std::vector<int> ids;
      for (auto const& t : all) ids.push_back(around.node_of(t));
      trace_layer step(around);
      {
        pushed const on(this_thread_state.transforms, step);
        P in;
        for (auto const& t : step_in) in.push_back(step.wrap(t, step.builder.input({t.dtype(), t.sizes()})));
        for (auto const& t : op.f(in)) step.builder.result(step.node_of(t));
        step.builder.close();
      }
      P const y = below([&] { return op(real); });
      int const node = around.builder.emit_functions(&hop_handle<scan_t>, op.at(), ids.data(), static_cast<int>(ids.size()), step.builder);
      P r;
      for (int k = 0; k < y.size(); ++k) r.push_back(around.wrap(y[k], around.builder.result_of(node, k, {y[k].dtype(), y[k].sizes()})));
      return r;
    }
  };
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) { return r(*static_cast<dynamic_level*>(l.object), boxed_scan::of(c, &l), x); };
    impl<decltype(f), layer&>(kind, f);
  }
};
template <class>
higher_order_operator& scan_operator() {
  static auto* const op = new boxed_scan_operator<>; // outlives every call
  return *op;
}

/// A tree like another, with leaves taken from a pack.
template <class T>
auto filled(T const& like, boxed_args const& leaves, int& at) {
  return tree_map([&](auto const&) { return leaves[at++]; }, like);
}
template <int Dim, class F, class Init, class Xs>
auto scan_on_tensors(F const& f, Init const& init, Xs const& xs, bool reverse) {
  static_assert(leaf_level<Init>() == 0 && leaf_level<Xs>() == 0,
                "varve: scan: tensors and values of a static transform cannot be mixed; pass tensors alone");
  auto const tensors = [](auto const& tree) { return tree_map([](auto const& v) { return tensor(as_tensor(plain(v))); }, tree); };
  auto const carried = tensors(init);
  auto const call = [&](auto const& c, auto const& x) {
    if constexpr (is_steps<Xs>) return f(c);
    else return f(c, x);
  };
  auto const walked = [&] {
    if constexpr (is_steps<Xs>) return none;
    else if constexpr (Dim == 0) return tensors(xs);
    else return tree_map([](auto const& v) { return permute(v, axis_to_front(v.sizes(), dims{Dim})); }, tensors(xs));
  }();
  using Y = decltype(call(carried, walked));
  static_assert(
      requires(Y y) { y.first, y.second; }, "varve: scan: the step must give a std::pair: what is carried on, and the outputs (or varve::none)");
  typename Y::second_type outputs{}; // what the step gave last: the structure of the outputs
  boxed_args x = flatten(carried);
  int const c = x.size();
  if constexpr (!is_steps<Xs>) x = joined(x, flatten(walked));
  index_t length = 0;
  if constexpr (is_steps<Xs>) length = to_dims(length_of(xs))[0];
  else if (x.size() > c) length = walked_size(x[c].sizes())[0];
  for (int k = c; k < x.size(); ++k)
    if (walked_size(x[k].sizes())[0] != length) refuse::shapes_do_not_match("scan (lengths of what is walked through)", dims{length}, x[k].sizes());
  if (c == 0) refuse::argument_is_invalid("scan", "init holds no value; a step must carry one at least");
  if (length <= 0) refuse::argument_is_invalid("scan", "there is nothing to walk through: the length is 0");
  boxed_function const step = [&](boxed_args const& a) {
    int at = 0;
    auto const now = filled(carried, a, at);
    Y const y = [&] {
      if constexpr (is_steps<Xs>) return call(now, none);
      else return call(now, filled(walked, a, at));
    }();
    outputs = y.second;
    boxed_args r = flatten(y.first);
    if constexpr (!is_none<typename Y::second_type>) r = joined(r, flatten(y.second));
    return r;
  };
  boxed_scan const op{step, c, x.size() - c, length, reverse};
  boxed_args const y = op(x);
  int at = 0;
  auto const last = filled(carried, y, at);
  if constexpr (is_none<typename Y::second_type>) return std::pair(last, none);
  else return std::pair(last, filled(outputs, y, at));
}
} // namespace detail

} // namespace varve
