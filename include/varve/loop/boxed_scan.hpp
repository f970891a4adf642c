// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/loop/boxed_scan_call.hpp>
#include <varve/loop/scan.hpp>

/// @file
/// `scan` on tensors. Operands come in packs of run-time size and the type of the step is erased; otherwise the rules
/// are those of `rules<scan_t>`.
namespace varve {

namespace detail {
/// A `boxed_scan` with the rules of one of the three loops: `scan`, `map` or `while_loop`.
template <class Tag>
struct boxed_loop : boxed_scan {
  using tag = Tag;
  static constexpr char const* backward_name = Tag::backward_name;
};

/// The rules of a loop, one per interpreter, instantiated from the source that they share with static values.
template <class Tag>
class boxed_loop_operator : public higher_order_operator {
public:
  boxed_loop_operator() : higher_order_operator(hop_handle<Tag>) {
    impl(dispatch_key::composite_explicit,
         [](boxed_hop const& c, auto const& x) { return boxed_scan::of(c, nullptr).run(x); });
    shared("jvp", [](auto const& in, auto const& op, auto const& x) { return rules<scan_t>::jvp(in, op, x); });
    shared("vmap", [](auto const& in, auto const& op, auto const& x) { return rules<scan_t>::vmap(in, op, x); });
    shared("grad", [](auto const& in, auto op, auto const& x) {
      std::remove_cvref_t<decltype(x)> captures, primal;
      for (auto const& t : x) primal.push_back(in.mine(t) ? t.inner() : t);
      boxed_args going;
      {
        lowered const off;
        primal = op.operands_of_step(primal, 0);
        going = op.going({}, primal);
      }
      auto const step = traced(op.f, primal, captures, 1, going[0]);
      step.refuse_writes(true);
      op.f = step.call, op.reach = step.reach;
      if (op.condition) {
        auto const condition = traced(op.condition, primal, captures);
        if (condition.draws)
          refuse::argument_is_invalid(op.op->name(),
                                      "the condition draws random numbers, which its gradient would draw "
                                      "anew; draw them in the body, and carry them");
        op.condition = condition.call;
      }
      if (auto const t = in.open_tracked(joined(x, captures)); !t.any) return op(t.primal); // no operand is recorded
      auto const call = [&](auto const& loop, auto const&... more) {
        return rules<Tag>::grad(recording_level<>{in}, boxed_loop<Tag>{loop}, joined(more..., x, captures));
      };
      if (!step.draws) return call(op);
      using P = std::remove_cvref_t<decltype(x)>;
      P const y = call(op.drawing(), rng_state_below<P>());
      return part(y, 1, y.size());
    });
    impl<trace_rule, layer&>("trace", trace_rule{});
  }

private:
  struct trace_rule {
    template <class P>
    P operator()(layer& l, boxed_hop const& c, P const& x) const {
      auto& around = *static_cast<trace_layer*>(l.object);
      auto op = boxed_scan::of(c, nullptr);
      P real = around.reals(x), captures;
      // computes the values of the trace; the graph performs effects when it is run
      auto const below = [&](auto const& body) {
        unacted_scope const silent;
        return around.beneath(body);
      };
      around.require_kept();
      if (!op.condition && !op.counted && op.rows(real) == 0) {
        P const like = below([&] { return op(real); });
        return around.within([&] { return of_no_step(op, x, like); });
      }
      P step_in = below([&] { return op.operands_of_step(real, 0); });
      P const first = step_in;
      P const going = below([&] { return op.going(around.lanes, first); });
      op.f = traced(op.f, first, captures, around.hidden + 1, going[0], &around).call;
      if (op.condition) op.condition = traced(op.condition, first, captures, around.hidden + 1, {}, &around).call;
      P all = x;
      for (auto const& t : captures) {
        if (around.is_mode() && t.has_history() && is_grad_enabled()) // recorded calls have passed them as operands
          detail::refuse_eager_gradient("the function of an operator", l.kind->name);
        all.push_back(t);
        real.push_back(around.real(t));
        step_in.push_back(around.real(t));
      }
      std::vector<int> ids;
      for (auto const& t : all) ids.push_back(around.node_of(t));
      auto const write = [&](trace_layer& inner, boxed_function const& f) {
        generator_guard const as_before(default_generator);
        P in;
        for (auto const& t : step_in) in.push_back(inner.input(t));
        inner.trace_function([&] { return f(in); });
        inner.builder.close();
      };
      trace_layer step(around);
      write(step, op.f);
      int node = -1;
      auto const add_node = [&](graph_builder* condition) {
        node = around.builder.emit_functions(&hop_handle<Tag>, op.at(), ids.data(), static_cast<int>(ids.size()),
                                             step.builder, condition);
      };
      if (op.condition) {
        trace_layer condition(around);
        write(condition, op.condition);
        add_node(&condition.builder);
      } else {
        add_node(nullptr);
      }
      op.condition = for_lanes(op.condition, around.lanes);
      P const y = below([&] { return op(real); });
      around.called(node, this_thread_state.grad_mode);
      P r;
      for (int k = 0; k < y.size(); ++k)
        r.push_back(around.wrap_result(y[k], around.builder.result_of(node, k, {y[k].dtype(), y[k].sizes()})));
      return r;
    }
  };
  /// Returns the results of a loop over no rows, without a loop: they are valid for a program with these lengths only.
  template <class P>
  static P of_no_step(boxed_scan const& op, P const& x, P const& like) {
    using T = std::remove_cvref_t<decltype(x[0])>;
    P r;
    for (int k = 0; k < like.size(); ++k)
      r.push_back(k < op.carried ? T(clone(x[k])) : T(varve::full(dims(like[k].sizes()), 0, like[k].dtype())));
    return r;
  }
  template <class R>
  void shared(char const* kind, R r) {
    auto f = [r](layer& l, boxed_hop const& c, boxed_args const& x) {
      auto const& in = *static_cast<dynamic_level*>(l.object);
      return in.own(r(in, boxed_scan::of(c, &l), x), x);
    };
    impl<decltype(f), layer&>(kind, f);
  }
};
/// Returns the boxed operator of a tag.
template <class Tag>
higher_order_operator& loop_operator();
#if VARVE_DEFINES
template <class Tag>
higher_order_operator& loop_operator() {
  static auto* const op = new boxed_loop_operator<Tag>; // never destroyed, so that it outlives every call
  (void)&known_from_start<&loop_operator<Tag>>;
  return *op;
}
template <class>
higher_order_operator& scan_operator() {
  return loop_operator<scan_t>();
}
#endif

/// Returns a tree like another, with leaves from a pack; `none` stays `none`.
template <class T>
auto filled(T const& like, boxed_args const& leaves, int& at) {
  return tree_map(
      [&](auto const& v) {
        if constexpr (is_none<std::remove_cvref_t<decltype(v)>>) return none;
        else return leaves[at++];
      },
      like);
}
/// Converts a tree of values to a tree of tensors; `none` stays `none`.
template <class T>
auto as_tensors(T const& tree) {
  return tree_map(
      [](auto const& v) {
        if constexpr (is_none<std::remove_cvref_t<decltype(v)>>) return none;
        else return tensor(as_tensor(plain(v)));
      },
      tree);
}
/// Returns the number of steps of `scan` or `map`. The operands after the `carried` ones are walked through and must
/// all have `given` rows. `given` is the number of rows of the first of them, or the given number of steps.
extent steps_of(char const* who, boxed_args const& x, bool carries, int carried, extent given);
template <int Dim, class F, class Init, class Xs>
auto scan_on_tensors(F const& f, Init const& init, Xs const& xs, bool reverse) {
  static_assert(leaf_level<Init>() == 0 && leaf_level<Xs>() == 0,
                "varve: scan: tensors and values of a static transform cannot be mixed; pass tensors alone");
  constexpr bool carries = !std::is_same_v<Init, std::tuple<>>;
  constexpr char const* who = carries ? scan_t::op_name : "map";
  auto const carried = as_tensors(init);
  auto const captured = as_tensors(captures_of(f));
  auto const call = [&](auto const& c, [[maybe_unused]] auto const& x, auto const& v) {
    auto const& bare = without_captures(f);
    return call_with(
        [&](auto const&... u) {
          if constexpr (is_steps<Xs>) return bare(c, u...);
          else return bare(c, x, u...);
        },
        v);
  };
  auto const walked = [&] {
    if constexpr (is_steps<Xs>) return none;
    else if constexpr (Dim == 0) return as_tensors(xs);
    else return tree_map([](auto const& v) { return permute(v, axis_to_front(v.sizes(), dims{Dim})); }, as_tensors(xs));
  }();
  using Y = decltype(call(carried, walked, captured));
  static_assert(gives_pair<Y>,
                "varve: scan: the step must give a std::pair: what is carried on, and the outputs (or varve::none)");
  decltype(as_tensors(std::declval<typename Y::second_type>())) outputs{}; // the last ones: for the structure
  boxed_args x = flatten(carried);
  int const c = x.size();
  if constexpr (!is_steps<Xs>) x = joined(x, flatten(walked));
  int const w = x.size() - c;
  extent const given = [&]() -> extent {
    if constexpr (is_steps<Xs>) return to_dims(length_of(xs))[0];
    else return w > 0 ? walked_size(x[c].sizes())[0] : extent(0);
  }();
  extent const length = steps_of(who, x, carries, c, given);
  boxed_function const step = [&](boxed_args const& a) {
    int at = 0;
    auto const now = filled(carried, a, at);
    auto const row = [&] {
      if constexpr (is_steps<Xs>) return none;
      else return filled(walked, a, at);
    }();
    Y const y = call(now, row, filled(captured, a, at));
    outputs = as_tensors(y.second);
    boxed_args r = flatten(y.first);
    tree_for_each(
        [&](auto const& v) {
          if constexpr (!is_none<std::remove_cvref_t<decltype(v)>>) r.push_back(v);
        },
        outputs);
    return r;
  };
  boxed_args const y =
      boxed_scan{
          &loop_operator<std::conditional_t<carries, scan_t, map_t>>(), step, {}, c, w, reverse, false, length, true}(
          joined(x, flatten(captured)));
  int at = 0;
  auto const last = filled(carried, y, at);
  return std::pair(last, filled(outputs, y, at));
}
} // namespace detail

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_LIBRARY extent steps_of(char const* who, boxed_args const& x, bool carries, int carried, extent given) {
  for (int k = carried; k < x.size(); ++k)
    if (walked_size(x[k].sizes())[0] != given) refuse::lengths_differ(who, dims{given}, x[k].sizes());
  if (carries && carried == 0) refuse::argument_is_invalid(who, "init holds no value; a step must carry one at least");
  if (given < 0 || (given == 0 && x.size() == carried))
    refuse::argument_is_invalid(who, "there is nothing to walk through: the length is 0");
  return given;
}
} // namespace varve::detail
#endif
